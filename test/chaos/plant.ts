import type { AnyDriver, AnySession, DriverContext, Limits, Point, Request } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import s7 from "../../drivers/s7/driver.ts";
import { sleep } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Play, TroubleKind, TroublePlan } from "./play.ts";

/** How one type of device is asked. Drivers plan as they are; what they ask is not put into bytes. */
interface Dialect {
  readonly driver: AnyDriver;
  readonly limits: Limits;
  addressOf(unit: number, place: number): string;
  /** The unit and place of a point, by its address. */
  placeOf(address: never): { readonly unit: number; readonly place: number };
  /** Places that the request reads, those between its points too. */
  spanOf(request: Request): number;
}

const modbusDriver = modbus as unknown as AnyDriver;
const s7Driver = s7 as unknown as AnyDriver;
export const DIALECTS: Readonly<Record<"modbus_tcp" | "s7", Dialect>> = {
  modbus_tcp: {
    driver: modbusDriver,
    limits: { maxPoints: 65_536, maxBytes: 250, inFlight: 1 },
    addressOf: (unit, place) => `${unit}/holding:${place}`,
    placeOf: ({ unit, start }: { readonly unit: number; readonly start: number }) => ({ unit, place: start }),
    spanOf: (request) => (request as unknown as { readonly count: number }).count,
  },
  s7: {
    driver: s7Driver,
    limits: { maxPoints: 1000, maxBytes: 200, inFlight: 1, maxItems: 2, pduBytes: 240, maxGap: 8 } as Limits,
    addressOf: (unit, place) => `DB${unit}.DBW${2 * place}`,
    placeOf: ({ block, start }: { readonly block: number; readonly start: number }) => ({ unit: block, place: start / 2 }),
    spanOf: ({ points }) => points.length,
  },
};

/** A device keeps what it says of itself in each value: who reads it knows where and when it was made. */
export interface Made {
  readonly device: number;
  readonly unit: number;
  readonly place: number;
  readonly boot: number;
  readonly atMs: number;
}
export const textOf = ({ device, unit, place, boot, atMs }: Made): string => [device, unit, place, boot, atMs].join(" ");
export function madeOf(text: string): Made {
  const [device = -1, unit = -1, place = -1, boot = -1, atMs = -1] = text.split(" ").map(Number);
  return { device, unit, place, boot, atMs };
}

const SLOW_MS = 300;
const VERY_SLOW_MS = 2700;
const DEAF_MS = 800;
/** A hurried device loses what comes within this of an answer. */
const HURRIED_MS = 50;
const SHORT_SPAN = 1;

/** The devices of a play, in a time that fake timers make. */
export class Plant {
  readonly boots: number[];
  /** Requests that came to each device. */
  readonly asked: number[];
  readonly #play: Play;
  readonly #active = new Set<TroublePlan>();
  readonly #freeAtMs: number[];

  constructor(play: Play) {
    this.#play = play;
    this.boots = play.devices.map(() => 1);
    this.asked = play.devices.map(() => 0);
    this.#freeAtMs = play.devices.map(() => 0);
  }

  begin(trouble: TroublePlan): void {
    this.#active.add(trouble);
    const device = this.#play.sources[trouble.source]?.device ?? 0;
    if (trouble.kind === "reboot") this.boots[device] = (this.boots[device] ?? 0) + 1;
  }

  end(trouble: TroublePlan): void {
    this.#active.delete(trouble);
  }

