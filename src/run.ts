import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { DRIVERS } from "../drivers/index.ts";
import { Agent } from "./agent/agent.ts";
import { createResolver } from "./agent/resolve.ts";
import type { SourceInput } from "./agent/source-spec.ts";
import { apiAccess } from "./api/access.ts";
import type { Desired } from "./api/desired.ts";
import { startConfiguration } from "./configuration/configuration.ts";
import { createCredentials, credentialsFolder, loadCredentials, missingPassword, withLocalSecrets } from "./configuration/credentials.ts";
import { wantedSinks } from "./configuration/desired-sinks.ts";
import { localOptionsIn, type ReadSecret, wantedSources } from "./configuration/desired-sources.ts";
import { loadPolicy, policyFile } from "./configuration/policy-file.ts";
import { type Round, Rounds } from "./configuration/rounds.ts";
import { variablesDir } from "./configuration/settings-file.ts";
import { type VariableFiles, VariableFolder } from "./configuration/variable-files.ts";
import { readBoundedFile } from "./lib/bounded-file.ts";
import { heaps } from "./lib/heap.ts";
import { formatDuration } from "./model/duration.ts";
import { messageOf } from "./model/failure.ts";
import type { PkiPlace } from "./model/pki.ts";
import type { Policy } from "./model/policy.ts";
import { type ServiceStatus, toSourceStatus } from "./model/service-status.ts";
import type { Settings } from "./model/settings.ts";
import { createBreather, sleep } from "./model/timer.ts";
import { startClock } from "./os/clock.ts";
import { installationUuid } from "./os/identity.ts";
import type { Logger } from "./os/log.ts";
import { createNameLookup } from "./os/name-lookup.ts";
import { listenRefusal, permitOf } from "./os/policy.ts";
import { startPipeline } from "./pipeline.ts";
import { type HttpListener, startHttpListener } from "./service/http-listener.ts";
import { LocalRequestError, localSocketPath, startLocalSocket } from "./service/local-socket.ts";
import { createMetrics, type Metrics } from "./service/metrics.ts";
import { createNotifier, startNotifying } from "./service/notify.ts";
import { createProgress } from "./service/progress.ts";
import { summaryOf } from "./service/summary.ts";
import { createAcquisition } from "./threads/session/host.ts";
import { remoteDrivers } from "./threads/session/remote-drivers.ts";

export interface RunOptions {
  readonly settings: Settings;
  /** Absolute; undefined: there is none, and the settings are the defaults. */
  readonly settingsFile: string | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly version: string;
  /** Of this process: where a service manager leaves what it wants to be told. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  /** Entry of a worker, by its name. */
  readonly workerUrl: (name: string) => URL;
}

/** How often local variable files are looked at, and changed statuses are handed on. */
const FILES_EVERY_MS = 2000;
const DESCRIBE_AFTER_MS = 250;
const MAX_SECRET_BYTES = 64 * 1024;
const MAX_ALARMS = 20;
const WORKER_STOP_MS = 4000;
/** What `collector secret` posts. */
const secretChangeSchema = z.strictObject({ key: z.string().min(1).max(255), secret: z.string().max(MAX_SECRET_BYTES).nullable() });

/**
 * The service: composes configuration, agent and pipeline, and runs until the signal aborts. Throws an Error whose message is for people
 * where it cannot start (the state folder, another service in it); nothing else ends it.
 */
