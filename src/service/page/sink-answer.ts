import type { LedgerHour } from "../history/ledger-hours.ts";
import { sinkStateWords } from "../words/state-words.ts";
import type { SinkData } from "./data-messages.ts";
import type { SinkAnswer } from "./told.ts";

const HOUR_MS = 3_600_000;
const MS_PER_SECOND = 1000;

/** `nowMs`: epoch. Pure. */
export function sinkAnswer({ sink, hours, certificates }: SinkData, nowMs: number = Date.now()): SinkAnswer {
  const { ledger } = sink;
  const rate = rateOf(hours, nowMs);
  return {
    sink,
    state: sinkStateWords(sink),
    backlog_hours: ledger ? backlogHours(ledger.pending, rate) : null,
    rate,
    link: sink.link ?? null,
    losses: ledger?.dropped ?? null,
    hours: hours.map(({ at, ...figures }) => ({ at: iso(at), ...figures })),
    certificates: certificates.map(({ kind, name, thumbprint, notAfterMs }) => ({ kind, name, thumbprint, not_after: iso(notAfterMs) })),
  };
}

/** The rate over the hour of now and the one before it. */
function rateOf(hours: readonly LedgerHour[], nowMs: number): SinkAnswer["rate"] {
  const recent = hours.slice(-2);
  const seconds = Math.max(0, nowMs - (recent[0]?.at ?? nowMs)) / MS_PER_SECOND;
  if (seconds === 0) return null;
  const sum = (figure: (hour: LedgerHour) => number): number => recent.reduce((all, hour) => all + figure(hour), 0);
  return {
    accepted_per_s: sum(({ accepted }) => accepted) / seconds,
    delivered_per_s: sum(({ delivered, unconfirmed }) => delivered + unconfirmed) / seconds,
  };
}

function backlogHours(pending: number, rate: SinkAnswer["rate"]): number | null {
  if (pending === 0) return 0;
  return rate === null || rate.accepted_per_s === 0 ? null : (pending / rate.accepted_per_s) * (MS_PER_SECOND / HOUR_MS);
}

const iso = (ms: number): string => new Date(ms).toISOString();
