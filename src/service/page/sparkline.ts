import { Html, html } from "./html.ts";

const WIDTH = 120;
const HEIGHT = 24;
/** Points of a line at most. */
export const MAX_POINTS = 60;

/** A number that was read; null: the reading was bad. */
export interface Point {
  /** Epoch ms. */
  readonly at: number;
  readonly value: number | null;
}

/** The newest values of one variable, at most MAX_POINTS. */
export class Ring {
  readonly #points: Point[] = [];

  get points(): readonly Point[] {
    return this.#points;
  }

  /** A point with the time of the one before is the same one. */
  add(point: Point): void {
    if (this.#points.at(-1)?.at === point.at) return;
    this.#points.push(point);
    if (this.#points.length > MAX_POINTS) this.#points.shift();
  }
}

/** A value as JSON text, as a point of a line; undefined: it is no number. Pure. */
export function numberOf(text: string | null): number | null | undefined {
  if (text === null) return null;
  if (text === "true" || text === "false") return Number(text === "true");
  const number = Number(text.replace(/^"|"$/g, ""));
  return text.trim() === "" || !Number.isFinite(number) ? undefined : number;
}

/** The line of values over their order, with a gap where a reading was bad; empty below two points. Its words are beside it in the table. Pure. */
export function sparkline(points: readonly Point[]): Html {
  const values = points.flatMap(({ value }) => (value === null ? [] : [value]));
  if (values.length < 2) return new Html("");
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const y = (value: number): string => (most === least ? HEIGHT / 2 : 2 + ((HEIGHT - 4) * (most - value)) / (most - least)).toFixed(1);
  const x = (i: number): string => ((WIDTH * i) / Math.max(1, points.length - 1)).toFixed(1);
  let isDown = false;
  const path = points
    .map(({ value }, i) => {
      if (value === null) {
        isDown = false;
        return "";
      }
      const step = `${isDown ? "L" : "M"}${x(i)} ${y(value)}`;
      isDown = true;
      return step;
    })
    .join("");
  return html`<svg class="line" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="from ${least} to ${most} in the last ${points.length} readouts"><path d="${path}"/></svg>`;
}
