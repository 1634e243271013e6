import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { BufferTrendAnswer, TrendAnswer } from "../service/page/told.ts";
import { type Answer, fetchData } from "./data.ts";
import { chartData, joined, type NamedTrend, trendOfBuffer } from "./trend.ts";
import { isUtc, Time, timeWords } from "./words.tsx";

const HEIGHT = 260;
const ASK_EVERY_MS = 15_000;
const HOUR_S = 3600;
const LEAST_S = 600;
const SPANS = [1, 6, 24] as const;
/** The hours up to now that are shown, or all that waits in the buffer. */
type Span = (typeof SPANS)[number] | "buffer";
const MAX_GAPS_SHOWN = 8;

export interface ChartVariable {
  readonly uuid: string;
  readonly name: string;
  readonly unit: string | null;
}

interface ChartProps {
  readonly source: string;
  readonly variables: readonly ChartVariable[];
}

/** Some variables over the last day, or over what the buffer has: a line of the last value of each step, and the band between its least and greatest. */
export function Chart({ source, variables }: ChartProps): JSX.Element {
  const [span, setSpan] = useState<Span>(1);
  const ofDay = useDayTrends(source, span === "buffer" ? [] : variables);
  const ofBuffer = useBufferTrends(source, span === "buffer" ? variables : []);
  const trends = span === "buffer" ? ofBuffer.trends : ofDay;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  /** True: a person has chosen a stretch, which stays although new values come. */
  const isZoomed = useRef(false);
  const isDark = useDark();
  // The series are those of the answers: the ones for other variables come later.
  const drawn = trends.map(({ uuid }) => uuid).join(" ");
  const isDrawn = trends.some(({ trend }) => trend.kept);
  useEffect(() => {
    const holder = place.current;
    if (!holder || !isDrawn) return;
    isZoomed.current = false;
    const onSelect = ({ select }: uPlot): void => {
      if (select.width > 0) isZoomed.current = true;
    };
    const made = new uPlot({ ...optionsFor(trends, holder.clientWidth), hooks: { setSelect: [onSelect] } }, dataOf(trends), holder);
    zoom(made, span);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: holder.clientWidth, height: HEIGHT }));
    resize.observe(holder);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [drawn, isDark, isDrawn, span]);
  useEffect(() => {
    plot.current?.setData(dataOf(trends), false);
    if (plot.current && !isZoomed.current) zoom(plot.current, span);
  }, [trends]);
  return (
    <div class="chart">
      <div class="list-head">
        <h3>Chart</h3>
        <span role="group" aria-label="Time span">
          {[...SPANS, "buffer" as const].map((one) => (
            <button key={one} type="button" class="quiet" aria-pressed={span === one} onClick={() => setSpan(one)}>
              {one === "buffer" ? "Buffer" : `${one} h`}
            </button>
          ))}
        </span>
        <span class="faint">Drag to zoom; minimum to maximum of each {span === "buffer" ? "step" : "minute"} is shaded.</span>
      </div>
      {span === "buffer" && <BufferSpan {...ofBuffer} />}
      <div ref={place} class="plot" role="img" aria-label={`Chart of ${variables.map(({ name }) => name).join(", ")}`} />
      {trends.map(({ uuid, name, trend }) => (
        <Gaps key={uuid} name={name} trend={trend} />
      ))}
    </div>
  );
}

const BufferSpan = ({ span, isReading }: Pick<BufferTrends, "span" | "isReading">): JSX.Element => (
  <p class="faint" role="status">
    {span && (
      <>
        Values that wait in the buffer, from <Time iso={span.from} /> to <Time iso={span.to} />. What was delivered to all data sinks or
        dropped is not in it any more.{" "}
      </>
    )}
    {isReading && "Reading the buffer …"}
  </p>
);

