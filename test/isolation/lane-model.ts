import { vi } from "vitest";
import type { AnyDriver, AnySession, DriverContext, Limits, Request } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import type { ModbusRead } from "../../drivers/modbus_tcp/plan.ts";
import opcua from "../../drivers/opcua/driver.ts";
import type { OpcuaRead } from "../../drivers/opcua/plan.ts";
import type { SourceInput } from "../../src/agent/source-spec.ts";
import { sleep } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import { type PlainReasonType, ReasonError } from "../../src/model/reason.ts";
import type { Readout } from "../../src/model/value.ts";
import { rig, source, variable } from "../support/agent.ts";

/** What goes wrong: with a whole unit, or with one register of it. */
export interface LaneFault {
  readonly kind: "silent" | "slow" | "busy" | "fin" | "rst" | "malformed" | "gateway" | "missing" | "refused";
  readonly unit: number;
  /** Absent: whatever is asked of the unit. */
  readonly register?: number | undefined;
  /** `slow` alone: each answer takes so long. */
  readonly takesMs?: number;
}

export interface LaneSource {
  readonly units: readonly number[];
  readonly intervalMs: number;
}

export interface LaneOptions {
  readonly type: LaneType;
  readonly sources: readonly LaneSource[];
  readonly answerMs: number;
  /** A serial gateway is busy for so long with what has no answer, and takes nothing else meanwhile; 0: it is a device that forgets it. */
  readonly busyMs: number;
  /** Of each unit; absent: REGISTERS. */
  readonly registers?: readonly number[];
}

/** Registers of each unit: a request for the first nine, and one for the others. */
export const REGISTERS: readonly number[] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000, 1001, 1002];
export const ANSWER_TIMEOUT_MS = 3000;
const PORT = 4840;

/** How one type of source plans and names what it reads. What it asks is not put into bytes. */
interface Dialect {
  readonly driver: AnyDriver;
  readonly details: Readonly<Record<string, unknown>>;
  readonly limits: Limits;
  readonly valueType: string;
  addressOf(unit: number, register: number): string;
  /** The unit that is asked, and what of it. */
  rangesOf(request: Request): readonly { readonly unit: number; readonly first: number; readonly last: number }[];
}

const NODE = /^u(\d+)r(\d+)$/;
const DIALECTS = {
  modbus_tcp: {
    driver: modbus as unknown as AnyDriver,
    details: { host: "127.0.0.1", port: PORT, ephemeral_connections: false },
    limits: {
      maxPoints: 65_536,
      maxBytes: 250,
      inFlight: 1,
      maxRegisters: 125,
      maxCoils: 2000,
      maxGap: 10,
      maxGapCoils: 0,
      pauseMs: 0,
    } as Limits,
    valueType: "uint16",
    addressOf: (unit, register) => `${unit}/holding:${register}`,
    rangesOf(request) {
      const { unit, start, count } = request as ModbusRead;
      return [{ unit, first: start, last: start + count - 1 }];
    },
  },
  opcua: {
    driver: opcua as unknown as AnyDriver,
    details: {
      host: "127.0.0.1",
      port: PORT,
      endpoint_url: `opc.tcp://127.0.0.1:${PORT}`,
      security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" },
      user_identity: { type: "Anonymous" },
    },
    // As many nodes as the larger block has.
    limits: { maxPoints: 9, maxBytes: 10_000, inFlight: 1 },
    valueType: "float64",
    addressOf: (unit, register) => `ns=1;s=u${unit}r${register}`,
    rangesOf: (request) =>
      (request as OpcuaRead).points.map(({ address }) => {
        const [, unit, register] = NODE.exec("id" in address ? String(address.id.value) : "") ?? [];
        return { unit: Number(unit), first: Number(register), last: Number(register) };
      }),
  },
} satisfies Record<string, Dialect>;
export type LaneType = keyof typeof DIALECTS;

/** One variable, and when it had a good value last; at first, when it was first asked. */
export interface LanePoint {
  readonly unit: number;
  readonly register: number;
  goodAtMs: number;
}

export interface SeenReadout {
  readonly atMs: number;
  readonly good: number;
  /** Variables with neither a value nor a fault. */
  readonly unexplained: number;
  /** Requests since the readout before that gave values. */
  readonly asked: number;
  /** Readouts so far, with those that failed. */
  readonly number: number;
}

