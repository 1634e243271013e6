import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { DETAILS_TYPES } from "../../src/model/details.ts";
import { SINK_TYPES } from "../../src/model/sink-details.ts";
import { builtCollector } from "../support/built-collector.ts";
import { shellBlocks } from "./shell-blocks.ts";

const ROOT = join(import.meta.dirname, "../..");
const EXAMPLES = shellBlocks(readFileSync(join(ROOT, "docs/api/examples.md"), "utf8"));
const GUIDE = join(ROOT, "docs/guide");
/** README first, then the guide, whose pages a reader opens in any order. */
const PAGES = [join(ROOT, "README.md"), ...readdirSync(GUIDE).map((name) => join(GUIDE, name))].map((file) => readFileSync(file, "utf8"));
const RECORDINGS = PAGES.flatMap((page) => shellBlocks(page, "console")).map(({ text }) => text);
const BLOCKS = PAGES.flatMap((page) => shellBlocks(page));
/** Sections whose blocks are for the demo, in the order in which they run. */
const FOR_THE_DEMO = ["Read a device now", "Set it up", "Over HTTP", "Let OPC UA clients in", "From my device to my broker"];
/** Sections whose blocks other tests run: CI's script, those of the package, of the own settings here, of the consumers, and of imports with files of their own. */
const ELSEWHERE = [
  "Try it",
  "Install on a device",
  "Run it",
  "Three steps",
  "Three files",
  "Consumers",
  "jq on a terminal",
  "PostgreSQL",
  "InfluxDB",
  "Python",
  "Node-RED",
];
/** An address that is nowhere but in the namespace of this test, and a way to it on which every packet is counted. */
const [AWAY, GATEWAY] = ["10.99.9.7", "10.99.9.1"];

const required = process.env["COLLECTOR_REQUIRE_PARTS"] === "1";
const missing = missingParts();

/** The demo has addresses of its own, and a namespace of its own lets it have them whatever else runs here. */
function missingParts(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root for a network namespace";
  for (const [part, ...words] of [
    ["curl", "--version"],
    ["bash", "--version"],
    ["ip", "-V"],
    ["unshare", "-n", "ip", "link", "add", "away", "type", "veth", "peer", "name", "end"],
  ])
    try {
      execFileSync(part ?? "", words, { stdio: "ignore" });
    } catch {
      return `${[part, ...words].join(" ")} does not work here`;
    }
  return undefined;
}

/** A new folder in which the documents' commands find what they find in the project's own. */
const folder = mkdtempSync(join(tmpdir(), "collector-documents-"));
let demo: ChildProcess | undefined;

