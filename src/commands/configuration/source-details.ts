import type { z } from "zod";
import { isSecretName } from "../../lib/loggable.ts";
import { DETAILS, type DetailsType, detailsCreateSchema } from "../../model/details.ts";
import { endpointParts } from "../../model/endpoint-url.ts";
import { SINK_DETAILS, type SinkType, sinkDetailsCreateSchema } from "../../model/sink-details.ts";
import type { AnySinkKind } from "../../sinks/sink.ts";
import { UsageError } from "../io.ts";
import { checked, isMissing, issueWords, type JsonSchema, keysOf, parseFields, put, toJsonSchema } from "./fields.ts";
import type { OptionChange } from "./kept-here.ts";
import { optionKeysOf, sortOptionWords } from "./sink-options.ts";

type Fields = Readonly<Record<string, unknown>>;

/** How a password is given instead of among the words. */
export const SOURCE_PASSWORD = "give it with --password-file FILE or --ask-password";
const SINK_PASSWORD = "give it with --password-file FILE or --ask-password, or give an OPC UA sink its users with --user";

/** Keys for people besides those of the API. */
const USERNAME: JsonSchema = { type: "string" };

function keysOfType(schema: z.ZodType, more: Readonly<Record<string, JsonSchema>> = {}): ReadonlyMap<string, JsonSchema> {
  const { type: _, ...properties } = toJsonSchema(schema).properties ?? {};
  return new Map([...keysOf({ properties }), ...Object.entries(more)]);
}

/** The keys that a person may set of a data source's details, those of inner objects with dots. */
export const keysOfSource = (type: DetailsType): ReadonlyMap<string, JsonSchema> =>
  keysOfType(DETAILS[type].create, passwordPlace(type) === "user" ? { username: USERNAME } : {});

/** Whose password the details of a type take, by their schema: a user's, the device's own, or none. */
function passwordPlace(type: DetailsType): "user" | "device" | undefined {
  const keys = keysOfType(DETAILS[type].create);
  if (keys.has("user_identity.password")) return "user";
  return keys.has("password.value") ? "device" : undefined;
}

/**
 * `details` of a creation request from `key=value…`, complete: for opcua, host and port come from endpoint_url, and what is not said is
 * None and Anonymous, with a user's token protected; a policy without a mode means SignAndEncrypt. Pure. Throws UsageError.
 */
export function sourceDetails(type: DetailsType, words: readonly string[], password: string | undefined): Fields {
  const keys = keysOfSource(type);
  return checked(detailsCreateSchema, completeDetails(type, parseFields(words, keys, SOURCE_PASSWORD), password), keys, detailsWords);
}

/** One sentence for each issue of details; host and port are not asked for where the URL is wrong that they come from. */
export function detailsWords({ issues }: Pick<z.ZodError, "issues">): string[] {
  const isUrlWrong = issues.some(({ path: [field] }) => field === "endpoint_url");
  const fromUrl = ({ path: [field] }: z.core.$ZodIssue): boolean => field === "host" || field === "port";
  return issueWords({ issues: issues.filter((issue) => !(isUrlWrong && isMissing(issue) && fromUrl(issue))) });
}

/** What was given, with what goes without saying. Pure. Throws UsageError: a type that has no password is given one. */
export function completeDetails(type: DetailsType, parsed: Fields, password: string | undefined): Fields {
  const given = sugared(type, parsed, password);
  const missing = defaults(type, given);
  return { ...missing, ...withInner(given, missing), type };
}

/** What `sourceDetails` filled in where the API has no default, as it would be typed. Pure. */
export function unsaidWords(type: DetailsType, words: readonly string[], details: Fields): readonly string[] {
  const said = parseFields(words, keysOfSource(type), SOURCE_PASSWORD);
  const unsaid = (all: Fields, given: Fields, prefix: string): readonly string[] =>
    Object.entries(all).flatMap(([name, value]) => {
      const inner = given[name];
      if (isFields(value)) return unsaid(value, isFields(inner) ? inner : {}, `${prefix}${name}.`);
      return inner === undefined && !isSecretName(name) ? [`${prefix}${name}=${String(value)}`] : [];
    });
  const filled = Object.entries(details).filter(([name]) => Object.hasOwn(defaults(type, said), name));
  const { username, ...rest } = said;
  return unsaid(Object.fromEntries(filled), username === undefined ? rest : { ...rest, user_identity: details["user_identity"] }, "");
}

/** `details` of a PATCH from `key=value…`: what is given, with the inner objects that it belongs to as they are now. Pure. Throws UsageError. */
export function sourceDetailsPatch(type: DetailsType, words: readonly string[], password: string | undefined, now: Fields): Fields {
  const given = sugared(type, parseFields(words, keysOfSource(type), SOURCE_PASSWORD), password);
  return withInner(given, now);
}

