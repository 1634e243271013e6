import type { SinkStatus } from "../../model/service-status.ts";

/** An hour of a sink's ledger, in values. */
export interface LedgerHour {
  /** Its beginning, epoch ms. */
  readonly at: number;
  readonly accepted: number;
  readonly delivered: number;
  readonly unconfirmed: number;
  readonly dropped: number;
  /** At its end, or now. */
  readonly pending: number;
}

type Totals = Omit<LedgerHour, "at" | "pending">;

const HOUR_MS = 3_600_000;
const HOURS = 48;

/** The ledgers of the sinks by the hour, of two days. */
export class LedgerHours {
  readonly #sinks = new Map<string, { readonly hours: readonly LedgerHour[]; readonly last: Totals }>();

  /** The ledgers as they are now; `nowMs`: epoch. */
  take(sinks: readonly Pick<SinkStatus, "uuid" | "ledger">[], nowMs: number): void {
    const uuids = new Set(sinks.map(({ uuid }) => uuid));
    for (const uuid of this.#sinks.keys()) if (!uuids.has(uuid)) this.#sinks.delete(uuid);
    for (const { uuid, ledger } of sinks) if (ledger) this.#takeOne(uuid, ledger, nowMs);
  }

  /** The oldest first. */
  of(uuid: string): readonly LedgerHour[] {
    return this.#sinks.get(uuid)?.hours ?? [];
  }

  /** By sink, each the oldest first. */
  all(): ReadonlyMap<string, readonly LedgerHour[]> {
    return new Map([...this.#sinks].map(([uuid, { hours }]) => [uuid, hours]));
  }

  #takeOne(uuid: string, ledger: NonNullable<SinkStatus["ledger"]>, nowMs: number): void {
    const at = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
    const now = totalsOf(ledger);
    const { hours, last } = this.#sinks.get(uuid) ?? { hours: [], last: now };
    const newest = hours.at(-1);
    const isSameHour = newest?.at === at;
    const sum = isSameHour ? newest : { accepted: 0, delivered: 0, unconfirmed: 0, dropped: 0 };
    const next: LedgerHour = {
      at,
      accepted: sum.accepted + Math.max(0, now.accepted - last.accepted),
      delivered: sum.delivered + Math.max(0, now.delivered - last.delivered),
      unconfirmed: sum.unconfirmed + Math.max(0, now.unconfirmed - last.unconfirmed),
      dropped: sum.dropped + Math.max(0, now.dropped - last.dropped),
      pending: ledger.pending,
    };
    this.#sinks.set(uuid, { hours: [...(isSameHour ? hours.slice(0, -1) : hours), next].slice(-HOURS), last: now });
  }
}

const totalsOf = ({ accepted, delivered, unconfirmed, filtered, dropped }: NonNullable<SinkStatus["ledger"]>): Totals => ({
  accepted: accepted - filtered,
  delivered,
  unconfirmed,
  dropped: Object.values(dropped).reduce((sum, count) => sum + count, 0),
});
