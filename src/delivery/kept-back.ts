import { formatBytes } from "../base/bytes.ts";
import { countOf } from "../base/number.ts";
import type { Log } from "../model/context.ts";
import type { SourceReport } from "../model/report.ts";
import { type Warning, warning } from "../model/warning.ts";

export interface KeptBackOptions {
  /** The sink gets the whole history: only what no file takes can be kept back. */
  readonly keepsAll: boolean;
  readonly maxBytes: number;
  /** What raises the bound, in words; undefined: nothing does. */
  readonly setting: string | undefined;
}

/** Says which sources a bound of memory keeps from a sink, and logs it when it begins. */
export class KeptBack {
  readonly #options: KeptBackOptions;
  readonly #log: Log;
  /** By uuid. */
  #names: ReadonlyMap<string, string> = new Map();
  #isLogged = false;

  constructor(options: KeptBackOptions, log: Log) {
    this.#options = options;
    this.#log = log;
  }

  /** Returns the uuids of the sources there are. */
  describe(sources: readonly SourceReport[]): ReadonlySet<string> {
    this.#names = new Map(sources.map(({ uuid, name }) => [uuid, name]));
    return new Set(this.#names.keys());
  }

  /** `bytes` of the newest readout, by uuid of the source. Undefined: nothing is kept back. */
  warning(bytes: ReadonlyMap<string, number>): Warning | undefined {
    const [largest] = [...bytes].sort(([, one], [, other]) => other - one);
    if (!largest) {
      this.#isLogged = false;
      return undefined;
    }
    const { keepsAll, maxBytes, setting } = this.#options;
    const [source, size] = largest;
    const more = bytes.size === 1 ? "" : ` and of ${countOf(bytes.size - 1, "more source")}`;
    const what = keepsAll ? "is neither stored nor sent" : "is not shown";
    const raised = setting === undefined ? "" : `; ${setting} raises it`;
    const words = `the newest readout of ${this.#names.get(source) ?? source} (${formatBytes(size)})${more} ${what}: at most ${formatBytes(maxBytes)} wait in memory for this sink, and one readout more${raised}`;
    if (!this.#isLogged) this.#log.warn({ source: this.#names.get(source) ?? source, bytes: size, maxBytes }, words);
    this.#isLogged = true;
    return warning("readout_too_large", words);
  }
}
