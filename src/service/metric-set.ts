import { Counter, Gauge, Registry } from "prom-client";
import type { ServiceStatus } from "../model/service-status.ts";
import { type MachineFigures, UNKNOWN_MACHINE } from "./machine-look.ts";

/** Names come from the API. */
const MAX_LABEL_LENGTH = 200;

/** The metrics of one service, and what the scrape at hand shows: the status, and what the machine says. */
export class MetricSet {
  readonly registers: Registry[] = [new Registry()];
  now: ServiceStatus;
  /** Sources with time series of their own. */
  detailed: ServiceStatus["sources"] = [];
  machine: MachineFigures = UNKNOWN_MACHINE;

  constructor(now: ServiceStatus) {
    this.now = now;
  }

  gauge(name: string, help: string, labelNames: readonly string[], collect: (metric: Gauge<string>) => void): void {
    new Gauge(this.#options(name, help, labelNames, collect));
  }

  counter(name: string, help: string, labelNames: readonly string[], collect: (metric: Counter<string>) => void): void {
    new Counter(this.#options(name, help, labelNames, collect));
  }

  #options<M extends { reset(): void }>(name: string, help: string, labelNames: readonly string[], collect: (metric: M) => void) {
    return {
      name: `collector_${name}`,
      help,
      labelNames: [...labelNames],
      registers: this.registers,
      collect(this: M) {
        this.reset();
        collect(this);
      },
    };
  }
}

/** A text as a label's value. Pure. */
export const short = (text: string): string => (text.length <= MAX_LABEL_LENGTH ? text : `${text.slice(0, MAX_LABEL_LENGTH - 1)}…`);
