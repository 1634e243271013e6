import type { ArgumentOf, ErrorAnswer, ParameterOf, Profile, ProfileVariable, RequestOf } from "./profile.ts";
import { type BoundType, DETAIL_VALUES } from "./profile-details.ts";
import { type PlaceholderFormat, parseTemplate, renderValue, type Template, type TemplatePart } from "./profile-template.ts";

/** What is wrong in a profile beside the form of its fields, and where. */
export interface ProfileProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

type Path = ProfileProblem["path"];
type Found = readonly ProfileProblem[];

/** What a placeholder stands for. */
export type Value = ParameterOf | ArgumentOf;

/** What the parts of a profile say of each other: names, formats and texts. Pure. */
export function checkProfile(profile: Profile): Found {
  return [
    ...checkAccepts(profile),
    ...checkFraming(profile),
    ...Object.entries(profile.parameters).flatMap(([name, parameter]) => checkParameter(profile.for, name, parameter)),
    ...Object.entries(profile.requests).flatMap(([name, request]) => checkRequest(profile, name, request)),
    ...profile.errors.flatMap((error, i) => checkError(profile, error, i)),
    ...Object.entries(profile.variables).flatMap(([name, variable]) => checkVariable(profile, name, variable)),
    ...profile.connect.flatMap((name, i) => checkConnect(profile, name, i)),
    ...checkBareAddress(profile),
    ...(Object.keys(profile.variables).length === 0 ? [problem(["variables"], "there is none; name one at least")] : []),
  ];
}

const problem = (path: Path, message: string): ProfileProblem => ({ path, message });
const unknown = (path: Path, name: string, known: readonly string[]): ProfileProblem =>
  problem(path, `there is no ${name}; there ${known.length === 1 ? "is" : "are"} ${known.slice(0, 20).join(", ") || "none"}`);

const detailsOf = (type: BoundType): Readonly<Record<string, readonly string[]>> => DETAIL_VALUES[type];

function checkAccepts({ for: types, accepts }: Profile): Found {
  return Object.entries(accepts).flatMap(([detail, values]) =>
    types.flatMap((type) => {
      const known = Object.hasOwn(detailsOf(type), detail) ? detailsOf(type)[detail] : undefined;
      if (!known) return [unknown(["accepts", detail], `field ${detail} in the details of ${type}`, Object.keys(detailsOf(type)))];
      return values.flatMap((value, i) =>
        known.includes(value) ? [] : [unknown(["accepts", detail, i], `value ${value} of ${detail}`, known)],
      );
    }),
  );
}

function checkFraming({ framing, resync, role }: Profile): Found {
  const found: ProfileProblem[] = [];
  const hasStart = framing.type === "control" || framing.type === "x328" || ("start" in framing && framing.start !== undefined);
  if (resync === "start" && !hasStart) found.push(problem(["resync"], `frames of the type ${framing.type} without start: expected close`));
  if (framing.type === "length" && framing.requests === "framed" && framing.header.includes("<ANY>"))
    found.push(problem(["framing", "header"], "<ANY> cannot be sent; add requests: raw, and write whole requests in send"));
  if (framing.type === "x328" && role === "listener") found.push(problem(["role"], "X3.28 answers polls: expected client"));
  return found;
}

function checkParameter(types: readonly BoundType[], name: string, parameter: ParameterOf): Found {
  const path = ["parameters", name];
  if (parameter.type !== "detail") {
    if (parameter.type === "integer" && parameter.min > parameter.max) return [problem([...path, "min"], "is above max")];
    const wrong = parameter.default === undefined ? undefined : valueProblem(parameter, parameter.default);
    return wrong === undefined ? [] : [problem([...path, "default"], wrong)];
  }
  return types.flatMap((type) => {
    const known = Object.hasOwn(detailsOf(type), parameter.detail) ? detailsOf(type)[parameter.detail] : undefined;
    if (!known) return [unknown([...path, "detail"], `field ${parameter.detail} in the details of ${type}`, Object.keys(detailsOf(type)))];
    return Object.keys(parameter.values).flatMap((value) =>
      known.includes(value) ? [] : [unknown([...path, "values", value], `value ${value} of ${parameter.detail}`, known)],
    );
  });
}

