import type { Log } from "../model/context.ts";
import { type RaiseAlarm, type Warning, warning } from "../model/warning.ts";
import { type Page, type PagesListener, startHttpListener } from "./http-listener.ts";
import type { Metrics } from "./metrics.ts";

export interface HealthOptions {
  /** `address:port`. */
  readonly listen: string;
  /** Words for why the policy of now does not let it listen on an address; undefined: it does. */
  readonly listenRefusal: (at: string) => string | undefined;
  readonly metrics: Pick<Metrics, "contentType" | "text">;
  readonly isHealthy: () => boolean;
  /** Why it is not ready, for people; undefined: it is. */
  readonly notReady: () => string | undefined;
  /** What a person should know although it is ready; undefined: nothing. */
  readonly readyNote?: () => string | undefined;
  readonly log: Log;
  readonly onTrouble: RaiseAlarm;
}

/** The local socket's answer to GET /health. */
export interface HealthAnswer {
  /** False: no data source that is due is being read. */
  readonly healthy: boolean;
  /** Why it is not ready, for people; null: it is. */
  readonly not_ready: string | null;
}

export const UNHEALTHY = "no data source that is due is being read; restart the collector if this lasts";

/** /metrics, /healthz and /readyz, where and while the policy lets them be served. */
export class Health {
  readonly #options: HealthOptions;
  #listener: PagesListener | undefined;
  /** Why nothing is served. */
  #closed: string | undefined;
  #isEnded = false;

  constructor(options: HealthOptions) {
    this.#options = options;
    this.look();
  }

  /** The policy may be another one: begins or ends listening. */
  look(): void {
    const { listen, listenRefusal, log } = this.#options;
    const refusal = listenRefusal(listen);
    const closed = refusal === undefined ? undefined : `http.listen: ${refusal}; metrics and health are not served`;
    if (closed !== undefined && closed !== this.#closed) log.error({}, closed);
    this.#closed = closed;
    if (closed !== undefined) {
      void this.#listener?.close();
      this.#listener = undefined;
    } else if (!this.#isEnded) this.#listener ??= this.#start();
  }

  /** What a person should know of it, for status. */
  notes(): readonly Warning[] {
    return this.#closed === undefined ? [] : [warning("listening_forbidden", this.#closed, "http")];
  }

  /** Never throws. */
  async close(): Promise<void> {
    this.#isEnded = true;
    await this.#listener?.close();
  }

  #start(): PagesListener {
    const { listen, metrics, isHealthy, notReady, readyNote, log, onTrouble } = this.#options;
    const pages = {
      "/metrics": async () => ({ status: 200, contentType: metrics.contentType, body: await metrics.text() }),
      "/healthz": () => verdict(isHealthy(), UNHEALTHY),
      "/readyz": () => {
        const why = notReady();
        return verdict(why === undefined, `not ready: ${why}; see collector status`, readyNote?.());
      },
    };
    // Closed by its own end: until then a stopping service says that it is not ready.
    return startHttpListener({ listen, pages, onTrouble }, { signal: new AbortController().signal, log });
  }
}

const verdict = (ok: boolean, otherwise: string, note?: string): Page => ({
  status: ok ? 200 : 503,
  contentType: "text/plain; charset=utf-8",
  body: `${ok ? ["ok", ...(note === undefined ? [] : [note])].join("; ") : otherwise}\n`,
});
