import { StatusCodes } from "node-opcua-client";
import { afterEach, describe, expect, it } from "vitest";
import { connect, context, detailsOf, readTexts } from "../../test/support/opcua.ts";
import type { AnySession, DriverContext, Point, Prepared } from "../driver.ts";
import driver from "./driver.ts";
import { type OpcuaSimulator, type OpcuaSimulatorOptions, OTHER_NAMESPACE, PLANT_NAMESPACE, startOpcuaSimulator } from "./simulator.ts";

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});
const start = async (options: OpcuaSimulatorOptions = {}): Promise<OpcuaSimulator> => {
  const simulator = await startOpcuaSimulator({ bulk: 10, ...options });
  endings.push(() => simulator.close().catch(() => {}));
  return simulator;
};
const open = async (simulator: OpcuaSimulator, settings: Record<string, unknown> = {}): Promise<AnySession> => {
  const session = await connect(detailsOf(simulator.port), context(), { settings });
  endings.push(() => session.close());
  return session;
};
const settings = driver.settings.parse({});
const pointsOf = (texts: readonly string[]) =>
  texts.map((text, index): Point => ({ index, ...driver.parseAddress(text, undefined, settings) }));
const bulkPath = ({ plantIndex: i }: OpcuaSimulator, n: number | string) => `/Objects/${i}:Plant/${i}:Bulk/${i}:Bulk.${n}`;
const nsu = (id: string) => `nsu=${PLANT_NAMESPACE};s=${id}`;
const TRANSLATE = "TranslateBrowsePathsToNodeIds";

/** The batches of one look-up. */
async function prepare(session: AnySession, texts: readonly string[], ctx: DriverContext = context()): Promise<(readonly Prepared[])[]> {
  const batches: (readonly Prepared[])[] = [];
  for await (const batch of session.prepare?.(pointsOf(texts), ctx) ?? []) batches.push(batch);
  return batches;
}
const wordsOf = (one: Prepared | undefined): unknown => one && ("refusal" in one ? one.refusal.message : one.address);

describe("looking up addresses", () => {
  it("takes no request for nodes, and for paths as many as the server's limit makes", async () => {
    const simulator = await start({ operationLimits: { maxNodesPerTranslateBrowsePathsToNodeIds: 3 } });
    const session = await open(simulator);
    const nodes = await prepare(session, [nsu("Double"), `ns=${simulator.plantIndex};s=Double`, "i=2258"]);
    expect(nodes).toHaveLength(1);
    expect(nodes[0]?.map(wordsOf)).toEqual([
      { kind: "resolved", namespace: simulator.plantIndex, id: { type: "s", value: "Double" } },
      { kind: "resolved", namespace: simulator.plantIndex, id: { type: "s", value: "Double" } },
      { kind: "resolved", namespace: 0, id: { type: "i", value: 2258 } },
    ]);
    expect(simulator.requests(TRANSLATE)).toBe(0);
    const paths = Array.from({ length: 8 }, (_, n) => bulkPath(simulator, n));
    const batches = await prepare(session, [...paths, paths[0] ?? ""]);
    expect(batches.map((batch) => batch.length)).toEqual([4, 3, 2]);
    expect(simulator.requests(TRANSLATE)).toBe(3);
    expect(batches.flat().map(({ point }) => point.index)).toEqual([0, 8, 1, 2, 3, 4, 5, 6, 7]);
    expect(wordsOf(batches[1]?.[0])).toMatchObject({ id: { type: "s", value: "Bulk.3" }, path: paths[3] });
  });

  it("says what is not there: a path for a while, a namespace for as long as the server has these", async () => {
    const simulator = await start();
    const session = await open(simulator);
    const [none, gone] = [bulkPath(simulator, "none"), "/Objects/77:Plant"];
    const found = (await prepare(session, [none, nsu("Missing"), "nsu=urn:none;s=a", gone])).flat();
    const byIndex = [...found].sort((a, b) => a.point.index - b.point.index);
    expect(byIndex[0]).toMatchObject({ refusal: { fault: "not_found", scope: "points" }, retryAfterMs: 30_000 });
    expect(byIndex[1]).not.toHaveProperty("refusal");
    expect(byIndex[2]).toMatchObject({ refusal: { fault: "not_found", message: expect.stringContaining("urn:none") } });
    expect(byIndex[2]).not.toHaveProperty("retryAfterMs");
    expect(byIndex[3]).toHaveProperty("refusal");
  });

  it("halves what the server refuses, and one refused path costs no other", async () => {
    const simulator = await start();
    const session = await open(simulator);
    simulator.misbehave({ service: TRANSLATE, answer: { fault: StatusCodes.BadTooManyOperations }, times: 4 });
    const paths = Array.from({ length: 8 }, (_, n) => bulkPath(simulator, n));
    const found = (await prepare(session, paths)).flat();
    expect(found.map((one) => "refusal" in one)).toEqual([true, ...Array(7).fill(false)]);
    expect(wordsOf(found[0])).toContain("BadTooManyOperations");
    expect(found[0]).toMatchObject({ retryAfterMs: 30_000 });
  });

  it("tells of a busy server as busy, and goes on later on the same session", async () => {
    const simulator = await start();
    const session = await open(simulator);
    simulator.misbehave({ service: TRANSLATE, answer: { fault: StatusCodes.BadServerTooBusy }, times: 1 });
    await expect(prepare(session, [bulkPath(simulator, 1)])).rejects.toMatchObject({ name: "FaultError", scope: "busy" });
    expect((await prepare(session, [bulkPath(simulator, 1)])).flat()).toHaveLength(1);
  });

  it("ends between two requests when the signal aborts: what was found is kept, and so is the session", async () => {
    const simulator = await start({ operationLimits: { maxNodesPerTranslateBrowsePathsToNodeIds: 2 } });
    const session = await open(simulator);
    simulator.misbehave({ service: TRANSLATE, answer: { delayMs: 150 } });
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 200);
    const paths = Array.from({ length: 10 }, (_, n) => bulkPath(simulator, n));
    const found = (await prepare(session, paths, context({ signal: stop.signal }))).flat();
    expect(found.length).toBeGreaterThanOrEqual(2);
    expect(found.length).toBeLessThan(10);
    expect(simulator.requests(TRANSLATE)).toBe(found.length / 2);
    expect(session.alive()).toBe(true);
    simulator.behave();
    expect((await prepare(session, paths)).flat()).toHaveLength(10);
  });

  it("ends with a server that is silent, soon after the signal", async () => {
    const simulator = await start();
    const session = await open(simulator);
    simulator.misbehave({ service: TRANSLATE, answer: "silent" });
    const began = performance.now();
    await expect(prepare(session, [bulkPath(simulator, 1)], context({ signal: AbortSignal.timeout(100) }))).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
    });
    expect(performance.now() - began).toBeLessThan(3 * 1100);
  });
});

