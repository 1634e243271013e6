import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { stringify } from "yaml";
import { askService } from "../../src/commands/service/local-client.ts";
import type { ReportedWarning } from "../../src/model/warning.ts";
import { localSocketPath } from "../../src/service/local-socket.ts";
import { freePort } from "./free-port.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const READY_WITHIN_MS = 30_000;
const MAX_LINES = 10_000;
const STATUS_TRIES = 3;
const STATUS_PAUSE_MS = 250;

/** The real program as its own process, with a state folder and settings of its own. */
export interface CollectorProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly apiUrl: string;
  /** The place where its metrics and health are. */
  readonly httpUrl: string;
  readonly settingsFile: string;
  readonly stateDir: string;
  /** Lines of its log so far, oldest first; the newest MAX_LINES. */
  readonly log: readonly string[];
  /** What `collector status --json` asks the service for. */
  status(): Promise<ServiceStatusJson>;
  adminKey(): Promise<string>;
  /** Asks it to end, waits, and returns its exit code (a signal counts as 128 and more). */
  stop(signal?: NodeJS.Signals): Promise<number>;
  /** kill -9; settles when it is gone, at once where it is. Its folder stays. */
  kill(): Promise<void>;
}

/** As far as demo and tests look into it; checked by the program's own schema elsewhere. */
export interface ServiceStatusJson {
  readonly collector: string;
  readonly config: {
    readonly ok: boolean;
    readonly origin: string;
    readonly message: string | null;
    readonly warnings: readonly ReportedWarning[];
  };
  readonly sources: readonly {
    readonly uuid: string;
    readonly name: string;
    readonly type: string;
    readonly endpoint: string | null;
    readonly status: {
      readonly state: { readonly type: string; readonly reason?: { readonly type: string } };
      readonly last_readout_at: string | null;
    };
    readonly since: string;
    readonly interval_ms: number;
    readonly counters: {
      readonly readouts: number;
      readonly values_read: number;
      readonly values_faulted: number;
      readonly failed_readouts: number;
      readonly overruns: number;
    };
    readonly faults: readonly { readonly variable: string; readonly fault: string }[];
    readonly warnings: readonly ReportedWarning[];
  }[];
  readonly sinks: readonly {
    readonly uuid: string;
    readonly name: string | null;
    readonly type: string;
    readonly state: string;
    readonly warnings?: readonly ReportedWarning[];
    readonly ledger: {
      readonly accepted: number;
      readonly delivered: number;
      readonly unconfirmed: number;
      readonly filtered: number;
      readonly pending: number;
      readonly dropped: Readonly<Record<string, number>>;
      readonly delivered_unstored: number;
    } | null;
  }[];
  readonly buffer: {
    readonly rejected: Readonly<Record<string, number>>;
    readonly suppressed: number;
    readonly removed_sinks?: readonly { readonly uuid: string; readonly pending: number; readonly until: string | null }[];
    readonly lost: object | null;
  };
  readonly alarms: readonly ReportedWarning[];
}

export interface CollectorOptions {
  /** Kept over restarts by the caller; absent: a fresh one in the system's temporary folder, removed at stop. */
  readonly dir?: string;
  /** Ports on 127.0.0.1 of its API and of its metrics; absent: free ones. */
  readonly ports?: { readonly api: number; readonly http: number };
  /** Port on 127.0.0.1 of its page; absent: it has none. */
  readonly pagePort?: number;
  /** Added to the settings file. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** policy.yaml; absent: sources and sinks on loopback. */
  readonly policy?: Readonly<Record<string, unknown>>;
  /** The program and its first arguments; absent: bin/collector. */
  readonly command?: readonly [string, ...string[]];
  /** Added to the environment of the program. */
  readonly env?: Readonly<Record<string, string>>;
  /** It gets no signal of the terminal, such as Ctrl-C, which ends the one that started it. */
  readonly ownGroup?: boolean;
  /** False: does not wait for the line that says ready. */
  readonly waitForReady?: boolean;
}

