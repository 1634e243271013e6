import { extname } from "node:path";
import { countOf } from "../../base/number.ts";
import { plain } from "../../base/plain-text.ts";
import { createYielder } from "../../base/timer.ts";
import { type ParsedVariables, parseVariableCsv, parseVariableYaml } from "../../configuration/variable-file.ts";
import type { DataSource } from "../../model/resources.ts";
import type { VariableInput } from "../../model/variable.ts";
import { TagFile } from "../../tag-lists/format.ts";
import { FORMATS, readTagList, YAML_FORMATS } from "../../tag-lists/index.ts";
import type { Problem } from "../../tag-lists/problems.ts";
import { isDevice, type Taken } from "../../tag-lists/take.ts";
import { answer } from "../answer.ts";
import { type AddressCheck, addressCheck } from "../device/addresses.ts";
import { readIn } from "../files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { knownNames } from "../known-names.ts";
import { readStdin } from "../stdin.ts";
import { type ApiOptions, withApi } from "./api-connection.ts";
import { placeIn } from "./import-report.ts";
import { named, sourceVariables } from "./variables.ts";
import { sendWhole } from "./variables-batches.ts";
import { importPlan } from "./variables-plan.ts";
import { allRead, triedObject, triedText, tryVariables } from "./variables-try.ts";

/** A project of 100,000 tags as the programs write it, with every property of each tag. */
const MAX_FILE_BYTES = 64 * 2 ** 20;
/** Places of one reason that a line names. */
const MAX_NAMED = 5;
/** Devices that a refusal names. */
const MAX_DEVICES_NAMED = 20;

export interface ImportOptions extends ApiOptions {
  /** Delete what the file does not name. */
  readonly replace?: boolean;
  /** Nothing is changed. */
  readonly dryRun?: boolean;
  /** Nothing is changed, and the first variables are read. */
  readonly try?: boolean;
  /** The device of the file whose tags are meant. */
  readonly device?: string;
  /** `0` or `1`; any other text is refused. */
  readonly countFrom?: string;
  /** Numbers of data blocks: `12`, or `Motor=12,Valve=13`. */
  readonly db?: string;
}

/** The variables of a file, and its problems. */
interface ReadFile {
  readonly variables: readonly VariableInput[];
  /** One sentence each, with its place. */
  readonly complaints: readonly string[];
  /** Objects for `--json`. */
  readonly problems: readonly object[];
  readonly refused: number;
  /** Undefined: the file has our own form. */
  readonly list: Taken | undefined;
}

/**
 * `collector variables import SOURCE FILE`, from stdin where the file is `-`: creates and changes by name; what is wrong is named and the rest
 * is taken, but a file that is cut off is refused as a whole. Throws UsageError.
 */
