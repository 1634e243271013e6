import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { type Metafile, transform } from "esbuild";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { bundleAddOn } from "../../build.ts";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { startOpcuaSimulator, USERS } from "../../drivers/opcua/simulator.ts";
import { createWitness } from "../../drivers/opcua/simulator-client.ts";
import { type Api, apiOf } from "../support/api.ts";
import { builtBundle } from "../support/built-collector.ts";
import { pcap, RecordedConnection } from "../support/capture-file.ts";
import { type CollectorProcess, startCollector } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";
import { childrenOf } from "../support/process-figures.ts";

/** What a device runs: the bundle, started as the package starts it. */

const ROOT = path.resolve(import.meta.dirname, "../..");
const MACHINE = "00000000-0000-4000-8000-000000000001";
const WITHIN = { timeout: 30_000, interval: 100 };

let work: string;
let metafile: Metafile;
/** Names of outputs in the metafile are of files in this folder. */
let builtApp: string;
/** Each file that a thread of the collector loads is written down here. */
let loadedFile: string;
let command: readonly [string, ...string[]];
const open: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  work = mkdtempSync(path.join(os.tmpdir(), "collector-bundle-"));
  const built = await builtBundle();
  ({ metafile } = built);
  builtApp = built.app;
  // If the package installs it: add-ons are looked for beside its folder.
  const app = path.join(work, "collector/app");
  cpSync(builtApp, app, { recursive: true });
  loadedFile = path.join(work, "loaded");
  const witness = path.join(work, "witness.mjs");
  writeFileSync(
    witness,
    `import { appendFileSync } from "node:fs";
     import { registerHooks } from "node:module";
     registerHooks({ load(url, context, next) { appendFileSync(${JSON.stringify(loadedFile)}, url + "\\n"); return next(url, context); } });`,
  );
  command = [path.join(ROOT, "bin/collector-node"), "--import", witness, path.join(app, "main.js")];
}, 120_000);
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

/** Inputs of a file of the bundle and of all that it imports before it runs; with `later`, of all that it may import while it runs too. */
function inputsOf(entry: string, { later = false }: { later?: boolean } = {}): readonly string[] {
  const outputs = new Map(Object.entries(metafile.outputs).map(([file, output]) => [path.resolve(ROOT, file), output]));
  const seen = new Set<string>();
  const walk = (file: string): void => {
    const output = outputs.get(file);
    if (!output || seen.has(file)) return;
    seen.add(file);
    for (const { path: target, kind } of output.imports)
      if (kind === "import-statement" || (later && kind === "dynamic-import")) walk(path.resolve(ROOT, target));
  };
  walk(path.join(builtApp, entry));
  expect(seen.size).toBeGreaterThan(0);
  return [...seen].flatMap((file) => Object.keys(outputs.get(file)?.inputs ?? {}));
}

const isOpcua = (input: string): boolean => /node_modules\/node-opcua/.test(input);
const loaded = (): readonly string[] => readFileSync(loadedFile, "utf8").split("\n");
/** Files of the bundle that hold code of node-opcua. */
const opcuaFiles = (): readonly string[] =>
  Object.entries(metafile.outputs).flatMap(([file, { inputs }]) => (Object.keys(inputs).some(isOpcua) ? [path.basename(file)] : []));
const threadsOf = ({ pid }: CollectorProcess): readonly string[] =>
  readdirSync(`/proc/${pid}/task`).map((task) => readFileSync(`/proc/${pid}/task/${task}/comm`, "utf8").trim());

async function collectorOf(): Promise<CollectorProcess & { readonly api: Api; readonly uuid: string }> {
  rmSync(loadedFile, { force: true });
  const collector = await startCollector({ command });
  open.unshift(() => collector.stop());
  const { collector: uuid } = await collector.status();
  return Object.assign(collector, { api: apiOf(collector.apiUrl, await collector.adminKey()), uuid });
}

