import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import * as z from "zod";
import { createYielder } from "../base/timer.ts";
import { sweep, temporaryIn } from "../lib/files.ts";
import { errorCode, messageOf } from "../model/failure.ts";
import type { DataSource } from "../model/resources.ts";
import { uuidSchema } from "../model/uuid.ts";
import { type Warning, warning } from "../model/warning.ts";
import { DATA_SINK_FORM, DATA_SOURCE_FORM, VARIABLE_FORM } from "./configuration-lists.ts";
import type { Desired, StoredDesired } from "./desired.ts";
import { acceptRecords, type Judged, judgeRecord, type RecordForm } from "./records.ts";

/** A file above this is not ours; it would only cost memory. */
const MAX_FILE_BYTES = 256 * 2 ** 20;

/** Names the form of the file: a line each for what it is and for every record, with its checksum. */
const FORMAT = 2;
/** One JSON document. */
const DOCUMENT_FORMAT = 1;

export type LoadedConfiguration =
  | {
      readonly type: "loaded";
      readonly configuration: Desired;
      /** Damaged parts of it, and their replacements. */
      readonly warnings: readonly Warning[];
      /** True: the version that was asked for has written it. */
      readonly isOwn: boolean;
    }
  | { readonly type: "missing"; readonly message: string }
  | { readonly type: "damaged"; readonly message: string };

/** The place where the configuration is that `file` held before the one of now. */
export const previousFile = (file: string): string => `${file}.previous`;

export interface KeepOptions {
  /** Absent: true. False: the file that was there is not worth becoming the previous one. */
  readonly keepsBefore?: boolean;
  /** The version of the collector that writes it; absent: its records are validated when it is read. */
  readonly version?: string;
}

/**
 * Writes the configuration, without its secrets, whole or not at all: a temporary file in the same folder (0600), fsync, rename,
 * fsync of the folder. Throws the system's error; a file that was there can then be read still.
 */
export async function saveLastGood(file: string, configuration: Desired, { keepsBefore = true, version }: KeepOptions = {}): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  sweep(folder);
  const temporary = temporaryIn(folder);
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(piecesOf(configuration, version));
      await handle.sync();
    } finally {
      await handle.close();
    }
    // A death between the two leaves the previous one, which is read then.
    if (keepsBefore && (await isFile(file))) await rename(file, previousFile(file));
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const isFile = async (file: string): Promise<boolean> =>
  stat(file).then(
    (found) => found.isFile(),
    () => false,
  );

/**
 * Reads what saveLastGood wrote, record by record: a damaged one comes from the previous file where that has it, and is left out
 * otherwise; a file that is damaged as a whole is replaced by the previous one. Secrets are empty and the revision null, so that the next
 * pull fetches everything. Records that `version` wrote are taken as they are where the lines are those that were written: they were
 * validated then. Never throws and deletes nothing; whatever is wrong is named in words.
 */
export const loadLastGood = (file: string, collector: string, version?: string): Promise<LoadedConfiguration> =>
  load(file, collector, version);

/** The collector whose configuration the file, or the one before it, holds; undefined: neither says. Reads one line. Never throws. */
export function collectorIn(file: string): string | undefined {
  return [file, previousFile(file)].flatMap((one) => headerOf(firstLineOf(one))?.collector ?? [])[0];
}

/** Longest first line. */
const MAX_HEADER_BYTES = 1024;

function firstLineOf(file: string): string {
  try {
    const fd = openSync(file, "r");
    try {
      const bytes = Buffer.alloc(MAX_HEADER_BYTES);
      return bytes.toString("utf8", 0, readSync(fd, bytes)).split("\n", 1)[0] ?? "";
    } finally {
      closeSync(fd);
    }
  } catch {
    return "";
  }
}

/** Works as loadLastGood does, of whatever collector it is. */
export const readLastGood = (file: string): Promise<LoadedConfiguration> => load(file, undefined);

async function load(file: string, collector: string | undefined, version?: string): Promise<LoadedConfiguration> {
  const current = await read(file, collector, version);
  if (current.type === "foreign") return { type: "missing", message: current.message };
  if (current.type === "read" && current.isOwn) return loadedFrom({ stored: storedAsWritten(current), warnings: [] }, true);
  const used = current.type === "read" ? await accept(current) : undefined;
  if (used && used.warnings.length === 0) return loadedFrom(used);

  const before = await read(previousFile(file), collector);
  const previous = before.type === "read" ? await accept(before) : undefined;
  if (current.type === "read" && used && !used.isUnusable) {
    const { stored, warnings } = previous && !previous.isUnusable ? await accept(current, previous.stored) : used;
    return loadedFrom({ stored, warnings: prefixed(`the kept configuration ${file}`, warnings) });
  }
  if (current.type === "missing" && !previous) return { type: "missing", message: `${file}: no configuration was kept yet` };
  const why = current.type === "read" ? "none of its records can be read" : current.message;
  if (!previous || previous.isUnusable)
    return { type: "damaged", message: `the kept configuration ${file} cannot be used: ${why}; the next answer of the API replaces it` };
  const { stored, warnings } = previous;
  return loadedFrom({
    stored,
    warnings: [
      warning(
        "kept_configuration_damaged",
        `the kept configuration ${file} cannot be used: ${why}; the one before it is at work, of ${stored.fetchedAt}`,
      ),
      ...prefixed(previousFile(file), warnings),
    ],
  });
}

