import { setTimeout as delay } from "node:timers/promises";
import { apiAccess, embeddedSocket, keysFolder, requesterAccess } from "../api/access.ts";
import { ApiClient } from "../api/client.ts";
import { ApiDeaths } from "../api/deaths.ts";
import type { Desired } from "../api/desired.ts";
import { heaps } from "../lib/heap.ts";
import { superviseWorker } from "../lib/thread/host.ts";
import type { SourceReport } from "../model/report.ts";
import type { ConfigStatus } from "../model/service-status.ts";
import type { Settings } from "../model/settings.ts";
import type { Logger } from "../os/log.ts";
import { API_HEAP, type ApiWorkerData, embeddedDatabase, type FromApi, lastGoodFile } from "../threads/api/messages.ts";
import { type PollState, startPolling } from "./poll.ts";

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

/** Where the configuration comes from: the platform's API or the embedded one, and how that stands. */
export interface Configuration {
  status(): ConfigStatus;
  /** What a person should know of it all the time. */
  notes(): readonly string[];
  /** The embedded API is there until `flushed` has settled: what is sent to the platform goes to it. */
  stop(flushed: Promise<void>): Promise<void>;
}

/** A starting embedded API is waited for before the first pull; after this the pull fails and is tried again. */
const API_START_MS = 5000;
const API_STOP_MS = 3000;

/** Starts the embedded API where no other is configured, and polling. Throws an Error that names the setting which cannot be used. */
export function startConfiguration(options: ConfigurationOptions): Configuration {
  const { settings, stateDir, collector, log, signal } = options;
  const embedded = settings.api ? undefined : startEmbeddedApi(options);
  const api = apiAccess(settings, stateDir);
  const { socketFile } = api;
  const asked = requesterAccess(api);
  const client = new ApiClient({
    ...asked,
    collector,
    async readKey() {
      await embedded?.started;
      return asked.readKey();
    },
    log,
  });
  let origin: ConfigStatus["origin"] = "none";
  let state: PollState | undefined;
  let warnings: readonly string[] = [];
  const polling = startPolling(
    {
      client: {
        base: client.base,
        pull: (previous, stop) => heaps.whileFilling(() => client.pull(previous, stop)),
        reportStatuses: (reports, stop) => client.reportStatuses(reports, stop),
      },
      collector,
      lastGoodFile: lastGoodFile(stateDir),
      pollIntervalMs: (settings.api ?? settings.embedded_api).poll_interval,
      onConfiguration(desired, from) {
        origin = from;
        options.onConfiguration(desired);
      },
      onState(next) {
        state = next;
      },
      onWarnings(next) {
        warnings = next;
      },
      takeReports: () =>
        options.reports().map(({ uuid, status, discovers }) => ({
          data_source: uuid,
          readout_status: status,
          ...(discovers !== undefined && { capabilities: { variable_discovery: discovers && options.discovery } }),
        })),
    },
    { signal, log },
  );
  const shownOnNetwork = !settings.api && settings.embedded_api.insecure && !settings.embedded_api.tls;
  return {
    notes: () => [
      ...(shownOnNetwork && socketFile !== undefined
        ? [
            `the embedded configuration API serves ${settings.embedded_api.listen} in plain http (embedded_api.insecure: true): ` +
              "keys and passwords can be read on the network; name a certificate in embedded_api.tls",
          ]
        : []),
      ...(embedded?.notes() ?? []),
    ],
    status: () => ({
      origin,
      api_url: api.url,
      ok: state?.ok ?? false,
      message: state?.message ?? null,
      since: state?.since ?? null,
      warnings,
    }),
    async stop(flushed) {
      await polling.done;
      client.close();
      await flushed;
      await embedded?.stop();
    },
  };
}

/** The configuration API that the collector carries itself, in a worker of its own. */
function startEmbeddedApi(options: ConfigurationOptions) {
  const { settings, stateDir, collector, version, log, workerUrl, onAlarm } = options;
  const { listen, tls, insecure, values } = settings.embedded_api;
  const workerData: ApiWorkerData = {
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
  const deaths = new ApiDeaths();
  let told: string | undefined;
  let tellStarted = () => {};
  const listening = new Promise<void>((done) => {
    tellStarted = done;
  });
  const worker = superviseWorker<FromApi>({
    entry: workerUrl("api"),
    name: "api",
    workerData,
    resourceLimits: API_HEAP,
    log,
    onExit: (cause) => deaths.add(cause, Date.now()),
    onMessage(message) {
      if (message.type === "listening") {
        log.info(
          { url: message.url, adminKey: message.keyFiles.admin, collectorKey: message.keyFiles.collector },
          "the embedded configuration API listens",
        );
        told = undefined;
        tellStarted();
      } else if (message.type === "failed" && message.message !== told) {
        told = message.message;
        onAlarm(`the embedded configuration API cannot start: ${message.message}`);
      } else if (message.type === "log") log[message.level](message.fields, message.message);
    },
  });
  return {
    started: Promise.race([listening, delay(API_START_MS, undefined, { ref: false })]),
    notes: () => deaths.notes(Date.now()),
    stop: () => worker.stop(API_STOP_MS),
  };
}
