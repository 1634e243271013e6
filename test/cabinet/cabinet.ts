import { type ChildProcess, execFile, spawn } from "node:child_process";
import { type EventEmitter, once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { Readable } from "node:stream";
import { parse } from "yaml";
import { builtCollector } from "../support/built-collector.ts";
import { TestBrowser } from "../support/chromium/browser.ts";
import { type CollectorOptions, type CollectorProcess, startCollector } from "../support/collector-process.ts";
import { AWAY, CLOSED } from "./plant.ts";
import type { Answer, Asked } from "./plant-process.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const RUN_MS = 60_000;

/** What a command printed, and how it ended. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A plant in a network of its own, and collectors there. */
export interface Cabinet {
  /** Asks the process of the plant. Throws what it could not do. */
  ask(asked: Asked): Promise<string>;
  /** A collector beside the plant; `command` and `dir` are given. */
  collector(name: string, options?: CollectorOptions): Promise<CollectorProcess>;
  /** One that has stopped is started again: the same settings as they are on disk, the same state. */
  again(stopped: CollectorProcess): Promise<CollectorProcess>;
  /** Runs a line as a person types it in the folder of that collector's settings: 80 columns, sudo at hand, settings at their place. */
  type(collector: CollectorProcess, line: string, input?: string): Promise<Ran>;
  /** Runs a line in the network and the folders of the plant. */
  inside(line: string): Promise<Ran>;
  /** A browser at that machine. Ended by whoever started it. */
  browser(): Promise<TestBrowser>;
  readonly folder: string;
  close(): Promise<void>;
}

/** Starts the plant, and is there as soon as its network is. Needs root, for a network namespace. */
export async function startCabinet(): Promise<Cabinet> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "cabinet-"));
  const network = [
    "ip link add away type veth peer name end",
    "for link in away end; do echo 1 > /proc/sys/net/ipv6/conf/$link/disable_ipv6 && ip link set $link up; done",
    `ip addr add ${AWAY.replace(/\d+$/, "1")}/24 dev away`,
    `ip addr add ${CLOSED}/32 dev lo`,
  ];
  const node = path.join(ROOT, "bin/collector-node");
  const plantProcess = `exec ${node} ${path.join(import.meta.dirname, "plant-process.ts")} ${folder} > /dev/null`;
  const script = ["ip link set lo up", ...network, "echo up", plantProcess].join(" && ");
  const plant = spawn("unshare", ["-n", "-m", "bash", "-c", script], { cwd: ROOT, stdio: ["ignore", "pipe", "ignore", "ipc"] });
  const heard = async (on: EventEmitter, event: string): Promise<unknown> => {
    const ended = new AbortController();
    const [said] = (await Promise.race([
      once(on, event, { signal: ended.signal }),
      once(plant, "exit", { signal: ended.signal }).then(([code]) => [{ failed: `the plant ended with ${code}` }]),
    ]).finally(() => ended.abort())) as [unknown];
    return said;
  };
  const answered = async (): Promise<string> => {
    const answer = (await heard(plant, "message")) as Answer;
    if ("failed" in answer) throw new Error(answer.failed);
    return answer.done;
  };
  const started = answered();
  // Thrown by what is asked first.
  started.catch(() => {});
  const [program] = await Promise.all([builtCollector(), heard(plant.stdout as Readable, "data")]);
  const enter = ["-t", String(plant.pid), "-n", "-m"];
  const collectors: CollectorProcess[] = [];
  const start = async (dir: string, options?: CollectorOptions): Promise<CollectorProcess> => {
    const collector = await startCollector({ ...options, dir, command: ["nsenter", ...enter, program] });
    collectors.push(collector);
    return collector;
  };
  return {
    folder,
    async ask(asked) {
      await started;
      const answer = answered();
      plant.send(asked);
      return answer;
    },
    async collector(name, options) {
      const dir = path.join(folder, name);
      const collector = await start(dir, options);
      await writeTools(dir, program, collector.settingsFile);
      return collector;
    },
    async again({ settingsFile, apiUrl, httpUrl }) {
      const settings = parse(await readFile(settingsFile, "utf8")) as Readonly<Record<string, unknown>>;
      const policy = parse(await readFile(path.join(path.dirname(settingsFile), "policy.yaml"), "utf8")) as Readonly<
        Record<string, unknown>
      >;
      const ports = { api: Number(new URL(apiUrl).port), http: Number(new URL(httpUrl).port) };
      return start(path.dirname(settingsFile), { settings, policy, ports });
    },
    type: (collector, line, input) => {
      const folder = path.dirname(collector.settingsFile);
      // nsenter begins at the root.
      const there = `cd ${folder} && ${line}`;
      // A prompt needs a terminal.
      const shell = input === undefined ? ["bash", "-c", there] : ["script", "-qec", there, "/dev/null"];
      const env = { PATH: `${path.join(folder, "tools")}:${process.env["PATH"]}`, COLUMNS: "80", LINES: "24" };
      return run(["nsenter", ...enter, ...shell], env, input).then(({ code, out, err }) => {
        // The commands are as they are typed here: the tools name the settings.
        const plain = (text: string): string => text.replaceAll(` -c ${collector.settingsFile}`, "");
        return { code, out: plain(out), err: plain(err) };
      });
    },
    inside: (line) => run(["nsenter", ...enter, "bash", "-c", line], {}),
    browser: () => TestBrowser.start(["nsenter", "-t", String(plant.pid), "-n"]),
    async close() {
      await Promise.all(collectors.map((one) => one.stop()));
      await end(plant);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The commands that a device has by the package and by its system, with this collector's settings where the package has them. */
async function writeTools(dir: string, program: string, settingsFile: string): Promise<void> {
  const tools = path.join(dir, "tools");
  await mkdir(tools, { recursive: true });
  await writeFile(path.join(tools, "collector"), `#!/bin/sh\nexec ${program} "$@" --config ${settingsFile}\n`, { mode: 0o755 });
  await writeFile(path.join(tools, "sudo"), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
}

function run([program = "", ...words]: readonly string[], env: Readonly<Record<string, string>>, input = ""): Promise<Ran> {
  return new Promise((done) => {
    const child = execFile(program, words, { env: { ...process.env, ...env }, timeout: RUN_MS, maxBuffer: 2 ** 24 }, (error, out, err) =>
      done({ code: typeof error?.code === "number" ? error.code : error ? -1 : 0, out, err }),
    );
    child.stdin?.end(input);
  });
}

async function end(plant: ChildProcess): Promise<void> {
  if (plant.exitCode !== null || plant.signalCode !== null) return;
  const ended = once(plant, "exit");
  plant.send({ ask: "stop" } satisfies Asked);
  const kill = setTimeout(() => plant.kill("SIGKILL"), 10_000);
  await ended;
  clearTimeout(kill);
}
