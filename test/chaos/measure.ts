import { type Play, type TroublePlan, touches, WELL_MS } from "./play.ts";
import type { Seen } from "./player.ts";

/** Parts of readouts that are lost, by whom; and ms until something is read as a whole again. */
export interface Measures {
  readonly alone: number[];
  readonly siblings: number[];
  readonly healing: number[];
}

/** A source is untouched from so long after the end of a trouble that was about it: until then it heals. */
const HEALS_MS = 60_000;
/** Less time than this says nothing. */
const LEAST_LOOK_MS = 10_000;

interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The time in which no trouble is about the source, nor was just before. */
function untouched(play: Play, source: number, lastedMs: number): readonly Span[] {
  let spans: Span[] = [{ fromMs: WELL_MS, untilMs: lastedMs }];
  for (const trouble of play.troubles) {
    if (!touches(play, trouble, source)) continue;
    const isOfCollector = trouble.kind === "kill" || trouble.kind === "clock jumps";
    const endMs = isOfCollector ? trouble.fromMs + 15_000 : trouble.untilMs + HEALS_MS;
    spans = spans.flatMap(({ fromMs, untilMs }) => [
      { fromMs, untilMs: Math.min(untilMs, trouble.fromMs - 1000) },
      { fromMs: Math.max(fromMs, endMs), untilMs },
    ]);
  }
  return spans.filter(({ fromMs, untilMs }) => untilMs - fromMs >= LEAST_LOOK_MS);
}

const isShared = ({ sources }: Play, source: number): boolean =>
  sources.some((other, n) => n !== source && other.device === sources[source]?.device);

/** Adds what a play shows. `alone`: sources of devices that no trouble is about; `siblings`: those of devices of which others are in trouble. */
export function measure(play: Play, seen: Seen, into: Measures): void {
  play.sources.forEach(({ intervalMs, device }, n) => {
    const isOnDevice = ({ source }: TroublePlan) => play.sources[source]?.device === device;
    const hasTrouble = play.troubles.some((one) => isOnDevice(one) && !["kill", "clock jumps"].includes(one.kind));
    let wanted = 0;
    let lost = 0;
    for (const { fromMs, untilMs } of untouched(play, n, seen.lastedMs)) {
      const due = Math.floor((untilMs - fromMs) / intervalMs);
      const whole = seen.readouts[n]?.filter(({ atMs, isWhole }) => isWhole && fromMs <= atMs && atMs < untilMs).length ?? 0;
      wanted += due;
      // A readout at the edge may count on either side.
      lost += Math.max(0, due - whole - 1);
    }
    if (wanted === 0) return;
    if (!hasTrouble) into.alone.push(lost / wanted);
    else if (isShared(play, n)) into.siblings.push(lost / wanted);
  });
  for (const trouble of play.troubles) into.healing.push(...healingOf(play, seen, trouble));
}

/** For each source that the trouble was about: how far beyond three of its readouts it was whole again, ms; of those that no other trouble is about. */
function healingOf(play: Play, seen: Seen, trouble: TroublePlan): readonly number[] {
  const { kind, untilMs } = trouble;
  if (kind === "kill" || kind === "clock jumps" || kind.includes("changed") || kind === "source removed and back") return [];
  return play.sources.flatMap(({ intervalMs }, n) => {
    if (!touches(play, trouble, n)) return [];
    const isAlone = play.troubles.every(
      (other) => other === trouble || !touches(play, other, n) || other.untilMs + HEALS_MS < trouble.fromMs,
    );
    if (!isAlone) return [];
    const back = seen.readouts[n]?.find(({ timeMs, isWhole }) => isWhole && timeMs >= untilMs);
    return [Math.max(0, (back?.atMs ?? Number.POSITIVE_INFINITY) - untilMs - 3 * intervalMs)];
  });
}

/** The value below which this part of them is. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}