const prefixed = (where: string, warnings: readonly Warning[]): readonly Warning[] =>
  warnings.map((one) => ({ ...one, text: `${where}: ${one.text}` }));

const loadedFrom = ({ stored, warnings }: Pick<Accepted, "stored" | "warnings">, isOwn = false): LoadedConfiguration => ({
  type: "loaded",
  configuration: { ...stored, secrets: {}, areSecretsAwaited: true, revision: null },
  warnings,
  isOwn,
});

const KINDS = ["source", "sink", "variable"] as const;
type Kind = (typeof KINDS)[number];

/** A file as it was read, its records not yet looked at. */
interface Contents {
  readonly collector: string;
  readonly fetchedAt: string;
  /** As received from a file; what cannot be read is Damaged. */
  readonly records: Readonly<Record<Kind, readonly unknown[]>>;
  readonly hasVariables: boolean;
  /** True: the version that reads it has written it, and its lines are those that were written. */
  readonly isOwn: boolean;
}
type Read = ({ readonly type: "read" } & Contents) | { readonly type: "foreign" | "missing" | "damaged"; readonly message: string };

interface Accepted {
  readonly stored: StoredDesired;
  readonly warnings: readonly Warning[];
  readonly isUnusable: boolean;
}

/** A record whose line is not as it was written; `uuid` where that can be read. */
class Damaged {
  readonly uuid: string | undefined;
  constructor(uuid: string | undefined) {
    this.uuid = uuid;
  }
}

function* judgeKept<T extends { readonly uuid: string }>(received: readonly unknown[], form: RecordForm<T>): Generator<Judged<T>> {
  for (const item of received)
    yield item instanceof Damaged
      ? { uuid: item.uuid, owner: undefined, why: "its line is not as it was written" }
      : judgeRecord(item, form);
}

/** What stood in for a field when the record was taken was said then. */
const KEPT_SOURCE_FORM: RecordForm<DataSource> = { schema: DATA_SOURCE_FORM.schema, owner: DATA_SOURCE_FORM.owner };

function storedAsWritten({ collector, fetchedAt, records, hasVariables }: Contents): StoredDesired {
  const { source, sink, variable } = records as {
    readonly source: StoredDesired["sources"];
    readonly sink: StoredDesired["sinks"];
    readonly variable: NonNullable<StoredDesired["variables"]>;
  };
  return { collector, fetchedAt, sources: source, sinks: sink, variables: hasVariables ? variable : null };
}

/** `previous`: where the records come from that cannot be read here. */
async function accept({ collector, fetchedAt, records, hasVariables }: Contents, previous?: StoredDesired): Promise<Accepted> {
  const yieldToEventLoop = createYielder();
  const taken = <T extends { readonly uuid: string }>(
    what: string,
    received: readonly unknown[],
    before: readonly T[] | null | undefined,
    form: RecordForm<T>,
  ) => acceptRecords({ what, received: judgeKept(received, form), previous: before ?? [], collector }, yieldToEventLoop);
  const sources = await taken("data source", records.source, previous?.sources, KEPT_SOURCE_FORM);
  const sinks = await taken("data sink", records.sink, previous?.sinks, DATA_SINK_FORM);
  const variables = await taken("variable", records.variable, previous?.variables, VARIABLE_FORM);
  return {
    stored: {
      collector,
      fetchedAt,
      sources: sources.records,
      sinks: sinks.records,
      variables: hasVariables ? variables.records : null,
    },
    warnings: [...sources.warnings, ...sinks.warnings, ...variables.warnings],
    isUnusable: sources.isUnusable,
  };
}

