import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { withLock } from "../lib/file-lock.ts";
import { makePrivateFolder, readJsonIfThere, remove, replaceFile, stampOf } from "../lib/files.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Settings } from "../model/settings.ts";
import { localOptions, localOptionsIn } from "./local-options.ts";

type Options = Readonly<Record<string, unknown>>;
type Named = { readonly uuid: string; readonly name: string | null };

/** Options of data sources or data sinks that verbs of this machine keep: by uuid, or by name until there is one. No secrets. */
export type KeptOptions = Readonly<Record<string, Options>>;
export type KeptKind = "source" | "sink";

/** The place where the collector keeps them. */
export const keptOptionsFile = (stateDir: string, kind: KeptKind): string => path.join(stateDir, `${kind}-options.json`);
const pemFolder = (stateDir: string, kind: KeptKind): string => path.join(stateDir, `${kind}-certificates`);

const MAX_FILE_BYTES = 2 ** 20;
const MAX_ENTRIES = 1000;

const entriesSchema = z.record(z.string(), z.record(z.string(), z.unknown()));
const FILE_SCHEMAS = {
  source: z.strictObject({ version: z.literal(1), sources: entriesSchema }).transform(({ sources }) => sources),
  sink: z.strictObject({ version: z.literal(1), sinks: entriesSchema }).transform(({ sinks }) => sinks),
} as const;

/** None where there is no file. Throws Error where it is there and cannot be used. */
export function readKeptOptions(stateDir: string, kind: KeptKind): KeptOptions {
  return readJsonIfThere(keptOptionsFile(stateDir, kind), MAX_FILE_BYTES, FILE_SCHEMAS[kind]) ?? {};
}

/**
 * Changes what is kept, and keeps the certificates and keys that it names; of several processes one at a time. Those that nothing names any
 * more are removed. Throws Error: the file cannot be used or written, or there would be too many.
 */
export async function changeKeptOptions(
  stateDir: string,
  kind: KeptKind,
  change: (kept: KeptOptions) => KeptOptions,
  pems: readonly Uint8Array[] = [],
): Promise<void> {
  await withLock(path.join(stateDir, `${kind}-options.lock`), async () => {
    const now = change(readKeptOptions(stateDir, kind));
    if (Object.keys(now).length > MAX_ENTRIES) throw new Error(`options of more than ${MAX_ENTRIES} data ${kind}s cannot be kept`);
    const text = JSON.stringify({ version: 1, [`${kind}s`]: now });
    if (Buffer.byteLength(text) > MAX_FILE_BYTES) throw new Error(`more than ${MAX_FILE_BYTES} bytes of options cannot be kept`);
    const folder = pemFolder(stateDir, kind);
    if (pems.length > 0) makePrivateFolder(folder);
    for (const pem of pems) replaceFile(pemCopy(stateDir, kind, pem), pem);
    replaceFile(keptOptionsFile(stateDir, kind), text);
    for (const name of pemNames(folder)) if (!text.includes(name)) remove(path.join(folder, name));
  });
}

/** The place where a copy of a certificate or key lies, by its content: a renewed one has another name. */
export const pemCopy = (stateDir: string, kind: KeptKind, pem: Uint8Array): string =>
  path.join(pemFolder(stateDir, kind), `${createHash("sha256").update(pem).digest("hex").slice(0, 32)}.pem`);

function pemNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => /^[0-9a-f]{32}\.pem$/.test(name));
  } catch {
    return [];
  }
}

/** The options of all records: those that are kept here, each under what the settings file says of the same one. Pure. */
export function withKeptOptions(settings: Settings["sinks"], kept: KeptOptions, records: readonly Named[]): Settings["sinks"] {
  if (Object.keys(kept).length === 0) return settings;
  const keptOf = localOptionsIn(kept);
  const merged = records.flatMap((record) => {
    const own = keptOf(record);
    if (Object.keys(own).length === 0) return [];
    // Under the name that the settings file has for it: where a secret goes is known by that.
    const uuid = Object.keys(settings).find((key) => key.toLowerCase() === record.uuid);
    const key = uuid ?? (record.name !== null && Object.hasOwn(settings, record.name) ? record.name : record.uuid);
    return [[key, { ...own, ...settings[key] }] as const];
  });
  return merged.length === 0 ? settings : { ...settings, ...Object.fromEntries(merged) };
}

/** The options of one record: those that are kept in `stateDir`, under `settings`. Throws Error where the file of them cannot be used. */
export const optionsOf = (settings: Settings["sinks"], stateDir: string, kind: KeptKind, record: Named): Options =>
  localOptions(withKeptOptions(settings, readKeptOptions(stateDir, kind), [record]), record);

/** The kept options as a running service sees them. */
export class KeptOptionsFile {
  readonly #stateDir: string;
  readonly #kind: KeptKind;
  readonly #log: Log;
  #stamp: string | undefined | null = null;
  #options: KeptOptions | undefined;
  #problem: string | undefined;

  constructor(stateDir: string, kind: KeptKind, log: Log) {
    this.#stateDir = stateDir;
    this.#kind = kind;
    this.#log = log;
  }

  /**
   * The same object while nothing has changed. Undefined: nobody knows what they say, because the file cannot be used and could not be since
   * the start: a source without its order of bytes, or a sink without its user, would be another one. Never throws.
   */
  look(): KeptOptions | undefined {
    const stamp = this.#stampNow();
    if (stamp === this.#stamp) return this.#options;
    this.#stamp = stamp;
    try {
      this.#options = readKeptOptions(this.#stateDir, this.#kind);
      this.#problem = undefined;
    } catch (error) {
      this.#problem = `the options of data ${this.#kind}s on this machine cannot be read: ${messageOf(error)}; delete the file, and give them again with collector ${this.#kind} set`;
      this.#log.error({}, this.#problem);
    }
    return this.#options;
  }

  /** Why the file cannot be used, for people; undefined: it can be. */
  get problem(): string | undefined {
    return this.#problem;
  }

  #stampNow(): string | undefined {
    try {
      return stampOf(keptOptionsFile(this.#stateDir, this.#kind));
    } catch (error) {
      return messageOf(error);
    }
  }
}
