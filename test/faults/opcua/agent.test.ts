import { afterEach, expect, it } from "vitest";
import { type OpcuaSimulator, type OpcuaSimulatorOptions, PLANT_NAMESPACE, startOpcuaSimulator } from "../../../drivers/opcua/simulator.ts";
import { textsOf } from "../../../src/model/testing/warnings.ts";
import { freePort } from "../../support/free-port.ts";
import { connect, context, detailsOf } from "../../support/opcua.ts";
import { watchSource } from "./watched-source.ts";

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const start = async (options: OpcuaSimulatorOptions = {}): Promise<OpcuaSimulator> => {
  const simulator = await startOpcuaSimulator({ bulk: 2, ...options });
  endings.push(() => simulator.close().catch(() => {}));
  return simulator;
};

/** One source on an agent, and every state that it was in, once it reads. */
async function watch(port: number, local: Record<string, unknown> = {}, paths: readonly string[] = [], isRemote = false) {
  const watched = await run(port, local, paths, isRemote);
  await expect.poll(watched.good, { timeout: 10_000 }).toBeGreaterThan(2);
  return watched;
}

/** The same as soon as the source is there. */
const run = (port: number, local: Record<string, unknown> = {}, paths: readonly string[] = [], isRemote = false) =>
  watchSource({
    port,
    local,
    isRemote,
    endings,
    variables: [
      ...["Double", "Structure", "Missing"].map((name) => ({ name, address: `nsu=${PLANT_NAMESPACE};s=${name}` })),
      ...paths.map((address, i) => ({ name: `path ${i}`, address })),
    ],
  });

it("reopens within the readout a session that the server has ended: nobody sees an error", async () => {
  const simulator = await start();
  const { good, states, report, readouts } = await watch(simulator.port);
  for (let round = 0; round < 5; round++) {
    const before = good();
    simulator.closeSessions();
    await expect.poll(good, { timeout: 5000 }).toBeGreaterThan(before + 1);
  }
  expect(states).not.toContain("ERROR");
  expect(report()?.status.state.type).toBe("OK");
  expect(simulator.sessions()).toBe(1);
  expect(readouts.at(-1)?.layout.variables.map(({ type }) => type.scalar)).toEqual(["float64", "string", "auto"]);
  expect(report()?.faults).toEqual([
    { variable: "Missing", fault: "not_found", detail: expect.stringContaining("BadNodeIdUnknown (0x80340000)") },
  ]);
  expect(textsOf(report()?.warnings)).toEqual([expect.stringContaining('security_mode is "None"')]);
});

it("reads again by itself when the server has restarted, and says meanwhile why it does not", { timeout: 60_000 }, async () => {
  const simulator = await start({ port: await freePort() });
  const { good, report } = await watch(simulator.port);
  await simulator.close();
  await expect.poll(() => report()?.error?.reason.type, { timeout: 10_000 }).toBe("CONNECTION_REFUSED");
  const before = good();
  await start({ port: simulator.port });
  await expect.poll(good, { timeout: 20_000 }).toBeGreaterThan(before + 1);
  expect(report()?.status.state.type).toBe("OK");
});

it("names a black hole in mid-session, and reads again when it is over", { timeout: 60_000 }, async () => {
  const simulator = await start();
  const { good, report } = await watch(simulator.port, { answer_timeout: "300ms" });
  simulator.misbehave({ service: "Read", answer: "silent" });
  await expect.poll(() => report()?.error?.reason.type, { timeout: 10_000 }).toBe("TIMEOUT");
  simulator.behave();
  const before = good();
  await expect.poll(good, { timeout: 20_000 }).toBeGreaterThan(before + 1);
  await expect.poll(() => simulator.sessions(), { timeout: 10_000 }).toBe(1);
});

