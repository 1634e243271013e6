import { type ClientSession, type NodeId, resolveNodeId, StatusCodes } from "node-opcua-client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Context, Log } from "../../src/model/context.ts";
import { silentLog } from "../../src/model/context.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { Discovered } from "../driver.ts";
import { addressOf, type DiscoveryOptions, type DiscoverySession, discover } from "./discover.ts";
import { type OpcuaSimulator, type OpcuaSimulatorOptions, PLANT_NAMESPACE, startOpcuaSimulator } from "./simulator.ts";
import { createWitness, type Witness } from "./simulator-client.ts";

let witness: Witness;
let simulator: OpcuaSimulator | undefined;
beforeAll(async () => {
  witness = await createWitness();
});
afterEach(async () => {
  await simulator?.close();
  simulator = undefined;
});
afterAll(() => witness.close());

const context = (signal = new AbortController().signal, log: Log = silentLog): Context => ({ signal, log });

/** Another's session, whose refusals of a request are faults as the driver's are. */
function asking(session: ClientSession): DiscoverySession {
  const faulting = async <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw /TooManyOperations|ResponseTooLarge/.test(String(error)) ? new FaultError("device_error", String(error)) : error;
    });
  return {
    browse: (nodes) => faulting(session.browse(nodes)),
    browseNext: (points, release) => faulting(session.browseNext(points, release)),
    read: (nodes) => faulting(session.read(nodes)),
  };
}

async function all(found: AsyncIterable<Discovered>): Promise<Discovered[]> {
  const list: Discovered[] = [];
  for await (const one of found) list.push(one);
  return list;
}

async function discovered(options: OpcuaSimulatorOptions, more: Partial<DiscoveryOptions> = {}): Promise<Discovered[]> {
  simulator = await startOpcuaSimulator(options);
  return witness.withSession(simulator.endpointUrl, async (session) => {
    const namespaces = (await session.readNamespaceArray()) ?? [];
    return all(discover(asking(session), { namespaces, ...more }, context()));
  });
}
const id = (text: string): string => `nsu=${PLANT_NAMESPACE};s=${text}`;

