import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StatusCodes } from "node-opcua-client";
import { afterEach, describe, expect, it } from "vitest";
import { startModbusPlant } from "../../../drivers/modbus_tcp/simulator.ts";
import {
  type OpcuaSimulator,
  type OpcuaSimulatorOptions,
  PLANT_NAMESPACE,
  startOpcuaSimulator,
  USERS,
} from "../../../drivers/opcua/simulator.ts";
import { startSimulator } from "../../../drivers/vendor_a/simulator.ts";
import { COLLECTOR, startTestServer, temporaryFolder } from "../../api/server/testing.ts";
import { EXIT } from "../io.ts";
import { type Ran, type RunOptions, runCommandWith, settingsFile } from "../testing.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function simulate(options: OpcuaSimulatorOptions = { bulk: 3 }): Promise<OpcuaSimulator> {
  const simulator = await startOpcuaSimulator(options);
  open.push(simulator.close);
  return simulator;
}

interface Here {
  readonly folder: string;
  run(...words: string[]): Promise<Ran>;
  runWith(options: RunOptions, ...words: string[]): Promise<Ran>;
}

/** Settings with a state folder, a policy next to them. */
function here(settings: Readonly<Record<string, unknown>> = {}, policy = "sources: {networks: [127.0.0.0/8]}\n"): Here {
  const folder = temporaryFolder();
  const config = settingsFile(folder, settings);
  writeFileSync(join(folder, "policy.yaml"), policy);
  const env = { HOME: folder };
  const runWith: Here["runWith"] = (options, ...words) => runCommandWith({ env, ...options }, ...words, "--config", config);
  return { folder, runWith, run: (...words) => runWith({}, ...words) };
}

