import type { Agent } from "../../agent/agent.ts";
import type { Sample } from "../../agent/live-values.ts";
import { createYielder } from "../../base/timer.ts";
import type { SourceReport } from "../../model/report.ts";
import { toSourceStatus } from "../../model/service-status.ts";
import { type PageSource, type SourceChanges, type SourceLook, type SourceView, VARIABLES_AT_ONCE } from "./messages.ts";

/** Of more sources than these each is looked at less often than it is asked for, but for those whose state is another. */
const LOOKED_AT = 200;
/** After a pause all are looked at. */
const PAUSE_MS = 5000;

interface Known {
  /** The report that was told last. */
  readonly report: SourceReport;
  readonly mark: object | undefined;
}

/** Tells the page, by slices, which sources have changed. */
export class SourceFeed {
  readonly #agent: Pick<Agent, "glances" | "inspect">;
  /** Monotonic ms. */
  readonly #now: () => number;
  /** In their order. */
  #known = new Map<string, Known>();
  /** When the newest sample of a source was read, epoch ms. */
  readonly #sampledAt = new Map<string, number>();
  /** The place of the first that is looked at next. */
  #next = 0;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(agent: Pick<Agent, "glances" | "inspect">, now: () => number = () => performance.now()) {
    this.#agent = agent;
    this.#now = now;
  }

  /** The worker knows nothing any more. */
  forget(): void {
    this.#known = new Map();
    this.#sampledAt.clear();
  }

  /**
   * Changes since the last call; undefined: none. Adds what was read to `samples`. A change of a state is seen at once; notes, bad
   * variables and values of many sources are those of the last few calls.
   */
  async changes(samples: Map<string, Sample>): Promise<SourceChanges | undefined> {
    const yieldToEventLoop = createYielder();
    const before = this.#known;
    const isTurn = this.#turn(before.size);
    const now = new Map<string, Known>();
    const changed: PageSource[] = [];
    let place = 0;
    for (const { uuid, mark, look } of this.#agent.glances()) {
      const known = before.get(uuid);
      const hasTurn = isTurn(place++);
      if (known && known.mark === mark && !hasTurn) {
        now.set(uuid, known);
        continue;
      }
      const { report, sample } = look() ?? {};
      if (!report) continue;
      const isSame = known !== undefined && isSameForPage(known.report, report);
      now.set(uuid, { report: isSame ? known.report : report, mark });
      if (!isSame) changed.push(toPageSource(report));
      if (sample && this.#sampledAt.get(uuid) !== sample.at) {
        samples.set(uuid, sample);
        this.#sampledAt.set(uuid, sample.at);
      }
      await yieldToEventLoop();
    }
    if (this.#known !== before) return undefined;
    this.#known = now;
    const order = isSameOrder(before, now) ? null : [...now.keys()];
    if (order) for (const uuid of this.#sampledAt.keys()) if (!now.has(uuid)) this.#sampledAt.delete(uuid);
    return order || changed.length > 0 ? { type: "sources", order, changed } : undefined;
  }

  /** Whose turn it is, by the place of a source among `count`. */
  #turn(count: number): (place: number) => boolean {
    const nowMs = this.#now();
    const hasPaused = nowMs - this.#lastAt > PAUSE_MS;
    this.#lastAt = nowMs;
    if (hasPaused || count <= LOOKED_AT) return () => true;
    const from = this.#next % count;
    this.#next = from + LOOKED_AT;
    return (place) => (place - from + count) % count < LOOKED_AT;
  }

  /** One source in detail; undefined: there is none with this uuid. */
  view(look: SourceLook): SourceView | undefined {
    const { uuid, from, hasPlan } = look;
    const filter = look.filter.toLowerCase();
    let matching = 0;
    const isMeant = ({ name, address }: { readonly name: string; readonly address: string }): boolean => {
      if (filter !== "" && !name.toLowerCase().includes(filter) && !address.toLowerCase().includes(filter)) return false;
      const place = matching++;
      return place >= from && place < from + VARIABLES_AT_ONCE;
    };
    const found = this.#agent.inspect(uuid, { isMeant, hasPlan });
    if (!found) return undefined;
    const { report, plan, readout } = found;
    return { look, source: toSourceStatus(report), plan: hasPlan ? plan : undefined, readout, matching };
  }
}

function toPageSource({ layout: _, discovers: __, counters: ___, status, ...report }: SourceReport): PageSource {
  const { last_readout_at: ____, ...rest } = status;
  return { ...report, status: rest };
}

function isSameOrder(before: ReadonlyMap<string, unknown>, now: ReadonlyMap<string, unknown>): boolean {
  if (before.size !== now.size) return false;
  const order = now.keys();
  for (const uuid of before.keys()) if (uuid !== order.next().value) return false;
  return true;
}

/** But for what each readout changes. */
const isSameForPage = (a: SourceReport, b: SourceReport): boolean =>
  a.name === b.name &&
  a.type === b.type &&
  a.endpoint === b.endpoint &&
  a.since === b.since &&
  a.interval_ms === b.interval_ms &&
  a.next_retry_at === b.next_retry_at &&
  a.status.configured_variables === b.status.configured_variables &&
  a.status.state.type === b.status.state.type &&
  isSameError(a.error, b.error) &&
  isSameList(a.warnings, b.warnings, (one, other) => one.text === other.text && one.code === other.code && one.since === other.since) &&
  isSameList(
    a.faults,
    b.faults,
    (one, other) => one.variable === other.variable && one.fault === other.fault && one.detail === other.detail,
  );

/** A reason that changes has another `since`. */
const isSameError = (a: SourceReport["error"], b: SourceReport["error"]): boolean =>
  a === b || (a !== null && b !== null && a.condition === b.condition && a.reason.type === b.reason.type && a.detail === b.detail);

const isSameList = <T>(a: readonly T[], b: readonly T[], isSame: (one: T, other: T) => boolean): boolean =>
  a === b ||
  (a.length === b.length &&
    a.every((one, i) => {
      const other = b[i];
      return other !== undefined && isSame(one, other);
    }));
