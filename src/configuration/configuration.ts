import { apiAccess, embeddedSocket, keysFolder, requesterAccess } from "../api/access.ts";
import { ApiClient } from "../api/client.ts";
import type { Desired } from "../api/desired.ts";
import { heaps } from "../lib/heap.ts";
import type { ApiAccess } from "../model/api-access.ts";
import type { SourceReport } from "../model/report.ts";
import type { ReadoutStatusReport } from "../model/resources.ts";
import type { ConfigStatus } from "../model/service-status.ts";
import type { Settings } from "../model/settings.ts";
import type { Logger } from "../os/log.ts";
import { EmbeddedApi } from "../threads/api/host.ts";
import { type ApiWorkerData, embeddedDatabase, lastGoodFile } from "../threads/api/messages.ts";
import { type PollState, runPolling } from "./poll.ts";

export interface ConfigurationOptions {
  readonly settings: Settings;
  readonly stateDir: string;
  /** This collector's uuid. */
  readonly collector: string;
  readonly version: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly workerUrl: (name: string) => URL;
  readonly onConfiguration: (desired: Desired) => void;
  /** All data sources as they stand now. */
  readonly reports: () => readonly SourceReport[];
  /** Whether devices may be asked what they have. */
  readonly discovery: boolean;
  readonly onAlarm: (message: string) => void;
}

/** Where the configuration comes from: the platform's API or the embedded one, and how that is. */
export class Configuration {
  readonly #options: ConfigurationOptions;
  readonly #embedded: EmbeddedApi | undefined;
  readonly #api: ApiAccess;
  readonly #client: ApiClient;
  /** Settles once the signal has aborted and nothing is under way. */
  readonly #polling: Promise<void>;
  #origin: ConfigStatus["origin"] = "none";
  #state: PollState | undefined;
  #warnings: readonly string[] = [];

  /** Starts the embedded API where no other is configured, and polling. Throws an Error that names the setting which cannot be used. */
  constructor(options: ConfigurationOptions) {
    const { settings, stateDir, collector, log, workerUrl, onAlarm } = options;
    this.#options = options;
    this.#embedded = settings.api
      ? undefined
      : new EmbeddedApi({ entry: workerUrl("api"), workerData: embeddedApiData(options), log, onAlarm });
    this.#api = apiAccess(settings, stateDir);
    const access = requesterAccess(this.#api);
    this.#client = new ApiClient({
      ...access,
      collector,
      readKey: async () => {
        await this.#embedded?.started;
        return access.readKey();
      },
      log,
    });
    this.#polling = this.#poll();
  }

  status(): ConfigStatus {
    const state = this.#state;
    return {
      origin: this.#origin,
      api_url: this.#api.url,
      ok: state?.ok ?? false,
      message: state?.message ?? null,
      since: state?.since ?? null,
      warnings: this.#warnings,
    };
  }

  /** What a person should know of it all the time. */
  notes(): readonly string[] {
    const { api, embedded_api } = this.#options.settings;
    const isReadable = !api && embedded_api.insecure && !embedded_api.tls && this.#api.socketFile !== undefined;
    const readable =
      `the embedded configuration API serves ${embedded_api.listen} in plain http (embedded_api.insecure: true): ` +
      "keys and passwords can be read on the network; name a certificate in embedded_api.tls";
    return [...(isReadable ? [readable] : []), ...(this.#embedded?.notes() ?? [])];
  }

  /** The embedded API runs until `flushed` has settled: what is sent to the platform goes to it. */
  async stop(flushed: Promise<void>): Promise<void> {
    await this.#polling;
    this.#client.close();
    await flushed;
    await this.#embedded?.stop();
  }

  #poll(): Promise<void> {
    const { settings, stateDir, collector, log, signal, onConfiguration } = this.#options;
    const client = this.#client;
    return runPolling(
      {
        client: {
          base: client.base,
          pull: (previous, stop) => heaps.whileFilling(() => client.pull(previous, stop)),
          reportStatuses: (reports, stop) => client.reportStatuses(reports, stop),
        },
        collector,
        lastGoodFile: lastGoodFile(stateDir),
        pollIntervalMs: (settings.api ?? settings.embedded_api).poll_interval,
        onConfiguration: (desired, origin) => {
          this.#origin = origin;
          onConfiguration(desired);
        },
        onState: (state) => {
          this.#state = state;
        },
        onWarnings: (warnings) => {
          this.#warnings = warnings;
        },
        takeReports: () => this.#reports(),
      },
      { signal, log },
    );
  }

  #reports(): ReadoutStatusReport {
    const { reports, discovery } = this.#options;
    return reports().map(({ uuid, status, discovers }) => ({
      data_source: uuid,
      readout_status: status,
      ...(discovers !== undefined && { capabilities: { variable_discovery: discovers && discovery } }),
    }));
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
    socketFile: embeddedSocket(settings, stateDir),
    values: { maxBytes: values.max_bytes, maxAgeMs: values.max_age },
    collector,
    readoutIntervalUnit: settings.readout_interval_unit,
    publishIntervalUnit: settings.publish_interval_unit,
    version,
  };
}
