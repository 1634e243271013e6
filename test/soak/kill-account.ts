import { openBuffer } from "../../src/buffer/open.ts";
import { ledgerFaults } from "../../src/buffer/testing/ledger.ts";
import type { PostedBatch } from "../support/platform.ts";
import type { Publish } from "../support/refusing-broker.ts";
import { monotonicMs } from "./kill-faults.ts";
import type { Receiver } from "./kill-network.ts";
import { BOUNDS, type FaultKind, isWide, LIFE_NUMBERS, placeOf, SINKS, VALUES, WIDE_VALUES } from "./kill-plan.ts";
import { Received } from "./kill-received.ts";

/** What the process may say of the faults that it is given. */
const DISK = /takes no values|takes values again|are not stored, and counted as such now/;
const EXPECTED: Readonly<Partial<Record<FaultKind, RegExp>>> = {
  disk: DISK,
  full: DISK,
  pages: /is damaged .*( from a new one|wait in memory meanwhile)$/,
};
/** Stamps that are called right are so by this: steps below a second are not corrected. */
const RIGHT_WITHIN_MS = 1200;

const MAX_EXAMPLES = 5;

/** Numbers of readouts, from the first to the last. */
interface Span {
  readonly first: number;
  readonly last: number;
}

/** What was known when the state folder was copied, to be known again when the copy takes its place. */
export interface Remembered {
  readonly line: readonly Span[];
  readonly stamps: ReadonlyMap<number, string>;
}

interface Message {
  readonly id: string;
  readonly readouts: readonly {
    readonly ts: string;
    readonly span_ms: number;
    readonly clock: string;
    readonly values: Readonly<Record<string, unknown>>;
  }[];
}

/** What one sink has to have had, by its own account and by what its receiver has. All numbers are values. */
export interface SinkResult {
  readonly accepted: number;
  readonly delivered: number;
  readonly dropped: number;
  /** Of what was dropped: what was in damaged pages. */
  readonly damaged: number;
  readonly deliveredUnstored: number;
  /** What the receiver has of what the file has accepted, each once. */
  readonly received: number;
  /** What the receiver has that the file never accepted. */
  readonly unstored: number;
  /** Reported as committed while the sink was configured, and neither with the receiver nor counted as dropped. */
  readonly lost: number;
  /** Received again. */
  readonly duplicates: number;
}

/** What both ends have seen. */
export class Account implements Receiver {
  readonly #expected: readonly RegExp[];
  /** Epoch ms at which the clock that nobody sets was 0. */
  readonly #origin = Date.now() - monotonicMs();
  /** Lives whose readouts the file has, without those that a restored copy took out of it. */
  #line: Span[] = [];
  /** Numbers of readouts that were committed, and by sink those that were not for it. */
  readonly #committed = new Set<number>();
  readonly #notFor = SINKS.map(() => new Set<number>());
  readonly #received = SINKS.map(() => new Received((number) => this.#valuesOf(number)));
  /** First numbers of lives that have wide readouts. */
  readonly #wideLives = new Set<number>();
  /** By number: time and state of the clock as they came first. */
  #stamps = new Map<number, string>();
  readonly #alarms: string[] = [];
  readonly #examples: string[] = [];
  /** Values that a process that ended in order had read and not stored, by the life. */
  readonly #unstoredAtEnd: { readonly life: Span; readonly values: number }[] = [];
  #restamped = 0;
  #restampedAfterRestore = 0;
  /** Numbers below it are of lives before the state folder was put back last. */
  #restoredBelow = 0;
  #nextFirst = 0;
  #misstamped = 0;
  #corrected = 0;
  #ledgers = 0;
  #inexact = 0;
  readonly #epochs = new Set<string>();
  #rejected = 0;
  #last: readonly Omit<SinkResult, "received" | "unstored" | "lost" | "duplicates">[] = [];

  constructor(faults: readonly FaultKind[]) {
    this.#expected = faults.flatMap((kind) => EXPECTED[kind] ?? []);
  }

  published({ payload }: Publish): void {
    const { id, readouts } = JSON.parse(payload) as Message;
    const [received] = this.#received;
    for (const { ts, span_ms, clock, values } of readouts) {
      const found = Object.entries(values).map(([name, value]) => ({ place: Number(name.slice(1)), value }));
      const number = received?.readout(id, `${span_ms}`, found);
      if (number !== undefined) this.#stamp(number, ts, clock, span_ms);
    }
  }

  posted({ id, values, data_source }: PostedBatch): void {
    const [, received] = this.#received;
    for (const samples of Map.groupBy(values, ({ time }) => time).values()) {
      const [first] = samples;
      // Readouts of one source may have one time where its clock was set back.
      const found = samples.map(({ variable, value }) => ({ place: placeOf(variable), value }));
      const number = received?.readout(id, `${data_source} ${first?.time}`, found);
      if (number !== undefined && first) this.#stamp(number, first.time, first.clock ?? "synchronised");
    }
  }

