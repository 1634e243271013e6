import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { DRIVERS } from "../drivers/index.ts";
import { Agent } from "./agent/agent.ts";
import { apiAccess } from "./api/access.ts";
import { lastGoodFile } from "./api/embedded.ts";
import { collectorIn } from "./api/last-good.ts";
import { formatDuration } from "./base/duration.ts";
import type { BufferBounds } from "./buffer/buffer-file.ts";
import { defaultMaxBytes } from "./buffer/reserve.ts";
import { Applier, type LocalSettings } from "./configuration/applier.ts";
import { Configuration } from "./configuration/configuration.ts";
import { type Credentials, createCredentials, credentialsFolder, loadCredentials } from "./configuration/credentials.ts";
import { habitsOfDevices } from "./configuration/habits-of-devices.ts";
import { installationUuid } from "./configuration/identity.ts";
import { keptOfSources } from "./configuration/kept-of-sources.ts";
import { keepText } from "./configuration/kept-text.ts";
import type { KeptValues } from "./configuration/kept-values.ts";
import { policyFile, type StartPolicy, startPolicy } from "./configuration/policy-file.ts";
import { Reloader } from "./configuration/reloader.ts";
import { DEFAULT_SETTINGS_FILE, type LoadedSettings, type StartSettings, variablesDir } from "./configuration/settings-file.ts";
import { heaps } from "./lib/heap.ts";
import { listenRefusal, PolicyInForce } from "./lib/policy.ts";
import { createResolver, staleWords } from "./lib/resolver.ts";
import { childEnv } from "./lib/thread/process.ts";
import type { Clock } from "./model/clock.ts";
import { messageOf } from "./model/failure.ts";
import type { PkiPlace } from "./model/pki.ts";
import type { Settings } from "./model/settings.ts";
import { LARGE_READOUT } from "./model/value.ts";
import { startClock } from "./os/clock.ts";
import type { Logger } from "./os/log.ts";
import { createNameLookup } from "./os/name-lookup.ts";
import { Pipeline } from "./pipeline.ts";
import { Alarms } from "./service/alarms.ts";
import { History } from "./service/history/history.ts";
import type { PageHostOptions } from "./service/page/served.ts";
import { Service, type ServiceOptions } from "./service/service.ts";
import { PageHost } from "./threads/page/host.ts";
import { SessionHost } from "./threads/session/host.ts";
import { remoteDrivers } from "./threads/session/remote-drivers.ts";

export interface RunOptions extends Pick<ServiceOptions, "log" | "recentLog" | "signal" | "version" | "env" | "pid" | "named"> {
  /** Of the start; the file is read again when it changes. */
  readonly loaded: StartSettings;
  /** Entry of a worker, by its name. */
  readonly workerUrl: (name: string) => URL;
  /** From now on a person who asks for the settings to be read again calls this. */
  readonly onHangup: (handler: () => void) => void;
}

/** What all parts of the service are made with. */
interface Base extends RunOptions {
  readonly stateDir: string;
  /** This collector's uuid. */
  readonly collector: string;
  /** Of the start. */
  readonly policy: StartPolicy;
  readonly inForce: PolicyInForce;
  readonly pki: PkiPlace;
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly history: History;
  readonly service: Service;
  readonly kept: KeptValues;
  readonly habits: KeptValues;
}

/**
 * The service: composes configuration, agent and pipeline, and runs until the signal aborts. Throws an Error whose message is for people
 * where it cannot start (the state folder, another service in it); nothing else ends it.
 */
