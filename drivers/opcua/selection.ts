import { FaultError } from "../../src/model/fault.ts";
import { MAX_COUNT } from "../../src/model/value.ts";
import { addressInvalid, quote } from "../lib/text.ts";
import { ExtensionBody, NestedValue, type RawValue } from "./binary.ts";
import { BUILT_IN_NAMES, EXTENSION_OBJECT, FLOAT } from "./built-in.ts";
import type { Definition, Field } from "./structures.ts";

/** One step into a value: to a field of a structure, or to elements of an array. */
export type Step = { readonly field: string } | { readonly places: readonly Place[] };
/** An element, or a range with both its ends (OPC 10000-4, 7.27). */
export type Place = number | { readonly from: number; readonly to: number };

const MAX_STEPS = 16;
const MAX_INDEX = 0x7fff_ffff;
const SELECTION_FORM = "behind # stands a field (#Speed, #Axis.Speed), an element (#[2], #Axes[2].Speed, #[1,2]) or a range (#[2:5])";

/** The text behind the `#` of an address: `Axes[2].Speed`. `&` takes the next character of a name as it is. Throws FaultError. Pure. */
export function parseSelection(text: string, selection: string): readonly Step[] {
  const steps: Step[] = [];
  let rest = selection;
  while (rest !== "") {
    const index = /^\[([^\]]*)\]/.exec(rest);
    const name = index ? null : (steps.length === 0 ? /^((?:&[\s\S]|[^&.[\]])+)/ : /^\.((?:&[\s\S]|[^&.[\]])+)/).exec(rest);
    const match = index ?? name;
    if (!match) throw addressInvalid(text, SELECTION_FORM);
    steps.push(index ? { places: placesOf(text, index[1] ?? "") } : { field: (match[1] ?? "").replaceAll(/&([\s\S])/g, "$1") });
    rest = rest.slice(match[0].length);
  }
  if (steps.length === 0) throw addressInvalid(text, SELECTION_FORM);
  if (steps.length > MAX_STEPS) throw addressInvalid(text, `a part of a value lies ${MAX_STEPS} steps deep at most`);
  const isRange = (step: Step): boolean => "places" in step && step.places.some((place) => typeof place !== "number");
  if (steps.slice(0, -1).some(isRange)) throw addressInvalid(text, "a range is the last step of an address");
  return steps;
}

function placesOf(text: string, inside: string): readonly Place[] {
  const places = inside.split(",").map((one): Place => {
    const match = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(one);
    if (!match) throw addressInvalid(text, `${quote(`[${inside}]`)} names no elements; ${SELECTION_FORM}`);
    const [from, to] = [Number(match[1]), Number(match[2] ?? match[1])];
    if (to > MAX_INDEX) throw addressInvalid(text, `an element has a number up to ${MAX_INDEX}`);
    if (match[2] === undefined) return from;
    if (to <= from) throw addressInvalid(text, `a range begins before it ends: ${from}:${to}`);
    if (to - from >= MAX_COUNT) throw addressInvalid(text, `a range has at most ${MAX_COUNT} elements`);
    return { from, to };
  });
  if (places.length > 1 && places.some((place) => typeof place !== "number"))
    throw addressInvalid(text, "a range is for an array, not for a matrix");
  return places;
}

/** Text without the spaces at its end, but for one that `&` escapes. Pure. */
export function withoutEnd(text: string): string {
  const trimmed = text.trimEnd();
  return /(?<!&)(?:&&)*&$/.test(trimmed) ? text.slice(0, trimmed.length + 1) : trimmed;
}

/** A name with `&` before each of `special` and before a space at its end. Pure. */
export const escapedName = (name: string, special: RegExp): string => name.replaceAll(special, "&$&").replace(/\s$/, "&$&");

/** The canonical form, from the `#` on; empty without a selection. Pure. */
export function selectionText(steps: readonly Step[] = []): string {
  const texts = steps.map((step, i) => {
    if ("field" in step) return `${i === 0 ? "" : "."}${escapedName(step.field, /[&.[\]]/g)}`;
    return `[${step.places.map((place) => (typeof place === "number" ? place : `${place.from}:${place.to}`)).join(",")}]`;
  });
  return texts.length === 0 ? "" : `#${texts.join("")}`;
}

/** A structure with its fields. Throws RangeError where the bytes are not of its definition, FaultError where that is not known. */
export type Expand = (body: ExtensionBody) => { readonly definition: Definition; readonly object: Readonly<Record<string, unknown>> };