export function variablesImport(sourceName: string, file: string, options: ImportOptions, io: CommandIo): Promise<ExitCode> {
  const countsFrom = countsFromOf(options.countFrom);
  const blockNumbers = blockNumbersOf(options.db);
  return withApi(options, io, async (api) => {
    const bytes = file === "-" ? await readStdin(io, MAX_FILE_BYTES, { what: "what comes on stdin" }) : readIn(file, MAX_FILE_BYTES);
    const { source, sources, variables: present, file: shadowing } = await sourceVariables(api, sourceName, options);
    const check = await addressCheck(source, api.settings);
    const place = file === "-" ? "stdin" : file;
    const { variables, complaints, problems, refused, list } = await readVariables(
      { name: file, place, bytes },
      { source, check, countsFrom, device: options.device, blockNumbers },
      io,
    );
    const nothing = variables.length === 0 && problems.length > 0;
    if (!options.json) for (const complaint of complaints) complain(io, complaint);
    if (nothing && !options.json) {
      if (list) io.stdout.write(listWords(place, list));
      return EXIT.usage;
    }
    const plan = importPlan(variables, present, options.replace === true && problems.length === 0);
    const isPreview = options.dryRun === true || options.try === true;
    const listAgain = async () => (await sourceVariables(api, sourceName, options)).variables;
    if (!isPreview) await sendWhole(api, source.uuid, plan, { present, list: listAgain });
    const tried =
      options.try && variables.length > 0
        ? await tryVariables(variables, { record: source, sources, settings: api.settings, api }, options, io)
        : undefined;
    const { create, change, remove, same } = plan;
    const counts = { created: create.length, changed: change.length, deleted: remove.length, same };
    const warnings = [
      ...[check.note, shadowing?.note].filter((one) => one !== undefined),
      ...(list?.notes ?? []),
      ...(options.replace === true && problems.length > 0 ? [NOTHING_DELETED] : []),
    ];
    const done = {
      source: named(source),
      ...(isPreview && { dry_run: true }),
      ...(list && { list: listObject(list) }),
      counts: { ...counts, refused },
      problems,
      warnings,
      ...(tried && { tried: triedObject(tried) }),
    };
    const text = [list && listWords(place, list), doneWords(source.name, counts, isPreview), tried && `\n${triedText(tried)}`];
    answer(io, options, done, text.filter((part) => part !== undefined).join(""));
    if (!options.json) for (const warning of warnings) complain(io, warning);
    if (nothing) return EXIT.usage;
    if (tried?.failure) return EXIT.sourceFailed;
    return problems.length > 0 || (tried && !allRead(tried)) ? EXIT.variableBad : EXIT.good;
  });
}

const NOTHING_DELETED = "nothing was deleted, because some lines of the file are wrong; correct them and import again";

/** Throws UsageError. */
function countsFromOf(text: string | undefined): 0 | 1 | undefined {
  if (text === undefined) return undefined;
  if (text !== "0" && text !== "1") throw new UsageError(`--count-from ${text}: expected 0 or 1`);
  return text === "0" ? 0 : 1;
}

const MAX_BLOCK = 65_535;

/** The empty name is that of the only block. Throws UsageError. */
function blockNumbersOf(text: string | undefined): ReadonlyMap<string, number> {
  return new Map(
    text?.split(",").map((word) => {
      const [, name = "", digits = ""] = /^(?:(.+)=)?(?:DB)?(\d{1,5})$/i.exec(word) ?? [];
      const number = Number(digits);
      if (digits === "" || number < 1 || number > MAX_BLOCK)
        throw new UsageError(`--db ${word}: expected the number of a data block, 1 to ${MAX_BLOCK}, or NAME=NUMBER,NAME=NUMBER`);
      return [name, number];
    }),
  );
}

interface Meant {
  readonly source: DataSource;
  readonly check: AddressCheck;
  readonly countsFrom: 0 | 1 | undefined;
  readonly device: string | undefined;
  readonly blockNumbers: ReadonlyMap<string, number>;
}

/** Throws UsageError. */
async function readVariables(
  { name, place, bytes }: { readonly name: string; readonly place: string; readonly bytes: Uint8Array },
  { source, check, countsFrom, device, blockNumbers }: Meant,
  { signal }: CommandIo,
): Promise<ReadFile> {
  const isYaml = /^\.ya?ml$/i.test(extname(name));
  const yieldInTurn = createYielder();
  const yieldToEventLoop = async (): Promise<void> => {
    await yieldInTurn();
    if (signal.aborted) throw new StoppedError();
  };
  const readAddress = (tag: VariableInput, program: string) => check.readAddress(tag, program, countsFrom);
  const rules = { type: source.type, ...(device !== undefined && { device }), blockNumbers, readAddress, yieldToEventLoop };
  const list = await readTagList(new TagFile(name, bytes), rules, isYaml ? YAML_FORMATS : FORMATS);
  if (list) {
    checkDevices(place, list, device);
    const { variables, problems, problemCount: refused } = list;
    return { variables, complaints: problems.map((one) => problemWords(place, one)), problems: problems.map(problemObject), refused, list };
  }
  if (device !== undefined)
    throw new UsageError(`--device ${device}: ${place} is not the tag list of another program that this collector knows`);
  const read: ParsedVariables = (isYaml ? parseVariableYaml : parseVariableCsv)(bytes, check.problemOf);
  const { variables, problems } = read.cut
    ? { variables: [], problems: [{ ...read.cut, message: `${read.cut.message}; nothing was changed` }] }
    : read;
  const complaints = problems.map(({ line, message }) => `${placeIn(place, line)}: ${message}`);
  return { variables, complaints, problems, refused: problems.length, list: undefined };
}