export async function runService(options: RunOptions): Promise<void> {
  const { signal, onHangup } = options;
  let reread = (): void => {};
  onHangup(() => reread());
  const base = baseOf(options);
  const { service } = base;
  // First of all: a second service with this state folder must end before it touches anything.
  await service.open();
  heaps.begin();
  const pipeline = pipelineOf(base);
  const sessions = new SessionHost({ entry: options.workerUrl("session"), workerData: { pki: base.pki }, log: options.log });
  const agent = agentOf(base, pipeline, sessions);
  const applier = applierOf(base, pipeline, agent);
  await applier.watchFiles();
  const configuration = configurationOf(base, agent, applier);
  const reloader = reloaderOf(base, { pipeline, agent, applier, configuration });
  service.start({ agent, pipeline, sessions, applier, configuration, reloader });
  reread = () => reloader.reread();
  await aborted(signal);
  await service.stop();
  await Promise.all([base.kept.flush(), base.habits.flush()]);
}

function baseOf(options: RunOptions): Base {
  const { loaded, log, signal, env } = options;
  const { settings, file } = loaded;
  const stateDir = path.resolve(settings.state_dir);
  openStateDir(stateDir);
  const collector =
    settings.collector ?? installationUuid(path.join(stateDir, "collector-uuid"), randomUUID, () => collectorIn(lastGoodFile(stateDir)));
  const secrets = loadCredentials(env["CREDENTIALS_DIRECTORY"], credentialsFolder(file));
  for (const problem of secrets.problems) log.warn({}, `a secret cannot be read: ${problem}`);
  const credentials = createCredentials(secrets.secrets);
  const policy = startPolicy(policyFile(file), stateDir);
  for (const { problem } of [loaded, policy])
    if (problem) log.error({}, `${problem.message}; what it said when it was good stays in force`);
  const closed = settings.api ? undefined : listenRefusal(policy.policy, settings.embedded_api.listen);
  if (closed !== undefined) throw new Error(`embedded_api.listen: ${closed}`);
  const inForce = new PolicyInForce(policy.policy);
  const alarms = new Alarms(log);
  const clock = startClock(signal, undefined, ({ byMs }) =>
    log.warn(
      { byMs: Math.round(byMs) },
      `the computer's clock was set ${formatDuration(Math.abs(Math.round(byMs)))} ${byMs > 0 ? "forward" : "back"}`,
    ),
  );
  const history = new History(clock, settings);
  const { listenRefusal: refusal } = inForce;
  const pki: PkiPlace = { dir: path.join(stateDir, "pki"), installation: collector };
  const startPage = (page: PageHostOptions) => new PageHost(page);
  const known = { settings, collector, stateDir, credentials, clock, alarms, history, pki, bufferFile: bufferFileIn(stateDir) };
  const service = new Service({ ...options, ...known, listenRefusal: refusal, startPage });
  return {
    ...options,
    stateDir,
    collector,
    policy,
    inForce,
    pki,
    credentials,
    clock,
    alarms,
    history,
    service,
    kept: keptOfSources(stateDir, log),
    habits: habitsOfDevices(stateDir, log),
  };
}

const pipelineOf = ({ stateDir, loaded, log, workerUrl, policy, pki, alarms, env }: Base): Pipeline =>
  new Pipeline({
    run: randomUUID(),
    bufferFile: bufferFileIn(stateDir),
    bounds: boundsOf(loaded.settings, stateDir),
    warnBelowMs: loaded.settings.buffer.warn_below,
    log,
    workerUrl,
    policy: policy.policy,
    pki,
    childEnv: childEnv(env),
    onAlarm: alarms.raise,
  });

const bufferFileIn = (stateDir: string): string => path.join(stateDir, "buffer.db");

const boundsOf = ({ buffer }: Pick<Settings, "buffer">, stateDir: string): BufferBounds => ({
  maxBytes: buffer.max_bytes ?? defaultMaxBytes(bufferFileIn(stateDir)),
  maxAgeMs: buffer.max_age,
  keepRemovedMs: buffer.keep_removed,
});

