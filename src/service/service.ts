import * as z from "zod";
import type { Agent } from "../agent/agent.ts";
import { formatDuration } from "../base/duration.ts";
import { type Applier, LOOK_EVERY_MS } from "../configuration/applier.ts";
import type { Configuration, ConfigurationOptions } from "../configuration/configuration.ts";
import type { Credentials } from "../configuration/credentials.ts";
import type { Reloader } from "../configuration/reloader.ts";
import { MAX_SECRET_BYTES } from "../configuration/secret-files.ts";
import { type Clock, isoTimeAt, upMsOf } from "../model/clock.ts";
import { messageOf } from "../model/failure.ts";
import type { PkiPlace } from "../model/pki.ts";
import type { SourceReport } from "../model/report.ts";
import { placeWords, secretPlaceSchema } from "../model/secret-place.ts";
import {
  type BufferStatus,
  type ClockStatus,
  type ServiceStatus,
  type SinkStatus,
  type SourceStatus,
  toSourceStatus,
} from "../model/service-status.ts";
import type { Settings } from "../model/settings.ts";
import { uuidSchema } from "../model/uuid.ts";
import { type Warning, warning } from "../model/warning.ts";
import { freeBytes } from "../os/machine.ts";
import type { Alarms } from "./alarms.ts";
import { capturesFolder, FailureCaptures } from "./failure-captures.ts";
import { FillForecast } from "./fill-forecast.ts";
import { framesAnswer } from "./frames-answer.ts";
import { Health, type HealthAnswer } from "./health.ts";
import type { History } from "./history/history.ts";
import { pageData } from "./history/page-data.ts";
import { LocalRequestError, type LocalSocket, localSocketPath, startLocalSocket } from "./local-socket.ts";
import { lookInto } from "./look-into.ts";
import { MachineLook } from "./machine-look.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { createNotifier, type NotifyingOptions, startNotifying } from "./notify.ts";
import type { PageHead } from "./page/messages.ts";
import { createProgress, type Progress } from "./progress.ts";
import type { RecentLog } from "./recent-log.ts";
import { isAbsent, isUnwritable, RUN_FOLDER, runSocketPath } from "./socket-place.ts";
import { StatusPage, type StatusPageOptions } from "./status-page.ts";
import { summaryOf } from "./summary.ts";
import { leftOutWords, noneUsableWords } from "./words/service-words.ts";

/** What carries values from the agent to the sinks, as far as the service uses it. */
export interface ServicePipeline {
  describe(sources: readonly SourceReport[]): void;
  sinks(): readonly SinkStatus[];
  buffer(): BufferStatus;
  /** What a person should know of the buffer. */
  notes(): readonly Warning[];
  /** Bytes that may still be written where the buffer is; undefined: not known. */
  setDiskFree(bytes: number | undefined): void;
  /** How long nothing that was read has been stored; 0: it is. */
  unstoredForMs(): number;
  stop(): Promise<void>;
}

/** What the service runs. It ends all of it. */
export interface ServiceParts {
  readonly agent: Pick<Agent, "frames" | "glances" | "inspect" | "reports" | "stop">;
  readonly pipeline: ServicePipeline;
  /** The thread of the sessions. */
  readonly sessions: { stop(timeoutMs: number): Promise<void> };
  readonly applier: Pick<Applier, "isReady" | "notes" | "secretChanged" | "withheld" | "confirmSecret" | "start" | "stop">;
  readonly configuration: Configuration;
  readonly reloader: Pick<Reloader, "notes" | "start" | "stop">;
}

export interface ServiceOptions
  extends Pick<ConfigurationOptions, "settings" | "stateDir" | "collector" | "version" | "log" | "signal" | "workerUrl">,
    Pick<NotifyingOptions, "env" | "pid"> {
  /** Words for why the policy of now does not let it listen on an address; undefined: it does. */
  readonly listenRefusal: (at: string) => string | undefined;
  readonly credentials: Pick<Credentials, "set" | "remove">;
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly history: History;
  readonly bufferFile: string;
  readonly recentLog: Pick<RecentLog, "answer">;
  readonly pki: PkiPlace;
  /** Starts the thread of the page. */
  readonly startPage: StatusPageOptions["start"];
}

/** Sources and sinks are described this long after the first of several changes. */
const DESCRIBE_AFTER_MS = 250;
const SESSIONS_STOP_MS = 4000;

