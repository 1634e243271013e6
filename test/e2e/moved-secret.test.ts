import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { askService } from "../../src/commands/service/local-client.ts";
import { localSocketPath } from "../../src/service/local-socket.ts";
import { apiOf } from "../support/api.ts";
import { builtCollector, startBuiltCollector } from "../support/built-collector.ts";
import { freePort } from "../support/free-port.ts";

/** A password of this machine, in a file that the settings name and as `collector secret set` keeps it. */
const PASSWORDS = { filed: "Canary-filed-7d21", stored: "Canary-stored-3f08" } as const;
const NAMES = Object.keys(PASSWORDS) as readonly (keyof typeof PASSWORDS)[];
const WITHIN_MS = 30_000;

/** A socket that answers nothing and keeps what it gets. */
async function listener() {
  const got = { bytes: "", connections: 0 };
  const server = createServer((socket) => {
    got.connections++;
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      got.bytes += bytes.toString("latin1");
      socket.destroy();
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  return {
    got,
    port: (server.address() as AddressInfo).port,
    hosts: (name: keyof typeof PASSWORDS) => got.bytes.includes(PASSWORDS[name]),
  };
}

test("a password of this machine reaches no socket that the configuration moves its sink to, until a person confirms it", {
  timeout: 120_000,
}, async () => {
  const dir = await mkdtemp(path.join(os.tmpdir(), "collector-moved-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(path.join(dir, "filed.password"), `${PASSWORDS.filed}\n`);
  await mkdir(path.join(dir, "credentials"));
  await writeFile(path.join(dir, "credentials/stored"), `${PASSWORDS.stored}\n`);
  const options = {
    dir,
    ports: { api: await freePort(), http: await freePort() },
    settings: {
      log: { level: "debug" },
      sinks: { filed: { username: "press", password_file: "filed.password" }, stored: { username: "press" } },
    },
  };
  const [own, thief] = [await listener(), await listener()];
  let collector = await startBuiltCollector(options);
  onTestFinished(() => collector.kill());
  const socket = localSocketPath(collector.stateDir);
  const ask = (at: string) => askService(socket, at, AbortSignal.timeout(10_000)) as Promise<Record<string, unknown[]>>;
  const poll = <T>(look: () => T | Promise<T>) => expect.poll(look, { timeout: WITHIN_MS, interval: 100 });
  const api = apiOf(collector.apiUrl, await collector.adminKey());
  const uuid = String((await ask("/status"))["collector"]);
  const create = async (name: string, port: number) =>
    (await api.post("/v2/data-sinks", { name, collector: uuid, details: { type: "mqtt", host: "127.0.0.1", port, topic: "t" } })).uuid;
  const uuids = await Promise.all(NAMES.map((name) => create(name, own.port)));
  for (const name of NAMES) await poll(() => own.hosts(name)).toBe(true);

  // Moved by whoever may edit the configuration; one of them deleted and created again under its name.
  await api.patch(`/v2/data-sinks/${uuids[0]}`, { details: { port: thief.port } });
  await api.remove(`/v2/data-sinks/${uuids[1]}`);
  await create("stored", thief.port);
  const conditions = async () =>
    ((await ask("/status"))["sinks"] as { name: string; error: { condition: string | null; detail: string } | null }[])
      .map(({ name, error }) => [name, error?.condition])
      .sort();
  const withheld = NAMES.map((name) => [name, "secret_withheld"]);
  await poll(conditions).toEqual(withheld);
  const said = JSON.stringify((await ask("/status"))["sinks"]);
  for (const name of NAMES) expect(said).toContain(`type \`sudo collector secret confirm ${name}\``);

  // After a restart it is the same.
  await collector.kill();
  collector = await startBuiltCollector(options);
  await poll(conditions).toEqual(withheld);
  expect(thief.got).toEqual({ bytes: "", connections: 0 });

  // What a person confirms goes there: the listener would have seen it.
  const program = await builtCollector();
  const confirm = await new Promise<string>((done, fail) =>
    execFile(program, ["secret", "confirm", "filed", "--yes", "--config", collector.settingsFile], (error, stdout, stderr) =>
      error ? fail(error) : done(stdout + stderr),
    ),
  );
  expect(confirm).toContain(`127.0.0.1:${thief.port}`);
  await poll(() => thief.hosts("filed")).toBe(true);
  expect(thief.hosts("stored")).toBe(false);

  // No exit shows one.
  const metrics = await (await fetch(`${collector.httpUrl}/metrics`)).text();
  const files = await Promise.all(
    ["secret-places.json", "last-good.json"].map((name) => readFile(path.join(collector.stateDir, name), "utf8")),
  );
  expect(await readdir(collector.stateDir)).toContain("secret-places.json");
  const exits = [collector.log.join("\n"), said, confirm, metrics, JSON.stringify(await ask("/secrets/withheld")), ...files];
  for (const exit of exits) expect(exit).not.toContain("Canary");
});
