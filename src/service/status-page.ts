import type { Log } from "../model/context.ts";
import type { Settings } from "../model/settings.ts";
import { type Warning, warning } from "../model/warning.ts";
import type { PageWorkerData } from "./page/messages.ts";
import type { PageHostOptions, ServedPage } from "./page/served.ts";

export interface StatusPageOptions extends Omit<PageHostOptions, "workerData"> {
  /** As they were at the start. */
  readonly settings: Pick<Settings, "page">;
  /** Words for why the policy of now does not let it listen on an address; undefined: it does. */
  readonly listenRefusal: (at: string) => string | undefined;
  /** See PageWorkerData. */
  readonly bufferFile?: string;
  readonly log: Log;
  /** Starts the thread of the page. */
  readonly start: (options: PageHostOptions) => ServedPage;
}

/** The page for browsers: served where and while settings and policy let it be. */
export class StatusPage {
  readonly #options: StatusPageOptions;
  #settings: Settings["page"];
  #host: ServedPage | undefined;
  /** Its host began with this, as text. */
  #running: string | undefined;
  /** Why nothing is served. */
  #closed: string | undefined;
  /** The address is free again when this has settled. Never rejects. */
  #changing: Promise<void> = Promise.resolve();
  #isEnded = false;

  constructor(options: StatusPageOptions) {
    this.#options = options;
    this.#settings = options.settings.page;
    this.look();
  }

  /** What a person should know of it, for status. */
  notes(): readonly Warning[] {
    return this.#closed === undefined ? (this.#host?.notes() ?? []) : [warning("listening_forbidden", this.#closed, "page")];
  }

  /** The settings have changed. */
  use({ page }: Pick<Settings, "page">): void {
    this.#settings = page;
    this.look();
  }

  /** Settings or policy may be others: begins or ends serving, or begins again. */
  look(): void {
    const { listenRefusal, bufferFile, log } = this.#options;
    const { enabled, listen } = this.#settings;
    const refusal = enabled ? listenRefusal(listen) : undefined;
    const closed = refusal === undefined ? undefined : `page.listen: ${refusal}; the page is not served`;
    if (closed !== undefined && closed !== this.#closed) log.error({}, closed);
    this.#closed = closed;
    const data = enabled && closed === undefined ? workerDataOf(this.#settings, bufferFile) : undefined;
    this.#changing = this.#changing.then(() => this.#bring(data));
  }

  /** Never throws. */
  async stop(): Promise<void> {
    this.#isEnded = true;
    await this.#changing;
    await this.#host?.stop();
    this.#host = undefined;
  }

  async #bring(data: PageWorkerData | undefined): Promise<void> {
    const desired = data && JSON.stringify(data);
    if (desired === this.#running) return;
    await this.#host?.stop();
    this.#host = undefined;
    this.#running = undefined;
    if (!data || this.#isEnded) return;
    this.#host = this.#options.start({ ...this.#options, workerData: data });
    this.#running = desired;
  }
}

const workerDataOf = ({ listen, token_file: tokenFile, tls }: Settings["page"], bufferFile: string | undefined): PageWorkerData => ({
  ...(bufferFile !== undefined && { bufferFile }),
  listen,
  tokenFile,
  tls: tls && { certFile: tls.cert_file, keyFile: tls.key_file },
});