/** Why a value cannot be that of a parameter or an argument; undefined: it can. Pure. */
export function valueProblem(value: Exclude<Value, { type: "detail" }>, given: unknown): string | undefined {
  if (value.type === "integer") {
    const number = typeof given === "string" && /^-?\d{1,15}$/.test(given) ? Number(given) : given;
    return typeof number === "number" && Number.isInteger(number) && number >= value.min && number <= value.max
      ? undefined
      : `expected a whole number of ${value.min} to ${value.max}`;
  }
  const text = typeof given === "number" ? String(given) : given;
  if (typeof text !== "string" || text.length < 1 || text.length > value.max_length) return `expected 1 to ${value.max_length} characters`;
  const wrong = [...text].find((character) => !isAllowed(value, character));
  return wrong === undefined
    ? undefined
    : `${JSON.stringify(wrong)} cannot be in it; expected letters, digits, _${value.also === "" ? "" : ` and ${value.also}`}`;
}

/** True: a text may have this character. Pure. */
export const isAllowed = ({ also }: Extract<Value, { type: "text" }>, character: string): boolean =>
  /^[A-Za-z0-9_]$/.test(character) || also.includes(character);

function checkRequest(profile: Profile, name: string, request: RequestOf): Found {
  const path = ["requests", name];
  const values: Readonly<Record<string, Value>> = { ...profile.parameters, ...request.arguments };
  const both = Object.keys(request.arguments).filter((key) => Object.hasOwn(profile.parameters, key));
  const found: ProfileProblem[] = both.map((key) => problem([...path, "arguments", key], "is the name of a parameter; take another one"));
  for (const [key, argument] of Object.entries(request.arguments))
    if (argument.type === "integer" && argument.min > argument.max) found.push(problem([...path, "arguments", key, "min"], "is above max"));
  if (request.send === undefined) {
    if (profile.role === "client" && profile.framing.type === "x328") found.push(problem(path, "send is required: X3.28 answers polls"));
    if (Object.keys(request.arguments).length > 0) found.push(problem([...path, "arguments"], "there is no send that they could be in"));
  }
  const texts: readonly (readonly [Path, string | undefined])[] = [
    [[...path, "send"], request.send],
    [[...path, "finish"], request.finish],
    [[...path, "ok", "begins"], request.ok.begins],
    [[...path, "ok", "ends"], request.ok.ends],
  ];
  for (const [at, text] of texts) if (text !== undefined) found.push(...checkTemplate(at, text, values));
  if (profile.framing.type === "x328" && request.send !== undefined && hasControls(request.send))
    found.push(problem([...path, "send"], "only printable characters can be polled; EOT and ENQ are put around them"));
  if (profile.framing.type === "x328" && request.finish !== undefined && request.finish !== "<EOT>")
    found.push(problem([...path, "finish"], "expected <EOT>, the end of a poll"));
  for (const key of Object.keys(request.arguments))
    if (request.send !== undefined && !placeholdersIn(request.send).includes(key))
      found.push(problem([...path, "arguments", key], `is not in send; write {${key}:s} or another format there`));
  return found;
}

const partsOf = (text: string): Template => {
  const parsed = parseTemplate(text);
  return typeof parsed === "string" ? [] : parsed;
};
const placeholdersIn = (text: string): readonly string[] =>
  partsOf(text).flatMap((part) => ("placeholder" in part ? [part.placeholder] : []));
const hasControls = (text: string): boolean =>
  partsOf(text).some((part) => ("bytes" in part ? part.bytes.some((byte) => byte < 0x20 || byte > 0x7e) : part.format.kind === "binary"));

function checkTemplate(path: Path, text: string, values: Readonly<Record<string, Value>>): Found {
  const template = partsOf(text);
  return template.flatMap((part, i) => {
    if ("bytes" in part) return [];
    const value = Object.hasOwn(values, part.placeholder) ? values[part.placeholder] : undefined;
    if (!value) return [unknown(path, `parameter or argument ${part.placeholder}`, Object.keys(values))];
    const wrong = formatProblem(part.format, value) ?? endProblem(part, template[i + 1], value);
    return wrong === undefined ? [] : [problem(path, `${part.text}: ${wrong}`)];
  });
}

function formatProblem(format: PlaceholderFormat, value: Value): string | undefined {
  const samples = samplesOf(value);
  const isText = samples.some((sample) => typeof sample === "string");
  if (isText !== (format.kind === "text"))
    return isText ? "a text takes the format s" : "a whole number takes d, x, X or a binary format, not s";
  if (value.type === "text") return undefined;
  return samples.map((sample) => renderValue(sample, format)).find((bytes) => typeof bytes === "string");
}

function samplesOf(value: Value): readonly (string | number)[] {
  if (value.type === "text") return ["A"];
  return value.type === "integer" ? [value.min, value.max] : Object.values(value.values);
}