/** A data source with its variables, read every second. */
async function addSource({ api, uuid: collector }: { api: Api; uuid: string }, details: object, addresses: readonly string[]) {
  const { uuid } = await api.post("/v2/data-sources", { name: "machine", collector, machine: MACHINE, details });
  await api.patch(`/v2/data-sources/${uuid}`, { readout_interval: 1 });
  for (const address of addresses) await api.post("/ext/v1/variables", { data_source: uuid, name: address, address });
  return uuid;
}
const stateOf = async (collector: CollectorProcess) => (await collector.status()).sources[0]?.status.state.type;

const WORKERS = ["store", "delivery", "serving", "session", "api", "page"].map((thread) => `threads/${thread}/worker.js`);

/** Code for a person at a desk: replay, reading of captures, checks of profiles and plugins. What names a verb and its options is the help's. */
const DESK = /^(workbench\/|drivers\/profile\/replay\.ts|src\/commands\/(?:replay|profile|plugin)\/(?!\w+-verbs?\.ts))/;
const deskFiles = (inputs: readonly string[]): readonly string[] => [...new Set(inputs.filter((input) => DESK.test(input)))].sort();
/** Name in the bundle of the file that a source is loaded from by `import()`. */
function chunkOf(source: string): string {
  const [file = ""] = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === source) ?? [];
  expect(file, source).not.toBe("");
  return path.relative(builtApp, path.resolve(ROOT, file));
}

