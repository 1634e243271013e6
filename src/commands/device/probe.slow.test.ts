import { mkdirSync, writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Misbehaviour, type ModbusPlant, startModbusPlant } from "../../../drivers/modbus_tcp/simulator.ts";
import { startOpcuaSimulator, USERS } from "../../../drivers/opcua/simulator.ts";
import { lastGoodFile } from "../../api/embedded.ts";
import { saveLastGood } from "../../api/last-good.ts";
import { COLLECTOR, startTestServer, temporaryFolder } from "../../api/server/testing.ts";
import { silentLog } from "../../model/context.ts";
import { localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { EXIT } from "../io.ts";
import { type Ran, runCommandWith, settingsFile } from "../testing.ts";

let plant: ModbusPlant;
beforeAll(async () => {
  const holding = new Map([
    [0, 11],
    [1, 22],
  ]);
  plant = await startModbusPlant({ units: new Map([[1, { holding }]]) });
});
afterAll(() => plant.close());

const OPEN = "sources: {networks: [127.0.0.0/8]}\n";

function here(settings: Readonly<Record<string, unknown>> = {}, policy = OPEN) {
  const folder = temporaryFolder();
  const config = settingsFile(folder, settings);
  writeFileSync(join(folder, "policy.yaml"), policy);
  const run = (...words: string[]): Promise<Ran> => runCommandWith({ env: { HOME: folder } }, "probe", ...words, "--config", config);
  return { folder, run };
}

/** Step by step, as far as it came: `name ok`, …, without those that the machine of the test decides about. */
const stepsOf = ({ out }: Ran): readonly string[] =>
  (JSON.parse(out) as { steps: readonly { step: string; result: string }[] }).steps
    .filter(({ step }) => step !== "route" && step !== "neighbour")
    .map(({ step, result }) => `${step} ${result}`);

const detailsOf = ({ out }: Ran): readonly string[] =>
  (JSON.parse(out) as { steps: readonly { detail: string }[] }).steps.map(({ detail }) => detail);

/** A Modbus device of one unit that takes one connection, and does `instead` for all others. `asked`: requests by unit. */
async function startUnit(unit: number, instead: () => Misbehaviour) {
  const asked = new Map<number, number>();
  const device = await startModbusPlant({
    units: new Map([[unit, { holding: new Map([[1, 22]]) }]]),
    maxConnections: 1,
    misbehave(request) {
      asked.set(request.unit, (asked.get(request.unit) ?? 0) + 1);
      return request.unit === unit ? undefined : instead();
    },
  });
  const { port, accepted, close } = device;
  const at = ["modbus_tcp", "host=127.0.0.1", `port=${port}`, "answer_timeout=300ms"];
  return { port, asked, accepted, close, run: (...words: string[]) => here().run(...at, ...words) };
}

describe("a device that is typed", () => {
  it("is walked to its first value, over one connection", async () => {
    const before = plant.accepted();
    const { code, out, err } = await here().run("modbus_tcp", "host=127.0.0.1", `port=${plant.port}`, "holding:7", "holding:1");
    expect([code, err]).toEqual([EXIT.good, ""]);
    expect(out).toMatch(/^modbus_tcp 127\.0\.0\.1:\d+\n/);
    expect(out).toMatch(/\n {2}name +ok .*nothing to look up\n {2}policy +ok .* may be connected to\n {2}route +/);
    expect(out).toMatch(/\n {2}connection +ok +[\d.]+ ms {2}to 127\.0\.0\.1 port \d+\n/);
    expect(out).toMatch(
      /\n {2}first value +ok +[\d.]+ ms {2}holding:1 = 22 \(uint16\); 1 before it are bad\n {2}Granted: nothing, .*125 registers.*\n\nThe device can be read\.\n$/,
    );
    expect(plant.accepted()).toBe(before + 1);
    await expect.poll(() => plant.connections()).toBe(0);
  });

  it.each([
    ["knows it", {}, /the device says of itself: Example Works, PLC-7, V2\.11/],
    ["does not know the request", { exception: 1 }, undefined],
    ["has no words for it", { identification: [" ", ""] }, undefined],
    ["is silent", { silent: true }, /the device does not say what it is: no answer within 300 ms to the identification of unit 1/],
  ] as const)("is asked who it is, last, where it %s", async (_, instead, says) => {
    const { identification = ["Example Works", "PLC-7", "V2.11"], ...does } = instead as { identification?: readonly string[] };
    const odd = Object.keys(does).length > 0 ? (does as Misbehaviour) : undefined;
    const asked: number[] = [];
    const device = await startModbusPlant({
      units: new Map([[1, { holding: new Map([[1, 22]]), identification }]]),
      misbehave({ functionCode }) {
        asked.push(functionCode);
        return functionCode === 43 ? odd : undefined;
      },
    });
    const { code, out } = await here().run("modbus_tcp", "host=127.0.0.1", `port=${device.port}`, "answer_timeout=300ms", "holding:1");
    await device.close();
    expect([code, asked[0], asked.at(-1)]).toEqual([EXIT.good, 3, 43]);
    expect(out).toContain("holding:1 = 22");
    if (says) expect(out).toMatch(says);
    else expect(out).not.toMatch(/the device (says|does not say)/);
  });

  it("stops at the first step that fails, with cause and next step", async () => {
    const { run } = here();
    const closed = await run("modbus_tcp", "host=127.0.0.1", "port=1", "holding:0", "--json");
    expect([closed.code, stepsOf(closed)]).toEqual([EXIT.sourceFailed, ["name ok", "policy ok", "connection failed"]]);
    expect(JSON.parse(closed.out)).toMatchObject({
      ok: false,
      reason: { type: "CONNECTION_REFUSED" },
      next_step: expect.stringContaining("Correct the port"),
    });
    const unknown = await run("modbus_tcp", "host=press.invalid", "holding:0", "--json");
    expect([stepsOf(unknown), JSON.parse(unknown.out).reason.type]).toEqual([["name failed"], "LOOKUP_ERROR"]);
    const refused = await run("modbus_tcp", "host=10.9.9.9", "holding:0", "--json");
    expect([stepsOf(refused), JSON.parse(refused.out).condition]).toEqual([["name ok", "policy failed"], "forbidden_by_policy"]);
    const missing = await run("modbus_tcp", "host=127.0.0.1", `port=${plant.port}`, "holding:7", "--json");
    expect([missing.code, stepsOf(missing).at(-1)]).toEqual([EXIT.variableBad, "first value failed"]);
    expect(JSON.parse(missing.out)).toMatchObject({ fault: "not_found", next_step: expect.any(String) });
  });

  it("shows what another service on the port says first, and that a silent one says nothing", async () => {
    const sockets = new Set<net.Socket>();
    const banner = net.createServer((socket) => {
      sockets.add(socket.on("error", () => {}));
      socket.write("SSH-2.0-x\r\n");
    });
    const silent = net.createServer((socket) => sockets.add(socket.on("error", () => {}).resume()));
    const portOf = async (server: net.Server) => {
      await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
      return (server.address() as AddressInfo).port;
    };
    const { run } = here();
    const words = ["connect_timeout=500ms", "answer_timeout=300ms", "DB1.DBW0", "--json"];
    const other = await run("s7", "host=127.0.0.1", `port=${await portOf(banner)}`, ...words);
    const mute = await run("s7", "host=127.0.0.1", `port=${await portOf(silent)}`, ...words);
    for (const socket of sockets) socket.destroy();
    banner.close();
    silent.close();
    expect(stepsOf(other).slice(-2)).toEqual(["connection ok", "handshake failed"]);
    expect(stepsOf(mute).slice(-2)).toEqual(["connection ok", "handshake failed"]);
    expect(mute.out).toContain("the device sent nothing that could be read");
    expect(JSON.parse(mute.out).reason.type).toBe("TIMEOUT");
  });

  it.each([
    ["gives no answer", { silent: true }, 255],
    ["gives no answer", { silent: true }, 0],
    ["is unknown to its gateway", { exception: 11 }, 255],
    ["cannot be reached by its gateway", { exception: 10 }, 0],
  ] as const)("names the unit that answers where that of a Modbus device %s (%o, unit %i)", async (_, instead, unit) => {
    const { run, port, asked, close } = await startUnit(unit, () => instead);
    const json = await run("7/holding:1", "--json");
    const text = await run("7/holding:1");
    await close();
    const words = `127.0.0.1:${port} answers unit ${unit}, not unit 7: write ${unit}/holding:…`;
    expect(stepsOf(json).at(-1)).toBe("first value failed");
    expect(detailsOf(json).at(-1)).toContain(words);
    expect(JSON.parse(json.out).next_step).toMatch(new RegExp(`^Write ${unit}/holding:…`));
    expect(text.out).toMatch(new RegExp(`\\n {2}Next step: Write ${unit}/holding:…`));
    expect(asked.has(7)).toBe(true);
  });

  it("says that units 255, 0 and 1 are silent too, each asked once and over the connection that is open", async () => {
    const { run, asked, accepted, close } = await startUnit(4, () => ({ exception: 11 }));
    const walked = await run("7/holding:1", "--json");
    await close();
    expect(detailsOf(walked).at(-1)).toContain("; unit 255, unit 0 and unit 1 have no answer either");
    expect(JSON.parse(walked.out).next_step).not.toContain("Write");
    expect([asked.get(255), asked.get(0), asked.get(1), accepted()]).toEqual([1, 1, 1, 1]);
  });

  it("does not call a unit silent that it had no time to ask", async () => {
    const { run, asked, close } = await startUnit(4, () => ({ silent: true }));
    const walked = await run("7/holding:1", "--json", "--timeout", "250ms");
    await close();
    expect(detailsOf(walked).at(-1)).toContain("; unit 255, unit 0 and unit 1 could not be asked");
    expect([...asked.keys()]).toEqual([7]);
  });

  it("tells the log-in from the handshake, and shows no password", async () => {
    const simulator = await startOpcuaSimulator({ bulk: 1, anonymous: false });
    const { run, folder } = here();
    const url = `endpoint_url=${simulator.endpointUrl}`;
    const walk = (password: string) => {
      writeFileSync(join(folder, "pw"), `${password}\n`);
      return run("opcua", url, "username=reader", "trust=first_use", "i=2258", "--json", "--password-file", join(folder, "pw"));
    };
    const wrong = await walk("canary-of-probe");
    expect([wrong.code, stepsOf(wrong).slice(-2)]).toEqual([EXIT.sourceFailed, ["handshake ok", "log-in failed"]]);
    expect(wrong.out + wrong.err).not.toContain("canary-of-probe");
    const right = await walk(USERS["reader"] ?? "");
    expect([right.code, stepsOf(right).slice(-2)]).toEqual([EXIT.good, ["log-in ok", "first value ok"]]);
    expect(JSON.parse(right.out).notes[0]).toMatch(/^the server is Running, and runs since 20\d\d-/);
    await simulator.close();
  });

  it("refuses what cannot be meant", async () => {
    const { run } = here();
    expect(await run("modbus", "host=h")).toMatchObject({ code: EXIT.usage, err: expect.stringContaining("did you mean modbus_tcp?") });
    expect(await run("modbus_tcp", "host=h", "--timeout", "soon")).toMatchObject({ code: EXIT.usage });
  });
});

describe("a data source", () => {
  it("is walked to as it is configured, after what the service knows of it", async () => {
    const { folder, run } = here({ collector: COLLECTOR });
    const api = await startTestServer(undefined, COLLECTOR, { socketFile: join(folder, "api.sock") });
    mkdirSync(join(folder, "keys"), { recursive: true });
    writeFileSync(join(folder, "keys", "admin.key"), api.adminKey);
    const details = { type: "modbus_tcp", host: "127.0.0.1", port: plant.port };
    const { body } = await api.send("POST", "/v2/data-sources", { name: "press-1", collector: COLLECTOR, machine: COLLECTOR, details });
    const without = await run("press-1");
    expect([without.code, without.out]).toEqual([EXIT.good, expect.stringContaining("The device can be reached. Give press-1 variables")]);
    mkdirSync(join(folder, "variables"));
    writeFileSync(join(folder, "variables", "press-1.csv"), "name;address;type\nspeed;holding:1;\n");
    expect((await run("press-1")).out).toMatch(/does not run here.*first value +ok +[\d.]+ ms {2}speed \(holding:1\) = 22/s);

    const status = {
      sources: [
        {
          uuid: String(body["uuid"]),
          name: "press-1",
          status: { state: { type: "OK" }, last_readout_at: "2026-11-20T09:00:00Z", configured_variables: 1 },
          since: "2026-11-20T08:00:00Z",
          error: null,
          next_retry_at: null,
        },
      ],
    };
    const socket = await startLocalSocket(
      { path: localSocketPath(folder), handlers: { "/status": () => status } },
      { signal: new AbortController().signal, log: silentLog },
    );
    const known = await run("press-1");
    expect(known.out).toMatch(
      /^press-1 \(modbus_tcp 127.*\nThe service: OK for .*, last value 2026-11-20T09:00:00Z\.\nOpens a second connection/,
    );
    await socket.close();
  });

  it("is found in the last good copy where the API does not answer", async () => {
    const { folder, run } = here({ embedded_api: { listen: "127.0.0.1:1" }, collector: COLLECTOR });
    mkdirSync(join(folder, "keys"), { recursive: true });
    writeFileSync(join(folder, "keys", "admin.key"), "key");
    expect(await run("press-1")).toMatchObject({ code: EXIT.ownFailure, err: expect.stringContaining("does not run: nothing listens on") });
    const record = {
      uuid: "00000000-0000-4000-8000-000000000001",
      name: "press-1",
      type: "modbus_tcp" as const,
      collector: COLLECTOR,
      machine: COLLECTOR,
      manufacturer: null,
      device_model: null,
      note: null,
      readout_interval: 1,
      readout_limit: null,
      details: { type: "modbus_tcp" as const, host: "127.0.0.1", port: plant.port, ephemeral_connections: false },
    };
    const variable = {
      uuid: COLLECTOR,
      data_source: record.uuid,
      name: "speed",
      address: "holding:1",
      type: null,
      unit: null,
      scaling: null,
    };
    await saveLastGood(lastGoodFile(folder), {
      collector: COLLECTOR,
      fetchedAt: "2026-11-20T09:00:00.000Z",
      sources: [record],
      sinks: [],
      variables: [{ ...variable, comment: null, status: "ACTIVE" }],
      secrets: {},
      areSecretsAwaited: true,
      revision: null,
    });
    const { code, out, err } = await run("press-1");
    expect([code, err]).toEqual([EXIT.good, expect.stringContaining("the last good copy on disk, of 2026-11-20T09:00:00.000Z")]);
    expect(out).toContain("speed (holding:1) = 22");
  });
});
