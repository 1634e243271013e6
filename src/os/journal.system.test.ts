import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { LogRecord } from "../lib/log-text.ts";
import { journalEntry, openJournal } from "./journal.ts";
import { createLogger } from "./log.ts";

const record = (more: Readonly<Record<string, unknown>>): LogRecord => ({
  level: "warn",
  time: "2026-11-20T09:00:00.123Z",
  msg: "m",
  ...more,
});

test("a line has its source, type, reason and condition as fields, and no value can begin another one", () => {
  const fields = { source: "press-1", type: "s7", endpoint: "10.0.0.5:102", reason: { type: "TIMEOUT" }, condition: "silent", other: 7 };
  expect(journalEntry(record(fields), "press-1: no answer")).toBe(
    "MESSAGE=press-1: no answer\nPRIORITY=4\nSYSLOG_IDENTIFIER=collector\nCOLLECTOR_SOURCE=press-1\nCOLLECTOR_TYPE=s7\nCOLLECTOR_ENDPOINT=10.0.0.5:102\nCOLLECTOR_REASON=TIMEOUT\nCOLLECTOR_CONDITION=silent\n",
  );
  const lines = journalEntry(record({ source: "a\nPRIORITY=0", sink: 7, reason: null }), "b\nMESSAGE=c").split("\n");
  expect(lines.filter((line) => /^(MESSAGE|PRIORITY)=/.test(line))).toEqual([expect.stringContaining("MESSAGE=b"), "PRIORITY=4"]);
  expect(lines.filter((line) => line.startsWith("COLLECTOR_"))).toHaveLength(1);
});

test("what the journal takes is not on the output; what it does not take is, and JSON always", () => {
  const out: string[] = [];
  const taken: string[] = [];
  let isThere = true;
  const journal = { send: (_: LogRecord, message: string) => isThere && taken.push(message) > 0 };
  const log = createLogger({ level: "info", format: "auto", stream: { write: (text) => out.push(text) }, journald: true, journal });
  log.warn({ source: "press-1", reason: "TIMEOUT" }, "no answer");
  expect([taken, out]).toEqual([["press-1: TIMEOUT — no answer"], []]);
  isThere = false;
  log.info({}, "two");
  expect(out).toEqual(["<6>two\n"]);
  isThere = true;
  log.format = "json";
  log.info({}, "three");
  expect([taken.length, out.length]).toEqual([1, 2]);
});

test.each([undefined, "", "x", "99999"])("%s is no journal", (fd) => expect(openJournal({ JOURNAL_FD: fd })).toBeUndefined());

const RECEIVER = `use Socket; $| = 1; socket(my $s, AF_UNIX, SOCK_DGRAM, 0) or die; bind($s, pack_sockaddr_un($ARGV[0])) or die "$!"; print "bound\n";
while (defined recv($s, my $text, 65536, 0)) { $text =~ s/\n/|/g; print "$text\n"; }`;
const PROGRAM = `
import { openJournal } from ${JSON.stringify(path.join(import.meta.dirname, "journal.ts"))};
const journal = openJournal(process.env);
const record = { level: "error", time: "", msg: "", source: "press-1" };
console.log(process.pid, journal?.send(record, "hello"), journal?.send(record, "x".repeat(8_000_000)));
process.stdin.once("data", () => { console.log(journal?.send(record, "nobody is there")); process.exit(); });`;

test("the socket that the starter opens reaches the journal from this very process; too long a line and a journal that is gone are said", async () => {
  const dir = mkdtempSync(path.join(tmpdir(), "collector-journal-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const socket = path.join(dir, "socket");
  const receiver = spawn("perl", ["-e", RECEIVER, socket], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void receiver.kill("SIGKILL"));
  let received = "";
  receiver.stdout.on("data", (text) => {
    received += String(text);
  });
  await expect.poll(() => received, { timeout: 10_000 }).toBe("bound\n");
  const env = { ...process.env, JOURNAL_STREAM: "8:1", COLLECTOR_JOURNAL_SOCKET: socket, NOTIFY_SOCKET: socket };
  const starter = path.resolve(import.meta.dirname, "../../bin/notify-socket.pl");
  const program = spawn("perl", [starter, process.execPath, "--input-type=module", "-e", PROGRAM], {
    env,
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void program.kill("SIGKILL"));
  let said = "";
  program.stdout.on("data", (text) => {
    said += String(text);
  });
  await expect.poll(() => said, { timeout: 20_000 }).toBe(`${program.pid} true false\n`);
  await expect
    .poll(() => received, { timeout: 10_000 })
    .toBe("bound\nMESSAGE=hello|PRIORITY=3|SYSLOG_IDENTIFIER=collector|COLLECTOR_SOURCE=press-1|\n");
  receiver.kill("SIGKILL");
  await once(receiver, "exit");
  const ended = once(program, "exit");
  program.stdin.write("go\n");
  await ended;
  expect(said).toMatch(/false\n$/);
});