const lines = (text: string): Record<string, unknown>[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
const id = (text: string): string => `nsu=${PLANT_NAMESPACE};s=${text}`;

describe("browse TYPE key=value…", () => {
  it("lists what a profile of machines has, as browse paths by the URIs of namespaces", async () => {
    const packml = "http://opcfoundation.org/UA/PackML/";
    const { endpointUrl } = await simulate({
      bulk: 1,
      fill(space) {
        const own = space.registerNamespace(packml);
        const status = own.addObject({ browseName: "Status", organizedBy: space.rootFolder.objects });
        own.addVariable({ browseName: "MachSpeed", componentOf: status, dataType: "Float" });
        own.addVariable({ browseName: "Another", componentOf: status, dataType: "Float" });
      },
    });
    const { run } = here();
    const browse = (...words: string[]) => run("browse", "opcua", `endpoint_url=${endpointUrl}`, ...words);
    const { code, out } = await browse("--profile", "packml", "--csv");
    expect([code, out.trim().split("\n").slice(1)]).toEqual([
      EXIT.good,
      [expect.stringContaining(`/Objects/nsu=${packml};Status/nsu=${packml};MachSpeed`)],
    ]);
    const unknown = await browse("--profile", "pack");
    expect([unknown.code, unknown.err]).toEqual([EXIT.usage, expect.stringContaining("expected one of euromap77, packml, machinetool")]);
    const other = await run("browse", "vendor_a", "host=127.0.0.1", "--profile", "packml");
    expect([other.code, other.err]).toEqual([EXIT.usage, expect.stringContaining("has no profiles of machines")]);
  });

  it("says on a terminal how far the device has been looked at, and elsewhere nothing", async () => {
    const simulator = await startSimulator();
    open.push(simulator.close);
    simulator.device.answerDelayMs = 150;
    const words = ["browse", "vendor_a", "host=127.0.0.1", `port=${simulator.port}`];
    const { code, err } = await here().runWith({ isWatched: true }, ...words);
    expect([code, err]).toEqual([EXIT.good, expect.stringMatching(/\r\d+ nodes, \d levels, \d+ looked at … /)]);
    simulator.device.answerDelayMs = 0;
    expect((await here().run(...words)).err).toMatch(/^\d+ variables and \d+ others\n$/);
  });

  it("shows a device that no configuration knows, as a table", async () => {
    const simulator = await simulate();
    const { code, out, err } = await here().run("browse", "opcua", `endpoint_url=${simulator.endpointUrl}`);
    expect([code, err]).toEqual([EXIT.good, expect.stringMatching(/^\d+ variables and \d+ others\n$/)]);
    expect(out).toMatch(/^NAME +TYPE +UNIT +ADDRESS +COMMENT\n/);
    expect(out).toMatch(/\nPlant +- +nsu=urn:example:plant;s=Plant\n {2}Types +-/);
    expect(out).toMatch(/\n {4}Öltemperatur +float64 +°C +nsu=urn:example:plant;s=Analog +Temperature of the oil/);
    await expect.poll(() => simulator.sessions()).toBe(0);
  });

  it("prints an object a line, no deeper and no more than asked", async () => {
    const simulator = await simulate();
    const { run } = here();
    const url = `endpoint_url=${simulator.endpointUrl}`;
    const shallow = await run("browse", "opcua", url, "--json", "--depth", "2");
    const paths = lines(shallow.out).map(({ path }) => (path as string[]).length);
    expect(Math.max(...paths)).toBe(1);
    const bulk = await run("browse", "opcua", url, "--json", "--filter", "*/Bulk/*");
    expect(lines(bulk.out)).toEqual(
      [0, 1, 2].map((n) => ({
        address: id(`Bulk.${n}`),
        name: `Bulk.${n}`,
        path: ["Plant", "Bulk"],
        type: "float64",
        unit: null,
        comment: null,
      })),
    );
  });

  it("asks for the password of a user, and shows it nowhere", async () => {
    const simulator = await simulate({ bulk: 1, anonymous: false });
    const { run, runWith, folder } = here();
    const words = [
      "browse",
      "opcua",
      `endpoint_url=${simulator.endpointUrl}`,
      "username=reader",
      "trust=first_use",
      "--filter",
      "Bulk.0",
      "--json",
    ];
    const typed = await runWith({ typed: USERS["reader"] ?? "" }, ...words);
    expect([typed.code, typed.err]).toEqual([
      EXIT.good,
      expect.stringMatching(/^Password of reader \(not shown\): \n.*first one from this peer.*\n1 variable of/),
    ]);
    expect(lines(typed.out)).toHaveLength(1);
    expect(typed.out + typed.err).not.toContain(USERS["reader"]);
    const piped = await run(...words);
    expect([piped.code, piped.err]).toEqual([EXIT.usage, expect.stringContaining("--password-file")]);
    writeFileSync(join(folder, "pw"), "wrong\n");
    const wrong = await run(...words, "--password-file", join(folder, "pw"));
    expect(wrong.code).toBe(EXIT.sourceFailed);
    expect(lines(wrong.out)[0]).toMatchObject({ reason: { type: "OPC_UA_ERROR_RESPONSE" } });
  });

  it("reports which type has nothing to browse, and which word is not a key", async () => {
    const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 7]]) }]]) });
    open.push(plant.close);
    const { run } = here();
    const none = await run("browse", "modbus_tcp", "host=127.0.0.1", `port=${plant.port}`);
    expect([none.code, none.out, none.err]).toEqual([
      EXIT.usage,
      "",
      expect.stringContaining("devices of type modbus_tcp cannot say what they have"),
    ]);
    const { code, err } = await run("browse", "opcua", "endpoint_ulr=opc.tcp://h", "i=85");
    expect([code, err]).toEqual([EXIT.usage, expect.stringContaining("endpoint_url")]);
    expect((await run("browse", "opcua", "endpoint_url=opc.tcp://h", "i=85")).err).toContain("i: there is no such key");
    for (const wrong of [
      ["--depth", "0"],
      ["--json", "--csv"],
      ["--timeout", "soon"],
      ["--filter", ""],
    ])
      expect((await run("browse", "opcua", "endpoint_url=opc.tcp://h", ...wrong)).code, wrong.join(" ")).toBe(EXIT.usage);
  });

  it("is refused by the policy of the machine", async () => {
    const simulator = await simulate();
    const words = ["browse", "opcua", `endpoint_url=${simulator.endpointUrl}`];
    const off = await here({}, "discovery: false\nsources: {networks: [127.0.0.0/8]}\n").run(...words);
    expect([off.code, off.err]).toEqual([EXIT.usage, expect.stringContaining("discovery: false")]);
    const elsewhere = await here({}, "sources: {networks: [10.0.0.0/8]}\n").run(...words);
    expect([elsewhere.code, elsewhere.err]).toEqual([EXIT.sourceFailed, expect.stringContaining("add `loopback: true` to sources in ")]);
    expect(simulator.requests("CreateSession")).toBe(0);
  });

  it("ends with what it has when it is stopped, and in order when the server fails in the middle", async () => {
    const simulator = await simulate({ bulk: 3, tree: { depth: 3, folders: 8, variables: 2 } });
    const url = `endpoint_url=${simulator.endpointUrl}`;
    const controller = new AbortController();
    const { runWith, run } = here();
    const stopped = await runWith({ signal: controller.signal, onOut: () => controller.abort() }, "browse", "opcua", url, "--json");
    expect([stopped.code, stopped.err]).toEqual([EXIT.good, expect.stringContaining("stopped; this is what was found until then")]);
    expect(lines(stopped.out).length).toBeGreaterThan(0);
    await expect.poll(() => simulator.sessions()).toBe(0);

    simulator.misbehave({ service: "Browse", after: 3, answer: { fault: StatusCodes.BadOutOfMemory } });
    const failed = await run("browse", "opcua", url, "--csv");
    expect([failed.code, failed.out]).toEqual([EXIT.sourceFailed, ""]);
    expect(failed.err).toMatch(/BadOutOfMemory[\s\S]*Nothing was written, because the list is incomplete/);
    await expect.poll(() => simulator.sessions()).toBe(0);
  });
});