export async function runService({ settings, settingsFile, log, signal, version, env, pid, workerUrl }: RunOptions): Promise<void> {
  const startedAt = new Date().toISOString();
  const stateDir = path.resolve(settings.state_dir);
  openStateDir(stateDir);
  const collector = settings.collector ?? installationUuid(path.join(stateDir, "collector-uuid"), randomUUID);
  const readSecret = secretReader(settingsFile ? path.dirname(settingsFile) : stateDir);
  const folder = variablesDir({ settings, file: settingsFile });
  const loaded = loadCredentials(env["CREDENTIALS_DIRECTORY"], credentialsFolder(settingsFile));
  for (const problem of loaded.problems) log.warn({}, `a secret cannot be read: ${problem}`);
  const credentials = createCredentials(loaded.secrets);
  const pki: PkiPlace = { dir: path.join(stateDir, "pki"), installation: collector };
  const { policy } = loadPolicy(policyFile(settingsFile));
  const closed = settings.api ? undefined : listenRefusal(policy, settings.embedded_api.listen);
  if (closed !== undefined) throw new Error(`embedded_api.listen: ${closed}`);
  const alarms: string[] = [];
  const alarm = (message: string) => {
    log.error({}, message);
    alarms.push(`${new Date().toISOString()} ${message}`);
    if (alarms.length > MAX_ALARMS) alarms.shift();
  };

  // First of all: a second service with this state folder must end before it touches anything.
  const socket = await startLocalSocket(
    { path: localSocketPath(stateDir), handlers: { "/status": () => status() }, actions: { "/secret": (body) => takeSecret(body) } },
    { signal: new AbortController().signal, log },
  );
  const clock = startClock(signal);
  const pipeline = startPipeline({
    run: randomUUID(),
    bufferFile: path.join(stateDir, "buffer.db"),
    maxBytes: settings.buffer.max_bytes,
    maxAgeMs: settings.buffer.max_age,
    keepRemovedMs: settings.buffer.keep_removed,
    log,
    workerUrl,
    policy,
    pki,
    onAlarm: alarm,
  });

  let describing: NodeJS.Timeout | undefined;
  let metrics: Metrics | undefined;
  const acquisition = createAcquisition({
    entry: workerUrl("session"),
    workerData: { pki },
    log,
  });
  const agent = new Agent({
    drivers: remoteDrivers(DRIVERS, acquisition),
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
    late: (ms) => metrics?.late(ms),
    changed() {
      // Many sources change at once when a switch fails: one message tells of all.
      describing ??= setTimeout(() => {
        describing = undefined;
        pipeline.describe(agent.reports());
      }, DESCRIBE_AFTER_MS);
    },
  });

  let desired: Desired | undefined;
  const said = new Set<string>();
  let isApplied = false;
  let applied: { readonly desired: Desired; readonly files: VariableFiles; readonly passwords: string } | undefined;
  const variables = new VariableFolder(folder, clock, path.join(stateDir, "variable-files.json"));
  await variables.watch();
  const begun: Round = { made: Promise.resolve() };
  const take = async (): Promise<Round> => {
    for (let waitMs = variables.startWaitMs(); desired && waitMs > 0 && !signal.aborted; waitMs = variables.startWaitMs())
      await sleep(waitMs, signal);
    const now = desired;
    if (!now || signal.aborted) return begun;
    const files = await variables.look(now.sources);
    // Compared only, because they are secrets.
    const passwords = passwordFiles(settings)
      .map((file) => JSON.stringify(readSecret(file)))
      .join("\n");
    if (applied?.desired === now && applied.files === files && applied.passwords === passwords) return begun;
    applied = { desired: now, files, passwords };
    for (const { file, line, source, message } of files.problems) {
      const text = `${file}${line === undefined ? "" : `:${line}`}: ${message}`;
      if (source === undefined && !said.has(text)) log.warn({}, text);
      said.add(text);
    }
    const { sources, sinks } = now;
    const wanted = { ...now, secrets: withLocalSecrets(now.secrets, [...sources, ...sinks], credentials) };
    pipeline.setSinks(
      wantedSinks(wanted, settings, localOptionsIn(settings.sinks), readSecret, apiAccess(settings, stateDir)).map((sink) => {
        const missing = sink.missingSecret ?? missingPassword(sink, sink);
        return missing === undefined ? sink : { ...sink, missingSecret: missing };
      }),
    );
    const breathe = createBreather();
    const inputs: SourceInput[] = [];
    for (const source of await wantedSources(wanted, files, settings, readSecret)) {
      const { record, local: own, secrets } = source;
      const { details } = record;
      inputs.push({ ...source, missingSecret: source.missingSecret ?? missingPassword(record, { details, settings: own, secrets }) });
      await breathe();
    }
    heaps.fit({ sources: inputs.length, variables: inputs.reduce((sum, { variables: of }) => sum + of.length, 0) });
    const made = agent.apply(inputs).then(() => {
      isApplied = true;
    });
    return { made };
  };

  const progress = createProgress(clock, FILES_EVERY_MS);
  const rounds = new Rounds({
    take() {
      const round = take();
      void heaps.whileFilling(() => round.then(({ made }) => made)).catch(() => {});
      return round;
    },
    onError: (error) => log.error({ err: error }, "the configuration could not be applied"),
    onSettled: () => progress.reconciled(),
  });
  const takeSecret = (body: unknown): object => {
    const change = secretChangeSchema.safeParse(body);
    if (!change.success) throw new LocalRequestError("expected {key, secret}: a uuid or name, and its secret or null");
    const { key, secret } = change.data;
    if (secret === null) credentials.remove(key);
    else credentials.set(key, secret);
    log.info({ entry: key }, secret === null ? "a secret was removed" : "a secret was handed over");
    applied = undefined;
    rounds.ask();
    return {};
  };

  const configuration = startConfiguration({
    settings,
    stateDir,
    collector,
    version,
    log,
    signal,
    workerUrl,
    onAlarm: alarm,
    reports: () => agent.reports(),
    discovery: policy.discovery,
    onConfiguration(next) {
      desired = next;
      rounds.ask();
    },
  });
  const status = (): ServiceStatus => ({
    version,
    collector,
    started_at: startedAt,
    config: configuration.status(),
    sources: agent.reports().map(toSourceStatus),
    sinks: pipeline.sinks(),
    buffer: pipeline.buffer(),
    alarms: [...configuration.notes(), ...alarms],
  });
  metrics = createMetrics(status);
  const http = startHttp(settings.http.listen, policy, metrics, {
    healthy: () => progress.ok(agent.reports()),
    ready: () => isApplied && !signal.aborted,
    log,
    onTrouble: alarm,
  });
  const looking = setInterval(() => rounds.ask(), FILES_EVERY_MS);

  log.info({ version, collector, api: configuration.status().api_url, stateDir }, "collector ready");
  const notifier = createNotifier(env, log);
  if (notifier)
    startNotifying({
      notifier,
      env,
      pid,
      summary: () => summaryOf(agent.reports(), pipeline.sinks()),
      progressing: () => progress.ok(agent.reports()),
      signal,
    });
  await aborted(signal);
  log.info({}, "stopping: what was accepted is committed first");
  clearInterval(looking);
  clearTimeout(describing);
  await agent.stop();
  pipeline.describe(agent.reports());
  const flushed = pipeline.stop();
  await Promise.all([flushed, configuration.stop(flushed), acquisition.stop(WORKER_STOP_MS)]);
  await http?.close();
  metrics.stop();
  await socket.close();
  log.info({}, "stopped");
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener("abort", () => done(), { once: true });
  });

