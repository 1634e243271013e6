import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { unitFiles } from "../src/commands/plugin/unit.ts";
import { policySchema } from "../src/model/policy.ts";
import { layOut } from "./tree.ts";

const ROOT = path.resolve(import.meta.dirname, "..");
const url = (file: string): string => JSON.stringify(pathToFileURL(path.join(ROOT, file)).href);
const PLUGIN = "console.log(process.pid); setInterval(() => {}, 1000)";
/** In the place of the program: starts what the collector starts, as the collector does, and prints the pid of each process. */
const MAIN = `
  import { runPlugin } from ${url("drivers/plugin/pipe.ts")};
  import { ChildWorker } from ${url("src/lib/thread/process.ts")};
  const print = (name, pid) => console.log(JSON.stringify({ name, pid }));
  const started = new ChildWorker({
    entry: new URL(${url("src/threads/serving/worker.ts")}), name: "serving", workerData: {}, memoryMiB: 512, heapMiB: 128,
  });
  const plugin = (name, command) => runPlugin(command, { onData: (pid) => print(name, Number(pid)), onEnd: () => {} });
  plugin("plugin", [process.execPath, "-e", ${JSON.stringify(PLUGIN)}]);
  print("main", process.pid);
  print("serving", started.pid);
`;

let folder: string;
let program: ChildProcess;
const pids = new Map<string, number>();

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "tree-"));
  const tree = path.join(folder, "tree");
  const app = path.join(folder, "app");
  mkdirSync(app);
  writeFileSync(path.join(app, "main.js"), MAIN);
  const node = path.join(folder, "node");
  writeFileSync(node, `#!/bin/sh\nexec ${process.execPath} "$@"\n`);
  layOut({ tree, node, app, components: [], manPage: "", completion: "", sbom: "{}", changelog: "" });
  chmodSync(path.join(tree, "usr/lib/collector/bin/node"), 0o755);
  const wrapper = path.join(tree, "usr/bin/collector");
  writeFileSync(wrapper, readFileSync(wrapper, "utf8").replaceAll("/usr/lib/collector/", `${tree}/usr/lib/collector/`));
  const started = spawn(wrapper, ["run"], { stdio: ["ignore", "pipe", "inherit"], env: { PATH: process.env["PATH"] } });
  program = started;
  let text = "";
  started.stdout.on("data", (data) => {
    text += data;
    for (const line of text.split("\n").slice(0, -1)) {
      const { name, pid } = JSON.parse(line) as { readonly name: string; readonly pid: number };
      pids.set(name, pid);
    }
  });
  await vi.waitFor(() => expect(pids.size).toBe(3), { timeout: 20_000 });
});
afterAll(() => {
  for (const pid of pids.values())
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended, as it should.
    }
  program.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

describe("no process of the package opens a debugger on SIGUSR1", () => {
  /** True: it catches a signal (proc(5), SigCgt), as Node does with this one where it means to open a debugger. */
  const catches = (pid: number, signal: "SIGHUP" | "SIGUSR1"): boolean => {
    const [, caught = "0"] = /^SigCgt:\s*(\S+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1")) ?? [];
    return ((BigInt(`0x${caught}`) >> BigInt(constants.signals[signal] - 1)) & 1n) === 1n;
  };

  it("the process of hosted servers", async () => {
    const pid = pids.get("serving") ?? 0;
    // Its own code runs, and has set a handler of its own.
    await expect.poll(() => catches(pid, "SIGHUP"), { timeout: 10_000 }).toBe(true);
    expect(catches(pid, "SIGUSR1")).toBe(false);
  });

  it.each(["main", "plugin"])("%s", (name) => {
    expect(catches(pids.get(name) ?? 0, "SIGUSR1")).toBe(false);
  });

  it("a Node that opens one is told from these", async () => {
    const open = spawn(process.execPath, ["-e", PLUGIN], { stdio: ["ignore", "pipe", "ignore"] });
    await once(open.stdout, "data");
    expect(catches(open.pid ?? 0, "SIGUSR1")).toBe(true);
    open.kill("SIGKILL");
  });

  it("a plugin's unit", () => {
    const [, service] = unitFiles({ name: "odac", command: [process.execPath, "/opt/plugin.js"], policy: policySchema.parse({}) });
    expect(service?.text).toContain(`"${process.execPath}" "--disable-sigusr1" "/opt/plugin.js"`);
  });
});
