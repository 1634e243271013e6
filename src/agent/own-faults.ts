import { countOf } from "../base/number.ts";
import type { Layout } from "../model/layout.ts";
import type { Reading } from "../model/value.ts";
import { type RaiseAlarm, warning } from "../model/warning.ts";

/** The alarm about variables of one source over which the collector itself fails. It ends with the last of them. */
export class OwnFaults {
  readonly #source: string;
  readonly #raise: RaiseAlarm;
  #isRaised = false;

  constructor(source: string, raise: RaiseAlarm) {
    this.#source = source;
    this.#raise = raise;
  }

  /** After each readout: `own` of its readings are such faults. */
  note({ variables }: Layout, readings: readonly (Reading | undefined)[], own: number): void {
    if (own === 0) this.end();
    if (own === 0 || this.#isRaised) return;
    const place = readings.findIndex((reading) => reading?.quality === "bad" && reading.fault === "collector_error");
    const [variable, reading] = [variables[place], readings[place]];
    const detail = reading?.quality === "bad" ? (reading.detail ?? "") : "";
    const more = own > 1 ? ` and ${countOf(own - 1, "more variable")}` : "";
    const text = `${this.#source}: ${variable?.name ?? place} (${variable?.address ?? "?"})${more} cannot be read: ${detail}; the other variables are read. Report it with the log: journalctl -u collector -n 200`;
    this.#isRaised = true;
    this.#raise(warning("collector_fails", text, this.#source));
  }

  /** The source is read without them, or not any more. */
  end(): void {
    if (!this.#isRaised) return;
    this.#isRaised = false;
    this.#raise(
      warning("collector_fails", `${this.#source}: the collector itself fails over none of its variables any more`, this.#source),
      true,
    );
  }
}
