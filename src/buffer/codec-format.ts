import { LargeList } from "../base/large-list.ts";
import { atOnce, type Steps } from "../base/timer.ts";
import { FAULTS, type Fault } from "../model/fault.ts";
import type { Layout } from "../model/layout.ts";
import { type DataType, formatDataType, NUMBER_BYTES } from "../model/value.ts";

/*
 * One readout, little endian:
 *   version u8 · flags u8 · time f64 · span f64 · number of variables varint
 *   states, 2 bits each (absent if ALL_GOOD) · scalar bools, 1 bit each · the other values in the layout's order
 *   per bad one: fault u8 (0x80: with a detail) and the detail: 0 and text, or the number of an earlier one
 *   source times (if SOURCE_TIMES): count varint, per entry the distance to the variable before it, then its time
 *   why readings are uncertain (if DOUBTS)
 * With CHANGES the number of variables is followed by those that the readout is about: how many, and the distance of each to the place behind the
 * one before, as varints. All that comes then is about those alone; the others were read and are as they were reported last.
 * The types are the layout's and not repeated. A value costs its width and nothing more.
 */
export const VERSION = 1;
export const CLOCK_SYNCED = 1;
export const ALL_GOOD = 2;
export const SOURCE_TIMES = 4;
/** Source times are whole ms, kept as zigzag varint distances from the one before; otherwise as f64. */
export const WHOLE_TIMES = 8;
/** Behind the source times (`doubts.ts`). */
export const DOUBTS = 16;
/** Some readings are as they were reported last, and not written. */
export const CHANGES = 32;
export const KNOWN_FLAGS = CLOCK_SYNCED | ALL_GOOD | SOURCE_TIMES | WHOLE_TIMES | DOUBTS | CHANGES;
export const HEADER_BYTES = 26;

export const GOOD = 0;
export const UNCERTAIN = 1;
export const BAD = 2;
export const ABSENT = 3;

/** Numbers on disk: never changed, only added to. */
export const FAULT_CODE: Readonly<Record<Fault, number>> = {
  address_invalid: 1,
  not_found: 2,
  access_denied: 3,
  type_mismatch: 4,
  out_of_range: 5,
  not_a_number: 6,
  device_error: 7,
  stale: 8,
  no_answer: 9,
  collector_error: 10,
  program_changed: 11,
  values_lost: 12,
};
export const FAULT_OF_CODE = new Map<number, Fault>(FAULTS.map((fault) => [FAULT_CODE[fault], fault]));
export const WITH_DETAIL = 0x80;

/** Distances between whole source times within ± 2^50 stay exact as zigzag varints. */
export const MAX_WHOLE_TIME = 2 ** 50;

/** Bytes of a value; 0: of no fixed width, or a bit. Of `auto` there are no values: the first one settles the type before it is written. */
export const WIDTH: Readonly<Record<DataType["scalar"], number>> = { ...NUMBER_BYTES, auto: 0, bool: 0, string: 0 };

export interface Column {
  readonly type: DataType;
  readonly scalar: DataType["scalar"];
  readonly isArray: boolean;
  /** Place in the bit field of scalar bools; -1: not one. */
  readonly bit: number;
  readonly exploration: boolean;
}

export interface Plan {
  readonly columns: readonly Column[];
  readonly stateBytes: number;
  readonly boolBytes: number;
  /** Upper bound of all that has a fixed width, header and one varint included. */
  readonly fixedBytes: number;
}

const plans = new WeakMap<Layout, Plan>();

/** Variables in one step. */
const VARIABLES_AT_ONCE = 1000;

export const planOf = (layout: Layout): Plan => plans.get(layout) ?? atOnce(planSteps(layout));

/** planOf in steps. */
export function* planSteps(layout: Layout): Steps<Plan> {
  const known = plans.get(layout);
  if (known) return known;
  let bits = 0;
  let fixedBytes = HEADER_BYTES;
  // Most variables are of a few types: all but bools share one column, which a large layout would hold ten thousand times.
  const shared = new Map<string, Column>();
  const columnOf = ({ type, exploration }: Layout["variables"][number]): Column => {
    const { scalar } = type;
    const isArray = type.count !== undefined;
    if (!isArray) fixedBytes += WIDTH[scalar];
    if (!isArray && scalar === "bool") return { type, scalar, isArray, bit: bits++, exploration };
    const key = `${formatDataType(type)} ${exploration}`;
    const column = shared.get(key) ?? { type, scalar, isArray, bit: -1, exploration };
    shared.set(key, column);
    return column;
  };
  const list = new LargeList<Column>();
  for (const variable of layout.variables) {
    list.push(columnOf(variable));
    if (list.length % VARIABLES_AT_ONCE === 0) yield;
  }
  const columns = list.whole();
  const stateBytes = Math.ceil(columns.length / 4);
  const boolBytes = Math.ceil(bits / 8);
  const plan = { columns, stateBytes, boolBytes, fixedBytes: fixedBytes + stateBytes + boolBytes };
  plans.set(layout, plan);
  return plan;
}

/** The plan of these variables alone. A distance takes up to 3 bytes. */
export function partOf({ columns }: Plan, places: readonly number[]): Plan {
  let bits = 0;
  let fixedBytes = HEADER_BYTES + 5 + 3 * places.length;
  const own = places.flatMap((place): readonly Column[] => {
    const column = columns[place];
    if (!column) return [];
    if (!column.isArray) fixedBytes += WIDTH[column.scalar];
    return [column.bit < 0 ? column : { ...column, bit: bits++ }];
  });
  const stateBytes = Math.ceil(own.length / 4);
  const boolBytes = Math.ceil(bits / 8);
  return { columns: own, stateBytes, boolBytes, fixedBytes: fixedBytes + stateBytes + boolBytes };
}

/** What whole source times are counted from. */
export const baseTime = (time: number): number => (Math.abs(time) <= MAX_WHOLE_TIME ? Math.trunc(time) : 0);