function agentOf(
  { clock, log, inForce, service, loaded, alarms, history, kept, habits }: Base,
  pipeline: Pipeline,
  sessions: SessionHost,
): Agent {
  const agent = new Agent({
    drivers: remoteDrivers(DRIVERS, sessions),
    clock,
    resolver: createResolver({
      lookUp: createNameLookup(),
      now: clock.monotonicMs,
      onStale: (host, address, ageMs) => log.warn({ host, address }, staleWords(host, ageMs)),
    }),
    permit: inForce.permitSource,
    listenRefusal: inForce.listenRefusal,
    keptOf: (uuid) => kept.of(uuid),
    habitsOf: (device) => habits.of(device),
    logFor: (fields) => log.child(fields),
    prepare: (layout) => pipeline.prepare(layout),
    emit: (layout, readout, intervalMs) => {
      history.take(layout, readout);
      // A later readout would say that values are as they were in one that is lost.
      const taken = (isTaken: boolean): void => (isTaken ? undefined : agent.reportAll(layout.source.uuid));
      const isLarge = readout.readings.length >= LARGE_READOUT;
      return isLarge
        ? pipeline.appendInSlices(layout, readout, intervalMs).then(taken)
        : taken(pipeline.append(layout, readout, intervalMs));
    },
    frames: { sourceBytes: loaded.settings.captures.source_bytes, totalBytes: loaded.settings.captures.total_bytes },
    late: (ms) => service.late(ms),
    changed: () => service.sourceChanged(),
    alarm: alarms.raise,
    failed: (uuid, why) => service.sourceFailed(uuid, why),
  });
  pipeline.watchGaps(() => agent.reportAll());
  return agent;
}

const applierOf = (
  { loaded, stateDir, credentials, clock, log, signal, service, history }: Base,
  pipeline: Pipeline,
  agent: Agent,
): Applier =>
  new Applier({
    local: localOf(loaded, stateDir),
    stateDir,
    credentials,
    clock,
    log,
    signal,
    applySinks: (sinks) => pipeline.setSinks(sinks),
    applySources: (sources) => agent.apply(sources),
    onChanges: (changes) => history.configured(changes),
    onSettled: () => service.reconciled(),
  });

const localOf = ({ settings, file, text }: LoadedSettings, stateDir: string): LocalSettings => ({
  settings,
  settingsFile: file ?? DEFAULT_SETTINGS_FILE,
  settingsText: text,
  settingsDir: file ? path.dirname(file) : stateDir,
  variablesDir: variablesDir({ settings, file }),
  api: apiAccess(settings, stateDir),
});

const configurationOf = (base: Base, agent: Agent, applier: Applier): Configuration =>
  new Configuration({
    ...base,
    settings: base.loaded.settings,
    glances: () => agent.glances(),
    mayDiscover: () => base.inForce.mayDiscover,
    listenRefusal: base.inForce.listenRefusal,
    onConfiguration: (desired) => applier.setDesired(desired),
  });

interface Changeable {
  readonly pipeline: Pipeline;
  readonly agent: Agent;
  readonly applier: Applier;
  readonly configuration: Configuration;
}

/** Which part takes which change. */
function reloaderOf(base: Base, { pipeline, agent, applier, configuration }: Changeable): Reloader {
  const { loaded, policy, collector, log, stateDir, inForce, service } = base;
  return new Reloader({
    loaded,
    policy,
    policyFile: policyFile(loaded.file),
    uuid: collector,
    log,
    keep: (name, text) => keepText(stateDir, name, text, log),
    onSettings: (now, effects) => {
      if (effects.has("log")) useLog(log, now.settings);
      if (effects.has("page")) service.usePage(now.settings);
      if (effects.has("buffer")) {
        pipeline.setBounds(boundsOf(now.settings, stateDir));
        pipeline.setWarnBelow(now.settings.buffer.warn_below);
      }
      if (effects.has("configuration")) void configuration.use(now.settings);
      if (effects.has("configuration") || effects.has("applied")) applier.use(localOf(now, stateDir));
    },
    onPolicy: (now) => {
      inForce.use(now);
      pipeline.setPolicy(now);
      void agent.policyChanged();
      void configuration.policyChanged();
      service.policyChanged();
    },
  });
}

function useLog(log: Logger, { log: { level, format } }: Pick<Settings, "log">): void {
  log.level = level;
  log.format = format;
}

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
