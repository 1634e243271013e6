import { LargeList } from "../base/large-list.ts";
import { LargeMap } from "../base/large-map.ts";
import type { YieldToEventLoop } from "../base/timer.ts";
import { MAX_ROWS, variableOf } from "../configuration/variable-file.ts";
import type { VariableInput } from "../model/variable.ts";
import type { Place, TagEntry, TagFile, TagListFormat, Wanted } from "./format.ts";
import { type Problem, Problems } from "./problems.ts";

/** Entries of one file that are looked at, tags of other devices among them: templates may multiply them without an end. */
const MAX_ENTRIES = 1_000_000;
/** Devices that are counted by name. */
const MAX_DEVICES = 1000;
const MAX_NOTES = 20;
/** Entries that are looked at between two turns of the event loop: well below a slice. */
const LOOKED_AT_ONCE = 100;

/** An address in our words, or what is wrong with it. `from`: it was written otherwise. */
export type ReadAddress = (tag: VariableInput, program: string) => { readonly address: string; readonly type: string | null } | string;

export interface TakeRules extends Wanted {
  /** Only tags of this device. Absent: the file may have one device. */
  readonly device?: string;
  readonly readAddress: ReadAddress;
  readonly yieldToEventLoop: YieldToEventLoop;
}

/** Addresses that were read as others. */
export interface Translated {
  readonly count: number;
  /** The first of them. */
  readonly example: { readonly from: string; readonly to: string };
}

export interface Taken {
  readonly program: string;
  readonly what: string;
  /** Tags that were looked at: of the device that is meant, or of all. */
  readonly read: number;
  readonly variables: readonly VariableInput[];
  readonly problems: readonly Problem[];
  readonly problemCount: number;
  /** Nothing is to be taken: the file is broken. */
  readonly refused: boolean;
  readonly translated: Translated | undefined;
  /** How many tags each has, by its name. */
  readonly devices: ReadonlyMap<string, number>;
  readonly notes: readonly string[];
}

/** The tags of a list of this format as variables of one data source, each name once; undefined: it is of another format. */
export async function take(format: TagListFormat, file: TagFile, rules: TakeRules): Promise<Taken | undefined> {
  const { device, readAddress, yieldToEventLoop } = rules;
  const entries = await format.read(file, rules);
  if (!entries) return undefined;
  const taking = new Taking(format.program, device, readAddress);
  let n = 0;
  for await (const entry of entries) {
    if (!taking.take(entry)) break;
    if (++n % LOOKED_AT_ONCE === 0) await yieldToEventLoop();
  }
  taking.end();
  return { program: format.program, what: format.what, ...taking.result() };
}

class Taking {
  readonly #program: string;
  readonly #device: string | undefined;
  readonly #readAddress: ReadAddress;
  readonly #variables = new LargeList<VariableInput>();
  readonly #placeOf = new LargeMap<Place>();
  readonly #problems = new Problems();
  readonly #devices = new Map<string, number>();
  readonly #notes = new Set<string>();
  #seen = 0;
  #read = 0;
  #translated: Translated | undefined;
  #isRefused = false;

  constructor(program: string, device: string | undefined, readAddress: ReadAddress) {
    this.#program = program;
    this.#device = device;
    this.#readAddress = readAddress;
  }

  /** False: the rest of the file is not looked at. */
  take(entry: TagEntry): boolean {
    if ("refusal" in entry) {
      this.#isRefused = true;
      this.#problems.add(entry.refusal, entry.place);
      return false;
    }
    if (!("note" in entry)) this.#countDevice(entry.device);
    const isOther = this.#device !== undefined && entry.device !== undefined && !isDevice(entry.device, this.#device);
    if (++this.#seen > MAX_ENTRIES) {
      this.#problems.add(`has more than ${MAX_ENTRIES} tags; those after the first ${MAX_ENTRIES} are not read`);
      return false;
    }
    if (isOther) return true;
    if ("note" in entry) {
      if (this.#notes.size < MAX_NOTES) this.#notes.add(entry.note);
      return true;
    }
    this.#read++;
    if ("problem" in entry) this.#problems.add(entry.problem, entry.place, entry.name);
    else if (this.#variables.length < MAX_ROWS) this.#takeTag(entry);
    else {
      this.#problems.add(`has more than ${MAX_ROWS} variables; those after the first ${MAX_ROWS} are not read`);
      return false;
    }
    return true;
  }

  /** A list without one tag is a mistake: `--replace` would delete every variable for it. */
  end(): void {
    if (this.#seen === 0 && !this.#isRefused) this.#problems.add("holds no tags");
  }

  result(): Omit<Taken, "program" | "what"> {
    return {
      read: this.#read,
      variables: this.#isRefused ? [] : this.#variables.whole(),
      problems: this.#problems.list(),
      problemCount: this.#problems.count,
      refused: this.#isRefused,
      translated: this.#translated,
      devices: this.#devices,
      notes: [...this.#notes],
    };
  }

  #countDevice(device: string | undefined): void {
    if (device === undefined || (this.#devices.size >= MAX_DEVICES && !this.#devices.has(device))) return;
    this.#devices.set(device, (this.#devices.get(device) ?? 0) + 1);
  }

  #takeTag({ place, tag, from }: Extract<TagEntry, { readonly tag: unknown }>): void {
    const input = variableOf(tag);
    if (isMessages(input)) {
      // One tag counts once.
      this.#problems.add(input.join("; "), place, tag.name);
      return;
    }
    const before = this.#placeOf.get(input.name);
    if (before !== undefined) {
      const where = typeof before === "number" ? `line ${before}` : before;
      this.#problems.add(`the name is already at ${JSON.stringify(where)}; a name is unique per data source`, place, input.name);
      return;
    }
    const read = this.#readAddress(input, this.#program);
    if (typeof read === "string") {
      this.#problems.add(read, place, input.name);
      return;
    }
    const written = from ?? input.address;
    if (read.address !== written) {
      const { count = 0, example = { from: written, to: read.address } } = this.#translated ?? {};
      this.#translated = { count: count + 1, example };
    }
    this.#placeOf.set(input.name, place);
    this.#variables.push({ ...input, ...read });
  }
}

const isMessages = (parsed: VariableInput | readonly string[]): parsed is readonly string[] => Array.isArray(parsed);

/** `Channel1.Device1` by all of its name, or by its last part. */
export const isDevice = (name: string, wanted: string): boolean =>
  name.toLowerCase() === wanted.toLowerCase() || name.toLowerCase().endsWith(`.${wanted.toLowerCase()}`);