describe("the bundle", { timeout: 60_000 }, () => {
  // A worker that ends while modules wait for one that awaits at its top level ends the process with a fault of V8.
  it("awaits nothing at the top level of a module", async () => {
    const files = Object.keys(metafile.outputs).filter((file) => file.endsWith(".js") && !file.includes("/page/"));
    expect(files.length).toBeGreaterThan(50);
    for (const file of [...files.map((name) => path.resolve(ROOT, name)), path.join(builtApp, "main.js")]) {
      const module = readFileSync(file, "utf8").replaceAll("import.meta", "importMeta");
      // CommonJS has no such await, and the bundler says where there is one.
      await expect(transform(module, { format: "cjs", logLevel: "silent" }), file).resolves.toBeDefined();
    }
  });

  // With a flag that is not V8's own it compiles each of Node's modules, in each thread.
  it("starts with V8's own size of the space for what is new", () => {
    const [flag = "none"] = /--scavenger[^"]+/.exec(readFileSync(path.join(builtApp, "main.js"), "utf8")) ?? [];
    const options = execFileSync(path.join(ROOT, "node_modules/node/bin/node"), ["--v8-options"], { encoding: "utf8" });
    expect(options).toMatch(new RegExp(`default: ${flag}\\n`));
  });

  it.each(["cli.js", "service.js", ...WORKERS])("%s loads no replay and no check of profiles and plugins to start", (entry) =>
    expect(deskFiles(inputsOf(entry))).toEqual([]),
  );

  it("the service and its threads load none of it later either; the verbs do", () => {
    for (const entry of ["service.js", ...WORKERS]) expect([entry, deskFiles(inputsOf(entry, { later: true }))]).toEqual([entry, []]);
    const verbs = ["src/commands/plugin/plugin.ts", "src/commands/profile/profile.ts", "src/commands/replay/replay.ts"];
    expect(deskFiles(inputsOf("cli.js", { later: true }))).toEqual(expect.arrayContaining(verbs));
    for (const verb of verbs) expect(deskFiles(inputsOf(chunkOf(verb)))).toContain(verb);
  });

  it("starts each thread of the service from few files, and has each file that another one imports", () => {
    const importsOf = (file: string, kinds: readonly string[]): readonly string[] =>
      (metafile.outputs[path.relative(ROOT, file)]?.imports ?? []).flatMap(({ kind, path: to, external }) =>
        kinds.includes(kind) && (!external || to.startsWith("."))
          ? [external ? path.resolve(path.dirname(file), to) : path.resolve(ROOT, to)]
          : [],
      );
    const filesOf = (entry: string): ReadonlySet<string> => {
      const files = new Set([path.join(builtApp, entry)]);
      for (const file of files) for (const to of importsOf(file, ["import-statement"])) files.add(to);
      return files;
    };
    for (const thread of ["service.js", "threads/store/worker.js", "threads/delivery/worker.js", "threads/api/worker.js"])
      expect([thread, filesOf(thread).size]).toEqual([thread, expect.toSatisfy((count: number) => count <= 3)]);
    const all = Object.keys(metafile.outputs).map((file) => path.resolve(ROOT, file));
    const missing = all.flatMap((file) => importsOf(file, ["import-statement", "dynamic-import"])).filter((file) => !existsSync(file));
    expect(missing).toEqual([]);
  });

  it.each(["cli.js", "service.js", ...WORKERS])("%s needs nothing of node-opcua to start", (entry) => {
    expect(opcuaFiles()).not.toEqual([]);
    expect(inputsOf(entry).filter(isOpcua)).toEqual([]);
  });

  it.each(["store", "page"])("the thread %s starts without the library of the schemas, which takes 3 MiB in each", (thread) => {
    const usesSchemas = (entry: string): boolean => inputsOf(entry).some((input) => input.includes("node_modules/zod/"));
    expect(usesSchemas("service.js")).toBe(true);
    expect(usesSchemas(`threads/${thread}/worker.js`)).toBe(false);
  });

  it("has the words of no other language: the library of the schemas brings fifty where it is not taken by name", () => {
    const words = Object.keys(metafile.inputs).filter(
      (input) => input.includes("zod/v4/locales/") && metafile.inputs[input]?.imports.length === 1,
    );
    const inBundle = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs));
    const kept = inBundle.filter(([input, { bytesInOutput }]) => words.includes(input) && bytesInOutput > 0).map(([input]) => input);
    expect(words.length).toBeGreaterThan(40);
    expect([...new Set(kept)]).toEqual(["node_modules/zod/v4/locales/en.js"]);
  });

  it("has no large file with a character above U+00FF: V8 keeps all of its text in two bytes a character, in each thread", () => {
    const texts = Object.entries(metafile.outputs)
      .filter(([file, { bytes }]) => file.endsWith(".js") && bytes > 50_000)
      .map(([file]) => [path.basename(file), readFileSync(path.resolve(ROOT, file), "utf8")] as const);
    expect(texts.length).toBeGreaterThan(5);
    expect(texts.filter(([, text]) => /[^\0-\xff]/.test(text)).map(([file]) => file)).toEqual([]);
  });

  it("holds no simulator, and runs them where their package is", async () => {
    const isSimulator = (input: string): boolean => /^(simulators|gateway)\/|^drivers\/.*simulator/.test(input);
    expect(Object.keys(metafile.inputs).filter(isSimulator)).toEqual([]);
    const [program, ...args] = command;
    const simulate = (...words: string[]) => spawnSync(program, [...args, "simulate", ...words], { encoding: "utf8" });
    expect(simulate("modbus_tcp")).toMatchObject({ status: 2, stderr: expect.stringContaining("package collector-simulators") });
    const out = path.join(work, "collector-simulators");
    const simulators = await bundleAddOn("simulators", { out, packageDir: (name) => path.join(ROOT, "node_modules", name) });
    expect(Object.keys(simulators.inputs).filter((input) => /^(src\/(?!model\/|base\/)|drivers\/(?!.*simulator))/.test(input))).toEqual([]);
    const listed = simulate("--json");
    expect(JSON.parse(listed.stdout).machines).toHaveLength(8);
    expect(simulate("modbus_tcp", "--csv").stdout).toContain("temperature;holding:0;float32");
  });

  it("holds nothing of the workbench, and reads captures where its package is", async () => {
    const isWorkbench = (input: string): boolean => /^workbench\/|^drivers\/(?!profile\/)(\w+\/)?replay(?:-\w+)?\.ts$/.test(input);
    const ofOutputs = (file: Metafile): readonly string[] => Object.values(file.outputs).flatMap(({ inputs }) => Object.keys(inputs));
    expect(ofOutputs(metafile).filter(isWorkbench)).toEqual([]);
    expect(Object.keys(metafile.inputs).filter(isWorkbench)).toEqual([]);
    const [program, ...args] = command;
    const run = (...words: string[]) => spawnSync(program, [...args, ...words], { encoding: "utf8" });
    const profile = path.join(ROOT, "config/profiles/odac-host.yaml");
    const capture = path.join(work, "opcua.pcap");
    const packets: Buffer[] = [];
    new RecordedConnection(packets, 4840, 50_000).says("client", Buffer.from("HELF\x20\0\0\0", "latin1"));
    writeFileSync(capture, pcap(packets));
    const ofProfile = ["profile", "replay", profile, capture, "--port", "2020"];
    for (const words of [["replay", capture], ofProfile])
      expect(run(...words)).toMatchObject({
        status: 2,
        stderr: expect.stringContaining("package collector-workbench (sudo apt install ./collector-workbench_*.deb)"),
      });
    expect(run("profile", "check", profile)).toMatchObject({ status: 0, stderr: "" });
    const out = path.join(work, "collector-workbench");
    const workbench = await bundleAddOn("workbench", { out, packageDir: (name) => path.join(ROOT, "node_modules", name) });
    expect(
      ofOutputs(workbench).filter(
        (input) =>
          !/^(workbench\/|drivers\/(?:\w+\/)?(?:facts|replay(?:-\w+)?)\.ts$|drivers\/opcua\/binary\.ts$|src\/(?:model|base)\/|package\.json$|builtin:)/.test(
            input,
          ),
      ),
    ).toEqual([]);
    const failures = {
      replay: "10.0.0.2:4840 speaks OPC UA, which cannot be replayed",
      profile: "there is no TCP connection with port 2020",
    };
    expect(run("replay", capture)).toMatchObject({ status: 2, stderr: expect.stringContaining(failures.replay) });
    expect(run(...ofProfile)).toMatchObject({ status: 2, stderr: expect.stringContaining(failures.profile) });
  });

  it("loads nothing of node-opcua and starts no session worker where nothing speaks OPC UA, and no delivery without a sink", async () => {
    const plant = await startModbusPlant({ port: 0, units: new Map([[1, { holding: new Map([[0, () => 7]]) }]]) });
    open.push(plant.close);
    const collector = await collectorOf();
    await addSource(collector, { type: "modbus_tcp", host: "127.0.0.1", port: plant.port }, ["holding:0"]);
    await expect.poll(() => stateOf(collector), WITHIN).toBe("OK");
    const [program, ...first] = command;
    const { stdout } = spawnSync(program, [...first, "status", "--json", "--config", collector.settingsFile], { encoding: "utf8" });
    expect(Object.keys(JSON.parse(stdout))).toEqual(Object.keys(await collector.status()));
    expect(loaded().some((url) => url.includes("/threads/store/worker.js"))).toBe(true);
    expect(loaded().filter((url) => opcuaFiles().includes(path.basename(url)) || url.includes("/threads/session/worker.js"))).toEqual([]);
    expect(threadsOf(collector)).toContain("store");
    expect(threadsOf(collector)).not.toContain("session");
    expect(threadsOf(collector)).not.toContain("delivery");
    const details = { type: "mqtt", host: "127.0.0.1", port: await freePort(), topic: "t" };
    await collector.api.post("/v2/data-sinks", { name: "broker", collector: collector.uuid, details });
    await expect.poll(() => threadsOf(collector), WITHIN).toContain("delivery");
  });

  it("reads an OPC UA source in the session worker, and leaves no session behind", async () => {
    const simulator = await startOpcuaSimulator({ bulk: 50 });
    open.push(simulator.close);
    const collector = await collectorOf();
    const addresses = Array.from({ length: 50 }, (_, i) => `ns=${simulator.plantIndex};s=Bulk.${i}`);
    await addSource(collector, simulator.details("127.0.0.1", simulator.port), addresses);
    await expect.poll(() => stateOf(collector), WITHIN).toBe("OK");
    await expect.poll(async () => (await collector.status()).sources[0]?.counters.values_read, WITHIN).toBeGreaterThanOrEqual(50);
    expect((await collector.status()).sources[0]?.counters.values_faulted).toBe(0);
    expect(threadsOf(collector)).toContain("session");
    expect(loaded().some((url) => opcuaFiles().includes(path.basename(url)))).toBe(true);
    expect(simulator.sessions()).toBe(1);
    expect(await collector.stop()).toBe(0);
    expect(simulator.sessions()).toBe(0);
    expect(collector.log.filter((line) => line.includes("did not end when asked"))).toEqual([]);
  });

  it("reads over an encrypted channel as a user, once a person trusts the server", async () => {
    const simulator = await startOpcuaSimulator({ bulk: 10, anonymous: false });
    open.push(simulator.close);
    const { thumbprint } = simulator.certificate;
    const collector = await collectorOf();
    const details = {
      ...simulator.details("127.0.0.1", simulator.port),
      security_settings: {
        security_mode: "SignAndEncrypt",
        endpoint_security_policy: "Basic256Sha256",
        token_security_policy: "Basic256Sha256",
      },
      user_identity: { type: "UserNamePassword", username: "reader", password: USERS["reader"] },
    };
    await addSource(collector, details, [`ns=${simulator.plantIndex};s=Bulk.3`]);
    await expect.poll(async () => JSON.stringify((await collector.status()).sources), WITHIN).toContain(thumbprint);
    expect(await stateOf(collector)).toBe("ERROR");
    const [program, ...first] = command;
    execFileSync(program, [...first, "pki", "trust", thumbprint, "--config", collector.settingsFile]);
    await expect.poll(() => stateOf(collector), WITHIN).toBe("OK");
    expect(simulator.sessions()).toBe(1);
    expect(collector.log.join("\n")).not.toContain(USERS["reader"]);
  });

  it("hosts an OPC UA server, in a process of its own", async () => {
    const plant = await startModbusPlant({ port: 0, units: new Map([[1, { holding: new Map([[0, () => 4711]]) }]]) });
    open.push(plant.close);
    const witness = await createWitness();
    open.push(() => witness.close());
    const collector = await collectorOf();
    const source = await addSource(collector, { type: "modbus_tcp", host: "127.0.0.1", port: plant.port }, []);
    const variable = await collector.api.post("/ext/v1/variables", { data_source: source, name: "speed", address: "holding:0" });
    const port = await freePort();
    const details = { type: "opcua", port, security_modes: ["None"], security_policies: ["None"], anonymous: true };
    await collector.api.post("/v2/data-sinks", { name: "server", collector: collector.uuid, details });
    await expect.poll(async () => (await collector.status()).sinks[0]?.state, WITHIN).toBe("OK");
    const read = () =>
      witness.withSession(
        `opc.tcp://127.0.0.1:${port}`,
        async (session) => (await session.read({ nodeId: `ns=1;s=${variable.uuid}` })).value.value,
      );
    await expect.poll(() => read().catch(() => undefined), WITHIN).toBe(4711);
    expect(threadsOf(collector)).not.toContain("session");
    expect(loaded().filter((url) => opcuaFiles().includes(path.basename(url)))).toEqual([]);
    const [serving = 0, ...others] = childrenOf(collector.pid);
    expect(others).toEqual([]);
    expect(readFileSync(`/proc/${serving}/cmdline`, "utf8").split("\0")).toContain(
      path.join(work, "collector/app/threads/serving/worker.js"),
    );
    expect(await collector.stop()).toBe(0);
    expect(() => readFileSync(`/proc/${serving}/cmdline`)).toThrow("ENOENT");
    expect(collector.log.filter((line) => line.includes("did not end when asked"))).toEqual([]);
  });
});
