import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";

const CONNECTS = path.resolve(import.meta.dirname, "../../bin/notify-socket.pl");
/** A service manager's end: prints who sent each datagram, and what was in it. */
const MANAGER = `
use Socket; $| = 1; my $name = $ARGV[0] =~ s/^@/\\0/r;
socket(my $s, AF_UNIX, SOCK_DGRAM, 0) or die; bind($s, pack_sockaddr_un($name)) or die "$!"; print "bound\\n";
while (defined recv($s, my $text, 4096, 0)) { $text =~ s/\\n/|/g; print "$text\\n"; }`;
/** What the collector does with its notifier, word by word from its standard input. */
const PROGRAM = `
import { createNotifier } from ${JSON.stringify(path.join(import.meta.dirname, "notify.ts"))};
const say = (words) => (_, text) => console.log(words + " " + text);
const notifier = createNotifier(process.env, { warn: say("warn"), error: say("error") });
console.log(notifier ? "pid " + process.pid : "none");
for await (const line of (await import("node:readline")).createInterface({ input: process.stdin })) {
  notifier?.send(...JSON.parse(line));
  console.log("sent");
}`;

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0)) step();
});

/** The lines that it has printed so far. */
function linesOf(child: ChildProcess): () => readonly string[] {
  undo.push(() => child.kill("SIGKILL"));
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  return () => text.split("\n").slice(0, -1);
}

/** A program that the service manager at `target` starts. */
function started(target: string) {
  const env = { ...process.env, NOTIFY_SOCKET: target };
  const child = spawn("perl", [CONNECTS, process.execPath, "--input-type=module", "-e", PROGRAM], {
    env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  return { child, lines: linesOf(child), send: (...words: string[]) => child.stdin.write(`${JSON.stringify(words)}\n`) };
}

function folder(): string {
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-notify-"));
  undo.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

describe("a notifier of a service manager that started it", () => {
  it.each([
    ["a path", () => path.join(folder(), "notify")],
    ["an abstract name", () => `@collector-${randomUUID()}`],
  ])("sends to %s from the process that was started; says once that nobody takes notifications", async (_, target) => {
    const name = target();
    const manager = spawn("perl", ["-e", MANAGER, name], { stdio: ["ignore", "pipe", "inherit"] });
    const received = linesOf(manager);
    await expect.poll(received).toEqual(["bound"]);
    const program = started(name);
    await expect.poll(program.lines).toEqual([`pid ${program.child.pid}`]);
    program.send("READY=1", "STATUS=reading\nWATCHDOG=trigger");
    await expect.poll(received).toEqual(["bound", "READY=1|STATUS=reading WATCHDOG=trigger"]);
    manager.kill("SIGKILL");
    await new Promise((done) => manager.once("exit", done));
    program.send("WATCHDOG=1");
    program.send("WATCHDOG=1");
    await expect.poll(() => program.lines().slice(2)).toEqual(["warn the service manager does not take notifications", "sent", "sent"]);
  });

  it("says that a name cannot be used, and the service runs on", async () => {
    const programs = ["vsock:2:1234", `/${"x".repeat(120)}`, "/nobody/is/here"].map(started);
    for (const { lines } of programs)
      await expect.poll(lines).toEqual([expect.stringMatching(/^error the service manager cannot be notified/), "none"]);
  });
});
