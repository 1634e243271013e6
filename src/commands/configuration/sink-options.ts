import { createPrivateKey, X509Certificate } from "node:crypto";
import path from "node:path";
import { pemCopy } from "../../configuration/kept-options.ts";
import { deliverySettings } from "../../delivery/prepare-sink.ts";
import type { SinkType } from "../../model/sink-details.ts";
import { SINKS } from "../../sinks/index.ts";
import type { AnySinkKind } from "../../sinks/sink.ts";
import { readIn } from "../files.ts";
import { UsageError } from "../io.ts";
import { issueWords, type JsonSchema, keyIn, keysOf, toJsonSchema } from "./fields.ts";
import type { KeptPart, OptionChange } from "./kept-here.ts";

/** Options of a data sink that this machine keeps beside the API's details, as `sink add` and `sink set` take them. */

type Options = Readonly<Record<string, unknown>>;

const MAX_PEM_BYTES = 1_048_576;
const PEM_FILES = ["ca_file", "cert_file", "key_file"] as const;

/** The kind of sink that serves a type, whose options are asked for. */
export const kindOf = async (type: SinkType): Promise<AnySinkKind> => (await SINKS[type].kind()).default;

/** Keys for words: those of the kind's local options, and of the delivery's, without those that name where a password is. */
export function optionKeysOf(kind: AnySinkKind): ReadonlyMap<string, JsonSchema> {
  const all = [kind.settings, deliverySettings(kind)].flatMap((schema) => [...keysOf(toJsonSchema(schema))]);
  const keys = all.filter(([key]) => !key.startsWith("password_"));
  return new Map([...keys, ...(keys.some(([key]) => key.startsWith("tls.")) ? [["tls", { type: "boolean" }] as const] : [])]);
}

/** The keys that `key=` words remove, and the other words. `tls=false` removes all of tls, and `tls=true` needs no other. Pure. */
export function sortOptionWords(
  kind: AnySinkKind,
  words: readonly string[],
): { readonly removed: readonly string[]; readonly rest: readonly string[] } {
  const keys = optionKeysOf(kind);
  const isRemoval = (word: string): boolean => word === "tls=false" || (word.endsWith("=") && keys.has(keyIn(word) ?? ""));
  return {
    removed: words.filter(isRemoval).map((word) => keyIn(word) ?? ""),
    rest: words.filter((word) => !isRemoval(word)),
  };
}

/**
 * The options as they will be, checked like those of the settings file. Certificates and keys are read here and kept as copies, because the
 * service may not see a person's folders. Throws UsageError, which names the key and what would be right.
 */
export function nextOptions(
  kind: AnySinkKind,
  { given, removed }: OptionChange,
  now: Options,
  { stateDir, details }: { readonly stateDir: string; readonly details: object },
): Omit<KeptPart, "isChanged"> {
  const tlsGiven = given["tls"];
  const { copies, pems } = pemCopies(isObject(tlsGiven) ? tlsGiven : {}, stateDir);
  const before = isObject(now["tls"]) ? now["tls"] : undefined;
  const tls = tlsGiven === undefined ? before : { ...before, ...(isObject(tlsGiven) ? tlsGiven : {}), ...copies };
  const removedTls = new Set(removed.filter((key) => key.startsWith("tls.")).map((key) => key.slice("tls.".length)));
  const kept = tls && Object.fromEntries(Object.entries(tls).filter(([key]) => !removedTls.has(key)));
  const { tls: _, ...rest } = { ...now, ...given };
  const all = { ...rest, ...(kept && { tls: kept }) };
  const options = Object.fromEntries(Object.entries(all).filter(([key]) => !removed.includes(key)));
  const checked = kind.settings.safeParse(withoutDelivery(kind, options));
  const ofDelivery = deliverySettings(kind).safeParse(options);
  const mistakes = [checked, ofDelivery].flatMap(({ error }) => (error ? issueWords(error) : []));
  if (mistakes.length > 0 || !checked.success) throw new UsageError(mistakes.join("\n"));
  const need = kind.settingsProblem?.(checked.data, details);
  if (need !== undefined) throw new UsageError(need);
  return { options, pems };
}

const withoutDelivery = (kind: AnySinkKind, options: Options): Options =>
  Object.fromEntries(Object.entries(options).filter(([key]) => !Object.hasOwn(deliverySettings(kind).shape, key)));

const isObject = (value: unknown): value is Options => typeof value === "object" && value !== null;

function pemCopies(
  tls: Options,
  stateDir: string,
): { readonly copies: Readonly<Record<string, string>>; readonly pems: readonly Buffer[] } {
  const read = PEM_FILES.flatMap((field) => {
    const file = tls[field];
    if (typeof file !== "string") return [];
    const pem = readIn(file, MAX_PEM_BYTES);
    requirePem(field, file, pem);
    return [{ field, file, pem }];
  });
  const [cert, key] = (["cert_file", "key_file"] as const).map((field) => read.find((one) => one.field === field));
  if (cert && key && !new X509Certificate(cert.pem).checkPrivateKey(createPrivateKey(key.pem)))
    throw new UsageError(`tls.key_file: ${key.file} is not the key of the certificate ${cert.file}; name the key that was made with it`);
  return {
    copies: Object.fromEntries(read.map(({ field, pem }) => [field, pemCopy(path.resolve(stateDir), "sink", pem)])),
    pems: read.map(({ pem }) => pem),
  };
}

/** Throws UsageError: the file does not hold what the field takes. */
function requirePem(field: (typeof PEM_FILES)[number], file: string, pem: Buffer): void {
  try {
    if (field === "key_file") createPrivateKey(pem);
    else new X509Certificate(pem);
  } catch {
    const what = field === "key_file" ? "a private key without a passphrase" : "a certificate";
    const swapped = field === "key_file" ? pem.includes("BEGIN CERTIFICATE") : pem.includes("PRIVATE KEY-----");
    throw new UsageError(
      `tls.${field}: ${file} holds no PEM of ${what}${swapped ? `; it looks like ${field === "key_file" ? "a certificate" : "a key"}` : ""}`,
    );
  }
}
