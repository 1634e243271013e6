import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";
import { COLLECTOR, startTestServer, temporaryFolder } from "../api/server/testing.ts";
import { json, page, scripted, source } from "../api/server/testing-scripted.ts";
import { parseVariableCsv } from "../configuration/variable-file.ts";
import { runCommand, runCommandWith, settingsFile } from "./testing.ts";

const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/);

async function here(more: Readonly<Record<string, unknown>> = {}) {
  const line = await commandLine(more);
  /** The one object on the one line of stdout, where a verb ends well and says nothing else. */
  const object = async (...words: string[]) => objectIn(await line.well(...words, "--json"));
  return { ...line, object };
}

function objectIn(out: string): Record<string, unknown> {
  expect(out).toMatch(/^\{[^\n]*\}\n$/);
  return JSON.parse(out) as Record<string, unknown>;
}

test("sources: what was made, changed and deleted, by uuid and name", async () => {
  const { object } = await here();
  const added = await object("source", "add", "press-1", "opcua", "endpoint_url=opc.tcp://h");
  expect(added).toEqual({ action: "created", uuid: UUID, name: "press-1", taken_as: expect.arrayContaining(["host=h", "port=4840"]) });
  const { uuid } = added;
  expect(await object("source", "set", "press-1", "--name", "left")).toEqual({ action: "changed", uuid, name: "left" });
  expect(await object("source", "rm", "left")).toEqual({
    action: "deleted",
    uuid,
    name: "left",
    variables: 0,
    kept: { source: expect.stringMatching(/\.yaml$/), variables: null },
    secrets_removed: [],
  });
  expect(await object("source", "add", "press-2", "s7", "host=h")).toMatchObject({ taken_as: [] });
});

test("sinks: what was made, changed and deleted, by uuid and name", async () => {
  const { object } = await here();
  const { uuid, ...added } = await object("sink", "add", "plant", "mqtt", "host=h", "topic=t");
  expect([uuid, added]).toEqual([UUID, { action: "created", name: "plant" }]);
  expect(await object("sink", "set", "plant", "topic=u")).toEqual({ action: "changed", uuid, name: "plant" });
  expect(await object("sink", "rm", "plant")).toEqual({ action: "deleted", uuid, name: "plant", secrets_removed: [] });
});

test("variables: what was made, changed and deleted, by uuid and name, and of which source", async () => {
  const { object } = await here();
  const source = { uuid: (await object("source", "add", "press-1", "modbus_tcp", "host=h"))["uuid"], name: "press-1" };
  const { uuid, ...added } = await object("variables", "add", "press-1", "a", "holding:0:uint16");
  expect([uuid, added]).toEqual([UUID, { action: "created", name: "a", source, warnings: [] }]);
  expect(await object("variables", "set", "press-1", "a", "--name", "b")).toEqual({
    action: "changed",
    uuid,
    name: "b",
    source,
    warnings: [],
  });
  const second = await object("variables", "add", "press-1", "c", "coil:0");
  expect(await object("variables", "rm", "press-1", "b", "c")).toEqual({
    action: "deleted",
    source,
    variables: [
      { uuid, name: "b" },
      { uuid: second["uuid"], name: "c" },
    ],
    warnings: [],
  });
});

test("an import of variables: how many, and which line is bad and why", async () => {
  const { object, run, write } = await here();
  const source = { uuid: (await object("source", "add", "press-1", "modbus_tcp", "host=h"))["uuid"], name: "press-1" };
  const good = write("good.csv", "name;address\na;holding:0\nb;holding:1\n");
  expect(await object("variables", "import", "press-1", good)).toEqual({
    source,
    counts: { created: 2, changed: 0, deleted: 0, same: 0, refused: 0 },
    problems: [],
    warnings: [],
  });
  const mixed = await run("variables", "import", "press-1", write("mixed.csv", "name;address\na;holding:9\nc;\n"), "--replace", "--json");
  expect([mixed.code, mixed.err]).toEqual([1, ""]);
  expect(objectIn(mixed.out)).toEqual({
    source,
    counts: { created: 0, changed: 1, deleted: 0, same: 0, refused: 1 },
    problems: [{ line: 3, message: "address: is empty; each variable needs one" }],
    warnings: [expect.stringContaining("nothing was deleted")],
  });
  const none = await run("variables", "import", "press-1", write("none.csv", "nme;address\n"), "--json");
  expect([none.code, none.err]).toEqual([2, ""]);
  expect(objectIn(none.out)).toMatchObject({
    counts: { created: 0 },
    problems: [{ line: 1, message: expect.stringContaining("did you mean name?") }, { line: 1 }],
  });
});