function sugared(type: DetailsType, parsed: Fields, password: string | undefined): Fields {
  const place = passwordPlace(type);
  if (place === "user") {
    const { username, ...rest } = parsed;
    if (username === undefined && password === undefined) return rest;
    const identity: Record<string, unknown> = { type: "UserNamePassword" };
    if (typeof rest["user_identity"] === "object") Object.assign(identity, rest["user_identity"]);
    if (username !== undefined) put(identity, "username", username);
    if (password !== undefined) put(identity, "password", password);
    return { ...rest, user_identity: identity };
  }
  if (password === undefined) return parsed;
  if (place === undefined) throw new UsageError(`a data source of type ${type} has no password`);
  return { ...parsed, password: { type: "set", value: password } };
}

function defaults(type: DetailsType, given: Fields): Fields {
  if (type === "plastcontrol") return { readout_mode: { type: "active" } };
  if (type !== "opcua") return {};
  const url = endpointParts(String(given["endpoint_url"] ?? ""));
  return {
    ...(url && { host: url.host, port: url.port }),
    user_identity: { type: "Anonymous" },
    security_settings: { ...channelSecurity(given), token_security_policy: tokenPolicy(given) },
  };
}

/** Who names a policy wants it used. */
function channelSecurity({ security_settings: security }: Fields): Fields {
  const policy = isFields(security) ? (security["endpoint_security_policy"] ?? "None") : "None";
  return { security_mode: policy === "None" ? "None" : "SignAndEncrypt", endpoint_security_policy: "None" };
}

/** A password is never in the clear unless the words ask for it: it is protected as the channel is, or by the policy that every server of today has. */
function tokenPolicy({ user_identity: identity, security_settings: security }: Fields): string {
  if (!isFields(identity) || identity["type"] === "Anonymous") return "None";
  const policy = isFields(security) ? security["endpoint_security_policy"] : undefined;
  return typeof policy === "string" && policy !== "None" ? policy : "Basic256Sha256";
}

/** Objects inside are replaced whole by the API (design/api-decisions): what was not given of them stays as it is. */
function withInner(given: Fields, now: Fields): Fields {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const before = now[name];
      const both = isFields(value) && isFields(before) && sameVariant(value, before);
      return [name, both ? { ...before, ...value } : value];
    }),
  );
}

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const sameVariant = (a: Fields, b: Fields): boolean => ["type", "protocol"].every((name) => a[name] === undefined || a[name] === b[name]);

/** `NAME=FILE`, a user of an OPC UA sink and the file with the password. */
export type SinkUser = { readonly username: string; readonly password: string };

/** What words say of a sink: details for the API, and options that this machine keeps. */
export interface SinkWords {
  readonly details: Fields;
  readonly options: OptionChange;
}

/** Tells the two apart by their keys. Pure. Throws UsageError. */
export function sinkWords(type: SinkType, kind: AnySinkKind, words: readonly string[]): SinkWords {
  const options = optionKeysOf(kind);
  const keys = new Map([...keysOfType(SINK_DETAILS[type].create), ...options]);
  const { removed, rest } = sortOptionWords(kind, words);
  const fields = Object.entries(parseFields(rest, keys, SINK_PASSWORD));
  const own = new Set([...options.keys()].map((key) => key.split(".", 1)[0]));
  return {
    details: Object.fromEntries(fields.filter(([key]) => !own.has(key))),
    options: { given: Object.fromEntries(fields.filter(([key]) => own.has(key))), removed },
  };
}

/** `details` of a sink's creation request. Pure. Throws UsageError. */
export function sinkDetails(type: SinkType, kind: AnySinkKind, given: Fields, users: readonly SinkUser[]): Fields {
  const keys = new Map([...keysOfType(SINK_DETAILS[type].create), ...optionKeysOf(kind)]);
  return checked(sinkDetailsCreateSchema, { ...given, ...usersOf(type, users), type }, keys);
}

/** Works as sinkDetails does, for a PATCH: only what is given. */
export const sinkDetailsPatch = (type: SinkType, given: Fields, users: readonly SinkUser[]): Fields => ({
  ...given,
  ...usersOf(type, users),
});

function usersOf(type: SinkType, users: readonly SinkUser[]): Fields {
  if (users.length === 0) return {};
  if (!hasUsers(type)) throw new UsageError(`a data sink of type ${type} has no users`);
  return { users };
}

/** True: people of its own log in at the sink. Pure. */
export const hasUsers = (type: SinkType): boolean => "users" in SINK_DETAILS[type].create.shape;