/** Why there is nothing where there is nothing. */
function Gaps({ name, trend }: { readonly name: string; readonly trend: TrendAnswer }): JSX.Element | null {
  if (!trend.kept)
    return (
      <p>
        {name}: {trend.why_not}.
      </p>
    );
  const known = trend.gaps.filter(({ reason }) => reason !== "NOT_KNOWN");
  if (known.length === 0) return null;
  return (
    <details>
      <summary>
        {name}: {known.length === 1 ? "one gap" : `${known.length} gaps`}
      </summary>
      <ul>
        {known.slice(-MAX_GAPS_SHOWN).map(({ from, to, reason, words }) => (
          <li key={from}>
            <Time iso={from} /> to <Time iso={to} /> <b>{reason}</b> {words}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The trends of the last day, asked again and again. */
function useDayTrends(source: string, variables: readonly ChartVariable[]): readonly NamedTrend[] {
  const [trends, setTrends] = useState<readonly NamedTrend[]>([]);
  const names = variables.map(({ uuid }) => uuid).join(" ");
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      const answers = await Promise.all(
        variables.map(async (variable): Promise<NamedTrend> => {
          const query = new URLSearchParams({ source, variable: variable.uuid });
          return {
            ...variable,
            trend: trendIn(await fetchData<TrendAnswer>(`/data/trend?${query.toString()}`, stop.signal), (told) => told),
          };
        }),
      );
      if (stop.signal.aborted) return;
      setTrends(answers);
      timer = setTimeout(() => void ask(), ASK_EVERY_MS);
    };
    if (variables.length > 0) void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [source, names]);
  return trends;
}

function trendIn<Told>(answer: Answer<Told>, trendOf: (told: Told) => TrendAnswer): TrendAnswer {
  if (answer && "told" in answer) return trendOf(answer.told);
  return { kept: false, why_not: answer?.problem ?? "there is no answer" };
}

interface BufferTrends {
  readonly trends: readonly NamedTrend[];
  /** Times of the buffer's first and last readout; undefined: not known yet. */
  readonly span: BufferTrendAnswer["span"] | undefined;
  readonly isReading: boolean;
}

/** Answers of two seconds each that one variable is read in at most: a gigabyte takes fewer. */
const MAX_ANSWERS = 60;

/** The trends of what the buffer has, read once, answer by answer. */
function useBufferTrends(source: string, variables: readonly ChartVariable[]): BufferTrends {
  const [found, setFound] = useState<BufferTrends>({ trends: [], span: undefined, isReading: false });
  const names = variables.map(({ uuid }) => uuid).join(" ");
  useEffect(() => {
    const stop = new AbortController();
    const read = async (): Promise<void> => {
      const trends = new Map<string, NamedTrend>();
      let span: BufferTrends["span"];
      for (const variable of variables) {
        let known: BufferTrendAnswer | undefined;
        for (let n = 0; n < MAX_ANSWERS && !stop.signal.aborted; n++) {
          // All variables over one span, so that their steps are the same.
          const from = known?.next_from ?? span?.from;
          const query = new URLSearchParams({ source, variable: variable.uuid, ...(from && { from }), ...(span && { to: span.to }) });
          const answer: Answer<BufferTrendAnswer> = await fetchData(`/data/trend/buffer?${query.toString()}`, stop.signal);
          if (answer && "told" in answer) {
            known = known ? joined(known, answer.told) : answer.told;
            span ??= answer.told.span;
          }
          const trend = known ? trendOfBuffer(known) : trendIn(answer, trendOfBuffer);
          trends.set(variable.uuid, { ...variable, trend });
          if (stop.signal.aborted) return;
          setFound({ trends: [...trends.values()], span, isReading: true });
          if (!known?.next_from) break;
        }
      }
      setFound({ trends: [...trends.values()], span, isReading: false });
    };
    if (variables.length > 0) void read();
    return () => stop.abort();
  }, [source, names]);
  return found;
}

/** True: colours are those for the dark. */
function useDark(): boolean {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const onChange = (): void => setDark(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return isDark;
}

function dataOf(trends: readonly NamedTrend[]): uPlot.AlignedData {
  const { seconds, columns } = chartData(trends);
  return [seconds, ...columns.flatMap(({ last, min, max }) => [last, max, min])] as uPlot.AlignedData;
}

function zoom(plot: uPlot, span: Span): void {
  const [times] = plot.data;
  const last = times.at(-1) ?? 0;
  // A buffer that is nearly empty has a step or two.
  const min = span === "buffer" ? Math.min(times[0] ?? 0, last - LEAST_S) : last - span * HOUR_S;
  plot.setScale("x", { min, max: last });
}

/** Series with colours of their own. */
const COLOURS = 4;

const seriesColour = (place: number): string => colourOf(`--series-${(place % COLOURS) + 1}`);

/** The colour of a token as it is in light or dark, which a canvas cannot tell. */
function colourOf(token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Pure. */
const faded = (rgb: string): string => rgb.replace(/^rgb\((.*)\)$/, "rgb($1 / 20%)").replaceAll(",", " ");

/** Hours and minutes; at midnight the day. */
function clockWords(seconds: number): string {
  const words = timeWords(new Date(seconds * 1000).toISOString());
  return words.slice(11, 16) === "00:00" ? words.slice(0, 10) : words.slice(11, 16);
}

/** A scale for each unit; axes for the first two. */
function optionsFor(trends: readonly NamedTrend[], width: number): uPlot.Options {
  const [text, line] = [colourOf("--faint"), colourOf("--line")];
  const scaleOf = (unit: string | null): string => `y ${unit ?? ""}`;
  const units = [...new Set(trends.map(({ unit }) => unit))];
  const series = trends.flatMap(({ name, unit }, i): uPlot.Series[] => {
    const stroke = seriesColour(i);
    const edge = { scale: scaleOf(unit), stroke: "transparent", points: { show: false }, label: "" };
    return [
      { label: unit === null ? name : `${name} (${unit})`, scale: scaleOf(unit), stroke, width: 2, points: { size: 4 } },
      { ...edge, label: `${name} maximum` },
      { ...edge, label: `${name} minimum` },
    ];
  });
  return {
    width,
    height: HEIGHT,
    tzDate: (seconds) => (isUtc() ? uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000)),
    series: [
      { label: "Time", value: (_, seconds) => (seconds === null ? "–" : timeWords(new Date(seconds * 1000).toISOString())) },
      ...series,
    ],
    bands: trends.map((_, i) => ({ series: [3 * i + 2, 3 * i + 3], fill: faded(seriesColour(i)) })),
    axes: [
      { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, values: (_, splits) => splits.map(clockWords) },
      ...units.slice(0, 2).map(
        (unit, i): uPlot.Axis => ({
          scale: scaleOf(unit),
          side: i === 0 ? 3 : 1,
          stroke: text,
          grid: { show: i === 0, stroke: line, width: 1 },
          ticks: { stroke: line },
          size: 64,
          ...(unit !== null && { label: unit, labelSize: 20 }),
        }),
      ),
    ],
  };
}