test("an import of sources and sinks: each entry, and which line is bad and why", async () => {
  const { object, run, write } = await here();
  const file = write("s.yaml", "- name: a\n  details: {type: s7, host: h}\n- name: b\n  details:\n    type: modbus_tcp\n");
  const mixed = await run("source", "import", file, "--json");
  expect([mixed.code, mixed.err]).toEqual([1, ""]);
  expect(objectIn(mixed.out)).toEqual({
    counts: { created: 1, changed: 0 },
    entries: [{ action: "created", uuid: UUID, name: "a" }],
    problems: [{ line: 3, name: "b", message: expect.stringContaining("host") }],
    warnings: [],
  });
  const sinks = write("k.yaml", "- name: plant\n  details: {type: mqtt, host: h, topic: t}\n");
  const entries = [{ action: "created", uuid: UUID, name: "plant" }];
  expect(await object("sink", "import", sinks)).toMatchObject({ counts: { created: 1, changed: 0 }, entries, problems: [] });
  expect(await object("sink", "import", sinks)).toMatchObject({ counts: { created: 0, changed: 1 }, problems: [] });
  for (const [text, line, message] of [
    ["- name: x\n  details: {type: s7}\n- details: {type: s7}\n", 3, "entry 2: name: "],
    ["- name: x\n  details: {type: [s7\n", 3, "is not valid YAML"],
    ["name: x\n", undefined, "must be a list"],
  ] as const) {
    const refused = await run("source", "import", write("bad.yaml", text), "--json");
    expect([refused.code, refused.err], text).toEqual([2, ""]);
    const { counts, problems } = objectIn(refused.out) as { counts: object; problems: { line?: number; message: string }[] };
    expect([counts, problems[0]?.line], text).toEqual([{ created: 0, changed: 0 }, line]);
    expect(problems[0]?.message).toContain(message);
  }
  const password = write("p.yaml", "- name: p\n  details: {type: s7plus, host: h, port: 102, password: {type: configured}}\n");
  const left = await run("source", "import", password, "--json");
  expect(left.err).toBe("");
  expect(objectIn(left.out)["warnings"]).toEqual([{ line: 1, name: "p", message: expect.stringContaining("--password-file") }]);
});

test("an API that goes away during an import leaves what was done until then", async () => {
  let posts = 0;
  const { url } = await scripted((request, response, path) => {
    if (request.method === "GET")
      return json(response, path.includes("data-sinks") ? page([]) : { detail: "no" }, path.includes("data-sinks") ? 200 : 404);
    posts++;
    return posts === 1 ? json(response, { uuid: COLLECTOR }, 201) : json(response, { detail: "gone" }, 503);
  });
  const folder = temporaryFolder();
  const { write } = await commandLine();
  const config = settingsFile(folder, { collector: COLLECTOR, api: { url, key_file: write("key", "k") } });
  const file = write(
    "k.yaml",
    "[a, b, c]".replaceAll(/[abc]/g, (name) => `{name: ${name}, details: {type: platform}}`),
  );
  const { code, out, err } = await runCommand("sink", "import", file, "--json", "--config", config);
  expect([code, err]).toEqual([4, expect.stringContaining("503")]);
  expect(objectIn(out)).toEqual({
    counts: { created: 1, changed: 0 },
    entries: [{ action: "created", uuid: COLLECTOR, name: "a" }],
    problems: [],
    warnings: [],
  });
});

test("exports: where it went and how much, or all of it", async () => {
  const { object, well, folder, write } = await here();
  await well("source", "add", "press-1", "modbus_tcp", "host=h");
  await well("sink", "add", "plant", "mqtt", "host=h", "topic=t");
  await well("variables", "import", "press-1", write("v.csv", "name;address\na;holding:0\nb;holding:1\n"));
  const file = join(folder, "out");
  expect(await object("source", "export", file)).toEqual({ file, counts: { data_sources: 1 } });
  expect(readFileSync(file, "utf8")).toMatch(/^- name: press-1\n/);
  expect(await object("sink", "export", file)).toEqual({ file, counts: { data_sinks: 1 } });
  expect(await object("variables", "export", "press-1", file)).toEqual({ file, counts: { variables: 2 } });
  expect(parseVariableCsv(readFileSync(file)).variables).toMatchObject([{ name: "a" }, { name: "b" }]);
  expect(await object("source", "export")).toMatchObject({ data_sources: [{ name: "press-1", details: { host: "h" } }] });
  expect(await object("sink", "export", "-")).toMatchObject({ data_sinks: [{ name: "plant", details: { topic: "t" } }] });
  expect(await object("variables", "export", "press-1")).toMatchObject({ variables: [{ name: "a" }, { name: "b" }] });
  expect(await object("api", "export", file)).toMatchObject({ file, counts: { data_sources: 1, data_sinks: 1, variables: 2 } });
  expect(await object("api", "export")).toEqual(JSON.parse(readFileSync(file, "utf8")));
});

