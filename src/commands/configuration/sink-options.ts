import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import type * as z from "zod";
import { changeKeptSinkOptions, type KeptSinkOptions, pemCopy, readKeptSinkOptions } from "../../configuration/kept-sink-options.ts";
import { localOptions } from "../../configuration/local-options.ts";
import { deliverySettings } from "../../delivery/prepare-sink.ts";
import { messageOf } from "../../model/failure.ts";
import type { Settings } from "../../model/settings.ts";
import type { SinkType } from "../../model/sink-details.ts";
import { asOwnerOf } from "../../os/owner.ts";
import type { SinkFacts } from "../../sinks/facts.ts";
import { SINKS } from "../../sinks/index.ts";
import type { AnySinkKind } from "../../sinks/sink.ts";
import { readIn } from "../files.ts";
import { UsageError } from "../io.ts";
import { issueWords, type JsonSchema, keyIn, keysOf, toJsonSchema } from "./fields.ts";

/** Options of a data sink that this machine keeps beside the API's details, as `sink add` and `sink set` take them. */

type Options = Readonly<Record<string, unknown>>;
type Sink = { readonly uuid: string; readonly name: string | null };

const MAX_PEM_BYTES = 1_048_576;
const PEM_FILES = ["ca_file", "cert_file", "key_file"] as const;

/** Those of the kind, and of the delivery where that keeps the history for it. */
function schemaOf(type: SinkType): z.ZodObject {
  const { settings, delivery }: SinkFacts = SINKS[type];
  return delivery === "every" ? settings.safeExtend(deliverySettings.shape) : settings;
}

/** Keys for words: those of the kind's local options, without those that name where a password is. */
export function optionKeysOf(type: SinkType): ReadonlyMap<string, JsonSchema> {
  const schema = schemaOf(type);
  const keys = [...keysOf(toJsonSchema(schema))].filter(([key]) => !key.startsWith("password_"));
  return new Map([...keys, ...("tls" in schema.shape ? [["tls", { type: "boolean" }] as const] : [])]);
}

/** What words change of the options: given ones, with objects inside, and the keys that an empty text removes. */
export interface OptionChange {
  readonly given: Options;
  readonly removed: readonly string[];
}

/** The keys that `key=` words remove, and the other words. `tls=false` removes all of tls, and `tls=true` needs no other. Pure. */
export function sortOptionWords(
  type: SinkType,
  words: readonly string[],
): { readonly removed: readonly string[]; readonly rest: readonly string[] } {
  const keys = optionKeysOf(type);
  const isRemoval = (word: string): boolean => word === "tls=false" || (word.endsWith("=") && keys.has(keyIn(word) ?? ""));
  return {
    removed: words.filter(isRemoval).map((word) => keyIn(word) ?? ""),
    rest: words.filter((word) => !isRemoval(word)),
  };
}

/** Options of this machine that are to be kept, and the certificates that they name copies of. */
export interface NextOptions {
  readonly options: Options;
  readonly pems: readonly Uint8Array[];
}

/**
 * The options as they will be, checked like those of the settings file. Certificates and keys are read here and kept as copies, because the
 * service may not see a person's folders. Throws UsageError, which names the key and what would be right.
 */
export async function nextOptions(
  type: SinkType,
  { given, removed }: OptionChange,
  now: Options,
  { stateDir, details }: { readonly stateDir: string; readonly details: object },
): Promise<NextOptions> {
  const tlsGiven = given["tls"];
  const { copies, pems } = pemCopies(isObject(tlsGiven) ? tlsGiven : {}, stateDir);
  const before = isObject(now["tls"]) ? now["tls"] : undefined;
  const tls = tlsGiven === undefined ? before : { ...before, ...(isObject(tlsGiven) ? tlsGiven : {}), ...copies };
  const removedTls = new Set(removed.filter((key) => key.startsWith("tls.")).map((key) => key.slice("tls.".length)));
  const kept = tls && Object.fromEntries(Object.entries(tls).filter(([key]) => !removedTls.has(key)));
  const { tls: _, ...rest } = { ...now, ...given };
  const all = { ...rest, ...(kept && { tls: kept }) };
  const options = Object.fromEntries(Object.entries(all).filter(([key]) => !removed.includes(key)));
  const checked = schemaOf(type).safeParse(options);
  if (!checked.success) throw new UsageError(issueWords(checked.error).join("\n"));
  const { default: kind }: { readonly default: AnySinkKind } = await SINKS[type].kind();
  const need = kind.settingsProblem?.(kind.settings.parse(withoutDelivery(options)), details);
  if (need !== undefined) throw new UsageError(need);
  return { options, pems };
}

const withoutDelivery = (options: Options): Options =>
  Object.fromEntries(Object.entries(options).filter(([key]) => !Object.hasOwn(deliverySettings.shape, key)));

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
    copies: Object.fromEntries(read.map(({ field, pem }) => [field, pemCopy(path.resolve(stateDir), pem)])),
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

/** Throws UsageError: this is not the machine of the collector, which keeps such options. */
export function requireCollectorHere({ state_dir: stateDir }: Settings, keys: readonly string[]): void {
  if (existsSync(stateDir)) return;
  throw new UsageError(
    `${keys.join(", ")}: kept on the collector's own machine, and there is no collector here (no folder ${stateDir}); type this command there`,
  );
}

/** The options that this machine keeps of a sink. Throws UsageError. */
export function keptOptionsOf({ state_dir: stateDir }: Settings, sink: Sink): Options {
  try {
    return localOptions(readKeptSinkOptions(stateDir), sink);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** Changes what this machine keeps. Throws UsageError where it cannot be written. */
export async function changeOptions(
  { state_dir: stateDir }: Settings,
  change: (kept: KeptSinkOptions) => KeptSinkOptions,
  pems: readonly Uint8Array[] = [],
): Promise<void> {
  try {
    await asOwnerOf(stateDir, () => changeKeptSinkOptions(stateDir, change, pems));
  } catch (error) {
    throw new UsageError(`the options cannot be kept on this machine: ${messageOf(error)}; type the command with sudo`);
  }
}

/** The kept options with these for a key; without any where there are none. Pure. */
export function withOptions(kept: KeptSinkOptions, key: string, options: Options): KeptSinkOptions {
  const others = Object.fromEntries(Object.entries(kept).filter(([known]) => known !== key));
  return Object.keys(options).length === 0 ? others : { ...others, [key]: options };
}

/** Kept options that the settings file has too, which then count no more. */
export const overruled = ({ sinks }: Settings, sink: Sink, options: Options): readonly string[] =>
  Object.keys(localOptions(sinks, sink)).filter((key) => Object.hasOwn(options, key));

/** Options as they would be typed; of a copied file that it is there. */
export const optionWords = (options: Options): readonly string[] =>
  Object.entries(options).flatMap(([key, value]) => {
    if (!isObject(value)) return [`${key}=${String(value)}`];
    const inner = Object.entries(value).map(([name, one]) => `${key}.${name}=${name.endsWith("_file") ? "(kept here)" : String(one)}`);
    return inner.length === 0 ? [`${key}=true`] : inner;
  });