/** A value on the way down; `structure` says what an object is. */
interface At extends RawValue {
  readonly structure?: Definition;
}

/** The part of a value that the steps lead to, as if the server had sent it alone. Throws what `expand` throws, and FaultError. Pure. */
export function selected(raw: RawValue, steps: readonly Step[], expand: Expand): RawValue {
  let at = unwrapped(raw);
  for (const [i, step] of steps.entries()) {
    const where = i === 0 ? "the value" : selectionText(steps.slice(0, i)).slice(1);
    at = unwrapped("field" in step ? fieldOf(at, step.field, where, expand) : elementsOf(at, step.places, where));
  }
  // Fields of structures have the digits that JSON shows.
  if (at.type !== FLOAT) return at;
  return { ...at, value: Array.isArray(at.value) ? at.value.map((one) => Math.fround(Number(one))) : Math.fround(Number(at.value)) };
}

/** The value inside a Variant or a DataValue. */
function unwrapped(at: At): At {
  let inner = at;
  while (!inner.isArray && inner.value instanceof NestedValue) {
    const { raw } = inner.value;
    inner = { ...raw, status: raw.status || inner.status, sourceTime: raw.sourceTime ?? inner.sourceTime };
  }
  return inner;
}

const MAX_NAMED = 20;

function fieldOf(at: At, name: string, where: string, expand: Expand): At {
  if (at.isArray) throw new FaultError("type_mismatch", `${where} is an array: an element of it has fields, as in ${where}[0].${name}`);
  const isBody = at.value instanceof ExtensionBody;
  if (!isBody && !at.structure)
    throw new FaultError("type_mismatch", `${where} is ${BUILT_IN_NAMES[at.type] ?? `type ${at.type}`}, which has no fields`);
  const known = at.value instanceof ExtensionBody ? expand(at.value) : undefined;
  const definition = known?.definition ?? at.structure;
  const object = known?.object ?? (at.value as Readonly<Record<string, unknown>>);
  const field = definition?.fields.find((one) => one.name === name);
  if (!field) {
    const names = definition?.fields.map((one) => one.name) ?? [];
    const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
    throw new FaultError(
      "not_found",
      `${where} has no field ${quote(name)}; it has ${names.slice(0, MAX_NAMED).join(", ") || "no field"}${more}`,
    );
  }
  const value = object[name];
  if (value === undefined)
    throw new FaultError("no_answer", `${where} holds no ${quote(name)} at this moment: the field is optional, or one of a union`);
  return { ...at, ...ofField(field, value) };
}

function ofField({ type, valueRank }: Field, value: unknown): Pick<At, "type" | "isArray" | "dimensions" | "value" | "structure"> {
  const kind = "structure" in type ? { type: EXTENSION_OBJECT, structure: type.structure } : { type: type.builtIn };
  // An explicit undefined takes the structure of before away.
  const typed = { structure: undefined, ...kind } as Pick<At, "type" | "structure">;
  if (valueRank < 1) return { ...typed, isArray: false, dimensions: null, value };
  if (valueRank === 1) return { ...typed, isArray: true, dimensions: null, value: value ?? [] };
  const { dimensions, values } = value as { readonly dimensions: readonly number[]; readonly values: readonly unknown[] };
  return { ...typed, isArray: true, dimensions: dimensions.length > 1 ? dimensions : null, value: values };
}

function elementsOf(at: At, places: readonly Place[], where: string): At {
  if (!at.isArray || !Array.isArray(at.value))
    throw new FaultError("type_mismatch", `${where} is one ${BUILT_IN_NAMES[at.type] ?? `type ${at.type}`} and no array`);
  const elements: readonly unknown[] = at.value;
  const sizes = at.dimensions ?? [elements.length];
  if (places.length !== sizes.length)
    throw new FaultError(
      "type_mismatch",
      `${where} has ${sizes.length} dimensions (${sizes.join("x")}), and the address names ${places.length}`,
    );
  let first = 0;
  for (const [i, place] of places.entries()) {
    const size = sizes[i] ?? 0;
    const last = typeof place === "number" ? place : place.to;
    if (last >= size)
      throw new FaultError("out_of_range", `${where} has ${size} elements${size === 0 ? "" : `, 0 to ${size - 1}`}: there is no ${last}`);
    first = first * size + (typeof place === "number" ? place : place.from);
  }
  const [place] = places;
  if (typeof place === "object") return { ...at, dimensions: null, value: elements.slice(place.from, place.to + 1) };
  return { ...at, isArray: false, dimensions: null, value: elements[first] };
}
