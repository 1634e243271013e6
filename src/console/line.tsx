import type { JSX } from "preact";
import type { Line } from "./feed.ts";

const WIDTH = 96;
const HEIGHT = 20;

/** The line of the last values over their order, with a gap where a reading was bad; nothing below two points. Its words are beside it. */
export function Sparkline({ line }: { readonly line: Line }): JSX.Element | null {
  const values = line.filter((value) => value !== null);
  if (values.length < 2) return null;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return (
    <svg
      class="line"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`from ${least} to ${most} in the last ${line.length} changes`}
    >
      <path d={pathOf(line, least, most)} />
    </svg>
  );
}

/** Pure. */
export function pathOf(line: Line, least: number, most: number): string {
  const y = (value: number): string => (most === least ? HEIGHT / 2 : 2 + ((HEIGHT - 4) * (most - value)) / (most - least)).toFixed(1);
  const x = (i: number): string => ((WIDTH * i) / Math.max(1, line.length - 1)).toFixed(1);
  return line.map((value, i) => (value === null ? "" : `${i === 0 || line[i - 1] === null ? "M" : "L"}${x(i)} ${y(value)}`)).join("");
}