describe("browse SOURCE", () => {
  async function configured(settings: Readonly<Record<string, unknown>> = {}) {
    const apiFolder = temporaryFolder();
    const place = here({ collector: COLLECTOR, ...settings });
    const socketFile = join(place.folder, "api.sock");
    const api = await startTestServer(apiFolder, COLLECTOR, { databaseFile: join(apiFolder, "api", "api.db"), socketFile });
    mkdirSync(join(place.folder, "keys"), { recursive: true });
    writeFileSync(join(place.folder, "keys", "admin.key"), api.adminKey);
    mkdirSync(join(place.folder, "api-keys"));
    writeFileSync(join(place.folder, "api-keys", "collector.key"), api.collectorKey);
    return place;
  }

  it("takes a configured data source by its name, and import takes what it prints from a pipe", async () => {
    const simulator = await simulate();
    const { run, runWith } = await configured();
    const added = await run("source", "add", "press-1", "opcua", `endpoint_url=${simulator.endpointUrl}`);
    expect([added.code, added.err]).toEqual([EXIT.good, ""]);
    const csv = await run("browse", "press-1", "--csv", "--filter", "Plant/*");
    expect(csv.code).toBe(EXIT.good);
    const imported = await runWith({ stdin: csv.out }, "variables", "import", "press-1", "-");
    expect([imported.code, imported.err]).toEqual([EXIT.good, ""]);
    const listed = lines((await run("variables", "list", "press-1", "--json")).out)[0] as unknown as Record<string, unknown>[];
    expect(listed.find(({ name }) => name === "Öltemperatur")).toMatchObject({ address: id("Analog"), type: "float64", unit: "°C" });
    expect(listed.length).toBe(csv.out.trim().split("\r\n").length - 1);
    const again = await runWith({ stdin: csv.out }, "variables", "import", "press-1", "-");
    expect(again.out).toMatch(/: 0 created, 0 changed, 0 deleted/);
  });

  it("logs in with the secret that the API or this machine keeps, and asks where there is none", async () => {
    const simulator = await simulate({ bulk: 1, anonymous: false });
    const { run, runWith, folder } = await configured({ sources: { "press-1": { trust: "first_use" } } });
    const secret = join(folder, "pw");
    writeFileSync(secret, `${USERS["reader"]}\n`);
    await run("source", "add", "press-1", "opcua", `endpoint_url=${simulator.endpointUrl}`, "username=reader", "--password-file", secret);
    const words = ["browse", "press-1", "--filter", "Bulk.0", "--json"];
    const without = await run(...words);
    expect([without.code, without.err]).toEqual([EXIT.usage, expect.stringContaining("--password-file FILE, or try with sudo")]);
    expect((await runWith({ typed: USERS["reader"] ?? "" }, ...words)).code).toBe(EXIT.good);
    expect((await run(...words, "--password-file", secret)).code).toBe(EXIT.good);
    copyFileSync(join(folder, "api-keys", "collector.key"), join(folder, "keys", "collector.key"));
    expect((await run(...words)).code).toBe(EXIT.good);
    mkdirSync(join(folder, "credentials"));
    writeFileSync(join(folder, "credentials", "press-1"), "wrong\n");
    const wrong = await run(...words);
    expect([wrong.code, wrong.out.includes("OPC_UA_ERROR_RESPONSE")]).toEqual([EXIT.sourceFailed, true]);
    // That one is for another address: it is withheld, and the API's goes where the API says.
    const place = { type: "opcua", host: "10.0.0.5", port: 4840, endpoint_url: null, user: "reader", security: null };
    for (const [places, said] of [
      [JSON.stringify({ version: 1, places: { "secret: press-1": { before: place } } }), "type `sudo collector secret confirm press-1`"],
      ["damaged", "the password of this machine is not used"],
    ] as const) {
      writeFileSync(join(folder, "secret-places.json"), places);
      const withheld = await run(...words);
      expect([withheld.code, withheld.err]).toEqual([EXIT.good, expect.stringContaining(said)]);
    }
  });

  it("names the sources there are, and asks for key=value where a type is named alone", async () => {
    const { run } = await configured();
    await run("source", "add", "press-1", "opcua", "endpoint_url=opc.tcp://127.0.0.1:1");
    const wrong = await run("browse", "press-2");
    expect([wrong.code, wrong.err]).toEqual([EXIT.usage, expect.stringContaining("there are: press-1")]);
    const alone = await run("browse", "opcua");
    expect([alone.code, alone.err]).toEqual([EXIT.usage, expect.stringContaining("collector browse opcua key=value")]);
    const both = await run("browse", "press-1", "trust=first_use");
    expect([both.code, both.err]).toEqual([EXIT.usage, expect.stringContaining("is browsed by its name alone")]);
    const away = await run("browse", "press-1");
    expect([away.code, away.err]).toEqual([EXIT.sourceFailed, expect.stringContaining("CONNECTION_REFUSED")]);
  });
});

describe("certificates on the command line", () => {
  it("are in the state folder, where collector pki works on them", async () => {
    const simulator = await simulate();
    const { run, folder } = here();
    const words = [
      "browse",
      "opcua",
      `endpoint_url=${simulator.endpointUrl}`,
      "security_settings.security_mode=SignAndEncrypt",
      "security_settings.endpoint_security_policy=Aes256-Sha256-RsaPss",
      "--filter",
      "Bulk.0",
    ];
    const refused = await run(...words);
    expect(refused.code).toBe(EXIT.sourceFailed);
    expect(refused.err).toContain(`collector pki trust ${simulator.certificate.thumbprint}`);
    expect(readdirSync(join(folder, "pki", "rejected"))).toContain(`${simulator.certificate.thumbprint}.der`);
    expect((await run("pki", "trust", simulator.certificate.thumbprint)).code).toBe(EXIT.good);
    expect((await run(...words)).code).toBe(EXIT.good);
  });
});
