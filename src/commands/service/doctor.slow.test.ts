import { mkdirSync, writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { lastGoodFile } from "../../api/embedded.ts";
import { saveLastGood } from "../../api/last-good.ts";
import { COLLECTOR, temporaryFolder } from "../../api/server/testing.ts";
import { credentialFileName } from "../../configuration/credentials.ts";
import { silentLog } from "../../model/context.ts";
import { reported } from "../../model/testing/warnings.ts";
import { localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { EXIT } from "../io.ts";
import { type Ran, runCommand, settingsFile } from "../testing.ts";

interface Device {
  readonly name: string;
  readonly host: string;
  readonly addresses: readonly string[];
}

/** `brokers`: hosts of data sinks by name. */
async function here(
  settings: Readonly<Record<string, unknown>>,
  policy: string,
  devices: readonly Device[] = [],
  brokers: Readonly<Record<string, string>> = {},
) {
  const folder = temporaryFolder();
  const config = settingsFile(folder, settings);
  writeFileSync(join(folder, "policy.yaml"), policy);
  const uuidOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
  const sources = devices.map(({ name, host }, i) => ({
    uuid: uuidOf(i + 1),
    name,
    type: "modbus_tcp" as const,
    collector: COLLECTOR,
    machine: COLLECTOR,
    manufacturer: null,
    device_model: null,
    note: null,
    readout_interval: 10,
    readout_limit: null,
    details: { type: "modbus_tcp" as const, host, port: 502, ephemeral_connections: false },
  }));
  const variables = devices.flatMap(({ addresses }, i) =>
    addresses.map((address, j) => ({
      uuid: uuidOf((i + 1) * 100 + j),
      data_source: uuidOf(i + 1),
      name: `v${j}`,
      address,
      type: null,
      unit: null,
      scaling: null,
      comment: null,
      status: "ACTIVE" as const,
    })),
  );
  if (devices.length > 0) {
    const times = { fetchedAt: "2026-11-20T09:00:00.000Z", secrets: {}, areSecretsAwaited: true, revision: null };
    const sinks = Object.entries(brokers).map(([name, host], i) => ({
      uuid: uuidOf(i + 50),
      name,
      collector: COLLECTOR,
      type: "mqtt" as const,
      details: { type: "mqtt" as const, host, port: 1883, topic: "plant/{source}" },
    }));
    await saveLastGood(lastGoodFile(folder), { collector: COLLECTOR, sources, sinks, variables, ...times });
  }
  return { folder, config, run: (...words: string[]): Promise<Ran> => runCommand(...words, "--config", config) };
}
const press: Device = { name: "press-1", host: "127.0.0.1", addresses: ["holding:0", "holding:1"] };
const OPEN = "sources: {networks: [127.0.0.0/8]}\n";

describe("check", () => {
  test("a configuration that can be used", async () => {
    const { run } = await here({}, OPEN, [press]);
    const { code, out } = await run("check");
    expect([code, out]).toEqual([
      EXIT.good,
      expect.stringMatching(/^The configuration can be used: .*collector\.yaml; 1 data source, 2 variables, 0 data sinks; 0 warnings\.\n$/),
    ]);
  });

  test("each mistake of each file, with its line; all of them at once, and none after they are corrected", async () => {
    const { folder, config, run } = await here({}, OPEN, [press, { name: "oven", host: "10.0.0.6", addresses: ["holding:0", "nowhere"] }]);
    const good = `state_dir: ${folder}\n`;
    writeFileSync(config, `${good}sources:\n  press-9: {}\n  press-1: {order: XXXX}\n  oven: {password_file: gone}\n`);
    writeFileSync(join(folder, "policy.yaml"), `${OPEN}listen: [10.0.0.0/8]\n`);
    mkdirSync(join(folder, "variables"));
    writeFileSync(join(folder, "variables", "press-1.csv"), "name;address;type\na;holding:0;!!\n");
    const broken = await run("check", "--json");
    const { ok, findings } = JSON.parse(broken.out);
    const words = findings.map(
      ({ level, where, message }: { level: string; where: string; message: string }) =>
        `${level} ${where.replace(`${folder}/`, "")}: ${message}`,
    );
    expect([broken.code, ok]).toEqual([EXIT.usage, false]);
    expect(words).toEqual([
      expect.stringMatching(/^error collector\.yaml: http\.listen: .* policy\.yaml opens/),
      expect.stringMatching(/^error collector\.yaml: embedded_api\.listen: /),
      expect.stringMatching(/^error collector\.yaml: page\.listen: /),
      expect.stringMatching(/^error collector\.yaml: password_file gone: /),
      expect.stringMatching(/^warning collector\.yaml: sources\.press-9 fits no data source/),
      expect.stringMatching(/^error variables\/press-1\.csv:2: type: /),
      expect.stringMatching(/^error press-1: .*order/),
      expect.stringMatching(/^error oven\/v1: address_invalid: /),
      expect.stringMatching(/^error oven: 10\.0\.0\.6 is not within the networks/),
    ]);
    const { policy_lines: lines } = JSON.parse(broken.out);
    expect(lines).toEqual(["sources:", "  networks: [127.0.0.0/8, 10.0.0.6]"]);
    expect((await run("check")).out).toMatch(/\n\nTo open all of these hosts, .*policy\.yaml says:\n\nsources:\n {2}networks: /);
    writeFileSync(config, "state_dir: [\n");
    expect((await run("check")).out).toMatch(/^error +\S+collector\.yaml:\d+: .*\n/);
    writeFileSync(config, good);
    writeFileSync(join(folder, "policy.yaml"), OPEN);
    writeFileSync(join(folder, "variables", "press-1.csv"), "name;address;type\na;holding:0;\n");
    expect((await run("check")).out).toContain("2 errors, 0 warnings");
  });

  test("without a copy of the configuration, the files alone", async () => {
    const { run } = await here({}, OPEN);
    const { code, out } = await run("check");
    expect([code, out]).toEqual([
      EXIT.good,
      expect.stringMatching(/no configuration was kept yet; data sources and variables are not checked/),
    ]);
  });
});

describe("doctor", () => {
  const resultsOf = ({ out }: Ran): Record<string, string> =>
    Object.fromEntries(JSON.parse(out).checks.map(({ check, result }: Record<string, string>) => [check, result]));

  test("what stands in the way, each with what to do", async () => {
    const taken = net.createServer();
    await new Promise<void>((done) => taken.listen(0, "127.0.0.1", done));
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    const devices = [press, { name: "oven", host: "10.0.0.6", addresses: [] }, { name: "far", host: "press.invalid", addresses: [] }];
    const settings = { http: { listen: `127.0.0.1:${port}` }, embedded_api: { listen: "127.0.0.1:1" } };
    const { run } = await here(settings, OPEN, devices);
    const json = await run("doctor", "--json");
    expect(json.code).toBe(EXIT.ownFailure);
    expect(resultsOf(json)).toMatchObject({ service: "failed", configuration: "ok", versions: "ok", names: "failed", policy: "failed" });
    const { checks, versions } = JSON.parse(json.out);
    expect(versions).toMatchObject({ collector: "0", node: process.versions.node });
    for (const { result, next_step } of checks) expect(next_step === null).toBe(result === "ok");
    const text = (await run("doctor")).out;
    expect(text).toMatch(/\nnames +FAILED +far: press\.invalid: .*\n +Correct the name/);
    expect(text).toMatch(/\npolicy +FAILED +oven: 10\.0\.0\.6 is not within the networks/);
    expect(text).toContain(`http.listen: another program listens on 127.0.0.1:${port}`);
    expect(text.split("\n").every((line) => !line.includes("\u001b"))).toBe(true);
  });

  test("looks at the proxy in the place of a broker, and at a second broker too", async () => {
    const sinks = { behind: { proxy: "http://127.0.0.1:3128" }, two: { fallback: "second.invalid:1883" } };
    const { run } = await here({ sinks }, `${OPEN}sinks: {loopback: true}\n`, [press], { behind: "broker.invalid", two: "127.0.0.1" });
    const { checks } = JSON.parse((await run("doctor", "--json")).out) as { checks: { check: string; detail: string }[] };
    expect(checks.find(({ check }) => check === "names")?.detail).toMatch(/^two: second\.invalid: [^;]*$/);
  });

  test("fault: a port that another program holds counts as listened on where the service runs", async () => {
    const taken = net.createServer();
    await new Promise<void>((done) => taken.listen(0, "127.0.0.1", done));
    onTestFinished(() => void taken.close());
    const at = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    const { folder, run } = await here({ http: { listen: at } }, OPEN, [press]);
    const said = `http.listen: ${at} cannot be listened on (the port is in use by process 1 of the user root (init))`;
    const buffer = { bytes: 0, max_bytes: 2 ** 30 };
    const config = { ok: true, origin: "api" };
    const status = {
      version: "0",
      started_at: "2026-11-20T07:00:00.000Z",
      sources: [],
      sinks: [],
      alarms: [reported(said, "port_in_use")],
      config,
      buffer,
    };
    const handlers = { "/status": () => status };
    const socket = await startLocalSocket(
      { path: localSocketPath(folder), handlers },
      { signal: new AbortController().signal, log: silentLog },
    );
    onTestFinished(() => socket.close());
    expect((await run("doctor")).out).toMatch(
      /\nports +FAILED +http\.listen: .*in use by process 1.*\n +End the other program, or choose another port as http\.listen\./,
    );
  });

  test("a service that runs says how it is", async () => {
    const { folder, run } = await here({}, OPEN, [press]);
    const status = {
      version: "9",
      started_at: "2026-11-20T07:00:00.000Z",
      sources: [],
      alarms: [reported("the disk is full", "disk_fills")],
      config: { ok: true },
      buffer: { bytes: 0, max_bytes: 2 ** 60 },
    };
    const socket = await startLocalSocket(
      { path: localSocketPath(folder), handlers: { "/status": () => status } },
      { signal: new AbortController().signal, log: silentLog },
    );
    const json = await run("doctor", "--json");
    await socket.close();
    expect(resultsOf(json)).toMatchObject({ service: "warning", versions: "warning", disk: "failed", names: "ok", policy: "ok" });
    expect(json.out).toContain("ALARM: the disk is full");
  });

  test("secrets of entries that are gone are named, with the verb that forgets them", async () => {
    const { folder, run } = await here({}, OPEN, [press]);
    const secrets = join(folder, "credentials");
    mkdirSync(secrets);
    const keep = (key: string) => writeFileSync(join(secrets, credentialFileName(key)), "canary-secret\n");
    const line = async () => (await run("doctor")).out.split("\nsecrets ")[1]?.split("\nversions")[0];
    const status = {
      version: "0",
      started_at: "2026-11-20T07:00:00.000Z",
      sources: [{ uuid: "00000000-0000-4000-8000-000000000001", name: "press-1", error: null }],
      sinks: [],
      alarms: [],
      config: { ok: true, origin: "api" },
      buffer: { bytes: 0, max_bytes: 2 ** 30 },
    };
    const socket = await startLocalSocket(
      { path: localSocketPath(folder), handlers: { "/status": () => status } },
      { signal: new AbortController().signal, log: silentLog },
    );
    onTestFinished(() => socket.close());
    expect(await line()).toMatch(/^ +ok +none are kept on this machine$/);
    keep("press-1");
    keep("00000000-0000-4000-8000-000000000001/users/ann");
    expect(await line()).toMatch(/^ +ok +2 kept on this machine, each for an entry/);
    keep("old broker");
    expect(await line()).toMatch(/^ +warning +kept on .*: old broker\n +Type `sudo collector secret rm 'old broker'`, unless/);
    status.config.origin = "none";
    expect(await line()).toBeUndefined();
    expect((await run("doctor", "--json")).out).not.toContain("canary-secret");
  });
});
