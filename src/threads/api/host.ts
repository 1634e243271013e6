import { setTimeout as delay } from "node:timers/promises";
import { SupervisedWorker } from "../../lib/thread/host.ts";
import type { Log } from "../../model/context.ts";
import { ApiDeaths } from "./deaths.ts";
import { API_HEAP, type ApiWorkerData, type FromApi } from "./messages.ts";

export interface EmbeddedApiOptions {
  /** Entry of the worker. */
  readonly entry: URL;
  readonly workerData: ApiWorkerData;
  readonly log: Log;
  readonly onAlarm: (message: string) => void;
}

/** Who waits for the API to start waits no longer than this. */
const START_MS = 5000;
const STOP_MS = 3000;

/** The configuration API that the collector carries itself, in a worker of its own that is started again whenever it dies. */
export class EmbeddedApi {
  /** Settles once the API listens, or after five seconds without it. */
  readonly started: Promise<unknown>;
  readonly #options: EmbeddedApiOptions;
  readonly #worker: SupervisedWorker<FromApi>;
  readonly #deaths = new ApiDeaths();
  readonly #listening = Promise.withResolvers<void>();
  /** The last reason for not starting: raised once, however often the worker is restarted. */
  #raised: string | undefined;
  #refusedKeys = 0;

  constructor(options: EmbeddedApiOptions) {
    const { entry, workerData, log } = options;
    this.#options = options;
    this.#worker = new SupervisedWorker({
      entry,
      name: "api",
      workerData,
      resourceLimits: API_HEAP,
      log,
      onExit: (cause) => this.#deaths.add(cause, Date.now()),
      onMessage: (message) => this.#onMessage(message),
    });
    this.started = Promise.race([this.#listening.promise, delay(START_MS, undefined, { ref: false })]);
  }

  /** Requests that came without a valid key since it was made; up to a minute behind. */
  get refusedKeys(): number {
    return this.#refusedKeys;
  }

  /** What a person should know of it, for status. */
  notes(): readonly string[] {
    return this.#deaths.notes(Date.now());
  }

  stop(): Promise<void> {
    return this.#worker.stop(STOP_MS);
  }

  #onMessage(message: FromApi): void {
    const { log, onAlarm } = this.#options;
    if (message.type === "listening") {
      const { url, keyFiles } = message;
      log.info({ url, adminKey: keyFiles.admin, collectorKey: keyFiles.collector }, "the embedded configuration API listens");
      this.#raised = undefined;
      this.#listening.resolve();
    } else if (message.type === "refused_keys") this.#refusedKeys += message.count;
    else if (message.type === "failed" && message.message !== this.#raised) {
      this.#raised = message.message;
      onAlarm(`the embedded configuration API cannot start: ${message.message}`);
    }
  }
}
