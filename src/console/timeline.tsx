import type { JSX } from "preact";
import { formatDuration } from "../base/duration.ts";
import type { TimelineAnswer, TimelineSpan } from "../service/page/told.ts";
import { useData } from "./data.ts";
import { Paragraphs, timeWords } from "./words.tsx";

const ASK_EVERY_MS = 10_000;
const DAY_MS = 86_400_000;
const [WIDTH, HEIGHT] = [1440, 20];

/** The state of a source or sink over the last day, as a strip and in words. */
export function TimelineStrip({ of, uuid }: { readonly of: "source" | "sink"; readonly uuid: string }): JSX.Element {
  const answer = useData<TimelineAnswer>(`/data/timeline?${of}=${encodeURIComponent(uuid)}`, ASK_EVERY_MS);
  if (!answer) return <p class="faint">The last day follows in a moment.</p>;
  if ("problem" in answer) return <Paragraphs texts={[answer.problem]} />;
  const { spans } = answer.told;
  const endMs = Date.parse(spans.at(-1)?.to ?? "") || Date.now();
  const x = (iso: string): number => Math.max(0, WIDTH - ((endMs - Date.parse(iso)) / DAY_MS) * WIDTH);
  const sums = sumsOf(spans);
  return (
    <>
      <svg
        class="strip"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`The last day: ${sums.join(", ")}`}
      >
        <rect class="none" x="0" y="0" width={WIDTH} height={HEIGHT} />
        {spans.map((span) => (
          <rect key={span.from} class={levelOf(span)} x={x(span.from)} y="0" width={Math.max(1, x(span.to) - x(span.from))} height={HEIGHT}>
            <title>{`${timeWords(span.from)} to ${timeWords(span.to)}: ${wordsOf(span)}`}</title>
          </rect>
        ))}
      </svg>
      <p class="strip-ends faint">
        <span>24 h ago</span>
        <span>now</span>
      </p>
      <p>{sums.join(", ")}</p>
    </>
  );
}

const levelOf = ({ state }: TimelineSpan): "ok" | "bad" | "none" => (state === "OK" ? "ok" : state === "ERROR" ? "bad" : "none");
const wordsOf = ({ state, reason }: TimelineSpan): string =>
  state === "OK" ? "well" : state === "UNKNOWN" ? "not read yet" : (reason ?? state.toLowerCase());

/** How long it was in each state, the longest first. Pure. */
export function sumsOf(spans: readonly TimelineSpan[]): readonly string[] {
  const sums = new Map<string, number>();
  for (const span of spans) sums.set(wordsOf(span), (sums.get(wordsOf(span)) ?? 0) + Date.parse(span.to) - Date.parse(span.from));
  return [...sums].sort(([, one], [, other]) => other - one).map(([words, ms]) => `${words} ${formatDuration(ms)}`);
}