/** /metrics, /healthz and /readyz; undefined where the policy does not let it listen, which is an alarm. */
function startHttp(
  listen: string,
  policy: Policy,
  metrics: Metrics,
  judge: {
    readonly healthy: () => boolean;
    readonly ready: () => boolean;
    readonly log: Logger;
    readonly onTrouble: (message: string) => void;
  },
): HttpListener | undefined {
  const { log, onTrouble } = judge;
  const closed = listenRefusal(policy, listen);
  if (closed !== undefined) {
    onTrouble(`http.listen: ${closed}; metrics and health are not served`);
    return undefined;
  }
  const verdict = (ok: boolean, otherwise: string) => ({
    status: ok ? 200 : 503,
    contentType: "text/plain; charset=utf-8",
    body: ok ? "ok\n" : `${otherwise}\n`,
  });
  const pages = {
    "/metrics": async () => ({ status: 200, contentType: metrics.contentType, body: await metrics.text() }),
    "/healthz": () => verdict(judge.healthy(), "no data source that is due is being read; restart the collector if this lasts"),
    "/readyz": () => verdict(judge.ready(), "not ready: no configuration is at work yet; see collector status"),
  };
  // Closed by its own end: until then a stopping service says that it is not ready.
  return startHttpListener({ listen, pages, onTrouble }, { signal: new AbortController().signal, log });
}

const passwordFiles = (settings: Settings): readonly string[] =>
  [...Object.values(settings.sources), ...Object.values(settings.sinks)].flatMap(({ password_file }) =>
    typeof password_file === "string" ? [password_file] : [],
  );

function openStateDir(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o750 });
  } catch (error) {
    throw new Error(`state_dir ${folder} cannot be made: ${messageOf(error)}`, { cause: error });
  }
}

/** Reads one line of a file, its path taken from `folder`; the sentence of a problem names the file and never what it holds. */
function secretReader(folder: string): ReadSecret {
  return (given) => {
    const file = path.resolve(folder, given);
    try {
      const secret = readBoundedFile(file, MAX_SECRET_BYTES)
        .toString("utf8")
        .replace(/\r?\n$/, "");
      return secret === "" ? { problem: `password_file: ${file} is empty; put the password there, one line` } : { secret };
    } catch (error) {
      return { problem: `password_file: ${messageOf(error)}` };
    }
  };
}
