import { execFile } from "node:child_process";
import { chmodSync, chownSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { builtCollector } from "../../../test/support/built-collector.ts";
import { COLLECTOR, modbusSource, startTestServer, temporaryFolder } from "../../api/server/testing.ts";
import { silentLog } from "../../model/context.ts";
import { localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { isReachable, runCommand, runCommandWith, settingsFile } from "../testing.ts";

const NOBODY = 65_534;

async function installation() {
  const folder = temporaryFolder();
  const api = await startTestServer(folder, COLLECTOR, { databaseFile: join(folder, "api", "api.db") });
  const config = settingsFile(folder, {});
  const run = (...words: string[]) => runCommand("api", ...words, "--config", config);
  return { api, folder, run };
}

test("a key made on the command line opens at once, is listed without itself, and opens nothing once it is revoked", async () => {
  const { api, run } = await installation();
  const made = await run("key", "create", "--role", "admin", "--name", "laptop");
  expect([made.code, made.err]).toEqual([0, expect.stringContaining("Key 3 (admin, laptop)")]);
  const authorization = made.out.trim();
  expect((await api.send("POST", "/v2/data-sources", modbusSource(), { authorization })).status).toBe(201);
  const bound = JSON.parse((await run("key", "create", "--role", "collector", "--collector", COLLECTOR, "--json")).out);
  expect((await api.send("POST", "/v2/sites", { name: "x" }, { authorization: bound.key })).status).toBe(403);

  const listed = await run("key", "list");
  expect(listed.out.split("\n").map((line) => line.trim().split(/ {2,}/).slice(0, 3))).toEqual([
    ["ID", "ROLE", "NAME"],
    ["1", "admin", "file admin.key"],
    ["2", "collector", "file collector.key"],
    ["3", "admin", "laptop"],
    ["4", "collector", "-"],
    [""],
  ]);
  expect(listed.out).not.toContain(authorization);
  expect((await run("key", "revoke", "3")).out).toBe("Key 3 (admin, laptop) is revoked.\n");
  expect((await api.send("GET", "/v2/sites", undefined, { authorization })).status).toBe(401);
  for (const [words, code, said] of [
    [["revoke", "3"], 2, "there is no key 3"],
    [["revoke", "1"], 2, "key 1 is the last admin's"],
    [["revoke", "x"], 2, "x is not the number of a key"],
    [["create", "--role", "king"], 2, "expected admin or collector"],
    [["create", "--role", "collector"], 2, "needs --collector"],
    [["create", "--role", "collector", "--collector", "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1"], 2, "there is no collector"],
  ] as const) {
    const wrong = await run("key", ...words);
    expect([wrong.code, wrong.err], words.join(" ")).toEqual([code, expect.stringContaining(said)]);
  }

  const trail = await run("audit", "--limit", "10");
  expect(trail.out).toMatch(/revokeKey.*createKey.*admin +laptop +127\.0\.0\.1 +createDataSource.*createKey/s);
  expect(trail.out).not.toContain(authorization);
  expect(JSON.parse((await run("audit", "--json", "--limit", "2")).out)).toMatchObject([
    { operation: "refuseKey", role: "nobody", fields: ["1 request"] },
    { operation: "revokeKey", role: "command_line" },
  ]);
});

test("fault: revoking a key that this machine uses itself asks nothing", async () => {
  const { api, folder, run } = await installation();
  await run("key", "create", "--role", "admin");
  const config = join(folder, "collector.yaml");
  const typed = (line: string, ...words: string[]) => runCommandWith({ typed: line }, "api", "key", "revoke", ...words, "--config", config);
  for (const [words, said] of [
    [["2"], "nothing was revoked: without a terminal the collector cannot ask; add --yes"],
    [["2", "--json"], "nothing was revoked: with --json the collector cannot ask; add --yes"],
  ] as const) {
    const refused = await run("key", "revoke", ...words);
    expect([refused.code, refused.out, refused.err]).toEqual([2, "", expect.stringContaining(said)]);
  }
  const declined = await typed("no", "1");
  expect([declined.code, declined.err]).toEqual([
    2,
    expect.stringMatching(/Key 1 \(admin, file admin\.key\) is this machine's own.*the answer was not yes/s),
  ]);
  for (const key of [api.adminKey, api.collectorKey])
    expect((await api.send("GET", "/v2/sites", undefined, { authorization: key })).status).toBe(200);
  expect((await typed("yes", "2")).out).toBe("Key 2 (collector, file collector.key) is revoked.\n");
  expect(JSON.parse((await run("key", "revoke", "1", "--yes", "--json")).out)).toMatchObject({
    action: "revoked",
    id: 1,
    file: "admin.key",
  });
  for (const key of [api.adminKey, api.collectorKey])
    expect((await api.send("GET", "/v2/sites", undefined, { authorization: key })).status).toBe(401);
});

test("a backup is written and brought back while no service runs; while one does, nothing is touched", async () => {
  const { api, folder, run } = await installation();
  await api.send("POST", "/v2/data-sources", modbusSource("kept"));
  const file = join(folder, "stick.db");
  expect((await run("backup", file)).out).toContain(`Written to ${file}`);
  expect((await run("backup")).code).toBe(0);
  expect((await run("backup", "--list")).out).toContain(join(folder, "api", "backups", "configuration-"));
  await api.send("POST", "/v2/data-sources", modbusSource("lost"));
  await api.server.close();

  const socket = await startLocalSocket(
    { path: localSocketPath(folder), handlers: { "/status": () => ({}) } },
    { signal: new AbortController().signal, log: silentLog },
  );
  onTestFinished(() => socket.close());
  const running = await run("restore", file);
  expect([running.code, running.err]).toEqual([2, expect.stringContaining("stop it first")]);
  await socket.close();

  writeFileSync(join(folder, "api", "api.db"), "damaged beyond help".repeat(1000));
  const restored = await run("restore", file, "--yes");
  expect([restored.code, restored.out]).toEqual([
    0,
    expect.stringMatching(/\nRestored from .*stick\.db\.\nThe former database is kept as (.*)\.\n/),
  ]);
  const aside = /kept as (.*)\.\n/.exec(restored.out)?.[1] ?? "";
  expect(existsSync(aside) && readFileSync(aside, "utf8")).toContain("damaged beyond help");
  const again = await startTestServer(folder, COLLECTOR, { databaseFile: join(folder, "api", "api.db") });
  expect((await again.send("GET", "/v2/data-sources")).body["data"]).toMatchObject([{ name: "kept" }]);
  const none = await run("restore", join(folder, "absent.db"), "--yes");
  expect([none.code, none.err]).toEqual([2, expect.stringContaining("there is no backup")]);
  expect(await run("backup", join(folder, "absent", "x.db"))).toMatchObject({
    code: 2,
    err: expect.stringContaining("there is no folder"),
  });
  writeFileSync(join(folder, "api", "api.db"), "damaged beyond help".repeat(1000));
  expect(await run("key", "list")).toMatchObject({ code: 4, err: expect.stringContaining("cannot be opened") });
});

test.skipIf(process.geteuid?.() !== 0 || !isReachable)(
  "what root types leaves every file to the service",
  { timeout: 60_000 },
  async () => {
    const { api, folder } = await installation();
    await api.send("POST", "/v2/data-sources", modbusSource("kept"));
    await api.server.close();
    const own = (at: string): void => {
      chownSync(at, NOBODY, NOBODY);
      if (statSync(at).isDirectory()) for (const name of readdirSync(at)) own(join(at, name));
    };
    own(folder);
    chmodSync(folder, 0o755);
    const rooms = temporaryFolder();
    const stick = join(rooms, "stick.db");
    const program = await builtCollector();
    const type = (...words: string[]): Promise<string> =>
      new Promise((done, fail) =>
        execFile(program, ["api", ...words, "--config", join(folder, "collector.yaml")], (error, out, err) =>
          error ? fail(new Error(err)) : done(out),
        ),
      );
    expect(await type("key", "create", "--role", "admin", "--name", "laptop")).toMatch(/^\S+\n$/);
    expect(await type("backup")).toContain(join(folder, "api", "backups"));
    expect(await type("backup", stick)).toContain(`Written to ${stick}.`);
    expect([statSync(stick).uid, statSync(stick).mode & 0o777]).toEqual([0, 0o600]);
    expect(await type("restore", stick, "--yes")).toContain(`Restored from ${stick}.`);
    expect(await type("restore", "--yes")).toContain(join(folder, "api", "backups", "configuration-"));
    expect(await type("key", "list")).toContain("laptop");
    const foreign = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
      (name) => statSync(join(folder, name)).uid !== NOBODY,
    );
    expect(foreign).toEqual([]);
    expect(readdirSync(rooms)).toEqual(["stick.db"]);

    chmodSync(folder, 0o700);
    chmodSync(rooms, 0o755);
    const elsewhere = join(rooms, "collector.yaml");
    writeFileSync(elsewhere, `state_dir: ${folder}\n`);
    const refused = await new Promise<string>((done) =>
      execFile(program, ["api", "key", "list", "--config", elsewhere], { uid: NOBODY - 1, gid: NOBODY - 1 }, (_error, _out, err) =>
        done(err),
      ),
    );
    expect(refused).toContain("sudo collector api");
  },
);

test("without an embedded API of its own it says whose keys they are", async () => {
  const folder = temporaryFolder();
  const fresh = await runCommand("api", "key", "list", "--config", settingsFile(folder, {}));
  expect([fresh.code, fresh.err]).toEqual([4, expect.stringContaining("when it first starts")]);
  const platform = settingsFile(folder, { collector: COLLECTOR, api: { url: "https://platform.example", key_file: "key" } });
  const other = await runCommand("api", "backup", "--config", platform);
  expect([other.code, other.err]).toEqual([2, expect.stringContaining("https://platform.example")]);
});

test("records are exported and imported while the service runs, all of a file or none", async () => {
  const { api, folder, run } = await installation();
  await api.send("POST", "/v2/data-sources", modbusSource("kept"));
  const file = join(folder, "all.json");
  expect((await run("export", file)).out).toBe(`Written to ${file}. It holds no passwords.\n`);
  const content = JSON.parse(readFileSync(file, "utf8"));
  content.data_sources[0].details.port = 70_000;
  content.data_sources[0].collector = "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1";
  const changed = join(folder, "changed.json");
  writeFileSync(changed, JSON.stringify({ data: content.data_sources, metadata: { next_cursor: null } }));
  const refused = await run("import", changed);
  expect([refused.code, refused.out, refused.err]).toEqual([
    2,
    "",
    expect.stringMatching(/changed\.json: data_sources\[0\] \(kept\): collector: there is no collector .*\n.*nothing was written\n$/),
  ]);
  writeFileSync(join(folder, "collector-uuid"), `${COLLECTOR}\n`);
  const dry = await run("import", changed, "--adopt", "--dry-run");
  expect([dry.code, dry.err, dry.out]).toEqual([0, "", expect.stringMatching(/data_sources +0 +1 +0\n.*Nothing was written: --dry-run/s)]);
  expect((await api.send("GET", "/v2/data-sources")).body["data"]).toHaveProperty("0.details.port", 1502);
  expect(JSON.parse((await run("import", changed, "--adopt", "--json")).out)).toMatchObject({
    written: true,
    problems: [],
    counts: { data_sources: { created: 0, changed: 1, same: 0 } },
  });
  expect((await api.send("GET", "/v2/data-sources")).body["data"]).toHaveProperty("0.details.port", 70_000);
  writeFileSync(changed, "{");
  expect((await run("import", changed)).err).toContain("changed.json is not valid JSON");
  expect((await run("import", join(folder, "absent.json"))).code).toBe(2);
});