const FORECAST_EVERY_MS = 60_000;
/** A change of a sink or an alarm that is undone between two looks is not seen. */
const NOTE_EVERY_MS = 5000;
/** The store commits four times a second; a busy disk may take a moment. */
const UNSTORED_MS = 10_000;

/** What `collector secret` posts. */
const secretChangeSchema = z.strictObject({
  key: z.string().min(1).max(255),
  secret: z.string().max(MAX_SECRET_BYTES).nullable(),
  /** What it was given for; absent: where it is used now. */
  given: z.strictObject({ uuid: uuidSchema, place: secretPlaceSchema }).optional(),
});

/** What `collector secret confirm` posts. */
const secretConfirmSchema = z.strictObject({ uuid: uuidSchema, place: secretPlaceSchema });

/**
 * The life of the service: `open` takes the state folder, `start` makes status, metrics and health available for the parts that run,
 * `stop` ends them in an order in which nothing that was read is lost.
 */
export class Service {
  readonly #options: ServiceOptions;
  /** Ms since the machine's start. */
  readonly #startedUpMs: number;
  readonly #progress: Progress;
  #captures: FailureCaptures | undefined;
  #socket: LocalSocket | undefined;
  /** The alarm that the state folder cannot be written to. */
  #unwritable: string | undefined;
  #parts: ServiceParts | undefined;
  #metrics: Metrics | undefined;
  #health: Health | undefined;
  #page: StatusPage | undefined;
  #describing: NodeJS.Timeout | undefined;
  #forecast: FillForecast | undefined;
  #forecasting: NodeJS.Timeout | undefined;
  #noting: NodeJS.Timeout | undefined;

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#startedUpMs = upMsOf(options.clock);
    this.#progress = createProgress(options.clock, LOOK_EVERY_MS);
  }

  /**
   * Throws where another service has this state folder: nothing may touch the folder before. A folder that cannot be written to is no reason not
   * to read: people ask the service in the run folder then, or not at all.
   */
  async open(): Promise<void> {
    const { stateDir, env, alarms } = this.#options;
    try {
      this.#socket = await this.#listen(localSocketPath(stateDir));
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      const place = runSocketPath(stateDir, env["RUNTIME_DIRECTORY"] ?? RUN_FOLDER);
      this.#socket = await this.#listen(place).catch((second: unknown) => {
        if (isUnwritable(second) || isAbsent(second)) return undefined;
        throw second;
      });
      const asked = this.#socket ? `this service answers on ${place}` : "no verb can ask this service";
      this.#unwritable = `state_dir ${stateDir} cannot be written to (${messageOf(error)}): data sources are read with the last good configuration, values wait in memory, and ${asked}; "findmnt -T ${stateDir}" tells whether its file system is read-only, "df -h ${stateDir}" whether it is full, "ls -la ${stateDir}" who owns it`;
      alarms.raise(warning("state_dir_unwritable", this.#unwritable));
    }
  }

  /** True: the state folder can be written to by now: then the socket is where it belongs. */
  async #lookAtStateDir(): Promise<void> {
    const { stateDir, alarms, signal } = this.#options;
    const other = this.#socket;
    if (this.#unwritable === undefined || signal.aborted) return;
    try {
      this.#socket = await this.#listen(localSocketPath(stateDir));
    } catch {
      return;
    }
    this.#unwritable = undefined;
    alarms.raise(warning("state_dir_unwritable", `state_dir ${stateDir} can be written to again`), true);
    await other?.close();
  }

  #listen(path: string): Promise<LocalSocket> {
    return startLocalSocket(
      {
        path,
        handlers: {
          "/status": () => this.#status(this.#runningParts()),
          "/health": () => this.#healthAnswer(this.#runningParts()),
          "/secrets/withheld": () => ({ withheld: this.#runningParts().applier.withheld }),
        },
        actions: {
          "/secret": (body) => this.#changeSecret(body),
          "/secret/confirm": (body) => this.#confirmSecret(body),
          "/log": (body) => this.#options.recentLog.answer(body),
          "/source": (body) => lookInto(this.#runningParts().agent, body),
          "/capture": (body) => framesAnswer(this.#runningParts().agent, body),
        },
      },
      { signal: new AbortController().signal, log: this.#options.log },
    );
  }

  start(parts: ServiceParts): void {
    const { version, collector, settings, stateDir, listenRefusal, alarms, log, pki, workerUrl, history } = this.#options;
    this.#parts = parts;
    this.#captures = new FailureCaptures({
      folder: capturesFolder(stateDir),
      maxBytes: settings.captures.files_bytes,
      version,
      clock: this.#options.clock,
      log,
      freeBytes: () => freeBytes(stateDir),
    });
    const machine = new MachineLook(stateDir, pki, log);
    this.#metrics = createMetrics(
      () => this.#status(parts),
      () => machine.figures(),
      settings.http.source_series,
    );
    this.#health = new Health({
      listen: settings.http.listen,
      listenRefusal,
      metrics: this.#metrics,
      isHealthy: () => this.#isHealthy(parts),
      notReady: () => this.#notReady(parts),
      readyNote: () => leftOutWords(parts.configuration.status()),
      log,
      onTrouble: alarms.raise,
    });
    const head = (): PageHead => this.#head(parts);
    const start = this.#options.startPage;
    const sinks = () => parts.pipeline.sinks();
    const data = pageData({ history, agent: parts.agent, sinks, certificates: () => machine.certificates() });
    const { bufferFile } = this.#options;
    const served = { settings, listenRefusal, entry: workerUrl("page"), agent: parts.agent, bufferFile, head, data, log, start };
    this.#page = new StatusPage(served);
    this.#noting = setInterval(() => {
      try {
        const now = head();
        history.noteSinks(now.sinks);
        history.noteOthers(now, machine.certificates());
      } catch (error) {
        log.error({ err: error }, "the page's history could not be kept");
      }
    }, NOTE_EVERY_MS);
    history.events.add({ kind: "start", about: null, text: `collector ${version} started` });
    this.#forecast = new FillForecast(stateDir, log);
    this.#forecasting = setInterval(() => void this.#lookAtRoom(machine, parts), FORECAST_EVERY_MS);
    void this.#lookAtRoom(machine, parts);
    parts.applier.start();
    parts.reloader.start();
    log.info({ version, collector, api: parts.configuration.status().api_url, stateDir }, "collector ready");
    this.#startNotifying(parts);
  }

  /** Commits what was read, ends all parts. */
  async stop(): Promise<void> {
    const { log } = this.#options;
    const { agent, pipeline, sessions, applier, configuration, reloader } = this.#runningParts();
    log.info({}, "stopping: writing what was read to disk");
    reloader.stop();
    applier.stop();
    clearTimeout(this.#describing);
    clearInterval(this.#forecasting);
    clearInterval(this.#noting);
    this.#options.history.stop();
    await agent.stop();
    pipeline.describe(agent.reports());
    const flushed = pipeline.stop();
    await Promise.all([flushed, configuration.stop(flushed), sessions.stop(SESSIONS_STOP_MS)]);
    await Promise.all([this.#health?.close(), this.#page?.stop()]);
    this.#metrics?.stop();
    await this.#socket?.close();
    log.info({}, "stopped");
  }

  /** A readout began so many ms after its tick. */
  late(ms: number): void {
    this.#metrics?.late(ms);
  }

  /** A source has changed. Many change at once when a switch fails: one message describes all. */
  sourceChanged(): void {
    this.#describing ??= setTimeout(() => {
      this.#describing = undefined;
      const { agent, pipeline } = this.#runningParts();
      const reports = agent.reports();
      pipeline.describe(reports);
      this.#options.history.noteSources(reports);
      this.#captures?.keep(new Set(reports.map(({ uuid }) => uuid)));
    }, DESCRIBE_AFTER_MS);
  }

  /** A source has begun to fail, or fails for another reason, which `why` names. */
  sourceFailed(uuid: string, why: string): void {
    this.#captures?.failed(uuid, why, () => {
      const frames = this.#runningParts().agent.frames(uuid);
      return frames === "none" ? undefined : frames;
    });
  }

  #withCapture(source: SourceStatus): SourceStatus {
    const capture = this.#captures?.of(source.uuid, source.name);
    return capture ? { ...source, capture } : source;
  }

  /** The policy that `listenRefusal` follows is another one. */
  policyChanged(): void {
    this.#health?.look();
    this.#page?.look();
  }

  /** The settings of the page are others. */
  usePage(settings: Pick<Settings, "page">): void {
    this.#options.history.use(settings);
    this.#page?.use(settings);
  }

  /** A round of applying the configuration has ended. */
  reconciled(): void {
    this.#progress.reconciled();
  }

  #runningParts(): ServiceParts {
    if (!this.#parts) throw new Error("the service is still starting");
    return this.#parts;
  }

  #status(parts: ServiceParts): ServiceStatus {
    return { ...this.#head(parts), sources: parts.agent.reports().map((report) => this.#withCapture(toSourceStatus(report))) };
  }

  /** The status but for the sources, which may be many. */
  #head({ pipeline, applier, configuration, reloader }: ServiceParts): PageHead {
    const { version, collector, alarms } = this.#options;
    return {
      version,
      collector,
      started_at: isoTimeAt(this.#options.clock, this.#startedUpMs),
      clock: clockStatus(this.#options.clock),
      config: configuration.status(),
      sinks: pipeline.sinks(),
      buffer: pipeline.buffer(),
      alarms: alarms.list([
        ...reloader.notes(),
        ...applier.notes(),
        ...configuration.notes(),
        ...(this.#health?.notes() ?? []),
        ...(this.#page?.notes() ?? []),
        ...pipeline.notes(),
        ...(this.#forecast?.notes() ?? []),
      ]),
    };
  }

  #isHealthy({ agent }: ServiceParts): boolean {
    return this.#progress.ok(agent.reports());
  }

  /** The answer to `collector health`. */
  #healthAnswer(parts: ServiceParts): HealthAnswer {
    return { healthy: this.#isHealthy(parts), not_ready: this.#notReady(parts) ?? null };
  }

  #notReady({ applier, agent, configuration, pipeline }: ServiceParts): string | undefined {
    if (this.#options.signal.aborted) return "the service is stopping";
    if (!applier.isReady) return "no configuration is at work yet";
    const unusable = noneUsableWords(configuration.status());
    if (unusable !== undefined && agent.reports().length === 0) return unusable;
    const unstoredMs = pipeline.unstoredForMs();
    if (unstoredMs < UNSTORED_MS) return undefined;
    return `nothing that was read has been stored for ${formatDuration(Math.floor(unstoredMs / 1000) * 1000)}`;
  }

  async #lookAtRoom(machine: MachineLook, { pipeline }: ServiceParts): Promise<void> {
    const freeBytes = await machine.free();
    pipeline.setDiskFree(freeBytes);
    await this.#lookAtStateDir();
    this.#forecast?.add({ atMs: performance.now(), freeBytes });
  }

  #changeSecret(body: unknown): object {
    const { credentials, log } = this.#options;
    const change = secretChangeSchema.safeParse(body);
    if (!change.success) throw new LocalRequestError("expected {key, secret}: a uuid or name, and its secret or null");
    const { key, secret, given } = change.data;
    if (secret === null) credentials.remove(key);
    else credentials.set(key, secret);
    log.info({ entry: key }, secret === null ? "a secret was removed" : "a secret was handed over");
    const places = this.#parts?.applier.secretChanged(key, given) ?? [];
    return { used_at: places.map(placeWords) };
  }

  #confirmSecret(body: unknown): object {
    const confirmed = secretConfirmSchema.safeParse(body);
    if (!confirmed.success)
      throw new LocalRequestError("expected {uuid, place}: an entry whose password is withheld, and where it goes now");
    const { uuid, place } = confirmed.data;
    if (!this.#runningParts().applier.confirmSecret(uuid, place))
      throw new LocalRequestError("its password is not withheld from there any more; see collector status");
    this.#options.log.info({ entry: uuid, place: placeWords(place) }, "a password was confirmed for where the configuration has it now");
    return {};
  }

  #startNotifying({ agent, pipeline }: ServiceParts): void {
    const { env, pid, log, signal } = this.#options;
    const notifier = createNotifier(env, log);
    if (!notifier) return;
    startNotifying({
      notifier,
      env,
      pid,
      summary: () => summaryOf(agent.reports(), pipeline.sinks()),
      progressing: () => this.#progress.ok(agent.reports()),
      signal,
    });
  }
}

function clockStatus(clock: Clock): ClockStatus {
  const jump = clock.lastJump?.();
  return {
    time: new Date(clock.epochMs()).toISOString(),
    synchronised: clock.synced(),
    jumped: jump ? { at: new Date(jump.atMs).toISOString(), by_ms: Math.round(jump.byMs) } : null,
  };
}