/**
 * The agent with several sources on one device, without sockets and in a time of its own: minutes of it take milliseconds. Fake timers
 * have to be in use, and setImmediate has to be the real one.
 */
export class LaneModel {
  readonly faults = new Set<LaneFault>();
  /** Why no connection can be opened; undefined: it can. Kept ones end with it. */
  outage: PlainReasonType | undefined;
  /** By source. */
  readonly points: readonly (readonly LanePoint[])[];
  /** By source. */
  readonly seen: readonly SeenReadout[][];
  /** By unit: when a readout brought each of its variables with a good value. */
  readonly wholeAtMs = new Map<number, number[]>();
  /** Values of another variable, or older than their readout. */
  wrong = 0;
  readonly #options: LaneOptions;
  readonly #dialect: Dialect;
  readonly #rig: ReturnType<typeof rig>;
  readonly #asked: number[];
  #freeAtMs = 0;

  private constructor(options: LaneOptions) {
    this.#options = options;
    this.#dialect = DIALECTS[options.type];
    this.points = options.sources.map(({ units }) =>
      units.flatMap((unit) => this.#registers.map((register) => ({ unit, register, goodAtMs: Date.now() }))),
    );
    this.seen = options.sources.map(() => []);
    this.#asked = options.sources.map(() => 0);
    const { driver } = this.#dialect;
    const connect = async (_: unknown, ctx: DriverContext): Promise<AnySession> => this.#connect(ctx);
    const modelled: AnyDriver = { ...driver, load: () => undefined, connect };
    const clock = { monotonicMs: () => Date.now(), epochMs: () => Date.now(), synced: () => true, bootedAtMs: () => 0 };
    this.#rig = rig({
      drivers: { [options.type]: { driver: async () => ({ default: modelled }) } },
      clock,
      emit: ({ source: { name } }, readout) => this.#take(Number(name.split("-")[1]) - 1, readout),
    });
  }

  get #registers(): readonly number[] {
    return this.#options.registers ?? REGISTERS;
  }

  /** `before`: of the device, before anything is read. */
  static async start(options: LaneOptions, before?: (model: LaneModel) => void): Promise<LaneModel> {
    const model = new LaneModel(options);
    before?.(model);
    await model.#rig.agent.apply(options.sources.map((one, n) => model.#inputOf(one, n + 1)));
    return model;
  }

  async stop(): Promise<void> {
    let hasStopped = false;
    const stopping = this.#rig.agent.stop().then(() => {
      hasStopped = true;
    });
    while (!hasStopped) await this.pass(100);
    await stopping;
  }

  /** Lets so much time pass. */
  async pass(ms: number): Promise<void> {
    const endMs = Date.now() + ms;
    // The last step does not go beyond the end.
    const end = setTimeout(() => {}, ms);
    while (Date.now() < endMs) {
      vi.advanceTimersToNextTimer();
      await settled();
    }
    clearTimeout(end);
  }

  /** `OK`, or the reason. */
  stateOf(n: number): string {
    const { state } = this.#reportOf(n).status;
    return state.type === "ERROR" ? state.reason.type : state.type;
  }

  #reportOf(n: number) {
    const report = this.#rig.report(n + 1);
    if (!report) throw new Error(`there is no source ${n}`);
    return report;
  }

  #inputOf({ units, intervalMs }: LaneSource, n: number): SourceInput {
    const { type } = this.#options;
    const { addressOf, details } = this.#dialect;
    const addresses = units.flatMap((unit) => this.#registers.map((register) => addressOf(unit, register)));
    const variables = addresses.map((address, i) => variable(n, i, address, { type: this.#dialect.valueType }));
    const input = source(n, PORT, { variables, local: { connect_timeout: "1s", answer_timeout: `${ANSWER_TIMEOUT_MS}ms` } });
    const own = { type, ...details } as SourceInput["record"]["details"];
    return { ...input, record: { ...input.record, type, readout_interval: intervalMs, details: own } };
  }

  #take(n: number, { readings, time }: Readout): void {
    const atMs = Date.now();
    let good = 0;
    let unexplained = 0;
    const failed = new Set<number>();
    this.points[n]?.forEach((point, i) => {
      if (!readings[i]) unexplained++;
      if (readings[i]?.quality !== "good") {
        failed.add(point.unit);
        return;
      }
      const [unit, register, madeMs] = String(readings[i].value).split(" ").map(Number);
      const isOwn = unit === point.unit && register === point.register;
      if (!isOwn || madeMs === undefined || madeMs < time) this.wrong++;
      good++;
      point.goodAtMs = atMs;
    });
    for (const unit of this.#options.sources[n]?.units ?? [])
      if (!failed.has(unit)) this.wholeAtMs.set(unit, [...(this.wholeAtMs.get(unit) ?? []), atMs]);
    this.seen[n]?.push({ atMs, good, unexplained, asked: this.#asked[n] ?? 0, number: this.#reportOf(n).counters.readouts });
    this.#asked[n] = 0;
  }

  async #connect({ signal, timeouts: { connectMs } }: DriverContext): Promise<AnySession> {
    signal.throwIfAborted();
    if (this.outage === "TIMEOUT") await sleep(connectMs, signal);
    if (this.outage) throw new ReasonError(this.outage, "no connection");
    let isAlive = true;
    const lose = (error: unknown): never => {
      isAlive = false;
      throw error;
    };
    const read = async (request: Request, { signal: ending, timeouts: { answerMs } }: DriverContext) => {
      if (!isAlive) throw new ReasonError("CONNECTION_CLOSED", "the device closed the connection");
      if (this.outage) return lose(new ReasonError(this.outage, "the connection ended"));
      this.#count(request);
      const fault = this.#faultOf(request);
      const takesMs = this.#answersAt(fault) - Date.now();
      await sleep(Math.min(takesMs, answerMs), ending);
      if (ending.aborted) return lose(ending.reason);
      if (takesMs > answerMs) return lose(new ReasonError("TIMEOUT", `no answer within ${answerMs} ms`));
      switch (fault?.kind) {
        case "fin":
          return lose(new ReasonError("CONNECTION_CLOSED", "the device closed the connection"));
        case "rst":
          return lose(new ReasonError("CONNECTION_RESET", "reset"));
        case "malformed":
          return lose(new ReasonError("UNKNOWN", "garbage", { condition: "protocol_violation" }));
        case "gateway":
          throw new FaultError("no_answer", "exception 11", { scope: "silent" });
        case "missing":
          throw new FaultError("not_found", "exception 2");
        case "busy":
          throw new FaultError("device_error", "exception 6", { scope: "busy" });
        case "refused":
          throw new FaultError("device_error", "exception 4");
        default:
          return request.points.map((point) => ({ quality: "good" as const, value: this.#valueOf(request, point) }));
      }
    };
    const close = async () => {
      isAlive = false;
    };
    return { limits: this.#dialect.limits, alive: () => isAlive, close, read } as unknown as AnySession;
  }

  /** Who reads it knows unit, register and second of it. */
  #valueOf(request: Request, { index }: Request["points"][number]): string {
    const [range] = this.#dialect.rangesOf(request);
    const n = this.#options.sources.findIndex(({ units }) => range && units.includes(range.unit));
    const { unit, register } = this.points[n]?.[index] ?? {};
    return `${unit} ${register} ${Date.now()}`;
  }

  #count(request: Request): void {
    const [range] = this.#dialect.rangesOf(request);
    const n = this.#options.sources.findIndex(({ units }) => range && units.includes(range.unit));
    this.#asked[n] = (this.#asked[n] ?? 0) + 1;
  }

  /** When the answer comes, which may be never. The device takes one request at a time. */
  #answersAt(fault: LaneFault | undefined): number {
    const { answerMs, busyMs } = this.#options;
    const beginsMs = Math.max(Date.now(), this.#freeAtMs);
    if (fault?.kind === "silent") this.#freeAtMs = beginsMs + busyMs;
    else if (fault?.kind === "slow") this.#freeAtMs = beginsMs + (fault.takesMs ?? answerMs);
    else this.#freeAtMs = beginsMs + (fault?.kind === "gateway" ? Math.max(busyMs, answerMs) : answerMs);
    return fault?.kind === "silent" ? Number.POSITIVE_INFINITY : this.#freeAtMs;
  }

  #faultOf(request: Request): LaneFault | undefined {
    const ranges = this.#dialect.rangesOf(request);
    for (const fault of this.faults) {
      const { unit, register } = fault;
      if (ranges.some((range) => range.unit === unit && (register === undefined || (range.first <= register && register <= range.last))))
        return fault;
    }
    return undefined;
  }
}

/** Turns of the event loop in which what follows from a timer is done, as far as it waits for no other one. */
const TURNS = 4;

async function settled(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise((done) => setImmediate(done));
}
