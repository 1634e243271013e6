import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { TrendAnswer } from "../service/page/told.ts";
import { fetchData } from "./data.ts";
import { chartData, type NamedTrend } from "./trend.ts";
import { isUtc, Time, timeWords } from "./words.tsx";

const HEIGHT = 260;
const ASK_EVERY_MS = 15_000;
const HOUR_S = 3600;
const SPANS = [1, 6, 24] as const;
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

/** The last day of some variables: a line of the last value of each minute, and the band between its least and greatest. */
export function Chart({ source, variables }: ChartProps): JSX.Element {
  const trends = useTrends(source, variables);
  const [hours, setHours] = useState<number>(1);
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const isDark = useDark();
  const names = variables.map(({ uuid }) => uuid).join(" ");
  const kept = trends.filter(({ trend }) => trend.kept);
  const isDrawn = kept.length > 0;
  useEffect(() => {
    const holder = place.current;
    if (!holder || !isDrawn) return;
    const { seconds, columns } = chartData(trends);
    const made = new uPlot(optionsFor(trends, holder.clientWidth), dataOf(seconds, columns), holder);
    zoom(made, hours);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: holder.clientWidth, height: HEIGHT }));
    resize.observe(holder);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [names, isDark, isDrawn, trends.length]);
  useEffect(() => {
    const { seconds, columns } = chartData(trends);
    plot.current?.setData(dataOf(seconds, columns), false);
    if (plot.current) zoom(plot.current, hours);
  }, [trends, hours]);
  return (
    <div class="chart">
      <div class="list-head">
        <h3>Last day</h3>
        <span role="group" aria-label="Time span">
          {SPANS.map((span) => (
            <button key={span} type="button" class="quiet" aria-pressed={hours === span} onClick={() => setHours(span)}>
              {span} h
            </button>
          ))}
        </span>
        <span class="faint">Drag to zoom; minimum to maximum of each minute is shaded.</span>
      </div>
      <div ref={place} class="plot" role="img" aria-label={`Chart of ${variables.map(({ name }) => name).join(", ")}`} />
      {trends.map(({ uuid, name, trend }) => (
        <Gaps key={uuid} name={name} trend={trend} />
      ))}
    </div>
  );
}

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

/** The trends of the variables, asked again and again. */
function useTrends(source: string, variables: readonly ChartVariable[]): readonly NamedTrend[] {
  const [trends, setTrends] = useState<readonly NamedTrend[]>([]);
  const names = variables.map(({ uuid }) => uuid).join(" ");
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      const answers = await Promise.all(
        variables.map(async (variable): Promise<NamedTrend> => {
          const query = new URLSearchParams({ source, variable: variable.uuid });
          const answer = await fetchData<TrendAnswer>(`/data/trend?${query.toString()}`, stop.signal);
          const why = answer && "problem" in answer ? answer.problem : "there is no answer";
          return { ...variable, trend: answer && "told" in answer ? answer.told : { kept: false, why_not: why } };
        }),
      );
      if (stop.signal.aborted) return;
      setTrends(answers);
      timer = setTimeout(() => void ask(), ASK_EVERY_MS);
    };
    void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [source, names]);
  return trends;
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

const dataOf = (seconds: number[], columns: ReturnType<typeof chartData>["columns"]): uPlot.AlignedData =>
  [seconds, ...columns.flatMap(({ last, min, max }) => [last, max, min])] as uPlot.AlignedData;

function zoom(plot: uPlot, hours: number): void {
  const last = plot.data[0]?.at(-1) ?? 0;
  plot.setScale("x", { min: last - hours * HOUR_S, max: last });
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
      { label: unit === null ? name : `${name} (${unit})`, scale: scaleOf(unit), stroke, width: 2, points: { show: false } },
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
