import type { AnyDriver, Limits, Request } from "../../drivers/driver.ts";
import type { Habit } from "../model/habit.ts";
import { MAX_REQUESTS_SHOWN, type MeasuredReadouts, type PlannedRequest, type PlanView } from "../model/source-insight.ts";
import { type DataType, NUMBER_BYTES } from "../model/value.ts";
import type { LearnedGroups } from "./learned-groups.ts";

/** Readouts that are remembered. */
const KEPT = 20;
/** The interval that is proposed leaves this much room. */
export const ROOM = 1.25;

/** How long the last readouts took. */
export class ReadoutTimes {
  readonly #spans: number[] = [];
  readonly #waits: number[] = [];
  /** Place of the next one, in the stead of the oldest. */
  #at = 0;
  #unreached = 0;

  /** After a readout that was answered. */
  take({ spanMs, waitedMs, unreached }: { readonly spanMs: number; readonly waitedMs: number; readonly unreached: number }): void {
    this.#spans[this.#at] = spanMs;
    this.#waits[this.#at] = waitedMs;
    this.#at = (this.#at + 1) % KEPT;
    this.#unreached = unreached;
  }

  /** Null: none was answered. */
  get measured(): MeasuredReadouts | null {
    if (this.#spans.length === 0) return null;
    const sorted = this.#spans.toSorted((a, b) => a - b);
    return {
      readouts: sorted.length,
      median_ms: sorted[sorted.length >> 1] ?? 0,
      longest_ms: sorted.at(-1) ?? 0,
      longest_wait_ms: Math.max(...this.#waits),
      unreached: this.#unreached,
    };
  }
}

/** What is read, and within which bounds. */
export interface PlanOf {
  readonly driver: AnyDriver;
  readonly learned: LearnedGroups;
  /** Those of the device. */
  readonly habits: readonly Habit[];
  readonly intervalMs: number;
  readonly maxConnections: number;
  readonly measured: MeasuredReadouts | null;
}

/** The plan of a source as it is now, held against its interval. Changes nothing of it. */
export function planView({ driver, learned, habits, intervalMs, maxConnections, measured }: PlanOf): PlanView {
  // A silent unit is asked now and then, and not in each readout.
  const isSilent = ({ part }: Request): boolean => part !== undefined && learned.known.silent.has(part);
  const planned = learned.groups.flatMap(({ requests }) => requests.flatMap(({ request }) => (isSilent(request) ? [] : request)));
  const bytes = planned.map((request) => bytesOf(driver, request));
  const neededMs = measured ? (measured.longest_ms + measured.longest_wait_ms) * missing(measured, learned.width) : null;
  return {
    interval_ms: intervalMs,
    variables: learned.points.length,
    requests: planned.length,
    bytes: bytes.reduce((sum, n) => sum + n, 0),
    max_connections: maxConnections,
    limits: numbersOf(learned.limits),
    set_aside: learned.known.closed.size,
    silent: [...learned.known.silent.keys()],
    habits,
    measured,
    feasible_interval_ms: neededMs === null ? null : feasible(neededMs * ROOM),
    fits: neededMs === null ? null : neededMs <= intervalMs && measured?.unreached === 0,
    first_requests: planned.slice(0, MAX_REQUESTS_SHOWN).map((request, i): PlannedRequest => {
      const { points, part } = request;
      return { words: driver.describe?.(request) ?? "a request", part: part ?? null, variables: points.length, bytes: bytes[i] ?? 0 };
    }),
  };
}

/** How many times as long a readout would take that reaches everything. */
const missing = ({ unreached }: MeasuredReadouts, all: number): number => (unreached >= all ? 2 : all / Math.max(1, all - unreached));

/** Steps in which people write intervals, ms. */
const STEPS = [50, 100, 200, 250, 500];

/** The next interval that people would write: above a second, whole seconds. Pure. */
export const feasible = (ms: number): number => STEPS.find((step) => step >= ms) ?? Math.ceil(ms / 1000) * 1000;

const bytesOf = (driver: AnyDriver, request: Request): number =>
  driver.answerBytes?.(request) ?? request.points.reduce((sum, { type }) => sum + typeBytes(type), 0);

/** Of a value on the wire, as far as its type says; a type that comes with the value counts as eight. */
function typeBytes({ scalar, maxBytes, count = 1 }: DataType): number {
  if (scalar === "string") return count * (maxBytes ?? 0);
  if (scalar === "bool") return count;
  return count * (scalar === "auto" ? 8 : NUMBER_BYTES[scalar]);
}

const numbersOf = (limits: Limits | undefined): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(limits ?? {}).filter((entry): entry is [string, number] => typeof entry[1] === "number"));
