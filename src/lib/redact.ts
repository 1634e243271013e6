import { withoutCredentials } from "../base/plain-text.ts";
import { withoutUserInformation } from "../model/endpoint-url.ts";
import { isSecretName } from "./loggable.ts";

export const REDACTED = "[redacted]";
/** A shorter secret is looked for by its field alone: taken out wherever its letters are, it would leave no text. */
const SHORTEST = 4;

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gs;
const AUTHORIZATION = /\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{16,}/gi;
/** `"name": value` of JSON, with what a string may hold. */
const JSON_FIELD = /("([^"\\]{1,100})"\s*:\s*)("(?:[^"\\]|\\.)*"|[^\s,}\]{["]+)/g;
/** `name: value` and `name=value` of YAML and of settings. */
const PLAIN_FIELD = /^([ \t]*(?:- +)?([A-Za-z][\w.-]{0,99})\s*[:=][ \t]+)(?!\s*[|>{[]?\s*$)(.+)$/gm;

/** Fields of settings and details that hold a host, a URL, or a host with its port: one without a scheme may hold a user, too. */
const ADDRESS_NAMES: ReadonlySet<string> = new Set(["host", "endpoint_url", "url", "proxy", "listen"]);

/** The forms in which a secret may stand in a text. */
const formsOf = (secret: string): readonly string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret),
  Buffer.from(secret).toString("base64"),
  Buffer.from(secret).toString("hex"),
];

/**
 * Takes secrets out of a text: private keys, credentials of URLs and headers, fields whose names say that they hold a secret, and
 * the values of `secrets` in each form that they may have. Pure.
 */
export function redact(text: string, secrets: Iterable<string>): string {
  const field = (all: string, begin: string, name: string, value: string): string => {
    if (isSecretName(name)) return `${begin}"${REDACTED}"`;
    return ADDRESS_NAMES.has(name) ? `${begin}${withoutUser(value)}` : all;
  };
  let safe = withoutCredentials(text)
    .replace(PRIVATE_KEY, REDACTED)
    .replace(JSON_FIELD, field)
    .replace(PLAIN_FIELD, field)
    .replace(AUTHORIZATION, `$1${REDACTED}`);
  for (const form of searchedForms(secrets)) safe = safe.replaceAll(form, REDACTED);
  return safe;
}

/** True: any of the secrets is still in the text. Pure. */
export const holdsSecret = (text: string, secrets: Iterable<string>): boolean => searchedForms(secrets).some((form) => text.includes(form));

/** The value of a field as it is written, with its quotes. */
const withoutUser = (value: string): string =>
  value.replace(/^(["']?)(.*)$/s, (_, quoteMark: string, text: string) => quoteMark + withoutUserInformation(text));

/** The longer ones first, because they may hold others. */
const searchedForms = (secrets: Iterable<string>): readonly string[] =>
  [...new Set([...secrets].filter(({ length }) => length >= SHORTEST).flatMap(formsOf))].sort((a, b) => b.length - a.length);
