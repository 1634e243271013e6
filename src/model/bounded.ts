import * as z from "zod";
// Taken by name: by way of `z.core` the words of fifty languages come with it, 300 KB in each thread.
import { $constructor, $ZodAsyncError, util } from "zod/v4/core";

/** Issues after which validation ends, and entries of a 422 at most: beyond them nobody reads on, and each costs memory and time. */
export const MAX_ISSUES = 100;

// By these names, because an assertion (what `init` is) needs them declared.
const ZodArray: z.core.$constructor<z.ZodArray> = z.ZodArray;
const ZodRecord: z.core.$constructor<z.ZodRecord> = z.ZodRecord;

interface BoundedArrayDef<T extends z.core.SomeType> extends z.core.$ZodArrayDef<T> {
  readonly maxItems: number;
}
interface BoundedArray<T extends z.ZodType = z.ZodType> extends z.ZodArray<T> {
  _zod: z.core.$ZodArrayInternals<T> & { def: BoundedArrayDef<T> };
}

/**
 * zod's own array validates every item, however many of them are wrong: a body of 1 MiB can hold 500,000. This one looks at no item where
 * there are too many of them, and at none after MAX_ISSUES issues.
 */
const BoundedArray = $constructor<BoundedArray>("BoundedArray", (inst, def) => {
  ZodArray.init(inst, def);
  // Becomes `maxItems` in JSON Schema.
  inst._zod.bag["maximum"] = def.maxItems;
  const report = inst._zod.parse;
  inst._zod.parse = (payload, context) => {
    const input: unknown = payload.value;
    if (!Array.isArray(input)) return report(payload, context);
    if (input.length > def.maxItems) {
      payload.issues.push(tooBig("array", "items", def.maxItems, input, inst));
      return payload;
    }
    const output: unknown[] = [];
    let found = 0;
    for (const [index, item] of input.entries()) {
      const { value, issues } = ofSynchronous(def.element._zod.run({ value: item, issues: [] }, context));
      payload.issues.push(...util.prefixIssues(index, issues));
      found += countOf(issues);
      if (found >= MAX_ISSUES) break;
      output.push(value);
    }
    payload.value = output;
    return payload;
  };
});

/** A union's issue holds those of every option: a list inside an option counts as what it costs. */
const countOf = (issues: readonly z.core.$ZodRawIssue[]): number =>
  issues.reduce(
    (sum, { errors = [] }) => sum + 1 + (Array.isArray(errors) ? errors.reduce((inner, some) => inner + countOf(some), 0) : 0),
    0,
  );

interface BoundedRecordDef extends z.core.$ZodRecordDef {
  readonly maxProperties: number;
}
interface BoundedRecord<V extends z.ZodType = z.ZodType> extends z.ZodRecord<z.ZodString, V> {
  _zod: z.core.$ZodRecordInternals<z.ZodString, V> & { def: BoundedRecordDef };
}

/** Like BoundedArray, looks at no field when there are too many. */
const BoundedRecord = $constructor<BoundedRecord>("BoundedRecord", (inst, def) => {
  ZodRecord.init(inst, def);
  const parse = inst._zod.parse;
  inst._zod.parse = (payload, context) => {
    const input: unknown = payload.value;
    if (typeof input !== "object" || input === null || Object.keys(input).length <= def.maxProperties) return parse(payload, context);
    payload.issues.push(tooBig("object", "fields", def.maxProperties, input, inst));
    return payload;
  };
});

/** Not `continue`: what is still as it came must reach no later check. */
const tooBig = (
  origin: "array" | "object",
  of: string,
  maximum: number,
  input: unknown,
  inst: z.core.$ZodType,
): z.core.$ZodRawIssue<z.core.$ZodIssueTooBig> => ({
  code: "too_big",
  origin,
  maximum,
  inclusive: true,
  message: `expected at most ${maximum} ${of}`,
  input,
  inst,
  continue: false,
});

function ofSynchronous(payload: z.core.util.MaybeAsync<z.core.ParsePayload>): z.core.ParsePayload {
  if (payload instanceof Promise) throw new $ZodAsyncError();
  return payload;
}

/** An array of at most `maxItems`, checked before any item is; validation ends after MAX_ISSUES issues. */
export const boundedArray = <T extends z.ZodType>(element: T, maxItems: number): z.ZodArray<T> =>
  new BoundedArray({ type: "array", element, maxItems }) as unknown as z.ZodArray<T>;

/** An object of any fields, at most `maxProperties`, checked before any field is. */
export const boundedRecord = <V extends z.ZodType>(valueType: V, maxProperties: number): z.ZodRecord<z.ZodString, V> => {
  const record = new BoundedRecord({ type: "record", keyType: z.string(), valueType, maxProperties });
  return (record as unknown as z.ZodRecord<z.ZodString, V>).meta({ maxProperties });
};
