/** What the two ends of the soak of kills share. */

/** What goes wrong by chance, in any number at once; all of it passes, so that nothing may be dropped but what was in damaged pages. */
export const FAULTS = [
  "refusals",
  "149",
  "acknowledgements",
  "connect",
  "link",
  "away",
  "removed-sink",
  "memory",
  "stop",
  "snapshot",
  "full",
  "disk",
  "clock",
  "pages",
] as const;
export type FaultKind = (typeof FAULTS)[number];

/** In one sentence each, for `--help`. */
export const FAULT_WORDS: Readonly<Record<FaultKind, string>> = {
  refusals: "a topic is refused with 128, 131 or 135, or the connection is reset; the platform answers 503 or 429",
  "149": "what is large is refused as too large, 413 at the platform",
  acknowledgements: "acknowledgements and answers get lost, or the connection with them",
  connect: "connections are reset while the collector connects",
  link: "a link of 8 or 64 kbit/s, or one with round trips of 600 ms, that falls and heals",
  away: "broker and platform are away for a while",
  "removed-sink": "a sink is removed from the configuration, and comes back",
  memory: "a source of a thousand variables, most of them bools; the process has to stay within its memory",
  stop: "the process is stopped in order now and then, instead of killed",
  snapshot: "the state folder is put back to what it was, once or again",
  full: "the disk is full at a start, and while broker and platform are away",
  disk: "writes of the buffer fail, a few at a time or for seconds",
  clock: "the wall clock is wrong from the start on, and is set, back and forth",
  pages: "pages of the buffer's file are overwritten, while it runs and between two lives",
};

/** The sinks, by the places at which both ends name them. */
export const SINKS = [
  { name: "broker", uuid: "7e0d3c5a-0000-4000-8000-00000000000a" },
  { name: "platform", uuid: "7e0d3c5a-0000-4000-8000-00000000000b" },
] as const;
/** Packs are of a few hundred readouts that have waited for some of a life's time, so that many a kill meets the making of one. */
const PACKING = { afterMs: 100, blockBytes: 20_000 };
export const BOUNDS = { maxBytes: 2 ** 30, maxAgeMs: 3_600_000, keepRemovedMs: 1e12, packing: PACKING };

/** Of small readouts; the wide ones are of one more. */
export const SOURCES = 3;
export const SOURCE_NAMES = ["source-0", "source-1", "source-2", "wide"] as const;
/** Of a small readout. */
export const VALUES = 3;
/** Of a wide one: each NUMBER_EVERY-th is its number, the others are bools. */
export const WIDE_VALUES = 1000;
export const NUMBER_EVERY = 8;
const WIDE_EVERY = 256;
/** Numbers of one life are below it, after its first. */
export const LIFE_NUMBERS = 1_000_000;

/** True: a readout is a wide one, in a life that has them. */
export const isWide = (number: number): boolean => number % WIDE_EVERY === 0;
/** Of a variable, for an API that wants UUIDs. */
export const variableUuid = (source: number, place: number): string =>
  `5b1c0000-0000-4000-8000-${String(source).padStart(4, "0")}${String(place).padStart(8, "0")}`;
export const placeOf = (uuid: string): number => Number(uuid.slice(-8));

/** One life of the killed process, as its only argument. */
export interface Life {
  readonly file: string;
  readonly events: string;
  readonly run: string;
  /** Number of its first readout. */
  readonly first: number;
  readonly brokerPort: number;
  readonly platform: { readonly url: string; readonly keyFile: string; readonly sources: readonly string[] };
  /** It appends, or delivers what is left and ends. */
  readonly task: "append" | "drain";
  readonly publishTimeoutMs: number;
  readonly hasWide: boolean;
  /** Places of sinks that are not configured from `fromMs` to `toMs` after the start. */
  readonly removals: readonly { readonly sink: number; readonly fromMs: number; readonly toMs: number }[];
}
