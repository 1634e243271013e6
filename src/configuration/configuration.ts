import { isDeepStrictEqual } from "node:util";
import { apiAccess, embeddedSocket, keysFolder, requesterAccess } from "../api/access.ts";
import { ApiClient } from "../api/client.ts";
import type { Desired } from "../api/desired.ts";
import { type ApiWorkerData, embeddedDatabase, lastGoodFile } from "../api/embedded.ts";
import { isLoopback } from "../api/loopback.ts";
import { withoutCredentials } from "../base/plain-text.ts";
import { type Clock, isoTimeAt } from "../model/clock.ts";
import { messageOf } from "../model/failure.ts";
import type { ConfigStatus } from "../model/service-status.ts";
import type { Settings } from "../model/settings.ts";
import { type Warning, warning } from "../model/warning.ts";
import type { Logger } from "../os/log.ts";
import { EmbeddedApi } from "../threads/api/host.ts";
import { ApiLink } from "./api-link.ts";
import type { StatusReporting } from "./status-reporter.ts";

export interface ConfigurationOptions extends Pick<StatusReporting, "glances" | "mayDiscover"> {
  /** Of the start. */
  readonly settings: Settings;
  readonly stateDir: string;
  /** This collector's uuid. */
  readonly collector: string;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly workerUrl: (name: string) => URL;
  readonly onConfiguration: (desired: Desired) => void;
  /** Words for why the policy of now does not let it listen on an address; undefined: it does. */
  readonly listenRefusal: (at: string) => string | undefined;
}

/** The embedded API as it runs. */
interface Embedded {
  readonly api: EmbeddedApi;
  readonly data: ApiWorkerData;
}

/** The place where the configuration comes from: the platform's API or the embedded one, and how that is. */
export class Configuration {
  readonly #options: ConfigurationOptions;
  /** What the link was made from. */
  #settings: Settings;
  /** What it is to be made from: the latest. */
  #desiredSettings: Settings;
  /** The configuration at work. */
  #current: Desired | undefined;
  #origin: ConfigStatus["origin"] = "none";
  #embedded: Embedded | undefined;
  #link: ApiLink;
  /** Why the API of the desired settings cannot be asked. */
  #problem: string | undefined;
  /** Never rejects. */
  #changing: Promise<void> = Promise.resolve();

  /** Starts the embedded API where no other is configured, and polling. Throws an Error that names the setting which cannot be used. */
  constructor(options: ConfigurationOptions) {
    const { settings } = options;
    this.#options = options;
    this.#settings = settings;
    this.#desiredSettings = settings;
    this.#embedded = this.#start(this.#embeddedData(settings));
    this.#link = this.#open(this.#clientOf(settings), settings);
  }

  /**
   * Goes over to the API of these settings; what runs goes on until that has answered. An embedded API that is to be as it is goes on too.
   * Settles when it is done; of several calls the latest counts.
   */
  use(settings: Settings): Promise<void> {
    this.#desiredSettings = settings;
    this.#changing = this.#changing.then(() => this.#change());
    return this.#changing;
  }

