import type { AnyDriver, AnySession, DriverContext, Limits, Point, WirePlaces } from "../../drivers/driver.ts";
import { countOf } from "../base/number.ts";
import { toFailure } from "../model/failure.ts";
import { FaultError } from "../model/fault.ts";
import type { Explained, WireView } from "../model/source-insight.ts";
import type { Reading } from "../model/value.ts";
import { badReading, type LearnedGroups } from "./learned-groups.ts";
import { valueText } from "./live-values.ts";
import type { SourceSpec } from "./source-spec.ts";

/** Points that are read once, beside the plan. */
export interface Aside {
  readonly points: readonly Point[];
  /** By `point.index`; an Error: the source failed before they were read. */
  settle(readings: readonly (Reading | undefined)[] | Error): void;
}

/** Reads them over an open session. Never throws; a session that is lost shows in itself. */
export async function readAside(
  { points, settle }: Aside,
  driver: AnyDriver,
  limits: Limits,
  session: AnySession,
  ctx: DriverContext,
): Promise<void> {
  const readings: (Reading | undefined)[] = [];
  try {
    for (const request of driver.plan(points, limits)) {
      const found = await session.read(request, ctx).catch((error: unknown) => {
        const failure = toFailure(error);
        if (!(failure instanceof FaultError)) throw failure;
        return request.points.map(() => badReading(failure));
      });
      for (const [i, { index }] of request.points.entries()) {
        const reading = found[i];
        // The driver reuses it.
        readings[index] = reading && { ...reading };
      }
    }
    settle(readings);
  } catch (error) {
    settle(error instanceof Error ? error : new Error(String(error)));
  }
}

/** Variables whose bytes are kept, and for how long. */
const MAX_KEPT = 8;
const KEPT_MS = 60_000;

/** How the variables of one source come about. */
export class Explaining {
  readonly #spec: SourceSpec;
  readonly #learned: LearnedGroups;
  readonly #now: () => number;
  readonly #ask: (aside: Aside) => void;
  /** By place in the layout. */
  readonly #wires = new Map<number, { readonly askedMs: number; view: WireView }>();

  /** `ask` has it read in the next readout. */
  constructor(spec: SourceSpec, learned: LearnedGroups, now: () => number, ask: (aside: Aside) => void) {
    this.#spec = spec;
    this.#learned = learned;
    this.#now = now;
    this.#ask = ask;
  }

  /** The variable with this name or uuid; undefined: there is none. The first look has its bytes read. */
  look(variable: string): Explained | undefined {
    const { layout, driver, refused, scalings } = this.#spec;
    const index = layout.variables.findIndex(({ name, uuid }) => name === variable || uuid === variable.toLowerCase());
    if (index === -1) return undefined;
    const point = this.#learned.points.find((one) => one.index === index);
    const planned = this.#learned.groups
      .flatMap(({ requests }) => requests)
      .find(({ request }) => request.points.some((one) => one.index === index))?.request;
    const closed = point && this.#learned.known.closed.get(point)?.reading;
    const aside = closed ?? refused.get(index);
    return {
      request: planned ? (driver.describe?.(planned) ?? `a request for ${countOf(planned.points.length, "variable")}`) : null,
      set_aside: aside?.quality === "bad" ? `${aside.fault}${aside.detail === undefined ? "" : `: ${aside.detail}`}` : null,
      scaling: scalings.get(index) ?? null,
      wire: point ? this.#wireOf(index, point) : null,
    };
  }

  #wireOf(index: number, { address, type }: Point): WireView | null {
    const known = this.#wires.get(index);
    if (known && this.#now() - known.askedMs < KEPT_MS) return known.view;
    const places = this.#spec.driver.wireOf?.(address, type);
    if (!places) return null;
    const { bytes, orders, form = null } = places;
    const asked: { readonly askedMs: number; view: WireView } = { askedMs: this.#now(), view: { state: "pending" } };
    this.#wires.delete(index);
    this.#wires.set(index, asked);
    const [oldest] = this.#wires.keys();
    if (this.#wires.size > MAX_KEPT && oldest !== undefined) this.#wires.delete(oldest);
    this.#ask({
      points: [
        { index: 0, ...bytes },
        ...orders.map((order, i): Point => ({ index: i + 1, address: order.address, type })),
        // The variable itself, where no order is its own.
        ...(orders.some(({ isConfigured }) => isConfigured) ? [] : [{ index: orders.length + 1, address, type }]),
      ],
      settle: (readings) => {
        asked.view =
          readings instanceof Error
            ? { state: "failed", detail: readings.message }
            : viewOf({ ...places, form }, readings, (reading) => valueText(reading.value, reading.type ?? type));
      },
    });
    return asked.view;
  }
}

type Good = Exclude<Reading, { readonly quality: "bad" }>;

function viewOf(
  { bytes, orders, form }: Pick<WirePlaces, "bytes" | "orders"> & { readonly form: string | null },
  [raw, ...others]: readonly (Reading | undefined)[],
  textOf: (reading: Good) => string,
): WireView {
  if (!raw || raw.quality === "bad") return { state: "failed", detail: raw?.detail ?? raw?.fault ?? "it was not answered" };
  const width = bytes.type.scalar === "uint8" ? 1 : 2;
  const own = orders.findIndex(({ isConfigured }) => isConfigured);
  const now = others[own === -1 ? orders.length : own];
  const cells = typeof raw.value === "object" ? raw.value : [raw.value];
  return {
    state: "read",
    bytes: cells
      .map((cell) =>
        Number(cell)
          .toString(16)
          .padStart(width * 2, "0"),
      )
      .join(""),
    form,
    value: now && now.quality !== "bad" ? textOf(now) : null,
    orders: orders.map(({ order, isConfigured }, i) => {
      const reading = others[i];
      if (!reading || reading.quality === "bad")
        return { order, configured: isConfigured, value: null, detail: reading?.detail ?? reading?.fault ?? null };
      return { order, configured: isConfigured, value: textOf(reading), detail: null };
    }),
  };
}
