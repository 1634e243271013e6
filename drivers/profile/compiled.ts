import type { ArgumentOf, ErrorAnswer, Profile, RequestOf } from "../../src/model/profile.ts";
import { valueProblem } from "../../src/model/profile-check.ts";
import { type PlaceholderValue, parseTemplate, renderTemplate, type Template } from "../../src/model/profile-template.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Framing, framingOf } from "./framing.ts";

/** A request of a profile, its templates read. */
export interface CompiledRequest {
  readonly name: string;
  readonly reads: string;
  /** Undefined: the device sends by itself. */
  readonly send: Template | undefined;
  readonly finish: Template | undefined;
  readonly begins: Template;
  readonly ends: Template;
  readonly arguments: readonly (readonly [name: string, argument: ArgumentOf])[];
}

export interface CompiledError {
  readonly equals: Buffer | undefined;
  readonly begins: Buffer;
  readonly ends: Buffer;
  readonly contains: Buffer;
  readonly answer: ErrorAnswer;
}

/** A profile with the parameters of one data source. */
export interface Compiled {
  readonly profile: Profile;
  readonly framing: Framing;
  readonly parameters: ReadonlyMap<string, PlaceholderValue>;
  readonly requests: ReadonlyMap<string, CompiledRequest>;
  readonly errors: readonly CompiledError[];
}

/** Fields of the details that a profile may use, in the API's words. */
export type DetailFields = Readonly<Record<string, string>>;
export type ParameterSettings = Readonly<Record<string, string | number>>;

/** Why a profile cannot be used with these details and settings: one sentence each. */
export function parameterProblems(profile: Profile, details: DetailFields, given: ParameterSettings): readonly string[] {
  const problems = Object.entries(profile.accepts).flatMap(([field, values]) => {
    const value = details[field] ?? "";
    return values.includes(value)
      ? []
      : [`the profile ${profile.name} is for ${field} ${values.join(" or ")}; the data source has ${value}`];
  });
  for (const [name, parameter] of Object.entries(profile.parameters)) {
    const value = given[name];
    if (parameter.type === "detail") {
      const field = details[parameter.detail] ?? "";
      if (value !== undefined) problems.push(`parameters.${name}: comes from ${parameter.detail} of the data source; leave it out`);
      if (!Object.hasOwn(parameter.values, field))
        problems.push(
          `the profile ${profile.name} has no value for ${parameter.detail} ${field}, only for ${Object.keys(parameter.values).join(", ")}`,
        );
      continue;
    }
    if (value === undefined && parameter.default === undefined)
      problems.push(
        `parameters.${name}: is required by the profile ${profile.name}${parameter.description ? ` (${parameter.description})` : ""}`,
      );
    const wrong = value === undefined ? undefined : valueProblem(parameter, value);
    if (wrong !== undefined) problems.push(`parameters.${name}: ${wrong}`);
  }
  const known = Object.keys(profile.parameters);
  for (const name of Object.keys(given))
    if (!known.includes(name))
      problems.push(`parameters.${name}: the profile ${profile.name} has no such parameter; it has ${known.join(", ") || "none"}`);
  return problems;
}

function valuesOf(profile: Profile, details: DetailFields, given: ParameterSettings): ReadonlyMap<string, PlaceholderValue> {
  const values = new Map<string, PlaceholderValue>();
  for (const [name, parameter] of Object.entries(profile.parameters)) {
    const value = parameter.type === "detail" ? parameter.values[details[parameter.detail] ?? ""] : (given[name] ?? parameter.default);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

const templateOf = (text: string): Template => {
  const parsed = parseTemplate(text);
  if (typeof parsed === "string") throw new TypeError(parsed);
  return parsed;
};

function requestOf(name: string, request: RequestOf, isPoll: boolean): CompiledRequest {
  const { send, finish, ok } = request;
  return {
    name,
    reads: request.reads,
    send: send === undefined ? undefined : templateOf(isPoll ? `<EOT>${send}<ENQ>` : send),
    finish: finish === undefined ? undefined : templateOf(finish),
    begins: templateOf(ok.begins ?? ""),
    ends: templateOf(ok.ends ?? ""),
    arguments: Object.entries(request.arguments),
  };
}

/** Throws ReasonError (configuration_invalid), which names each parameter that is missing or wrong. Pure. */
export function compile(profile: Profile, details: DetailFields, given: ParameterSettings): Compiled {
  const problems = parameterProblems(profile, details, given);
  if (problems.length > 0) throw new ReasonError("UNKNOWN", problems.join("; "), { condition: "configuration_invalid" });
  const parameters = valuesOf(profile, details, given);
  const isPoll = profile.framing.type === "x328";
  const literal = (text: string | undefined): Buffer => (text === undefined ? Buffer.alloc(0) : bytesWith(templateOf(text), parameters));
  return {
    profile,
    framing: framingOf(profile.framing, profile.resync),
    parameters,
    requests: new Map(Object.entries(profile.requests).map(([name, request]) => [name, requestOf(name, request, isPoll)])),
    errors: profile.errors.map((answer) => ({
      equals: answer.equals === undefined ? undefined : literal(answer.equals),
      begins: literal(answer.begins),
      ends: literal(answer.ends),
      contains: literal(answer.contains),
      answer,
    })),
  };
}

/** A template's bytes. Throws ReasonError (configuration_invalid) where a value does not fit. */
export function bytesWith(template: Template, values: ReadonlyMap<string, PlaceholderValue>): Buffer {
  const bytes = renderTemplate(template, (name) => values.get(name));
  if (typeof bytes === "string") throw new ReasonError("UNKNOWN", bytes, { condition: "configuration_invalid" });
  return Buffer.from(bytes);
}

/** The values of placeholders in one request: parameters of the source, and arguments of the address. */
export const valuesFor = (
  { parameters }: Pick<Compiled, "parameters">,
  request: Pick<CompiledRequest, "arguments">,
  args: readonly string[],
): ReadonlyMap<string, PlaceholderValue> =>
  new Map<string, PlaceholderValue>([...parameters, ...request.arguments.map(([name], i): [string, string] => [name, args[i] ?? ""])]);
