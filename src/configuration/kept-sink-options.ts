import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { withLock } from "../lib/file-lock.ts";
import { makePrivateFolder, readJsonIfThere, remove, replaceFile, stampOf } from "../lib/files.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Settings } from "../model/settings.ts";
import { localOptions } from "./local-options.ts";

type Options = Readonly<Record<string, unknown>>;

/** Options of data sinks that verbs of this machine keep: by the uuid of the sink, or by its name until it has one. No secrets. */
export type KeptSinkOptions = Readonly<Record<string, Options>>;

/** The place where the collector keeps them. */
export const keptSinkOptionsFile = (stateDir: string): string => path.join(stateDir, "sink-options.json");
const pemFolder = (stateDir: string): string => path.join(stateDir, "sink-certificates");

const MAX_FILE_BYTES = 2 ** 20;
const MAX_SINKS = 1000;

const fileSchema = z.strictObject({ version: z.literal(1), sinks: z.record(z.string(), z.record(z.string(), z.unknown())) });

/** None where there is no file. Throws Error where it is there and cannot be used. */
export function readKeptSinkOptions(stateDir: string): KeptSinkOptions {
  return readJsonIfThere(keptSinkOptionsFile(stateDir), MAX_FILE_BYTES, fileSchema)?.sinks ?? {};
}

/**
 * Changes what is kept, and keeps the certificates and keys that it names; of several processes one at a time. Those that nothing names any
 * more are removed. Throws Error: the file cannot be used or written, or there would be too many.
 */
export async function changeKeptSinkOptions(
  stateDir: string,
  change: (kept: KeptSinkOptions) => KeptSinkOptions,
  pems: readonly Uint8Array[] = [],
): Promise<void> {
  await withLock(path.join(stateDir, "sink-options.lock"), async () => {
    const now = change(readKeptSinkOptions(stateDir));
    if (Object.keys(now).length > MAX_SINKS) throw new Error(`options of more than ${MAX_SINKS} data sinks cannot be kept`);
    const text = JSON.stringify({ version: 1, sinks: now });
    if (Buffer.byteLength(text) > MAX_FILE_BYTES) throw new Error(`more than ${MAX_FILE_BYTES} bytes of options cannot be kept`);
    const folder = pemFolder(stateDir);
    if (pems.length > 0) makePrivateFolder(folder);
    for (const pem of pems) replaceFile(pemCopy(stateDir, pem), pem);
    replaceFile(keptSinkOptionsFile(stateDir), text);
    for (const name of pemNames(folder)) if (!text.includes(name)) remove(path.join(folder, name));
  });
}

/** The place where a copy of a certificate or key lies, by its content: a renewed one has another name. */
export const pemCopy = (stateDir: string, pem: Uint8Array): string =>
  path.join(pemFolder(stateDir), `${createHash("sha256").update(pem).digest("hex").slice(0, 32)}.pem`);

function pemNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => /^[0-9a-f]{32}\.pem$/.test(name));
  } catch {
    return [];
  }
}

/** The options of all data sinks: those that are kept here, each under what the settings file says of the same one. Pure. */
export function withKeptOptions(
  settings: Settings["sinks"],
  kept: KeptSinkOptions,
  records: readonly { readonly uuid: string; readonly name: string | null }[],
): Settings["sinks"] {
  const merged = records.flatMap((record) => {
    const own = localOptions(kept, record);
    if (Object.keys(own).length === 0) return [];
    // Under the name that the settings file has for it: where a secret goes is known by that.
    const uuid = Object.keys(settings).find((key) => key.toLowerCase() === record.uuid);
    const key = uuid ?? (record.name !== null && Object.hasOwn(settings, record.name) ? record.name : record.uuid);
    return [[key, { ...own, ...settings[key] }] as const];
  });
  return merged.length === 0 ? settings : { ...settings, ...Object.fromEntries(merged) };
}

/** The kept options as a running service sees them. */
export class KeptSinkOptionsFile {
  readonly #stateDir: string;
  readonly #log: Log;
  #stamp: string | undefined | null = null;
  #options: KeptSinkOptions | undefined;
  #problem: string | undefined;

  constructor(stateDir: string, log: Log) {
    this.#stateDir = stateDir;
    this.#log = log;
  }

  /**
   * The same object while nothing has changed. Undefined: nobody knows what they say, because the file cannot be used and could not be since
   * the start: a sink without its user or its TLS would be another one. Never throws.
   */
  look(): KeptSinkOptions | undefined {
    const stamp = this.#stampNow();
    if (stamp === this.#stamp) return this.#options;
    this.#stamp = stamp;
    try {
      this.#options = readKeptSinkOptions(this.#stateDir);
      this.#problem = undefined;
    } catch (error) {
      this.#problem = `the options of data sinks on this machine cannot be read: ${messageOf(error)}; delete the file, and give them again with collector sink set`;
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
      return stampOf(keptSinkOptionsFile(this.#stateDir));
    } catch (error) {
      return messageOf(error);
    }
  }
}
