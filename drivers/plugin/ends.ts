import type { Log } from "../../src/model/context.ts";
import type { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DeviceMemory } from "../driver.ts";

/** Two ends within this are no accident. */
const TOGETHER_MS = 60_000;
/** After so long without an end all is well again. */
const QUIET_MS = 600_000;
const KEY = "plugin ends";

/** What is kept of one plugin over its sessions; times are monotonic ms. */
interface Kept {
  readonly count: number;
  readonly lastMs: number;
  readonly words: string;
  readonly isTrouble: boolean;
}

/**
 * Counts the ends of a plugin, which a retry within the same readout hides from the state of its source: the second within a minute is a
 * warning, until there has been none for ten minutes.
 */
export class PluginEnds {
  readonly #memory: DeviceMemory | undefined;
  readonly #log: Log;
  readonly #now: () => number;

  constructor(memory: DeviceMemory | undefined, log: Log, now: () => number = () => performance.now()) {
    this.#memory = memory;
    this.#log = log;
    this.#now = now;
  }

  /** It ended by itself, or was ended for what it did. */
  note({ message }: ReasonError): void {
    const nowMs = this.#now();
    const before = this.#kept();
    const isTrouble = before !== undefined && (before.isTrouble || nowMs - before.lastMs <= TOGETHER_MS);
    const kept: Kept = { count: (before?.count ?? 0) + 1, lastMs: nowMs, words: message, isTrouble };
    this.#memory?.set(KEY, kept);
    if (isTrouble && !before.isTrouble) this.#log.warn({ ends: kept.count }, wordsOf(kept));
  }

  /** For status; undefined: it ends seldom, or not at all. */
  warning(): Warning | undefined {
    const kept = this.#kept();
    return kept?.isTrouble ? warning("plugin_ends", wordsOf(kept)) : undefined;
  }

  #kept(): Kept | undefined {
    const kept = this.#memory?.get(KEY) as Kept | undefined;
    return kept && this.#now() - kept.lastMs < QUIET_MS ? kept : undefined;
  }
}

const wordsOf = ({ count, words }: Kept): string =>
  `the plugin has ended ${count} times and was started again each time; the last time: ${words}`;