describe("the epoch of a session", () => {
  it("is the same for each session of one run of the server, and another after its restart", async () => {
    const simulator = await start();
    const [one, two] = [await open(simulator), await open(simulator)];
    expect(one.epoch).toBeTruthy();
    expect(two.epoch).toBe(one.epoch);
    await simulator.close();
    await expect.poll(() => one.alive()).toBe(false);
    const again = await start({ port: simulator.port });
    expect((await open(again)).epoch).not.toBe(one.epoch);
  });

  it("is another where the namespaces are", async () => {
    const simulator = await start({ namespaces: [PLANT_NAMESPACE, OTHER_NAMESPACE] });
    const one = await open(simulator);
    await simulator.close();
    const again = await start({ namespaces: [OTHER_NAMESPACE, PLANT_NAMESPACE], port: simulator.port });
    const two = await open(again);
    expect(two.epoch).not.toBe(one.epoch);
    expect((await prepare(two, [`ns=${simulator.plantIndex};s=Double`])).flat().map(wordsOf)).toMatchObject([
      { namespace: again.plantIndex },
    ]);
  });
});

describe("a node that a path led to and that is gone", () => {
  it.each(["plain", "registered", "subscribe"])("is looked up again in read_mode %s, at most once in a while", async (read_mode) => {
    const simulator = await start();
    const session = await open(simulator, { read_mode, publishing_interval: 50, sampling_interval: 50 });
    const texts = [bulkPath(simulator, 1), bulkPath(simulator, 2), nsu("Missing")];
    const points = (await prepare(session, texts)).flat().map((one): Point => {
      if ("refusal" in one) throw one.refusal;
      return { ...one.point, address: one.address };
    });
    const [request] = driver.plan(points, session.limits);
    if (!request) throw new Error("nothing is planned");
    // What the configuration names itself is what it is: no look-up helps.
    expect(await session.read(request, context())).toMatchObject([{ value: 1.25 }, { value: 2.25 }, { fault: "not_found" }]);
    const { epoch } = session;
    simulator.variable("Bulk.1").moveTo("Elsewhere", 77);
    const again = async (): Promise<unknown> => session.read(request, context()).catch((error: unknown) => error);
    await expect.poll(again).toMatchObject({ name: "FaultError", scope: "program", message: expect.stringContaining(texts[0] ?? "") });
    expect(session.epoch).not.toBe(epoch);
    expect(await session.read(request, context())).toMatchObject([{ fault: "not_found" }, { value: 2.25 }, { fault: "not_found" }]);
    expect(await readTexts(session, texts, context())).toMatchObject([{ value: 77 }, { value: 2.25 }, { fault: "not_found" }]);
  });
});