beforeAll(async () => {
  if (missing !== undefined) return;
  for (const name of ["package.json", "bin", "node_modules", "test", "config"]) symlinkSync(join(ROOT, name), join(folder, name));
  // npm takes longer to find the command than the command to run, and the sources to start than the bundle. The README's own settings run over npx itself.
  mkdirSync(join(folder, "path"));
  const npx = `#!/bin/sh\n[ "$1" = collector ] || exit 127\nshift\nexec ${JSON.stringify(await builtCollector())} "$@"\n`;
  writeFileSync(join(folder, "path/npx"), npx, { mode: 0o755 });
  const away = [
    "ip link add away type veth peer name end",
    "for link in away end; do echo 1 > /proc/sys/net/ipv6/conf/$link/disable_ipv6 && ip link set $link up; done",
    `ip addr add ${GATEWAY}/24 dev away`,
    "ip route add default dev away",
  ].join(" && ");
  const start = `ip link set lo up && ${away} && exec npm run demo -- --steady`;
  demo = spawn("unshare", ["-n", "bash", "-c", start], { cwd: folder, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const said: string[] = [];
  demo.stdout?.on("data", (text) => said.push(String(text)));
  demo.stderr?.on("data", (text) => said.push(String(text)));
  await vi.waitFor(() => expect(said.join("")).toContain("configured over the API"), { timeout: 60_000, interval: 200 });
  expect(said.join("")).toContain("configuration API http://127.0.0.1:8420, settings .demo/collector.yaml");
}, 70_000);

afterAll(async () => {
  const ended = new Promise((done) => (demo ? demo.once("exit", done) : done(undefined)));
  if (demo?.pid !== undefined) process.kill(-demo.pid, "SIGINT");
  await Promise.race([ended, delay(20_000)]);
  if (demo?.pid !== undefined && demo.exitCode === null && demo.signalCode === null) process.kill(-demo.pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}, 30_000);

interface Ran {
  readonly heading: string;
  readonly text: string;
  readonly out: string;
  /** Commands that failed, with their exit codes. */
  readonly failed: readonly string[];
}

/** Runs the text with bash beside the demo; a command that fails does not end it. */
function bash(text: string): string {
  const script = `trap 'echo "## failed $?: $BASH_COMMAND"' ERR\n${text}\n`;
  const inNamespace = ["-t", String(demo?.pid), "-n", "bash", "-E"];
  return execFileSync("nsenter", inNamespace, {
    cwd: folder,
    input: script,
    encoding: "utf8",
    stdio: ["pipe", "pipe", "pipe"],
    timeout: 240_000,
    env: { ...process.env, COLUMNS: "80", LINES: "24", PATH: `${join(folder, "path")}:${process.env["PATH"]}` },
  });
}

/** The commands of a recording, each with what it showed. */
const stepsOf = (text: string): readonly { readonly command: string; readonly shown: string }[] =>
  text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => ({ command: step.slice(0, step.indexOf("\n")), shown: step.slice(step.indexOf("\n") + 1) }));

/** A text without what differs from run to run: times, uuids, bytes and figures. */
const plain = (text: string): string =>
  text
    .replace(/^## .*\n/gm, "")
    .replace("; this machine's clock is not synchronised", "")
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "UUID")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/\b[0-9a-f]{2}( [0-9a-f]{2}){3}$/gm, "BYTES")
    .replace(/(?<![\w\-:.=])(in |for )?-?\d[\d.]*(e[+-]?\d+)?( ?(ms|s|min))?\b/g, "N")
    .replace(/(?<=N) N\b/g, "")
    .replace(/[ \t]+/g, " ")
    .trim();

/** Runs blocks one after another in one shell. */
function run(blocks: readonly { readonly heading: string; readonly text: string }[]): readonly Ran[] {
  const parts = bash(blocks.map(({ text }) => `${text}\necho '## end of block'`).join("\n")).split("## end of block\n");
  return blocks.map((block, n) => {
    const lines = (parts[n] ?? "").split("\n");
    return {
      ...block,
      out: lines.filter((line) => !line.startsWith("## ")).join("\n"),
      failed: lines.flatMap((line) => /^## failed (.*)$/.exec(line)?.[1] ?? []),
    };
  });
}

test.runIf(required)("what the documents' commands need is here", () => expect(missing).toBeUndefined());

test("there is an example of each type of data source and data sink, which creates, reads, changes and deletes", () => {
  for (const type of [...DETAILS_TYPES, ...SINK_TYPES]) {
    const found = EXAMPLES.filter(({ heading }) => heading === type).map(({ text }) => text);
    expect(found.length, type).toBe(type === "opcua" ? 2 : 1);
    for (const text of found) {
      expect(text, type).toContain(`"type": "${type}"`);
      for (const word of [" -d @-", "-X PATCH", "-X DELETE"]) expect(text, type).toContain(word);
    }
  }
});

test("no example names an address beyond this computer", () => {
  for (const { text, heading } of [...EXAMPLES, ...BLOCKS.filter((block) => FOR_THE_DEMO.includes(block.heading))])
    for (const [address] of text.matchAll(/\b\d{1,3}(?:\.\d{1,3}){3}\b/g)) expect(address, heading).toMatch(/^127\./);
});

test("each block of the README and the guide is run by a test", () => {
  expect(BLOCKS.map(({ heading }) => heading).filter((heading) => ![...FOR_THE_DEMO, ...ELSEWHERE].includes(heading))).toEqual([]);
});

test.skipIf(missing !== undefined)("the guide's own settings run as printed, and the service is asked", { timeout: 60_000 }, async () => {
  const [start, ask] = BLOCKS.filter(({ heading }) => heading === "Run it").map(({ text }) => text);
  const service = spawn("unshare", ["-n", "bash", "-c", `ip link set lo up\n${start}`], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const ended = new Promise((done) => service.once("exit", done));
  onTestFinished(async () => {
    process.kill(-(service.pid ?? 0), "SIGTERM");
    await ended;
  });
  const said: string[] = [];
  for (const stream of [service.stdout, service.stderr]) stream.on("data", (text) => said.push(String(text)));
  await vi.waitFor(() => expect(said.join("")).toMatch(/configuration API listens/), { timeout: 30_000, interval: 100 });
  const asked = execFileSync("nsenter", ["-t", String(service.pid), "-n", "bash"], { cwd: folder, input: ask ?? "", encoding: "utf8" });
  expect(asked).toMatch(/Configuration: as the API says.*No data sources are configured/s);
  expect(readFileSync(join(folder, "plant/state/keys/admin.key"), "utf8").trim()).not.toBe("");
});

describe.skipIf(missing !== undefined)("beside npm run demo", () => {
  // First: what the others configure would be in it.
  test("the recordings in the README and the guide are what a terminal shows", { timeout: 200_000 }, async () => {
    const steps = RECORDINGS.flatMap(stepsOf);
    expect(steps.map(({ command }) => command.replace(/^npx /, "").split(" ").slice(0, 2).join(" "))).toEqual([
      ...["collector probe", "collector source", "collector variables", "collector status", "collector probe", "collector source"],
      "collector explain",
    ]);
    for (const { command, shown } of steps) {
      const typed = () =>
        bash(
          `collector() { npx collector "$@" --config .demo/collector.yaml 2>&1 | sed 's# -c [.]demo/collector.yaml##g'; }\n${command} || true`,
        );
      if (/ (add|set) /.test(command)) expect(plain(typed())).toBe(plain(shown));
      // The service takes the change, and reads, a little later.
      else await expect.poll(() => plain(typed()), { timeout: 40_000, interval: 1000 }).toBe(plain(shown));
    }
  });

  test("the examples of the API work as printed", { timeout: 300_000 }, () => {
    const names = () =>
      bash("for kind in source sink; do npx collector $kind list --json --config .demo/collector.yaml; done").match(/"name":"[^"]*"/g);
    const before = names();
    expect(before?.length).toBeGreaterThanOrEqual(4);
    const ran = run(EXAMPLES);
    expect(ran.flatMap(({ heading, failed }) => failed.map((one) => `${heading}: ${one}`))).toEqual([]);
    for (const { heading, out, text } of ran) {
      if (text.includes("/v2/data-sources -d") && text.includes("-X DELETE") && (DETAILS_TYPES as readonly string[]).includes(heading)) {
        const [before, after] = out
          .split("\n")
          .filter((line) => line.startsWith("{"))
          .map((line) => JSON.parse(line) as Record<string, unknown>);
        expect(before, heading).toMatchObject({ name: `example ${heading}`, type: heading, readout_interval: 10 });
        expect(after, heading).toMatchObject({ uuid: before?.["uuid"], readout_interval: 5 });
        expect(after?.["details"], heading).not.toEqual(before?.["details"]);
      } else if (text.includes("/v2/data-sinks -d")) {
        const [before, after] = out
          .split("\n")
          .filter((line) => line.startsWith("{"))
          .map((line) => JSON.parse(line) as Record<string, unknown>);
        expect(before, heading).toMatchObject({ name: `example ${heading}`, type: heading });
        expect(after, heading).toMatchObject({ uuid: before?.["uuid"] });
        expect(after?.["details"], heading).not.toEqual(before?.["details"]);
      }
      // Passwords are write-only: none of those in the examples comes back.
      expect(out, heading).not.toContain("write-only");
    }
    const outOf = (heading: string) => ran.find((block) => block.heading === heading)?.out ?? "";
    expect(outOf("Variables")).toMatch(/"name":"pressure".*"unit":"bar".*"factor":0\.1/);
    expect(outOf("Changing only what was read")).toMatch(/"detail":"the record has changed.*\nrefused/);
    expect(outOf("What is refused")).toMatch(/"loc":\["body","name"\].*\nrefused/s);
    expect(outOf("Sites")).toContain('"name":"north plant"');
    expect(outOf("The same by name")).toMatch(
      /line-2 +opcua +127\.0\.0\.16:4840 .* 5 s.*historian +opcua .*users=scada.*historian: deleted/s,
    );
    expect(outOf("From another server of this API")).toMatch(/data_sources +0 +0 +(\d+)\n.*--dry-run.*data_sources +0 +0 +\1\n/s);
    // All is gone again but the demo's own.
    expect(names()).toEqual(before);
  });

  test("the commands of the README and the guide work as printed", { timeout: 300_000 }, async () => {
    const blocks = FOR_THE_DEMO.flatMap((heading) => BLOCKS.filter((block) => block.heading === heading));
    expect(blocks.length).toBe(6);
    const [read, setUp, overHttp, asClient, serve] = run(blocks.slice(0, -1));
    expect(read?.failed).toEqual([]);
    // The conveyor of the demo has a variable that its controller does not know, and status says so.
    expect(setUp?.failed.filter((one) => !/^1: (collector status|npx collector "\$@")/.test(one))).toEqual([]);
    expect(setUp?.out).toMatch(/hall-3: created .*filler-1: created .*3 created.*filler-1 +modbus_tcp +127\.0\.0\.1:1502/s);
    expect(overHttp?.failed).toEqual([]);
    expect(overHttp?.out).toContain('"name":"press-2"');
    expect(asClient?.failed, asClient?.out).toEqual([]);
    expect(asClient?.out).toMatch(/DataSources.*press-1.*1:temperature +\d+(\.\d+)? +float32 +good/s);
    expect(serve?.failed).toEqual([]);
    expect(serve?.out).toMatch(/hall-4: created .*thumbprint +[0-9A-F]{40}/s);
    const status = async (): Promise<unknown> => {
      const text = bash("npx collector status --json --config .demo/collector.yaml || true").replace(/^## .*\n/gm, "");
      const { sources } = JSON.parse(text) as { sources: { name: string; status: { state: { type: string } } }[] };
      return sources.find(({ name }) => name === "filler-1")?.status.state.type;
    };
    await expect.poll(status, { timeout: 30_000, interval: 1000 }).toBe("OK");
  });

  test("the README's way from a device to a broker takes at most eight commands, which work as printed", { timeout: 60_000 }, async () => {
    const [{ text } = { text: "" }] = BLOCKS.filter(({ heading }) => heading === "From my device to my broker");
    expect(text.split("\n").length).toBeLessThanOrEqual(8);
    onTestFinished(() => void bash("pkill -f '[p]lant/collector.yaml' || true"));
    bash("rm -rf plant");
    const commands = text.replace(/(> plant\/log) &$/m, "$1 2>&1 & until grep -qs 'configuration API' plant/log; do sleep 0.2; done");
    const typed = bash(`${commands} || true`);
    expect(typed).toMatch(/press-1: created .*temperature: created.*broker: created/s);
    const ask = "npx collector status --config plant/collector.yaml || true";
    await expect
      .poll(() => bash(ask), { timeout: 30_000, interval: 1000 })
      .toMatch(/press-1 .* OK .*broker +mqtt +127\.0\.0\.1:1883 +OK +\d+ s +[1-9]/s);
  });

  test("nothing has left this computer, and what would is refused before it is dialled", { timeout: 200_000 }, async () => {
    // Of the interface's line: its name, eight figures of what came, then bytes and packets of what went.
    const packets = () => Number(bash("grep away: /proc/net/dev").trim().split(/\s+/)[10]);
    expect(packets()).toBe(0);
    bash(
      `npx collector source add away modbus_tcp host=${AWAY} --config .demo/collector.yaml && npx collector variables add away v holding:0:uint16 --config .demo/collector.yaml
       npx collector sink add away mqtt host=${AWAY} topic=t --config .demo/collector.yaml`,
    );
    const conditions = () => {
      const text = bash("npx collector status --json --config .demo/collector.yaml || true").replace(/^## .*\n/gm, "");
      const { sources, sinks } = JSON.parse(text) as Record<
        "sources" | "sinks",
        { name: string; error: { condition: string | null } | null }[]
      >;
      return [...sources, ...sinks].filter(({ name }) => name === "away").map(({ error }) => error?.condition);
    };
    await expect.poll(conditions, { timeout: 30_000, interval: 1000 }).toEqual(["forbidden_by_policy", "forbidden_by_policy"]);
    expect(packets()).toBe(0);
    // What does leave is counted.
    bash(`echo x > /dev/udp/${AWAY}/9`);
    expect(packets()).toBeGreaterThan(0);
  });
});
