import { spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { launchWords } from "../../src/lib/launch.ts";
import { messageOf, toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { connectLocal } from "../lib/local-stream.ts";

/** Whoever looks at what comes from a plugin. */
export interface PipeEvents {
  onData(chunk: Buffer): void;
  /** Once: it has gone, and why in words. */
  onEnd(error: ReasonError): void;
}

/** The two streams of a plugin. */
export interface PluginPipe {
  write(line: string): void;
  /** Closes its input, on which it ends by itself. */
  endInput(): void;
  /** Ends it at once. Idempotent. */
  kill(): void;
  /** Settles when it has gone. */
  readonly ended: Promise<void>;
}

/** Plugins of this process at once: each is a process of its own. */
const MAX_PLUGINS = 32;
/** Of a plugin that the collector runs itself, MiB, with what its runtime only reserves: the kernel gives no more. */
const MEMORY_MIB = 1024;
/** Characters of what it wrote last on stderr. */
const LAST_WORDS = 300;
let running = 0;

function takePlace(): () => void {
  if (running >= MAX_PLUGINS)
    throw new ReasonError("UNKNOWN", `${MAX_PLUGINS} plugins run already, and no more may`, { condition: "collector_host_trouble" });
  running++;
  let isTaken = true;
  return () => {
    if (isTaken) running--;
    isTaken = false;
  };
}

/** Runs a program with an empty environment. Throws ReasonError. */
export function runPlugin(command: readonly string[], events: PipeEvents): PluginPipe {
  const release = takePlace();
  const ended = Promise.withResolvers<void>();
  const child = spawn(...launchWords({ name: "plugin", memoryKiB: MEMORY_MIB * 1024, command, isBare: true }), {
    stdio: ["pipe", "pipe", "pipe"],
    env: {},
    cwd: "/",
    // A process group of its own, so that what it has started ends with it.
    detached: true,
  });
  let isGone = false;
  const endGroup = (): void => {
    if (isGone || child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // Nothing of it runs any more.
    }
  };
  let lastWords = "";
  const onGone = (why: string): void => {
    endGroup();
    isGone = true;
    release();
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    const said = lastWords.trim() === "" ? "" : `; it wrote: ${lastWords.trim()}`;
    events.onEnd(new ReasonError("UNKNOWN", `the plugin ended without a request (${why})${said}`, { sessionLost: true }));
    ended.resolve();
  };
  child.stdout.on("data", (chunk: Buffer) => events.onData(chunk));
  child.stderr.on("data", (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString("utf8")).slice(-LAST_WORDS);
  });
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {});
  child.once("error", (error) => onGone(messageOf(error)));
  // Not close: what the plugin started may hold its streams open. One turn later, so that what it wrote last is seen.
  child.once("exit", (code, signal) => setImmediate(() => onGone(signal === null ? `exit code ${code}` : `signal ${signal}`)));
  return { ...inputOf(child.stdin), kill: endGroup, ended: ended.promise };
}

/** Connects to the socket of a unit, which starts a plugin for each connection and ends it with the connection. */
export function connectPlugin(path: string, events: PipeEvents): PluginPipe {
  const release = takePlace();
  const ended = Promise.withResolvers<void>();
  const socket = connectLocal(path);
  let isConnected = false;
  let refusal: ReasonError | undefined;
  socket.once("connect", () => {
    isConnected = true;
  });
  socket.once("error", (error) => {
    if (isConnected) return;
    const { reason, message } = toReasonError(error);
    refusal = new ReasonError(reason, `the plugin's socket ${path} cannot be used: ${message}`, {
      cause: error,
      condition: "collector_host_trouble",
    });
  });
  socket.on("data", (chunk) => events.onData(chunk));
  socket.once("end", () => socket.destroy());
  socket.once("close", () => {
    release();
    events.onEnd(
      refusal ??
        new ReasonError("UNKNOWN", `the plugin at ${path} ended without a request (see its unit's journal)`, { sessionLost: true }),
    );
    ended.resolve();
  });
  return { ...inputOf(socket), kill: () => void socket.destroy(), ended: ended.promise };
}

const inputOf = (input: Writable): Pick<PluginPipe, "write" | "endInput"> => ({
  write(line) {
    if (input.writable) input.write(`${line}\n`);
  },
  endInput: () => void input.end(),
});
