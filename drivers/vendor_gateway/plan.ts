import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { DataType } from "../../src/model/value.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { sortSteps } from "../lib/sort.ts";
import { quote } from "../lib/text.ts";
import type { GatewayAddress } from "./address.ts";

export type GatewayRead = Request<GatewayAddress>;

export interface GatewayLimits extends Limits {
  /** Bytes of one request. */
  readonly maxRequestBytes: number;
}

/** A value in an answer with its type, quality and time, and an element of an array, about. */
const VALUE_BYTES = 112;
const ELEMENT_BYTES = 20;
const TEXT_BYTES = 100;
/** Around the items of a line. */
const LINE_BYTES = 300;

/** Bytes that a value of this type takes in an answer, about: texts may be longer, and an answer that is too large is asked for in halves. */
export const valueBytes = ({ scalar, count = 1 }: DataType): number =>
  VALUE_BYTES + count * (scalar === "string" ? TEXT_BYTES : ELEMENT_BYTES);

const itemBytes = ({ address: { item } }: Point<GatewayAddress>): number => Buffer.byteLength(JSON.stringify(item)) + 1;

/** In the order of the layout, as many in a request as the limits allow; each point of `apart` begins one. Pure. */
export const plan = (points: readonly Point<GatewayAddress>[], limits: GatewayLimits, apart?: ReadonlySet<Point>): GatewayRead[] =>
  atOnce(planSteps(points, limits, apart));

/** Points in one step. */
const AT_ONCE = 200;

/** plan in steps. */
export function* planSteps(
  points: readonly Point<GatewayAddress>[],
  limits: GatewayLimits,
  apart?: ReadonlySet<Point>,
): Steps<GatewayRead[]> {
  const requests: GatewayRead[] = [];
  let run: Point<GatewayAddress>[] = [];
  let [asked, answered] = [LINE_BYTES, LINE_BYTES];
  const ordered = yield* sortSteps(points, (one, other) => one.index - other.index);
  for (const [i, point] of ordered.entries()) {
    if (i % AT_ONCE === 0) yield;
    const [asks, answers] = [itemBytes(point), valueBytes(point.type)];
    const isFull = run.length >= limits.maxPoints || asked + asks > limits.maxRequestBytes || answered + answers > limits.maxBytes;
    if (run.length > 0 && (isFull || apart?.has(point))) {
      requests.push({ points: run });
      run = [];
      [asked, answered] = [LINE_BYTES, LINE_BYTES];
    }
    run.push(point);
    asked += asks;
    answered += answers;
  }
  if (run.length > 0) requests.push({ points: run });
  return requests;
}

const NAME_CHARACTERS = 60;

/** `Press.Force`, `Press.Force to Press.Tool (4 items)`. */
export function describeRead({ points }: GatewayRead): string {
  const name = (point: Point<GatewayAddress> | undefined): string => quote(point?.address.item ?? "", NAME_CHARACTERS).slice(1, -1);
  return points.length === 1 ? name(points[0]) : `${name(points[0])} to ${name(points.at(-1))} (${points.length} items)`;
}

export const answerBytes = ({ points }: GatewayRead): number => points.reduce((sum, { type }) => sum + valueBytes(type), 0);