  /** `trueMs`: when it was read by the clock that nobody sets, which a readout has in the place of its span. */
  #stamp(number: number, ts: string, clock: string, trueMs?: number): void {
    const stamp = `${ts} ${clock}`;
    const before = this.#stamps.get(number);
    this.#stamps.set(number, before ?? stamp);
    if (before !== undefined && before !== stamp) {
      if (number < this.#restoredBelow) this.#restampedAfterRestore++;
      else this.#restamped++;
      if (this.#examples.length < MAX_EXAMPLES) this.#examples.push(`${number}: ${before}, then ${stamp}`);
    }
    if (trueMs === undefined) return;
    if (before === undefined && clock === "corrected") this.#corrected++;
    const wrongMs = clock === "unsynchronised" ? 0 : Math.abs(Date.parse(ts) - this.#origin - trueMs);
    if (wrongMs <= RIGHT_WITHIN_MS) return;
    this.#misstamped++;
    if (this.#examples.length < MAX_EXAMPLES) this.#examples.push(`${number}: ${stamp}, wrong by ${wrongMs} ms`);
  }

  /** Before a life. */
  begin(first: number, hasWide: boolean): void {
    this.#nextFirst = first + LIFE_NUMBERS;
    if (hasWide) this.#wideLives.add(first);
  }

  /** The events of one life, after it. */
  life(first: number, events: string): void {
    let next = first;
    let stored = 0;
    let last = first + LIFE_NUMBERS - 2;
    // Of each sink: whether it was there since the last commit, and is.
    const isThere = SINKS.map(() => true);
    const wasThere = SINKS.map(() => true);
    const from = SINKS.map(() => first);
    for (const line of events.split("\n").slice(0, -1)) {
      const [what, ...numbers] = line.split(" ");
      const [a = 0, b = 0, delivered = 0, pending = 0, dropped = 0, unconfirmed = 0] = numbers.map(Number);
      if (what === "c") {
        for (; next <= a; next++) {
          this.#committed.add(next);
          stored += this.#valuesOf(next);
          for (const [sink, was] of wasThere.entries()) if (!was || next < (from[sink] ?? 0)) this.#notFor[sink]?.add(next);
        }
        for (const sink of isThere.keys()) wasThere[sink] = isThere[sink] === true;
      } else if (what === "r") next = Math.max(next, a + 1);
      else if (what === "s") {
        isThere[a] = b === 1;
        if (b === 1) from[a] = delivered;
        else wasThere[a] = false;
      } else if (what === "l") this.#look(b === delivered + unconfirmed + pending + dropped);
      else if (what === "t") {
        last = a;
        const read = Array.from({ length: a - first + 1 }, (_, i) => this.#valuesOf(first + i)).reduce((sum, n) => sum + n, 0);
        this.#unstoredAtEnd.push({ life: { first, last }, values: read - stored });
      } else if (what === "!") this.#alarm(line.slice(2));
    }
    this.#line.push({ first, last });
  }

  /** When a copy of the state folder is made; `last`: the last number that it may have of a life that has not ended. */
  remember(life?: Span): Remembered {
    return { line: life ? [...this.#line, life] : [...this.#line], stamps: new Map(this.#stamps) };
  }

  /** When the copy takes the folder's place: what came after it was taken is out of the account, and its stamps are nobody's promise. */
  rewind({ line, stamps }: Remembered): void {
    this.#line = [...line];
    this.#restoredBelow = this.#nextFirst;
    this.#stamps = new Map(stamps);
  }

  /** The file as a life has left it. */
  file(file: string): void {
    const buffer = openBuffer(file, { ...BOUNDS, onAlarm: ({ text }) => this.#alarm(text) });
    const { epoch, sinks, rejected } = buffer.ledger();
    this.#epochs.add(epoch);
    this.#look(ledgerFaults(buffer, file, () => false).length === 0);
    buffer.close();
    const sum = (counts: object): number => Object.values(counts).reduce((all: number, n: number) => all + n, 0);
    this.#rejected = sum(rejected);
    this.#last = SINKS.map(({ uuid }) => {
      const ledger = sinks.find(({ sink }) => sink === uuid);
      const { accepted = 0, delivered = 0, dropped = {}, deliveredUnstored = 0 } = ledger ?? {};
      return { accepted, delivered, dropped: sum(dropped), damaged: dropped.damaged ?? 0, deliveredUnstored };
    });
  }

  result() {
    const isInLine = (number: number): boolean => this.#line.some(({ first, last }) => number >= first && number <= last);
    const lineEnds = new Set(this.#line.map(({ last }) => last));
    const unstoredAtEnd = this.#unstoredAtEnd.filter(({ life }) => lineEnds.has(life.last)).reduce((sum, { values }) => sum + values, 0);
    const committed = [...this.#committed].filter(isInLine);
    const valuesIn = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + this.#valuesOf(number), 0);
    return {
      committed: valuesIn(committed),
      takenAway: valuesIn([...this.#committed]) - valuesIn(committed),
      corrected: this.#corrected,
      restamped: this.#restamped,
      restampedAfterRestore: this.#restampedAfterRestore,
      misstamped: this.#misstamped,
      ledgers: this.#ledgers,
      inexact: this.#inexact,
      epochs: this.#epochs.size,
      rejected: this.#rejected,
      uncounted: Math.max(0, unstoredAtEnd - this.#rejected),
      unstoredAtEnd,
      sinks: SINKS.map((_, sink): SinkResult => {
        const ends = this.#last[sink] ?? { accepted: 0, delivered: 0, dropped: 0, damaged: 0, deliveredUnstored: 0 };
        const { received, unstored, duplicates, missing } = this.#received[sink]?.counts(isInLine) ?? NOTHING;
        const due = committed.filter((number) => this.#notFor[sink]?.has(number) !== true);
        return { ...ends, received, unstored, duplicates, lost: Math.max(0, missing(due) - ends.dropped) };
      }),
      alarms: this.#alarms,
      examples: this.#examples,
    };
  }

  #valuesOf(number: number): number {
    const first = number - (number % LIFE_NUMBERS) + 1;
    return isWide(number) && this.#wideLives.has(first) ? WIDE_VALUES : VALUES;
  }

  #alarm(message: string): void {
    if (!this.#expected.some((expected) => expected.test(message))) this.#alarms.push(message);
  }

  #look(isExact: boolean): void {
    this.#ledgers++;
    if (!isExact) this.#inexact++;
  }
}

const NOTHING = { received: 0, unstored: 0, duplicates: 0, missing: () => 0 };