/** `collector` undefined: of whichever it is. */
async function read(file: string, collector: string | undefined, version?: string): Promise<Read> {
  let text: string;
  try {
    const found = await stat(file);
    if (!found.isFile()) return damaged("it is not a file");
    if (found.size > MAX_FILE_BYTES) return damaged(`it has ${found.size} bytes, more than ${MAX_FILE_BYTES}`);
    text = await readFile(file, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { type: "missing", message: "it is missing" };
    return damaged(messageOf(error));
  }
  if (text.trim() === "") return damaged("it is empty");
  const contents = text.startsWith("{") ? contentsOfDocument(text) : await contentsOfLines(text, version);
  if (typeof contents === "string") return damaged(contents);
  if (collector !== undefined && contents.collector !== collector.toLowerCase())
    return { type: "foreign", message: `${file} is of collector ${contents.collector}, this is ${collector}: it is not used` };
  return { type: "read", ...contents };
}

const damaged = (message: string): Read => ({ type: "damaged", message });

const headerSchema = z.object({
  format: z.literal(FORMAT),
  version: z.string().optional(),
  collector: uuidSchema,
  fetchedAt: z.iso.datetime(),
  count: z.object({ source: z.int().min(0), sink: z.int().min(0), variable: z.int().min(0).nullable() }),
});

/** Records in one piece: a large configuration is not turned into text, or read, in one go. */
const RECORDS_AT_ONCE = 100;

function* piecesOf({ collector, fetchedAt, sources, sinks, variables }: Desired, version: string | undefined): Generator<string> {
  const count = { source: sources.length, sink: sinks.length, variable: variables?.length ?? null };
  const header: z.input<typeof headerSchema> = { format: FORMAT, ...(version !== undefined && { version }), collector, fetchedAt, count };
  const first = checked(JSON.stringify(header));
  yield `${first}\n`;
  let sum = sumWith(first, 0);
  const lists: Readonly<Record<Kind, readonly { readonly uuid: string }[]>> = { source: sources, sink: sinks, variable: variables ?? [] };
  for (const kind of KINDS)
    for (let from = 0; from < lists[kind].length; from += RECORDS_AT_ONCE) {
      const records = lists[kind].slice(from, from + RECORDS_AT_ONCE);
      const lines = records.map((record) => checked(`${kind} ${record.uuid} ${JSON.stringify(record)}`));
      for (const line of lines) sum = sumWith(line, sum);
      yield `${lines.join("\n")}\n`;
    }
  yield `${lastLine(sum)}\n`;
}

/**
 * A digest of what the file would hold, but for the time: an unchanged configuration is not written again. Goes by slices.
 */
export async function storedContentOf({ sources, sinks, variables }: StoredDesired): Promise<string> {
  const yieldToEventLoop = createYielder();
  const hash = createHash("sha1");
  for (const [kind, records] of [
    ["source", sources],
    ["sink", sinks],
    ["variable", variables ?? []],
  ] as const) {
    hash.update(`${kind} ${records.length} ${variables === null}\n`);
    for (let from = 0; from < records.length; from += RECORDS_AT_ONCE) {
      hash.update(`${JSON.stringify(records.slice(from, from + RECORDS_AT_ONCE))}\n`);
      await yieldToEventLoop();
    }
  }
  return hash.digest("base64");
}

const checked = (content: string): string => `${crc32(content).toString(16).padStart(8, "0")} ${content}`;
const isIntact = (line: string): boolean => checked(line.slice(9)) === line;

/** The checksum of checksums: of the lines so far, and one more. */
const sumWith = (line: string, sum: number): number => crc32(line.slice(0, 8), sum);
/** Says that the lines before it are all, each once and in their order. A version that does not know it leaves it out. */
const lastLine = (sum: number): string => checked(`end ${sum}`);

const LINE = /^.{8} (source|sink|variable) ([0-9a-f-]{36}) /;

const headerOf = (line: string): z.output<typeof headerSchema> | undefined =>
  isIntact(line) ? headerSchema.safeParse(parseJson(line.slice(9))).data : undefined;

/** Or what is wrong with the file as a whole. */
async function contentsOfLines(text: string, version: string | undefined): Promise<Contents | string> {
  const [first = "", ...lines] = text.split("\n");
  const header = headerOf(first);
  if (!header) return `its first line does not say that it is a configuration of form ${FORMAT}`;
  const { collector, fetchedAt, count } = header;
  const records: Record<Kind, unknown[]> = { source: [], sink: [], variable: [] };
  const yieldToEventLoop = createYielder();
  let sum = sumWith(first, 0);
  let isWhole = false;
  for (const [i, line] of lines.entries()) {
    if (i % RECORDS_AT_ONCE === 0) await yieldToEventLoop();
    const [start, kind, uuid] = LINE.exec(line) ?? [];
    isWhole = start === undefined && (isWhole || line === lastLine(sum));
    if (start === undefined) continue;
    const isAsWritten = isIntact(line);
    if (isAsWritten) sum = sumWith(line, sum);
    records[kind as Kind].push(isAsWritten ? parseJson(line.slice(start.length)) : new Damaged(uuid));
  }
  for (const kind of KINDS) {
    const missing = (count[kind] ?? 0) - records[kind].length;
    if (missing > 0) records[kind].push(...new Array<Damaged>(missing).fill(new Damaged(undefined)));
  }
  const isOwn = isWhole && version !== undefined && header.version === version;
  return { collector, fetchedAt, records, hasVariables: count.variable !== null, isOwn };
}

const documentSchema = z.object({
  format: z.literal(DOCUMENT_FORMAT),
  configuration: z.object({
    collector: uuidSchema,
    fetchedAt: z.iso.datetime(),
    sources: z.array(z.unknown()),
    sinks: z.array(z.unknown()),
    variables: z.array(z.unknown()).nullable(),
  }),
});

function contentsOfDocument(text: string): Contents | string {
  const parsed = documentSchema.safeParse(parseJson(text));
  if (!parsed.success) return "it is not a configuration that this collector can read";
  const { collector, fetchedAt, sources, sinks, variables } = parsed.data.configuration;
  return {
    collector,
    fetchedAt,
    records: { source: sources, sink: sinks, variable: variables ?? [] },
    hasVariables: variables !== null,
    isOwn: false,
  };
}

/** Undefined: it is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
