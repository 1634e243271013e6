import { setTimeout as delay } from "node:timers/promises";
import { API_HEAP, type ApiWorkerData, type FromApi } from "../../api/embedded.ts";
import { SupervisedWorker } from "../../lib/thread/host.ts";
import type { Log } from "../../model/context.ts";
import type { ConfigChange } from "../../model/service-status.ts";
import { type Warning, warning } from "../../model/warning.ts";
import { ApiDeaths } from "./deaths.ts";

export interface EmbeddedApiOptions {
  /** Entry of the worker. */
  readonly entry: URL;
  readonly workerData: ApiWorkerData;
  readonly log: Log;
}

/** Who waits for the API to start waits no longer than this. */
const START_MS = 30_000;
const STOP_MS = 3000;

/** The configuration API that the collector carries itself, in a worker of its own that is started again whenever it dies. */
export class EmbeddedApi {
  /** Settles once the API listens, or after five seconds without it. */
  readonly started: Promise<unknown>;
  readonly #options: EmbeddedApiOptions;
  readonly #worker: SupervisedWorker<FromApi>;
  readonly #deaths = new ApiDeaths();
  readonly #listening = Promise.withResolvers<void>();
  /** Why it does not start: logged once, however often it is tried; undefined: it has started, or has not failed to. */
  #problem: string | undefined;
  /** Why it does not listen on its port. */
  #portTrouble: string | undefined;
  /** This worker has said why it ends. */
  #hasSaidWhy = false;
  #refusedKeys = 0;
  #lastChange: ConfigChange | null = null;

  constructor(options: EmbeddedApiOptions) {
    const { entry, workerData, log } = options;
    this.#options = options;
    this.#worker = new SupervisedWorker({
      entry,
      name: "api",
      workerData,
      resourceLimits: API_HEAP,
      log,
      hasSaidWhy: () => this.#hasSaidWhy,
      onExit: (cause) => this.#onExit(cause),
      onMessage: (message) => this.#onMessage(message),
    });
    this.started = Promise.race([this.#listening.promise, delay(START_MS, undefined, { ref: false })]);
  }

  /** Requests that came without a valid key since it was made; up to a minute behind. */
  get refusedKeys(): number {
    return this.#refusedKeys;
  }

  /** The last change that somebody made, some seconds behind; null: nobody has. */
  get lastChange(): ConfigChange | null {
    return this.#lastChange;
  }

  /** Notes for people, shown in status. */
  notes(): readonly Warning[] {
    if (this.#problem !== undefined) return [warning("api_not_used", this.#problem, "embedded_api")];
    return [
      ...(this.#portTrouble === undefined ? [] : [warning("port_in_use", this.#portTrouble, "embedded_api")]),
      ...this.#deaths.notes(Date.now()).map((text) => warning("api_ended", text)),
    ];
  }

  stop(): Promise<void> {
    return this.#worker.stop(STOP_MS);
  }

  #onExit(cause: string): void {
    if (!this.#hasSaidWhy) this.#deaths.add(cause, Date.now());
    this.#hasSaidWhy = false;
    // The next one tries the port again, and says nothing where it gets it at once.
    this.#portTrouble = undefined;
  }

  #onMessage(message: FromApi): void {
    const { log } = this.#options;
    if (message.type === "listening") {
      const { url, keyFiles } = message;
      const keys = { adminKey: keyFiles.admin, collectorKey: keyFiles.collector };
      if (this.#portTrouble === undefined) log.info({ url, ...keys }, "the embedded configuration API listens");
      else log.info(keys, "the embedded configuration API answers on its local socket");
      this.#problem = undefined;
      this.#listening.resolve();
    } else if (message.type === "port_trouble") {
      if (message.message !== null) log.error({}, message.message);
      this.#portTrouble = message.message ?? undefined;
    } else if (message.type === "changed") this.#lastChange = message.change;
    else if (message.type === "refused_keys") this.#refusedKeys += message.count;
    else if (message.type === "failed") {
      this.#hasSaidWhy = true;
      const problem = `the embedded configuration API cannot start: ${message.message}`;
      if (problem !== this.#problem) log.error({}, problem);
      this.#problem = problem;
      // Whoever waits for its start meets what is wrong.
      this.#listening.resolve();
    }
  }
}
