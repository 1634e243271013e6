import { readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { runCommand, runCommandWith } from "../../src/commands/testing.ts";
import { startBroker, type TestBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import { createAuthority, type TestAuthority } from "../support/certificates.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { startConnectProxy } from "../support/connect-proxy.ts";
import { startWebSocketServer } from "../support/websocket-server.ts";

const FIRST = "canary-first-password";
const SECOND = "canary-second-password";
const OF_PROXY = "canary-proxy-password";

let authority: TestAuthority;
let broker: TestBroker;
let collector: CollectorProcess;
let tls: { readonly cert: Buffer; readonly key: Buffer };

beforeAll(async () => {
  authority = await createAuthority();
  const { cert, key } = await authority.issue("broker", "IP:127.0.0.1");
  tls = { cert: await readFile(cert), key: await readFile(key) };
  [broker, collector] = await Promise.all([startBroker({ user: { name: "line-3", password: SECOND }, tls }), startBuiltCollector()]);
  await collector.adminKey();
}, 60_000);
afterAll(async () => {
  await Promise.all([collector?.stop(), broker?.stop(), authority?.remove()]);
});

const sink = (...words: string[]) => runCommand("sink", ...words, "--config", collector.settingsFile);
const file = (name: string, text: string): string => {
  const at = path.join(path.dirname(collector.settingsFile), name);
  writeFileSync(at, text);
  return at;
};
const state = async () => {
  const [one] = (await collector.status()).sinks;
  return one === undefined ? undefined : JSON.stringify(one);
};

test("user, password and TLS of a broker are set up by sink add and sink set alone, while the collector runs", async () => {
  const details = ["host=127.0.0.1", `port=${broker.port}`, "topic=plant/{source}"];
  const pw = file("pw", `${FIRST}\n`);
  const added = await sink(
    "add",
    "plant",
    "mqtt",
    ...details,
    "username=line-3",
    `tls.ca_file=${authority.ca}`,
    "--password-file",
    pw,
    "--json",
  );
  expect([added.code, added.err]).toEqual([0, ""]);
  expect(JSON.parse(added.out)).toMatchObject({
    action: "created",
    name: "plant",
    kept_here: ["username=line-3", "tls.ca_file=(kept here)", "password"],
  });
  // The broker does not know this password, and says so.
  await expect.poll(state, { timeout: 20_000 }).toMatch(/"state":"ERROR".*(password|authori)/i);

  writeFileSync(pw, `${SECOND}\n`);
  const set = await sink("set", "plant", "username=line-3", "--password-file", pw);
  expect([set.code, set.err]).toEqual([0, ""]);
  expect(set.out).toMatch(
    /^plant: changed\nOn this machine: username=line-3 tls\.ca_file=\(kept here\)\nPassword kept in .*\nThe running collector uses it now/,
  );
  await expect.poll(state, { timeout: 20_000 }).toContain('"state":"OK"');

  // Elsewhere with its password: what is given with a host is for that host.
  const moved = await sink("set", "plant", "host=127.0.0.2", "tls.server_name=127.0.0.1", "--password-file", pw);
  expect([moved.code, moved.err]).toEqual([0, ""]);
  // The password is there before the change of the host is fetched: until then the error is that of the host before.
  await expect.poll(state, { timeout: 20_000 }).toMatch(/"endpoint":"[^"]*127\.0\.0\.2.*"state":"ERROR"/);
  expect(await state()).not.toContain("withheld");
  expect((await sink("set", "plant", "host=127.0.0.1", "tls.server_name=", "--password-file", pw)).code).toBe(0);
  await expect.poll(state, { timeout: 20_000 }).toContain('"state":"OK"');

  expect((await sink("list")).out).toContain("username=line-3 tls.ca_file=(kept here)");
  // Behind a proxy, whose user has a password of its own.
  const authorization = `Basic ${Buffer.from(`hall 3:${OF_PROXY}`).toString("base64")}`;
  const proxy = await startConnectProxy(broker.port, authorization);
  onTestFinished(() => proxy.close());
  proxy.behave("wants_user");
  const inWord = await sink("set", "plant", `proxy=http://hall%203:${OF_PROXY}@127.0.0.1:${proxy.port}`);
  expect([inWord.code, inWord.err]).toEqual([2, expect.stringMatching(/proxy.*holds a password/)]);
  expect((await sink("set", "plant", `proxy=http://hall%203@127.0.0.1:${proxy.port}`)).code).toBe(0);
  await expect.poll(state, { timeout: 20_000 }).toMatch(/"secret_missing".*users\/hall 3/);
  const secret = (given: string) =>
    runCommandWith({ stdin: `${given}\n` }, "secret", "set", "plant/users/hall 3", "--stdin", "--config", collector.settingsFile);
  expect((await secret("canary-wrong")).code).toBe(0);
  await expect.poll(state, { timeout: 20_000 }).toMatch(/"state":"ERROR".*"proxy_fails".*407/);
  const states = [await state()];
  expect((await secret(OF_PROXY)).code).toBe(0);
  await expect.poll(state, { timeout: 20_000 }).toContain('"state":"OK"');
  expect([proxy.asked.at(-1), proxy.credentials.at(-1)]).toEqual([`127.0.0.1:${broker.port}`, authorization]);
  const probed = await runCommand("probe", "plant", "--config", collector.settingsFile);
  expect([probed.code, probed.out]).toEqual([
    0,
    expect.stringMatching(
      /through the proxy http:\/\/127\.0\.0\.1:\d+\)\n(.*\n)* {2}tls +ok .*TLSv1\.3: a certificate of (.*\n)* {2}log-in +ok .*asked as the client collector-probe-(.*\n)* {2}publish +\? .*MQTT 3\.1\.1 does not say.*\n\nThe way is open\. The server takes this sink\.\n$/,
    ),
  ]);
  const flows = await runCommand("flows", "--config", collector.settingsFile);
  expect(flows.out).toMatch(
    new RegExp(`plant \\(127\\.0\\.0\\.1:${broker.port}\\) through the proxy +mqtt +127\\.0\\.0\\.1 +${proxy.port}`),
  );
  states.push(inWord.err, probed.out, flows.out);

  // Over WebSocket, at another port, so that the password is given for it.
  const behind = await startBroker({ user: { name: "line-3", password: SECOND } });
  const web = await startWebSocketServer({ target: behind.port, tls });
  onTestFinished(async () => void (await Promise.all([web.stop(), behind.stop()])));
  const moves = ["proxy=", "websocket_path=/mqtt", `port=${web.port}`, "--password-file", pw];
  expect((await sink("set", "plant", ...moves)).code).toBe(0);
  await expect.poll(() => behind.retained.get("plant/status"), { timeout: 20_000 }).toBe('{"state":"online"}');
  expect(web.heads.at(-1)).toMatch(/^GET \/mqtt HTTP/);

  // Never in the settings file; no secret but where secrets are.
  const kept = readFileSync(path.join(collector.stateDir, "sink-options.json"), "utf8");
  expect(readFileSync(collector.settingsFile, "utf8")).not.toContain("line-3");
  for (const text of [kept, await state(), ...states, added.out, set.out, moved.out, collector.log.join("\n")])
    expect(text).not.toMatch(new RegExp(`canary|${authorization.slice("Basic ".length)}`));

  expect((await sink("rm", "plant")).code).toBe(0);
  expect(JSON.parse(readFileSync(path.join(collector.stateDir, "sink-options.json"), "utf8"))).toEqual({ version: 1, sinks: {} });
}, 90_000);