it("leaves a server without a free session alone until a lost one has ended, and reads then", { timeout: 60_000 }, async () => {
  const simulator = await start({ maxSessions: 1 });
  const other = await connect(detailsOf(simulator.port), context());
  endings.push(() => other.close());
  const began = Date.now();
  const { good, report } = await run(simulator.port, { session_timeout: 10_000 });
  await expect.poll(() => report()?.error?.reason, { timeout: 5000 }).toMatchObject({ name: "BadTooManySessions" });
  expect(report()?.error?.detail).toContain("ends within 10 s");
  const asked = simulator.requests("CreateSession");
  await other.close();
  await new Promise((done) => setTimeout(done, 3000));
  expect(simulator.requests("CreateSession")).toBe(asked);
  await expect.poll(good, { timeout: 20_000 }).toBeGreaterThan(0);
  expect(Date.now() - began).toBeGreaterThanOrEqual(10_000);
  expect(report()?.status.state.type).toBe("OK");
});

it.each([
  ["this thread", false],
  ["the session worker", true],
])(
  "reads on where a path leads now, with the session in %s: its node is another one while the server runs, and after its restart",
  {
    timeout: 60_000,
  },
  async (_, isRemote) => {
    const simulator = await start({ bulk: 4 });
    const path = (i: number, n: number | string) => `/Objects/${i}:Plant/${i}:Bulk/${i}:Bulk.${n}`;
    const i = simulator.plantIndex;
    const { readouts, states, report } = await watch(simulator.port, {}, [path(i, 1), path(i, 2), path(i, "none")], isRemote);
    const last = () => readouts.at(-1)?.readout.readings.slice(3);
    expect(last()).toMatchObject([{ value: 1.25 }, { value: 2.25 }, { fault: "not_found", detail: expect.stringContaining("BadNoMatch") }]);
    const asked = simulator.requests("TranslateBrowsePathsToNodeIds");
    const before = readouts.length;
    simulator.variable("Bulk.1").moveTo("Elsewhere", 77);
    await expect.poll(last, { timeout: 10_000 }).toMatchObject([{ value: 77 }, { value: 2.25 }, { fault: "not_found" }]);
    // Within the readout that found it gone; nobody is without a value, and the plain node that is missing asks for nothing.
    for (const { readout } of readouts.slice(before)) expect(readout.readings[4]).toMatchObject({ value: 2.25 });
    expect(simulator.requests("TranslateBrowsePathsToNodeIds")).toBe(asked + 1);
    expect(states).not.toContain("ERROR");
    await simulator.close();
    await expect.poll(() => report()?.status.state.type, { timeout: 10_000 }).toBe("ERROR");
    // Of the same id is something else by now: what the path led to must not be read for it.
    const renewed = await start({ bulk: 4, port: simulator.port });
    renewed.variable("Bulk.1").moveTo("Elsewhere again", 78);
    renewed.variable("Bulk.3").moveTo("Elsewhere", -1);
    const from = readouts.length;
    await expect.poll(last, { timeout: 20_000 }).toMatchObject([{ value: 78 }, { value: 2.25 }, { fault: "not_found" }]);
    const values = readouts.slice(from).map(({ readout }) => readout.readings[3]);
    expect(values.filter((reading) => reading?.quality === "good" && reading.value === -1)).toEqual([]);
  },
);

it("says in status what every sink gets of a variable whose type changes: its fault, until a value fits the type it had first", async () => {
  const simulator = await start();
  const { report, readouts } = await watch(simulator.port);
  const last = () => readouts.at(-1)?.readout.readings[0];
  const faults = () => report()?.faults.map(({ variable, fault }) => `${variable} ${fault}`);
  for (let round = 0; round < 2; round++) {
    simulator.variable("Double").set({ dataType: "String", value: "text" });
    await expect.poll(last, { timeout: 10_000 }).toMatchObject({ quality: "bad", fault: "type_mismatch" });
    expect(faults()).toEqual(["Double type_mismatch", "Missing not_found"]);
    expect(report()?.faults[0]?.detail).toBe(
      "text (string) is not a float64, the type that came with its first value; configure a type for it",
    );
    expect(readouts.at(-1)?.layout.variables[0]?.type.scalar).toBe("float64");
    simulator.variable("Double").set({ dataType: "Double", value: 7.5 });
    await expect.poll(last, { timeout: 10_000 }).toMatchObject({ quality: "good", value: 7.5 });
    expect(faults()).toEqual(["Missing not_found"]);
  }
  expect(report()?.status.state.type).toBe("OK");
});