  /** Troubles of the device, or of this unit and these places of it. */
  #is(device: number, kind: TroubleKind, points: readonly Point[] = []): boolean {
    const { sources, devices } = this.#play;
    for (const trouble of this.#active) {
      const of = sources[trouble.source];
      if (trouble.kind !== kind || of?.device !== device) continue;
      if (!kind.startsWith("unit") && !kind.startsWith("place")) return true;
      const { placeOf } = DIALECTS[devices[device]?.type ?? "s7"];
      const places = points.map(({ address }) => placeOf(address as never));
      const isHit = places.some(({ unit, place }) => unit === of.unit && (kind.startsWith("unit") || place === of.places[1]));
      if (isHit) return true;
    }
    return false;
  }

  /** `isGone`: the collector that connects was killed; nothing comes to it any more. */
  async connect(device: number, { signal, timeouts: { connectMs } }: DriverContext, isGone: () => boolean): Promise<AnySession> {
    signal.throwIfAborted();
    await this.#unless(isGone);
    if (this.#is(device, "connect refused")) throw new ReasonError("CONNECTION_REFUSED", "refused");
    if (this.#is(device, "no route")) throw new ReasonError("NO_ROUTE_TO_HOST", "no route");
    if (this.#is(device, "connect without an answer")) {
      await sleep(connectMs, signal);
      throw new ReasonError("TIMEOUT", "no connection (connecting)");
    }
    return this.#session(device, isGone);
  }

  /** Never settles for a collector that was killed. */
  async #unless(isGone: () => boolean): Promise<void> {
    if (isGone()) await new Promise<never>(() => {});
  }

  #session(device: number, isGone: () => boolean): AnySession {
    const plan = this.#play.devices[device];
    if (!plan) throw new Error(`there is no device ${device}`);
    const { limits, spanOf, placeOf } = DIALECTS[plan.type];
    const boot = this.boots[device];
    const openedMs = Date.now();
    let isAlive = true;
    let requests = 0;
    let answeredMs = Number.NEGATIVE_INFINITY;
    const lose = (error: unknown): never => {
      isAlive = false;
      throw error;
    };
    const read = async (request: Request, { signal, timeouts: { answerMs } }: DriverContext) => {
      await this.#unless(isGone);
      const { points } = request;
      const is = (kind: TroubleKind) => this.#is(device, kind, points);
      const asked = (this.asked[device] ?? 0) + 1;
      this.asked[device] = asked;
      requests++;
      if (!isAlive || boot !== this.boots[device] || is("resets")) return lose(new ReasonError("CONNECTION_RESET", "reset"));
      const isLost =
        is("silent") ||
        is("unit silent") ||
        is("place silent") ||
        (is("deaf at first") && Date.now() - openedMs < DEAF_MS) ||
        (is("drops the first request") && requests === 1) ||
        (is("loses every fifth request") && asked % 5 === 0) ||
        (is("hurried") && Date.now() - answeredMs < HURRIED_MS);
      const ownMs = is("very slow") ? VERY_SLOW_MS : is("slow") || is("unit slow") ? SLOW_MS : plan.answerMs;
      const beginsMs = Math.max(Date.now(), this.#freeAtMs[device] ?? 0);
      const isGivenUp = is("unit given up by its gateway");
      const workMs = isLost ? plan.holdMs : isGivenUp ? Math.max(plan.holdMs, ownMs) : ownMs;
      const takesMs = isLost ? Number.POSITIVE_INFINITY : beginsMs + workMs - Date.now();
      // A gateway drops the requests of a closed connection that it has not begun.
      if (beginsMs === Date.now() || beginsMs < Date.now() + answerMs) this.#freeAtMs[device] = beginsMs + workMs;
      await sleep(Math.min(takesMs, answerMs), signal);
      await this.#unless(isGone);
      if (signal.aborted) return lose(signal.reason);
      if (takesMs > answerMs) return lose(new ReasonError("TIMEOUT", `no answer within ${answerMs} ms`));
      if (boot !== this.boots[device]) return lose(new ReasonError("CONNECTION_RESET", "reset"));
      if (is("place ends the connection")) return lose(new ReasonError("CONNECTION_CLOSED", "closed"));
      if (is("garbage")) return lose(new ReasonError("UNKNOWN", "garbage", { condition: "protocol_violation" }));
      answeredMs = Date.now();
      if (is("closes after each answer")) isAlive = false;
      if (isGivenUp) throw new FaultError("no_answer", "exception 11", { scope: "silent" });
      if (is("busy") || is("unit busy") || is("place busy")) throw new FaultError("device_error", "busy", { scope: "busy" });
      if (is("refuses everything")) throw new FaultError("access_denied", "locked", { scope: "everything" });
      if (is("place missing")) throw new FaultError("not_found", "missing");
      if (is("short blocks") && points.length > SHORT_SPAN) throw new FaultError("out_of_range", "too long");
      if (is("no gaps") && spanOf(request) > points.length) throw new FaultError("not_found", "between");
      const atMs = Date.now();
      return points.map(({ address }) => {
        const value = textOf({ device, ...placeOf(address as never), boot: boot ?? 0, atMs });
        return { quality: "good" as const, value };
      });
    };
    const close = async () => {
      isAlive = false;
    };
    return { limits, alive: () => isAlive && boot === this.boots[device], close, read } as unknown as AnySession;
  }
}