export async function startCollector(options: CollectorOptions = {}): Promise<CollectorProcess> {
  const dir = options.dir ?? (await mkdtemp(path.join(os.tmpdir(), "collector-")));
  const stateDir = path.join(dir, "state");
  const settingsFile = path.join(dir, "collector.yaml");
  await mkdir(stateDir, { recursive: true });
  const { api: port, http: httpPort } = options.ports ?? { api: await freePort(), http: await freePort() };
  await writeFile(
    settingsFile,
    stringify({
      state_dir: stateDir,
      http: { listen: `127.0.0.1:${httpPort}` },
      embedded_api: { listen: `127.0.0.1:${port}`, poll_interval: "500ms" },
      page: options.pagePort === undefined ? { enabled: false } : { listen: `127.0.0.1:${options.pagePort}` },
      ...options.settings,
    }),
  );
  // Devices and brokers of tests are on this machine, which is closed without a policy.
  const open = { networks: ["127.0.0.0/8", "::1"] };
  await writeFile(path.join(dir, "policy.yaml"), stringify(options.policy ?? { sources: open, sinks: open }));
  const [program, ...first] = options.command ?? [path.join(ROOT, "bin/collector")];
  const child = spawn(program, [...first, "run", "--config", settingsFile], {
    cwd: dir,
    stdio: ["ignore", "pipe", "pipe"],
    detached: options.ownGroup ?? false,
    env: { ...process.env, ...options.env },
  });
  // Whatever ends this process, its collector does not stay behind.
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.removeListener("exit", kill));
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      log.push(...lines);
      if (log.length > MAX_LINES) log.splice(0, log.length - MAX_LINES);
    });
  }
  const ended = new Promise<number>((done) =>
    child.once("exit", (code, signal) => done(code ?? 128 + (signal ? os.constants.signals[signal] : 0))),
  );
  const collector: CollectorProcess = {
    child,
    pid: child.pid ?? -1,
    apiUrl: `http://127.0.0.1:${port}`,
    httpUrl: `http://127.0.0.1:${httpPort}`,
    settingsFile,
    stateDir,
    log,
    // As the process sees it, whose mounts may be its own.
    status: () =>
      statusOf(localSocketPath(`/proc/${child.pid}/root${String(options.settings?.["state_dir"] ?? stateDir)}`), { child, log }),
    async adminKey() {
      // The service is ready before its API is: the log says when that listens.
      await untilLogged(collector, /configuration API listens/, ended);
      return (await readFile(path.join(stateDir, "keys/admin.key"), "utf8")).trim();
    },
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      const code = await ended;
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
      return code;
    },
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
  if (options.waitForReady !== false) await untilLogged(collector, /\bready\b/, ended);
  return collector;
}

async function untilLogged({ log, child }: CollectorProcess, line: RegExp, ended: Promise<number>): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  let code: number | undefined;
  void ended.then((c) => {
    code = c;
  });
  while (!log.some((text) => line.test(text))) {
    if (code !== undefined) throw new Error(`the collector ended with ${code}:\n${log.join("\n")}`);
    if (Date.now() > deadline) {
      child.kill("SIGKILL");
      throw new Error(`the collector's log had no ${line} within ${READY_WITHIN_MS} ms:\n${log.join("\n")}`);
    }
    await new Promise((done) => setTimeout(done, 20));
  }
}

/**
 * What the service answers, asked without the program, whose start costs as much as a hundred questions. It waits five seconds, which a machine
 * under load may need all of: it is asked as often as the tests' margin says, while the process lives. The error says whether it does, and what
 * it logged last.
 */
async function statusOf(
  socketPath: string,
  { child, log }: { readonly child: ChildProcess; readonly log: readonly string[] },
): Promise<ServiceStatusJson> {
  for (let tries = 1; ; tries++) {
    try {
      return (await askService(socketPath, "/status", new AbortController().signal)) as ServiceStatusJson;
    } catch (error) {
      const ended = child.exitCode ?? child.signalCode;
      if (ended !== null || tries >= STATUS_TRIES) {
        const state = ended === null ? "runs" : `ended with ${ended}`;
        const words = `the service did not answer (asked ${tries} times)\nThe collector ${state}; its log ends:\n${log.slice(-20).join("\n")}`;
        throw new Error(words, { cause: error });
      }
    }
    await new Promise((done) => setTimeout(done, STATUS_PAUSE_MS));
  }
}