/** A fence takes a request apart again: where a value of no fixed width ends must be plain. */
function endProblem(
  part: Extract<TemplatePart, { placeholder: string }>,
  next: TemplatePart | undefined,
  value: Value,
): string | undefined {
  const { format } = part;
  if (value.type === "detail" || format.kind === "binary" || format.width !== undefined || next === undefined) return undefined;
  const byte = "bytes" in next ? next.bytes[0] : undefined;
  if (byte === undefined) return "what follows has to be a fixed character, or give a width as in s4 or d2";
  const character = String.fromCharCode(byte);
  const goesOn = value.type === "text" ? isAllowed(value, character) : /^[0-9a-fA-F-]$/.test(character);
  return goesOn ? `${JSON.stringify(character)} behind it could be part of it; give a width as in s4 or d2` : undefined;
}

function checkError(profile: Profile, error: ErrorAnswer, i: number): Found {
  const path = ["errors", i];
  const texts = (["equals", "begins", "ends", "contains"] as const).map((key) => [key, error[key]] as const);
  const found = texts.flatMap(([key, text]) => (text === undefined ? [] : checkTemplate([...path, key], text, profile.parameters)));
  if (texts.every(([, text]) => text === undefined)) found.push(problem(path, "expected one of equals, begins, ends, contains"));
  if ((error.fault === undefined) === (error.reason === undefined)) found.push(problem(path, "expected either fault or reason"));
  return found;
}

const TEXTUAL = ["field", "column", "pattern", "whole"] as const;
const OF_TEXT = ["hex_prefix", "true", "false"] as const;

function checkVariable(profile: Profile, name: string, variable: ProfileVariable): Found {
  const path = ["variables", name];
  const found: ProfileProblem[] = [];
  if (!Object.hasOwn(profile.requests, variable.request))
    found.push(unknown([...path, "request"], `request ${variable.request}`, Object.keys(profile.requests)));
  const ways = (["bytes", ...TEXTUAL] as const).filter((way) => variable[way] !== undefined);
  if (ways.length !== 1) found.push(problem(path, `expected exactly one of bytes, ${TEXTUAL.join(", ")}; there are ${ways.length}`));
  const { bytes, column, pattern, type } = variable;
  if (column && column.from > column.to) found.push(problem([...path, "column"], "from is behind to"));
  if (pattern !== undefined && pattern.split("{value}").length !== 2)
    found.push(problem([...path, "pattern"], "{value} has to be in it once"));
  if (pattern !== undefined && /\*\{value\}|\{value\}\*|\*\*/.test(pattern))
    found.push(problem([...path, "pattern"], "between * and {value} or another * has to be a text, which says where it ends"));
  if (bytes) {
    if (type === "string") found.push(problem([...path, "type"], "a text is found by field, column, pattern or whole"));
    if (bytes.bit !== undefined && /^(?:f|bcd)/.test(bytes.format))
      found.push(problem([...path, "bytes", "bit"], "neither floats nor BCD have bits to read"));
    if (bytes.bit !== undefined && bytes.bit >= Number(bytes.format.replace(/\D/g, "")))
      found.push(problem([...path, "bytes", "bit"], `${bytes.format} has no bit ${bytes.bit}`));
    for (const key of OF_TEXT) if (variable[key] !== undefined) found.push(problem([...path, key], "is for texts, not for bytes"));
  }
  const isScaled = variable.factor !== undefined || variable.offset !== undefined;
  if (isScaled && (type === "bool" || type === "string" || bytes?.bit !== undefined))
    found.push(problem([...path, variable.factor === undefined ? "offset" : "factor"], "only numbers can be scaled"));
  return found;
}

function checkConnect({ requests }: Profile, name: string, i: number): Found {
  const path = ["connect", i];
  const request = Object.hasOwn(requests, name) ? requests[name] : undefined;
  if (!request) return [unknown(path, `request ${name}`, Object.keys(requests))];
  if (request.send === undefined) return [problem(path, `${name} has no send`)];
  return Object.keys(request.arguments).length > 0 ? [problem(path, `${name} has arguments, which have no value here`)] : [];
}

function checkBareAddress({ bare_address: bare, variables, requests }: Profile): Found {
  if (bare === undefined) return [];
  const variable = Object.hasOwn(variables, bare) ? variables[bare] : undefined;
  if (!variable) return [unknown(["bare_address"], `variable ${bare}`, Object.keys(variables))];
  const request = Object.hasOwn(requests, variable.request) ? requests[variable.request] : undefined;
  return request && Object.keys(request.arguments).length === 0
    ? [problem(["bare_address"], `${bare} has no arguments that an address could give`)]
    : [];
}
