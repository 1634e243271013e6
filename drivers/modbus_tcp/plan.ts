import { atOnce, type Steps } from "../../src/base/timer.ts";
import type { Limits, Point, Request } from "../driver.ts";
import { groupSteps } from "../lib/group.ts";
import { sortSteps } from "../lib/sort.ts";
import { groupSpansSteps } from "../lib/spans.ts";
import type { ModbusAddress } from "./address.ts";
import { type Decoder, type Decoders, decoderOf, offsetOf } from "./decode.ts";
import { ADDRESS_SPACE, AREA_WORDS, type FunctionCode, MAX_COUNT } from "./frames.ts";
import type { ModbusSettings } from "./settings.ts";

/** One read: `count` registers or coils from `start`. `decoders[i]` and `offsets[i]` belong to `points[i]`. */
export interface ModbusRead extends Request<ModbusAddress> {
  readonly unit: number;
  /** The unit in words. */
  readonly part: string;
  readonly functionCode: FunctionCode;
  readonly start: number;
  readonly count: number;
  readonly decoders: readonly Decoder[];
  readonly offsets: Int32Array;
  /** Least time since the last answer on the connection, ms. */
  readonly pauseMs: number;
}

export interface ModbusLimits extends Limits {
  readonly maxRegisters: number;
  readonly maxCoils: number;
  /** Registers, or coils, that a read may bridge. */
  readonly maxGap: number;
  readonly maxGapCoils: number;
  readonly pauseMs: number;
}

/** Requests under way at once where neither the settings nor a habit of the device say it. */
export const IN_FLIGHT = 1;

export function limitsOf(settings: ModbusSettings): ModbusLimits {
  return {
    maxPoints: ADDRESS_SPACE,
    maxBytes: Math.max(settings.max_registers * 2, Math.ceil(settings.max_coils / 8)),
    // A pause is between an answer and the next request.
    inFlight: settings.min_pause > 0 ? 1 : (settings.in_flight ?? IN_FLIGHT),
    maxRegisters: settings.max_registers,
    maxCoils: settings.max_coils,
    maxGap: settings.max_gap,
    maxGapCoils: settings.max_gap_coils,
    pauseMs: settings.min_pause,
  };
}

/** Joins neighbours of one unit and function over small gaps, in the order of unit, function and address. A value is never split. Pure. */
export const plan = (points: readonly Point<ModbusAddress>[], limits: ModbusLimits, apart?: ReadonlySet<Point>): ModbusRead[] =>
  atOnce(planSteps(points, limits, apart));

/** plan in steps. */
export function* planSteps(points: readonly Point<ModbusAddress>[], limits: ModbusLimits, apart?: ReadonlySet<Point>): Steps<ModbusRead[]> {
  const areas = yield* groupSteps(points, ({ address }) => address.unit * 8 + address.functionCode);
  const decoders: Decoders = new Map();
  const reads: ModbusRead[] = [];
  for (const [, area] of [...areas].sort(([a], [b]) => a - b)) {
    for (const read of yield* readsOf(area, limits, decoders, apart)) reads.push(read);
  }
  return reads;
}

function* readsOf(
  area: readonly Point<ModbusAddress>[],
  limits: ModbusLimits,
  decoders: Decoders,
  apart: ReadonlySet<Point> | undefined,
): Steps<ModbusRead[]> {
  const first = area[0]?.address;
  if (!first) return [];
  const { unit, functionCode } = first;
  const bits = functionCode <= 2;
  const length = Math.min(
    MAX_COUNT[functionCode],
    bits ? limits.maxCoils : limits.maxRegisters,
    bits ? limits.maxBytes * 8 : limits.maxBytes >> 1,
  );
  const gap = bits ? limits.maxGapCoils : limits.maxGap;
  // Points on one span keep the order of the layout, so that the plan does not depend on the order they come in.
  const ordered = yield* sortSteps(area, (a, b) => a.index - b.index);
  const spans = yield* groupSpansSteps(ordered, (point) => point.address, { length, gap, count: limits.maxPoints }, apart);
  const reads: ModbusRead[] = [];
  for (const group of spans) {
    reads.push({
      unit,
      part: `unit ${unit}`,
      functionCode,
      start: group.start,
      count: group.length,
      points: group.items,
      pauseMs: limits.pauseMs,
      decoders: group.items.map(({ address, type }) => decoderOf(address, type, decoders)),
      offsets: Int32Array.from(group.items, ({ address, type }) => offsetOf(address, type, group.start)),
    });
    yield;
  }
  return reads;
}

/** `holding registers 10..12 of unit 1`. */
export function describeRead({
  unit,
  functionCode,
  start,
  count,
}: Omit<ModbusRead, "points" | "decoders" | "offsets" | "part" | "pauseMs">): string {
  const words = AREA_WORDS[functionCode];
  return `${count === 1 ? `${words.slice(0, -1)} ${start}` : `${words} ${start}..${start + count - 1}`} of unit ${unit}`;
}