/** Throws UsageError where it is not clear whose tags are meant. */
function checkDevices(place: string, { devices, refused }: Taken, device: string | undefined): void {
  if (refused) return;
  const names = [...devices.keys()];
  const counted = (some: readonly string[]): string =>
    `${some
      .slice(0, MAX_DEVICES_NAMED)
      .map((name) => `${name} (${countOf(devices.get(name) ?? 0, "tag")})`)
      .join(", ")}${some.length > MAX_DEVICES_NAMED ? `, and ${some.length - MAX_DEVICES_NAMED} more` : ""}`;
  if (device === undefined) {
    if (names.length > 1)
      throw new UsageError(`${place} has tags of ${names.length} devices; choose one with --device NAME: ${counted(names)}`);
    return;
  }
  const meant = names.filter((name) => isDevice(name, device));
  if (meant.length === 0) throw new UsageError(`--device ${device}: ${place} has no such device${knownNames(device, names)}`);
  if (meant.length > 1) throw new UsageError(`--device ${device}: ${place} has several; give the whole name: ${counted(meant)}`);
}

const lineOf = (place: number | string): string => (typeof place === "number" ? `line ${place}` : place);

/** One reason: the first tag with its place, how many more, and where some of them are. */
function problemWords(file: string, { message, tags, count }: Problem): string {
  const [first, ...others] = tags;
  const place = first?.place;
  const at = typeof place === "string" ? `${file}: ${place}` : placeIn(file, place);
  const name = first?.name === undefined || (typeof place === "string" && place.endsWith(first.name)) ? "" : `: ${first.name}`;
  if (count <= 1) return `${at}${name}: ${message}`;
  const places = others.flatMap(({ place: other }) => (other === undefined ? [] : [other])).slice(0, MAX_NAMED);
  const dots = count - 1 > places.length ? ", …" : "";
  return `${at}${name} and ${count - 1} more (${places.map(lineOf).join(", ")}${dots}): ${message}`;
}

const placeObject = (place: number | string | undefined) => {
  if (place === undefined) return {};
  return typeof place === "number" ? { line: place } : { place };
};

const problemObject = ({ message, tags, count }: Problem) => ({
  ...placeObject(tags[0]?.place),
  message,
  count,
  tags: tags.map(({ place, name }) => ({ ...placeObject(place), ...(name !== undefined && { name }) })),
});

const listObject = ({ program, what, read, translated, devices }: Taken) => ({
  program,
  form: what,
  read,
  devices: Object.fromEntries(devices),
  translated: translated?.count ?? 0,
  ...(translated && { example: translated.example }),
});

function listWords(place: string, { program, what, read: readCount, problemCount, translated }: Taken): string {
  const read = plain`${place}: ${program} ${what}, ${countOf(readCount, "tag")} read, ${problemCount} refused\n`;
  if (!translated) return read;
  const { count, example } = translated;
  return `${read}${plain`addresses in the words of this collector: ${count}, the first ${example.from} as ${example.to}\n`}`;
}

function doneWords(
  source: string,
  { created, changed, deleted, same }: { readonly [action in "created" | "changed" | "deleted" | "same"]: number },
  isPreview: boolean,
): string {
  if (isPreview)
    return plain`${source}: ${created} to create, ${changed} to change, ${deleted} to delete, ${same} unchanged; nothing was changed\n`;
  return plain`${source}: ${created} created, ${changed} changed, ${deleted} deleted, ${same} unchanged\n`;
}
