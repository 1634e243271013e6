import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { DRIVERS } from "../drivers/index.ts";
import { Agent } from "./agent/agent.ts";
import { createResolver } from "./agent/resolve.ts";
import { apiAccess } from "./api/access.ts";
import type { BufferBounds } from "./buffer/buffer-file.ts";
import { Applier, type LocalSettings } from "./configuration/applier.ts";
import { Configuration } from "./configuration/configuration.ts";
import { createCredentials, credentialsFolder, loadCredentials } from "./configuration/credentials.ts";
import { installationUuid } from "./configuration/identity.ts";
import { loadPolicy, policyFile } from "./configuration/policy-file.ts";
import { variablesDir } from "./configuration/settings-file.ts";
import { listenRefusal, permitOf } from "./lib/policy.ts";
import { formatDuration } from "./model/duration.ts";
import { messageOf } from "./model/failure.ts";
import type { PkiPlace } from "./model/pki.ts";
import type { Settings } from "./model/settings.ts";
import { startClock } from "./os/clock.ts";
import { createNameLookup } from "./os/name-lookup.ts";
import { Pipeline } from "./pipeline.ts";
import { Alarms } from "./service/alarms.ts";
import { Service, type ServiceOptions } from "./service/service.ts";
import { SessionHost } from "./threads/session/host.ts";
import { remoteDrivers } from "./threads/session/remote-drivers.ts";

export interface RunOptions extends Pick<ServiceOptions, "settings" | "log" | "signal" | "version" | "env" | "pid"> {
  /** Absolute; undefined: there is none, and the settings are the defaults. */
  readonly settingsFile: string | undefined;
  /** Entry of a worker, by its name. */
  readonly workerUrl: (name: string) => URL;
}

/**
 * The service: composes configuration, agent and pipeline, and runs until the signal aborts. Throws an Error whose message is for people
 * where it cannot start (the state folder, another service in it); nothing else ends it.
 */
export async function runService(options: RunOptions): Promise<void> {
  const { settings, settingsFile, log, signal, version, env, workerUrl } = options;
  const stateDir = path.resolve(settings.state_dir);
  openStateDir(stateDir);
  const collector = settings.collector ?? installationUuid(path.join(stateDir, "collector-uuid"), randomUUID);
  const loaded = loadCredentials(env["CREDENTIALS_DIRECTORY"], credentialsFolder(settingsFile));
  for (const problem of loaded.problems) log.warn({}, `a secret cannot be read: ${problem}`);
  const credentials = createCredentials(loaded.secrets);
  const pki: PkiPlace = { dir: path.join(stateDir, "pki"), installation: collector };
  const { policy } = loadPolicy(policyFile(settingsFile));
  const closed = settings.api ? undefined : listenRefusal(policy, settings.embedded_api.listen);
  if (closed !== undefined) throw new Error(`embedded_api.listen: ${closed}`);
  const alarms = new Alarms(log);
  const clock = startClock(signal);
  const service = new Service({ ...options, collector, stateDir, policy, credentials, clock, alarms });

  // First of all: a second service with this state folder must end before it touches anything.
  await service.open();
  const pipeline = new Pipeline({
    run: randomUUID(),
    bufferFile: path.join(stateDir, "buffer.db"),
    bounds: boundsOf(settings),
    log,
    workerUrl,
    policy,
    pki,
    onAlarm: alarms.raise,
  });
  const sessions = new SessionHost({ entry: workerUrl("session"), workerData: { pki }, log });
  const agent = new Agent({
    drivers: remoteDrivers(DRIVERS, sessions),
    clock,
    resolver: createResolver({
      lookUp: createNameLookup(),
      now: clock.monotonicMs,
      onStale: (host, address, ageMs) =>
        log.warn({ host, address }, `no name server answers for ${host}: its last address is used, ${formatDuration(ageMs)} old`),
    }),
    permit: permitOf(policy, "sources"),
    logFor: (fields) => log.child(fields),
    emit: (layout, readout) => void pipeline.append(layout, readout),
    late: (ms) => service.late(ms),
    changed: () => service.sourceChanged(),
  });
  const localOf = (now: Settings): LocalSettings => ({
    settings: now,
    settingsDir: settingsFile ? path.dirname(settingsFile) : stateDir,
    variablesDir: variablesDir({ settings: now, file: settingsFile }),
    api: apiAccess(now, stateDir),
  });
  const applier = new Applier({
    local: localOf(settings),
    stateDir,
    credentials,
    clock,
    log,
    signal,
    applySinks: (sinks) => pipeline.setSinks(sinks),
    applySources: (sources) => agent.apply(sources),
    onSettled: () => service.reconciled(),
  });
  await applier.watchFiles();
  const configuration = new Configuration({
    settings,
    stateDir,
    collector,
    version,
    log,
    signal,
    workerUrl,
    onAlarm: alarms.raise,
    reports: () => agent.reports(),
    mayDiscover: () => policy.discovery,
    listenRefusal: (at) => listenRefusal(policy, at),
    onConfiguration: (desired) => applier.setDesired(desired),
  });
  service.start({ agent, pipeline, sessions, applier, configuration });
  await aborted(signal);
  await service.stop();
}

const boundsOf = ({ buffer }: Pick<Settings, "buffer">): BufferBounds => ({
  maxBytes: buffer.max_bytes,
  maxAgeMs: buffer.max_age,
  keepRemovedMs: buffer.keep_removed,
});

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener("abort", () => done(), { once: true });
  });

function openStateDir(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o750 });
  } catch (error) {
    throw new Error(`state_dir ${folder} cannot be made: ${messageOf(error)}`, { cause: error });
  }
}
