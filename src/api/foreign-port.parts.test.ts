import { chmodSync, chownSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock } from "../../test/support/agent.ts";
import { runCommand, settingsFile } from "../commands/testing.ts";
import { Configuration } from "../configuration/configuration.ts";
import { silentLog } from "../model/context.ts";
import { settingsSchema } from "../model/settings.ts";
import { textsOf } from "../model/testing/warnings.ts";
import type { Logger } from "../os/log.ts";
import { startApiServer } from "./server/server.ts";
import { COLLECTOR, temporaryFolder } from "./server/testing.ts";

/** Another user's program on the port: says yes to everything, and keeps the keys that it gets. */
async function foreignListener() {
  const keys: string[] = [];
  const server = createServer((request, response) => {
    keys.push(String(request.headers.authorization));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ data: [], metadata: { next_cursor: null } }));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { keys, listen: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("fault: while the service is down, whoever holds the port of the embedded API gets admin.key with the next verb", async () => {
  const { keys, listen } = await foreignListener();
  const folder = temporaryFolder();
  mkdirSync(path.join(folder, "keys"));
  for (const name of ["admin.key", "collector.key"]) writeFileSync(path.join(folder, "keys", name), `canary-${name}\n`);
  const config = settingsFile(folder, { collector: COLLECTOR, embedded_api: { listen } });
  const verbs = [
    ["source", "list"],
    ["source", "add", "press-1", "modbus_tcp", "host=10.0.0.5"],
    ["source", "rm", "press-1", "--yes"],
    ["source", "export"],
    ["sink", "list"],
    ["sink", "add", "hall-3", "mqtt", "host=10.0.0.5", "topic=a/{source}"],
    ["variables", "list", "press-1"],
    ["browse", "press-1"],
    ["probe", "press-1"],
    ["plan", "press-1"],
    ["read", "press-1"],
    ["doctor"],
  ];
  const said = [];
  for (const words of verbs) said.push(await runCommand(...words, "--config", config));
  expect(keys).toEqual([]);
  for (const { out, err } of said) expect(out + err).not.toContain("canary");
  expect(said[0]).toMatchObject({ code: 4, err: expect.stringMatching(/does not run: nothing listens on .*api\.sock/) });
});

const noLogger = { ...silentLog, child: () => noLogger } as unknown as Logger;

test("fault: whoever holds the port is the configuration, and gets collector.key", { timeout: 60_000 }, async () => {
  const { keys, listen } = await foreignListener();
  const folder = temporaryFolder();
  mkdirSync(path.join(folder, "keys"));
  writeFileSync(path.join(folder, "keys", "collector.key"), "canary\n");
  const stop = new AbortController();
  const configuration = new Configuration({
    settings: settingsSchema.parse({ embedded_api: { listen, poll_interval: "100ms" } }),
    stateDir: folder,
    collector: COLLECTOR,
    version: "0",
    clock,
    log: noLogger,
    signal: stop.signal,
    workerUrl: () => new URL("../threads/api/worker.ts", import.meta.url),
    onConfiguration: () => {},
    glances: () => [],
    mayDiscover: () => true,
    listenRefusal: () => undefined,
  });
  onTestFinished(async () => {
    stop.abort();
    await configuration.stop(Promise.resolve());
  });
  await expect.poll(() => configuration.status().ok, { timeout: 50_000 }).toBe(true);
  expect(keys).toEqual([]);
  expect(textsOf(configuration.notes())).toEqual([
    expect.stringMatching(
      new RegExp(
        `^embedded_api\\.listen: ${listen} cannot be listened on \\(EADDRINUSE: the port is in use by process ${process.pid} of the user \\w+ \\(`,
      ),
    ),
  ]);
});

const optionsOf = (folder: string, listen: string) => ({
  databaseFile: path.join(folder, "c.db"),
  keysDir: path.join(folder, "keys"),
  listen,
  socketFile: path.join(folder, "api.sock"),
  collector: COLLECTOR,
  readoutIntervalUnit: "seconds" as const,
  publishIntervalUnit: "seconds" as const,
  values: { maxBytes: 2 ** 30, maxAgeMs: 2 ** 40 },
  version: "0",
  log: silentLog,
});

test("of two collectors with one port the second answers its own verbs, says who has the port, and takes it when it is free", async () => {
  const [first, second] = [temporaryFolder(), temporaryFolder()];
  const one = await startApiServer(optionsOf(first, "127.0.0.1:0"));
  const listen = new URL(one.url).host;
  const troubles: (string | null)[] = [];
  const two = await startApiServer({
    ...optionsOf(second, listen),
    portRetryMs: 50,
    onPortTrouble: (trouble) => void troubles.push(trouble),
  });
  onTestFinished(() => two.close());
  expect(troubles).toEqual([
    expect.stringMatching(/the port is in use by process \d+ of the user .*commands of this machine reach the API all the same/),
  ]);
  const config = settingsFile(second, { collector: COLLECTOR, embedded_api: { listen } });
  const added = await runCommand("source", "add", "press-1", "modbus_tcp", "host=10.0.0.5", "--config", config);
  expect([added.code, added.err]).toEqual([0, ""]);
  const ofFirst = await runCommand(
    "source",
    "list",
    "--json",
    "--config",
    settingsFile(first, { collector: COLLECTOR, embedded_api: { listen } }),
  );
  expect(JSON.parse(ofFirst.out)).toEqual([]);
  await one.close();
  await expect.poll(() => troubles.at(-1), { timeout: 5000 }).toBeNull();
  const key = readFileSync(two.keyFiles.admin, "utf8").trim();
  expect((await fetch(`${two.url}/api/v2/data-sources`, { headers: { authorization: key } })).status).toBe(200);
});

test.runIf(process.geteuid?.() === 0)("a socket of another user is not asked, and is named", async () => {
  const folder = temporaryFolder();
  mkdirSync(path.join(folder, "keys"));
  writeFileSync(path.join(folder, "keys", "admin.key"), "canary\n");
  const got: string[] = [];
  const socketFile = path.join(folder, "api.sock");
  const server = createTcpServer((socket) => socket.on("data", (data) => void got.push(data.toString())));
  await new Promise<void>((done) => server.listen(socketFile, done));
  onTestFinished(() => void server.close());
  chmodSync(folder, 0o777);
  chownSync(socketFile, 4711, 4711);
  const refused = await runCommand("source", "list", "--config", settingsFile(folder, { collector: COLLECTOR }));
  expect([refused.code, refused.err]).toEqual([
    4,
    expect.stringMatching(/api\.sock belongs to the user with uid 4711, who is not the collector's: it is not asked/),
  ]);
  expect(got).toEqual([]);
  unlinkSync(socketFile);
});
