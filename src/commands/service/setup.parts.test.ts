import { chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COLLECTOR, modbusSource, startTestServer, temporaryFolder } from "../../api/server/testing.ts";
import { TEST_CERTIFICATE } from "../../api/server/testing-certificates.ts";
import { json, page, scripted, source } from "../../api/server/testing-scripted.ts";
import { loadSettings } from "../../configuration/settings-file.ts";
import { runCommand } from "../testing.ts";

const NOBODY = 65_534;
const isRoot = process.geteuid?.() === 0;

function files(key: string) {
  const folder = temporaryFolder();
  const keyFile = join(folder, "given.txt");
  writeFileSync(keyFile, `${key}\n`);
  const config = join(folder, "etc", "collector.yaml");
  const run = (url: string, ...words: string[]) => runCommand("setup", url, "--key-file", keyFile, "--config", config, ...words);
  return { folder, config, kept: join(folder, "etc", "api.key"), run };
}

test("address and key are tried, the collector is found out, and both are kept; what stood there stays", async () => {
  const api = await startTestServer();
  const { config, kept, run } = files(api.collectorKey);
  const first = await run(`${api.server.url}/api`);
  expect([first.code, first.err, first.out]).toEqual([0, "", expect.stringContaining(`Collector: ${COLLECTOR}`)]);
  expect(first.out).not.toContain(api.collectorKey);
  expect([readFileSync(kept, "utf8").trim(), statSync(kept).mode & 0o777]).toEqual([api.collectorKey, 0o600]);
  expect(loadSettings(config).settings).toMatchObject({ collector: COLLECTOR, api: { url: `${api.server.url}/api`, key_file: kept } });
  expect((await runCommand("source", "add", "p", "s7", "host=h", "--machine", COLLECTOR, "--config", config)).code).toBe(0);

  writeFileSync(config, `# ours\nlog: # the log\n  level: warn\n${readFileSync(config, "utf8")}`);
  expect((await run(api.server.url)).code).toBe(0);
  const text = readFileSync(config, "utf8");
  expect(text).toMatch(/^# ours\nlog:\s+# the log\n {2}level: warn\n/);
  expect(loadSettings(config).settings).toMatchObject({ log: { level: "warn" }, api: { url: api.server.url } });
});

test("what the service needs is next to the settings, readable by the service and its own user alone", async () => {
  const api = await startTestServer();
  const { folder, config, kept, run } = files(api.collectorKey);
  const ca = join(folder, "plant-ca.pem");
  writeFileSync(ca, TEST_CERTIFICATE);
  const stateDir = join(folder, "state");
  mkdirSync(stateDir);
  if (isRoot) chownSync(stateDir, NOBODY, NOBODY);
  mkdirSync(join(folder, "etc"));
  writeFileSync(config, "state_dir: ../state\n");
  expect(await run(api.server.url, "--ca", ca)).toMatchObject({ code: 0, err: "" });
  const { gid, mode } = statSync(kept);
  expect([mode & 0o777, gid]).toEqual(isRoot ? [0o640, NOBODY] : [0o600, process.getgid?.()]);
  const copy = join(folder, "etc", "api-ca.pem");
  expect(loadSettings(config).settings.api).toMatchObject({ tls: { ca_file: copy }, key_file: kept });
  expect(readFileSync(copy, "utf8")).toBe(readFileSync(ca, "utf8"));
  expect((await run(api.server.url, "--ca", copy)).code).toBe(0);
});

test("what is given again replaces what stood there, and what is not given any more is gone; all else stays", async () => {
  const api = await startTestServer();
  const { folder, config, run } = files(api.collectorKey);
  const ca = join(folder, "plant-ca.pem");
  writeFileSync(ca, TEST_CERTIFICATE);
  expect(await run(api.server.url, "--ca", ca, "--insecure")).toMatchObject({ code: 0, err: "" });
  const kept = "\nlog: { level: warn } # ours\n";
  writeFileSync(
    config,
    `${readFileSync(config, "utf8").replace("  insecure: true", "  insecure: true\n  poll_interval: 7s # slowly")}${kept}`,
  );
  const other = await startTestServer();
  writeFileSync(join(folder, "given.txt"), `${other.collectorKey}\n`);
  const again = loadSettings(config).settings.api;
  expect(again).toMatchObject({ tls: { ca_file: join(folder, "etc", "api-ca.pem") }, insecure: true, poll_interval: 7000 });

  expect(await run(other.server.url)).toMatchObject({ code: 0, err: "" });
  const text = readFileSync(config, "utf8");
  expect(text).not.toMatch(/\bca(_file)?:|insecure/);
  expect(text).toContain("poll_interval: 7s # slowly");
  expect(text.endsWith(kept)).toBe(true);
  expect(loadSettings(config).settings.api).toMatchObject({ url: other.server.url, insecure: false, poll_interval: 7000 });
  expect(readFileSync(join(folder, "etc", "api.key"), "utf8")).toBe(`${other.collectorKey}\n`);

  expect(await run(api.server.url, "--insecure")).toMatchObject({ code: 2, err: expect.stringContaining("401") });
  expect(readFileSync(config, "utf8")).toBe(text);
  expect(await run(other.server.url, "--insecure")).toMatchObject({ code: 0, err: "" });
  expect(loadSettings(config).settings.api).toMatchObject({ insecure: true });
});

test("settings that cannot be used stay as they are, and no key is kept next to them", async () => {
  const api = await startTestServer();
  const { config, folder, kept, run } = files(api.collectorKey);
  mkdirSync(join(folder, "etc"));
  writeFileSync(config, "- no settings\n");
  expect(await run(api.server.url)).toMatchObject({ code: 2, err: expect.stringContaining("is not a settings file") });
  expect([existsSync(kept), readFileSync(config, "utf8")]).toEqual([false, "- no settings\n"]);
});

test("without the extensions, the collector comes from the data sources or from the command line", async () => {
  let sources = [source(1), source(2)];
  const { url } = await scripted((_, response, path) =>
    path.includes("data-sources") ? json(response, page(sources)) : json(response, { detail: "no" }, 404),
  );
  expect((await files("key").run(url)).out).toContain(`Collector: ${COLLECTOR}`);
  sources = [];
  const unclear = await files("key").run(url);
  expect([unclear.code, unclear.err]).toEqual([2, expect.stringContaining("--collector")]);
  expect((await files("key").run(url, "--collector", COLLECTOR.toUpperCase())).out).toContain(`Collector: ${COLLECTOR}`);
  sources = [source(1), source(2, { collector: source(9).uuid })];
  expect((await files("key").run(url)).err).toMatch(/several collectors.*00000009/s);
});

test("what cannot be used is reported, and nothing is written", async () => {
  const api = await startTestServer();
  await api.send("POST", "/v2/data-sources", modbusSource());
  for (const [key, url, words, code, said] of [
    ["canary-key", api.server.url, [], 2, "the API key is refused (401)"],
    [api.collectorKey, "http://127.0.0.1:1", [], 4, "connection refused"],
    [api.collectorKey, "http://platform.invalid", [], 2, "plain http would show the API key"],
    [api.collectorKey, "ftp://x", [], 2, "Invalid URL"],
    [api.collectorKey, api.server.url, ["--ca", "/nowhere/ca.pem"], 2, "api.tls.ca_file: /nowhere/ca.pem does not exist"],
    [api.collectorKey, api.server.url, ["--collector", "press"], 2, "collector: "],
    [api.collectorKey, api.server.url, ["--collector", source(9).uuid], 2, "does not reach"],
  ] as const) {
    const { config, kept, run } = files(key);
    const answer = await run(url, ...words);
    expect([answer.code, answer.err], said).toEqual([code, expect.stringContaining(said)]);
    expect([existsSync(config), existsSync(kept)]).toEqual([false, false]);
    expect(answer.out + answer.err).not.toContain(key);
  }
});