test("the embedded API's own: a key that is revoked, a backup and what it is restored from", async () => {
  const { api, object, folder, well } = await here();
  await well("api", "key", "create", "--role", "admin", "--name", "laptop", "--json");
  expect(await object("api", "key", "revoke", "3")).toMatchObject({ action: "revoked", id: 3, role: "admin", name: "laptop" });
  const file = join(folder, "stick.db");
  expect(await object("api", "backup", file)).toEqual({ file });
  await api.server.close();
  const restored = await object("api", "restore", file, "--yes");
  expect(restored).toMatchObject({ file, aside: expect.stringContaining("api.db.replaced-"), restored: { file }, last_good: null });
  expect(existsSync(String(restored["aside"]))).toBe(true);
});

test("secrets: where one is kept, whose it is, and whether the service got it; never what it is", async () => {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  const run = (stdin: string, ...words: string[]) => runCommandWith({ stdin }, "secret", ...words, "--json", "--config", config);
  const entry = { entry: "press-1", uuid: null, name: null, belongs_to: null, service: "not_running" };
  const file = join(folder, "credentials", "press-1");
  const kept = await run("canary\n", "set", "press-1", "--stdin");
  expect([kept.code, kept.err, kept.out.includes("canary")]).toEqual([0, "", false]);
  expect(objectIn(kept.out)).toEqual({ action: "kept", ...entry, file, encrypted: false, used_at: [] });
  const removed = await run("", "rm", "press-1");
  expect([removed.code, objectIn(removed.out)]).toEqual([0, { action: "removed", ...entry }]);
  const again = await run("", "rm", "press-1");
  expect([again.code, again.err]).toEqual([2, expect.stringContaining("there is no secret for press-1")]);
  expect(objectIn(again.out)).toEqual({ action: "not_kept", ...entry });
});

test("setup: the API, the collector that was found, and the files that were written", async () => {
  const api = await startTestServer();
  const folder = temporaryFolder();
  const { write } = await commandLine();
  const config = join(folder, "collector.yaml");
  const { code, out, err } = await runCommand(
    "setup",
    api.server.url,
    "--key-file",
    write("k", api.collectorKey),
    "--config",
    config,
    "--json",
  );
  expect([code, err]).toEqual([0, ""]);
  expect(objectIn(out)).toEqual({
    api: `${api.server.url}/api`,
    collector: COLLECTOR,
    settings_file: config,
    key_file: join(folder, "api.key"),
    ca_file: null,
  });
  expect(out).not.toContain(api.collectorKey);
});

test.each([
  [
    ["source", "add", "x", "opcua", "endpoint_url=opc.tcp://h", "username=reader"],
    "the password of reader is not given",
    "--password-file FILE",
  ],
  [["source", "add", "x", "s7plus", "host=h", "port=1", "--ask-password"], "the password is not given", "--password-file FILE"],
  [["source", "set", "there", "username=reader"], "the password of reader is not given", "--password-file FILE"],
  [["sink", "add", "x", "opcua", "--user", "scada"], "the password of scada is not given", "--user scada=FILE"],
  [["secret", "set", "press-1"], "the secret of press-1 is not given", "--stdin"],
] as const)("%j asks nothing with --json, also on a terminal", async (words, missing, instead) => {
  const { runWith, well } = await commandLine();
  await well("source", "add", "there", "opcua", "endpoint_url=opc.tcp://h");
  const { code, out, err } = await runWith({ typed: "canary" }, ...words, "--json");
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(`${missing}, and --json never prompts; `);
  expect(err).toContain(instead);
});

test.each([
  [["source", "rm", "x"], 2, "there is no data source x"],
  [["sink", "set", "x", "topic=t"], 2, "there is no data sink x"],
  [["variables", "rm", "there", "a"], 2, "there is no variable a"],
  [["source", "import", "/nowhere.yaml"], 2, "/nowhere.yaml does not exist"],
  [["api", "key", "revoke", "99"], 2, "there is no key 99"],
  [["sink", "list", "--key-file", "/nowhere"], 4, "/nowhere"],
] as const)("%j fails with --json as without: a sentence on stderr, and nothing on stdout", async (words, code, said) => {
  const { run, well } = await commandLine();
  await well("source", "add", "there", "modbus_tcp", "host=h");
  const plain = await run(...words);
  const ran = await run(...words, "--json");
  expect(ran).toEqual(plain);
  expect([ran.code, ran.out, ran.err]).toEqual([code, "", expect.stringContaining(said)]);
});

test("a source that another machine serves is named by the platform's own uuid", async () => {
  const { url } = await scripted((request, response, path) =>
    request.method === "DELETE"
      ? json(response, null, 204)
      : json(response, path.includes("data-sources") ? page([source(1)]) : { detail: "no" }, path.includes("data-sources") ? 200 : 404),
  );
  const { write } = await commandLine();
  const config = settingsFile(temporaryFolder(), { collector: COLLECTOR, api: { url, key_file: write("key", "k") } });
  const { out } = await runCommand("source", "rm", source(1).uuid, "--json", "--config", config);
  expect(objectIn(out)).toMatchObject({ action: "deleted", uuid: source(1).uuid, name: source(1).name, variables: null });
});