describe("discovery on a server", () => {
  it("finds every variable with type, path, unit and description, and nothing of the server's own", async () => {
    const found = await discovered({ bulk: 3 });
    const by = new Map(found.map((one) => [one.address, one]));
    expect(by.size).toBe(found.length);
    expect(by.get(id("Plant"))).toEqual({ address: id("Plant"), name: "Plant", path: [], type: undefined });
    expect(by.get(id("Int64"))).toEqual({ address: id("Int64"), name: "Int64", path: ["Plant", "Types"], type: { scalar: "int64" } });
    for (const { address, type } of simulator?.variables ?? []) {
      const expected = type.replace(/\[\d+\]$/, "");
      // Arrays of the plant have no fixed length; the matrix has.
      if (expected === type) expect(by.get(address)?.type, address).toMatchObject({ scalar: type.replace(/\[.*/, "") });
      else expect(by.get(address)?.type, address).toEqual({ scalar: "auto" });
    }
    expect(by.get(id("Matrix"))?.type).toEqual({ scalar: "float64", count: 6, dimensions: [2, 3] });
    expect(by.get(id("Enumeration"))?.type).toEqual({ scalar: "int32" });
    expect(by.get(id("Structure"))?.type).toEqual({ scalar: "string" });
    expect(by.get(id("Analog"))).toMatchObject({
      name: "Öltemperatur",
      unit: "°C",
      comment: "Temperature of the oil, measured behind the pump",
      type: { scalar: "float64" },
    });
    expect(by.get(id("NotReadable"))?.type).toBeUndefined();
    expect(by.get(id("Bad"))?.type).toEqual({ scalar: "float64" });
    expect(found.some(({ name }) => /EngineeringUnits|EURange|ServerStatus|Aliases/.test(name))).toBe(false);
    const depths = found.map(({ path = [] }) => path.length);
    expect(depths).toEqual([...depths].sort((a, b) => a - b));
  });

  it.each([
    ["thousands of nodes, in pages of seven", 3, { maxReferencesPerNode: 7 }, {}],
    ["all nodes, with three in a Browse and four in a Read", 2, { operationLimits: { maxNodesPerBrowse: 3, maxNodesPerRead: 4 } }, {}],
    [
      "all nodes, with three in a Browse and four in a Read, as it says",
      2,
      { operationLimits: { maxNodesPerBrowse: 3, maxNodesPerRead: 4 } },
      { maxNodesPerBrowse: 3, maxNodesPerRead: 4 },
    ],
  ] as const)("finds %s, in a tree with a cycle", async (_, depth, options, more) => {
    const found = await discovered({ ...options, bulk: 20, tree: { depth, folders: 6, variables: 4 } }, more);
    const folders = depth === 3 ? 1 + 6 + 36 + 216 : 1 + 6 + 36;
    expect(found.filter(({ address }) => address.startsWith(id("Tree")))).toHaveLength(folders + folders * 4);
    expect(found.filter(({ address }) => /s=Bulk\.\d/.test(address))).toHaveLength(20);
    expect(new Set(found.map(({ address }) => address)).size).toBe(found.length);
  });

  it("ends in the middle when nobody asks any more, and when it is stopped", async () => {
    simulator = await startOpcuaSimulator({ bulk: 400 });
    await witness.withSession(simulator.endpointUrl, async (session) => {
      const namespaces = (await session.readNamespaceArray()) ?? [];
      const seen: string[] = [];
      for await (const { name } of discover(asking(session), { namespaces }, context())) {
        seen.push(name);
        if (seen.length === 3) break;
      }
      expect(seen).toHaveLength(3);
      const controller = new AbortController();
      const stopped = (async () => {
        for await (const _ of discover(asking(session), { namespaces }, context(controller.signal))) controller.abort();
      })();
      await expect(stopped).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    });
  });

  it("passes on what the server refuses", async () => {
    simulator = await startOpcuaSimulator({ bulk: 2 });
    simulator.misbehave({ service: "Browse", after: 1, answer: { fault: StatusCodes.BadOutOfService } });
    await witness.withSession(simulator.endpointUrl, (session) =>
      expect(all(discover(asking(session), { namespaces: [] }, context()))).rejects.toThrow(/BadOutOfService/),
    );
  });
});

interface Reference {
  readonly to: string;
  readonly name?: string;
  readonly variable?: boolean;
}

/** A server of our own making, by what lies below each node. */
function serverOf(
  below: (node: string) => readonly Reference[],
  pageSize = Number.POSITIVE_INFINITY,
  maxPoints = Number.POSITIVE_INFINITY,
) {
  const points = new Map<string, readonly Reference[]>();
  const calls = { browse: 0, next: 0, released: 0, read: 0 };
  let count = 0;
  const page = (references: readonly Reference[]) => {
    const rest = references.slice(pageSize);
    if (rest.length > 0 && points.size >= maxPoints) return { statusCode: StatusCodes.BadNoContinuationPoints, references: [] };
    let continuationPoint: Buffer | undefined;
    if (rest.length > 0) {
      continuationPoint = Buffer.from(String(++count));
      points.set(String(count), rest);
    }
    return {
      statusCode: StatusCodes.Good,
      continuationPoint,
      references: references.slice(0, pageSize).map(({ to, name = to, variable = false }) => ({
        nodeId: Object.assign(resolveNodeId(to), { serverIndex: 0 }),
        nodeClass: variable ? 2 : 1,
        browseName: { name, namespaceIndex: 1 },
        displayName: { text: name },
        referenceTypeId: resolveNodeId("i=35"),
      })),
    };
  };
  const session = {
    async browse(nodes: readonly { nodeId: NodeId | string }[]) {
      calls.browse++;
      return nodes.map(({ nodeId }) => page(below(nodeId.toString())));
    },
    async browseNext(asked: readonly Buffer[], release: boolean) {
      if (release) calls.released += asked.length;
      else calls.next++;
      return asked.map((point) => {
        const rest = points.get(String(point)) ?? [];
        points.delete(String(point));
        return page(release ? [] : rest);
      });
    },
    async read(nodes: readonly unknown[]) {
      calls.read++;
      return nodes.map(() => ({ statusCode: StatusCodes.BadAttributeIdInvalid }));
    },
  };
  return { session: session as unknown as DiscoverySession, calls, points };
}

describe("discovery on a hostile server", () => {
  it("asks again for folders for which no continuation point was free", async () => {
    const folders = ["ns=1;s=a", "ns=1;s=b", "ns=1;s=c"];
    const { session, points } = serverOf(
      (node) => {
        if (node === "i=85") return folders.map((to) => ({ to }));
        if (folders.includes(node)) return Array.from({ length: 10 }, (_, i) => ({ to: `${node}.${i}`, variable: true }));
        return [];
      },
      4,
      1,
    );
    const found = await all(discover(session, { namespaces: [] }, context()));
    expect(found).toHaveLength(3 + 30);
    expect(points.size).toBe(0);
  });

  it("ends where folders lie in folders without end, and says so", async () => {
    const { session } = serverOf((node) => [{ to: `${node.replace("i=85", "ns=1;s=x")}x` }]);
    const warned: object[] = [];
    const log: Log = { ...silentLog, warn: (fields) => warned.push(fields) };
    const found = await all(discover(session, { namespaces: [] }, context(undefined, log)));
    expect(found.length).toBeLessThan(100);
    expect(warned).toHaveLength(1);
  });

  it("ends at a bound where a folder has members without end, and gives the continuation point back", async () => {
    let next = 0;
    let released = 0;
    const { session } = serverOf((node) => (node === "i=85" ? [{ to: "ns=1;s=endless" }] : []));
    const endless: DiscoverySession = {
      ...session,
      async browse(nodes, maxReferences) {
        const results = await session.browse(nodes, maxReferences);
        if (String(nodes[0]?.nodeId) === "ns=1;s=endless" && results[0]) results[0].continuationPoint = Buffer.from("more");
        return results;
      },
      async browseNext(points, release) {
        if (release) released++;
        else next++;
        const results = await session.browseNext(points, release);
        if (results[0] && !release) results[0].continuationPoint = Buffer.from("more");
        return results;
      },
    };
    const found = await all(discover(endless, { namespaces: [] }, context()));
    expect(found).toHaveLength(1);
    expect(next).toBeLessThan(1000);
    expect(released).toBe(1);
  });

  it("keeps types, names and texts within bounds", async () => {
    const { session } = serverOf((node) => (node === "i=85" ? [{ to: "ns=7;s=v", name: "n".repeat(5000), variable: true }] : []));
    const [found] = await all(discover(session, { namespaces: ["", "urn:a"] }, context()));
    expect(found?.name).toHaveLength(200);
    expect(found).toMatchObject({ address: "ns=7;s=v", type: { scalar: "auto" } });
  });
});

describe("what is remembered", () => {
  it("is bounded in nodes and in characters, and that is said", { timeout: 60_000 }, async () => {
    const warned: object[] = [];
    const log: Log = { ...silentLog, warn: (fields) => warned.push(fields) };
    const wide = serverOf((node) =>
      node === "i=85" ? Array.from({ length: 250_020 }, (_, i) => ({ to: `ns=1;i=${i + 1}`, variable: true })) : [],
    );
    expect(await all(discover(wide.session, { namespaces: [] }, context(undefined, log)))).toHaveLength(249_999);
    const long = serverOf((node) => (node === "i=85" ? [{ to: `ns=1;s=${"x".repeat(5000)}` }, { to: "ns=1;s=short" }] : []));
    expect(await all(discover(long.session, { namespaces: [] }, context(undefined, log)))).toHaveLength(1);
    expect(warned).toHaveLength(2);
  });
});

describe("addressOf", () => {
  it.each([
    ["i=2258", "i=2258"],
    ["ns=1;i=7", "nsu=urn:a%3Bb%25;i=7"],
    ["ns=2;s=a;b=c", "ns=2;s=a;b=c"],
    ["ns=1;g=72962B91-FA75-4AE6-8D28-B404DC7DAF63", "nsu=urn:a%3Bb%25;g=72962b91-fa75-4ae6-8d28-b404dc7daf63"],
    ["ns=2;b=AAH+/w==", "ns=2;b=AAH+/w=="],
  ])("writes %s as %s", (node, text) => {
    expect(addressOf(resolveNodeId(node), ["http://opcfoundation.org/UA/", "urn:a;b%", ""])).toBe(text);
  });
});
