import type { Agent } from "../../agent/agent.ts";
import type { Sample } from "../../agent/live-values.ts";
import type { SourceReport } from "../../model/report.ts";
import { toSourceStatus } from "../../model/service-status.ts";
import { createYielder } from "../../model/timer.ts";
import { type PageSource, type SourceChanges, type SourceLook, type SourceView, VARIABLES_AT_ONCE } from "../../threads/page/messages.ts";

/** What the page is told of the sources, beside which they are read: by slices, and only what has changed. */
export class SourceFeed {
  readonly #agent: Pick<Agent, "glances" | "inspect">;
  /** As they were told, in their order. */
  #known = new Map<string, SourceReport>();
  /** When the newest sample of a source was read, epoch ms. */
  readonly #sampledAt = new Map<string, number>();

  constructor(agent: Pick<Agent, "glances" | "inspect">) {
    this.#agent = agent;
  }

  /** The worker knows nothing any more. */
  forget(): void {
    this.#known = new Map();
    this.#sampledAt.clear();
  }

  /** What has changed since the last call; undefined: nothing. Adds what was read to `samples`. */
  async changes(samples?: Map<string, Sample>): Promise<SourceChanges | undefined> {
    const yieldToEventLoop = createYielder();
    const before = this.#known;
    const now = new Map<string, SourceReport>();
    const changed: PageSource[] = [];
    for (const { report, sample } of this.#agent.glances()) {
      const known = before.get(report.uuid);
      const isSame = known !== undefined && isSameForPage(known, report);
      now.set(report.uuid, isSame ? known : report);
      if (!isSame) changed.push(toPageSource(report));
      if (samples && sample && this.#sampledAt.get(report.uuid) !== sample.at) {
        samples.set(report.uuid, sample);
        this.#sampledAt.set(report.uuid, sample.at);
      }
      await yieldToEventLoop();
    }
    if (this.#known !== before) return undefined;
    this.#known = now;
    const order = isSameOrder(before, now) ? null : [...now.keys()];
    if (order) for (const uuid of this.#sampledAt.keys()) if (!now.has(uuid)) this.#sampledAt.delete(uuid);
    return order || changed.length > 0 ? { type: "sources", order, changed } : undefined;
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
  isSameList(a.warnings, b.warnings, (one, other) => one === other) &&
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
