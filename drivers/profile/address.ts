import { nearest } from "../../src/base/nearest.ts";
import type { Profile, ProfileVariable, RequestOf } from "../../src/model/profile.ts";
import { valueProblem } from "../../src/model/profile-check.ts";
import { parseTemplate, renderValue } from "../../src/model/profile-template.ts";
import { type DataType, formatDataType, type ScalarType } from "../../src/model/value.ts";
import type { Encoding } from "../lib/encoding.ts";
import { addressInvalid, quote, typeMismatch } from "../lib/text.ts";
import { rawTypeOf, scalingOf } from "./answer.ts";

/** One value of a device, as its profile has it. */
export interface ProfileAddress {
  readonly variable: ProfileVariable;
  /** As what it is read, before it is scaled. */
  readonly raw: ScalarType;
  /** Name of the request whose answer has it, and values of that request's arguments. */
  readonly request: string;
  readonly args: readonly string[];
  /** Encoding of a text. */
  readonly encoding?: Encoding;
}

interface Named {
  readonly name: string;
  readonly variable: ProfileVariable;
  readonly request: RequestOf;
  readonly args: readonly string[];
}

/**
 * `NAME` or `NAME/ARGUMENT/…`, and the arguments alone where the profile has a bare address. Throws FaultError. Pure.
 */
export function parseAddress(
  text: string,
  type: DataType | undefined,
  profile: Profile,
): { readonly address: ProfileAddress; readonly type: DataType } {
  const named = namedIn(text, profile);
  if (!named) throw addressInvalid(text, expectedIn(text, profile));
  checkArguments(text, named);
  const { variable, args } = named;
  const raw = wantedType(text, variable, type);
  const scalar = scalingOf(variable) ? "float64" : raw;
  return { address: { variable, raw, request: variable.request, args }, type: { scalar } };
}

function namedIn(text: string, profile: Profile): Named | undefined {
  const words = text.split("/");
  const find = (name: string, args: readonly string[]): Named | undefined => {
    const variable = Object.hasOwn(profile.variables, name) ? profile.variables[name] : undefined;
    const request = variable && Object.hasOwn(profile.requests, variable.request) ? profile.requests[variable.request] : undefined;
    return variable && request ? { name, variable, request, args } : undefined;
  };
  const [first = "", ...rest] = words;
  return find(first, rest) ?? (profile.bare_address === undefined ? undefined : find(profile.bare_address, words));
}

function expectedIn(text: string, { name, variables }: Profile): string {
  const known = Object.keys(variables);
  const meant = nearest(text.split("/")[0] ?? "", known);
  return `the profile ${name} has ${meant === undefined ? `${known.slice(0, 10).join(", ")}${known.length > 10 ? ", …" : ""}` : `${meant}; is that meant?`}`;
}

function checkArguments(text: string, { name, request, args }: Named): void {
  const wanted = Object.entries(request.arguments);
  const form = [name, ...wanted.map(([argument]) => argument.toUpperCase())].join("/");
  if (args.length !== wanted.length) throw addressInvalid(text, `expected ${form}`);
  const template = parseTemplate(request.send ?? "");
  const parts = typeof template === "string" ? [] : template;
  for (const [i, [argument, value]] of wanted.entries()) {
    const given = args[i] ?? "";
    const wrong = valueProblem(value, given);
    if (wrong !== undefined) throw addressInvalid(text, `${form}, and for ${argument} ${wrong}`);
    for (const part of parts) {
      if (!("placeholder" in part) || part.placeholder !== argument) continue;
      const bytes = renderValue(given, part.format);
      if (typeof bytes === "string") throw addressInvalid(text, `${form}, and ${argument} ${bytes}`);
    }
  }
}

/** The type to read. Throws FaultError (type_mismatch). */
function wantedType(text: string, variable: ProfileVariable, type: DataType | undefined): ScalarType {
  const raw = rawTypeOf(variable);
  if (type === undefined) return raw;
  const scaled = scalingOf(variable) !== undefined;
  const isFree = !scaled && variable.bytes === undefined && variable.type === undefined;
  const fixed = scaled ? "float64" : raw;
  if (type.count !== undefined || type.scalar === "auto" || (!isFree && type.scalar !== fixed))
    throw typeMismatch(text, `the profile has it as ${isFree ? "one value" : fixed}, not ${quote(formatDataType(type))}`);
  return isFree ? type.scalar : raw;
}