  /** The embedded API ends where it may not listen any more, and starts where it may again. Settles when it is done. */
  policyChanged(): Promise<void> {
    return this.use(this.#desiredSettings);
  }

  status(): ConfigStatus {
    const { state, warnings, leftOut } = this.#link;
    return {
      origin: this.#origin,
      api_url: withoutCredentials(apiAccess(this.#settings, this.#options.stateDir).url),
      ok: state?.ok ?? false,
      message: state?.message ?? null,
      since: state ? isoTimeAt(this.#options.clock, state.sinceUpMs) : null,
      warnings,
      left_out: leftOut,
      taken_at: this.#current?.fetchedAt ?? null,
      ...(this.#embedded && { refused_keys: this.#embedded.api.refusedKeys, changed: this.#embedded.api.lastChange }),
    };
  }

  /** What a person should know of it all the time. */
  notes(): readonly Warning[] {
    const { api, embedded_api } = this.#settings;
    const { listen } = embedded_api;
    const isBeyond = !isLoopback(listen.slice(0, listen.lastIndexOf(":")));
    const isReadable = !api && embedded_api.insecure && !embedded_api.tls && isBeyond;
    const readable =
      `the embedded configuration API serves ${listen} in plain http (embedded_api.insecure: true): ` +
      "keys and passwords can be read on the network; name a certificate in embedded_api.tls";
    const closed = this.#closed(this.#settings);
    return [
      ...(this.#problem === undefined ? [] : [warning("api_not_used", `${this.#problem}; still polling the previous API`)]),
      ...(closed === undefined
        ? []
        : [warning("listening_forbidden", `${closed}; the embedded configuration API is not served`, "embedded_api")]),
      ...(isReadable ? [warning("api_in_clear", readable)] : []),
      ...(this.#embedded?.api.notes() ?? []),
    ];
  }

  /** The embedded API runs until `flushed` has settled: what is sent to the platform goes to it. */
  async stop(flushed: Promise<void>): Promise<void> {
    await this.#changing;
    await this.#link.end();
    await flushed;
    await this.#embedded?.api.stop();
  }

  async #change(): Promise<void> {
    const { signal, log } = this.#options;
    const settings = this.#desiredSettings;
    const data = this.#embeddedData(settings);
    const isSameServer = isDeepStrictEqual(data, this.#embedded?.data);
    if (signal.aborted || (settings === this.#settings && isSameServer)) return;
    let client: ApiClient;
    try {
      client = this.#clientOf(settings);
    } catch (error) {
      this.#problem = messageOf(error);
      log.error({ err: error }, "new API settings are unusable: still polling the previous API");
      return;
    }
    this.#problem = undefined;
    await this.#link.end();
    if (!isSameServer) {
      await this.#embedded?.api.stop();
      this.#embedded = this.#start(data);
    }
    this.#settings = settings;
    if (this.#origin === "api") this.#origin = "last_good";
    this.#link = this.#open(client, settings);
  }

  /** Why the embedded API that these settings ask for may not listen. */
  #closed({ api, embedded_api }: Settings): string | undefined {
    const refusal = api ? undefined : this.#options.listenRefusal(embedded_api.listen);
    return refusal === undefined ? undefined : `embedded_api.listen: ${refusal}`;
  }

  /** Undefined: these settings ask for no embedded API, or the policy for none. */
  #embeddedData(settings: Settings): ApiWorkerData | undefined {
    return settings.api || this.#closed(settings) !== undefined ? undefined : embeddedApiData({ ...this.#options, settings });
  }

  #start(data: ApiWorkerData | undefined): Embedded | undefined {
    const { workerUrl, log } = this.#options;
    return data && { api: new EmbeddedApi({ entry: workerUrl("api"), workerData: data, log }), data };
  }

  /** Throws an Error that names the setting which cannot be used. */
  #clientOf(settings: Settings): ApiClient {
    const { stateDir, collector, log } = this.#options;
    const access = requesterAccess(apiAccess(settings, stateDir));
    return new ApiClient({
      ...access,
      collector,
      readKey: async () => {
        await this.#embedded?.api.started;
        return access.readKey();
      },
      log,
    });
  }

  #open(client: ApiClient, settings: Settings): ApiLink {
    const { stateDir, collector, version, clock, log, signal, onConfiguration, glances, mayDiscover } = this.#options;
    return new ApiLink(
      {
        client,
        ...(this.#current && { current: this.#current }),
        collector,
        version,
        clock,
        lastGoodFile: lastGoodFile(stateDir),
        pollIntervalMs: (settings.api ?? settings.embedded_api).poll_interval,
        onConfiguration: (desired, origin) => {
          this.#current = desired;
          this.#origin = origin;
          onConfiguration(desired);
        },
        glances,
        mayDiscover,
      },
      { signal, log },
    );
  }
}

function embeddedApiData({ settings, stateDir, collector, version }: ConfigurationOptions): ApiWorkerData {
  const { listen, tls, insecure, values } = settings.embedded_api;
  return {
    databaseFile: embeddedDatabase(stateDir),
    keysDir: keysFolder(stateDir),
    listen,
    tls: tls && { certFile: tls.cert_file, keyFile: tls.key_file },
    insecure,
    socketFile: embeddedSocket(stateDir),
    values: { maxBytes: values.max_bytes, maxAgeMs: values.max_age },
    collector,
    readoutIntervalUnit: settings.readout_interval_unit,
    publishIntervalUnit: settings.publish_interval_unit,
    version,
  };
}
