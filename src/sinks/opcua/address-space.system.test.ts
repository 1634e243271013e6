import {
  AttributeIds,
  DataType as BuiltIn,
  type ClientSession,
  ClientSubscription,
  type DataValue,
  MonitoringMode,
  makeBrowsePath,
  type OPCUAClient,
  TimestampsToReturn,
  VariableIds,
  VariantArrayType,
} from "node-opcua-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Layout } from "../../model/layout.ts";
import { parseDataType } from "../../model/value.ts";
import type { Sink } from "../sink.ts";
import { LIMITS } from "./limits.ts";
import { batchOf, createRig, failing, good, layoutOf, type Rig, reportOf, user, variableOf } from "./testing/rig.ts";

const USERS = { op: "correct horse" };
let rig: Rig;
let sink: Sink & { readonly url: string };
let client: OPCUAClient;
let session: ClientSession;

beforeAll(async () => {
  rig = await createRig();
  rig.server.trust(rig.client.own);
});
afterAll(() => rig.end());
beforeEach(async () => {
  sink = await rig.open({}, { users: USERS });
  client = await rig.clientOf();
  await client.connect(sink.url);
  session = await client.createSession(user("op", USERS.op));
});
afterEach(async () => {
  await session.close().catch(() => {});
  await client.disconnect();
  await sink.close();
});

const describeNow = async (...layouts: readonly Layout[]): Promise<void> =>
  sink.describe?.(
    layouts.map((layout) => reportOf(layout)),
    rig.ctx(),
  );
const read = async (id: string, attributeId = AttributeIds.Value): Promise<DataValue> =>
  session.read({ nodeId: `ns=1;s=${id}`, attributeId });
const children = async (id: string): Promise<string[]> =>
  ((await session.browse(id)).references ?? []).map(({ browseName, nodeId }) => `${browseName.name} ${nodeId}`);

/** What a monitored item is told, as `status value`. */
async function watch(id: string): Promise<{ readonly seen: string[] }> {
  const subscription = ClientSubscription.create(session, { requestedPublishingInterval: 50, publishingEnabled: true });
  const seen: string[] = [];
  const group = await subscription.monitor(
    { nodeId: `ns=1;s=${id}`, attributeId: AttributeIds.Value },
    { samplingInterval: 100, queueSize: 10, discardOldest: true },
    TimestampsToReturn.Both,
    MonitoringMode.Reporting,
  );
  group.on("changed", (value: DataValue) => void seen.push(`${value.statusCode.name} ${value.value.value}`));
  await expect.poll(() => seen.length).toBeGreaterThan(0);
  return { seen };
}

const TYPES: readonly (readonly [type: string, value: Parameters<typeof good>[0], dataType: BuiltIn, read: unknown])[] = [
  ["bool", true, BuiltIn.Boolean, true],
  ["int8", -7, BuiltIn.SByte, -7],
  ["uint8", 200, BuiltIn.Byte, 200],
  ["int16", -30_000, BuiltIn.Int16, -30_000],
  ["uint16", 60_000, BuiltIn.UInt16, 60_000],
  ["int32", -2_000_000_000, BuiltIn.Int32, -2_000_000_000],
  ["uint32", 4_000_000_000, BuiltIn.UInt32, 4_000_000_000],
  ["int64", -9_223_372_036_854_775_807n, BuiltIn.Int64, [0x8000_0000, 1]],
  ["uint64", 18_446_744_073_709_551_615n, BuiltIn.UInt64, [0xffff_ffff, 0xffff_ffff]],
  ["float32", 1.5, BuiltIn.Float, 1.5],
  ["float64", Math.PI, BuiltIn.Double, Math.PI],
  ["string(20)", "Fräse 1", BuiltIn.String, "Fräse 1"],
  ["bool[2]", [true, false], BuiltIn.Boolean, [true, false]],
  ["float32[3]", [1, 2, 3], BuiltIn.Float, new Float32Array([1, 2, 3])],
  [
    "int64[2]",
    [1n, -1n],
    BuiltIn.Int64,
    [
      [0, 1],
      [0xffff_ffff, 0xffff_ffff],
    ],
  ],
  ["string[2]", ["a", ""], BuiltIn.String, ["a", ""]],
];

describe("what a client sees", () => {
  test("sources, variables and status, by names and by ids that are uuids", async () => {
    await describeNow(layoutOf("press", variableOf("temp", { scalar: "float64" })), layoutOf("oven"));
    expect(await children("ns=1;s=DataSources")).toEqual(["press ns=1;s=s-press", "oven ns=1;s=s-oven"]);
    expect(await children("ns=1;s=s-press")).toEqual(["Status ns=1;s=s-press/Status", "temp ns=1;s=v-temp"]);
    expect((await children("ns=1;s=s-press/Status")).map((child) => child.split(" ")[0])).toEqual([
      "State",
      "Reason",
      "Detail",
      "Warnings",
      "LastReadout",
      "NextRetry",
      "Clock",
    ]);
    expect((await children("ObjectsFolder")).map((child) => child.split(" ")[0])).toEqual(
      expect.arrayContaining(["Server", "DataSources", "Collector"]),
    );
    const path = await session.translateBrowsePath(makeBrowsePath("ObjectsFolder", "/1:DataSources/1:press/1:temp"));
    expect(path.targets?.map(({ targetId }) => targetId.toString())).toEqual(["ns=1;s=v-temp"]);
    expect(await session.readNamespaceArray()).toEqual(["http://opcfoundation.org/UA/", rig.server.own.applicationUri]);
  });

  test.each(TYPES)("%s", async (text, value, dataType, expected) => {
    const type = parseDataType(text);
    if (!type) throw new Error(text);
    const layout = layoutOf("press", variableOf("x", type));
    await describeNow(layout);
    expect((await read("v-x")).statusCode.name).toBe("BadWaitingForInitialData");
    await sink.write(batchOf(layout, [good(value)]), rig.ctx());
    const { value: variant, statusCode } = await read("v-x");
    expect(statusCode.name).toBe("Good");
    expect(variant.dataType).toBe(dataType);
    expect(variant.value).toEqual(expected);
    expect((await read("v-x", AttributeIds.DataType)).value.value.value).toBe(dataType);
    expect((await read("v-x", AttributeIds.ValueRank)).value.value).toBe(type.count === undefined ? -1 : 1);
  });

  test("a matrix has its dimensions", async () => {
    const layout = layoutOf("press", variableOf("m", { scalar: "int32", count: 6, dimensions: [2, 3] }));
    await describeNow(layout);
    await sink.write(batchOf(layout, [good([1, 2, 3, 4, 5, 6])]), rig.ctx());
    const { value } = await read("v-m");
    expect(value).toMatchObject({ arrayType: VariantArrayType.Matrix, dimensions: [2, 3], value: new Int32Array([1, 2, 3, 4, 5, 6]) });
    expect([...(await read("v-m", AttributeIds.ArrayDimensions)).value.value]).toEqual([2, 3]);
  });

  test("unit, description, interval and access", async () => {
    const layout = layoutOf("press", variableOf("temp", { scalar: "float64" }, { unit: "°C", comment: "oil in the tank" }));
    await describeNow(layout);
    expect((await read("v-temp", AttributeIds.Description)).value.value.text).toBe("oil in the tank");
    expect((await read("v-temp", AttributeIds.MinimumSamplingInterval)).value.value).toBe(1000);
    expect((await read("v-temp", AttributeIds.AccessLevel)).value.value).toBe(1);
    expect((await read("v-temp", AttributeIds.UserAccessLevel)).value.value).toBe(1);
    expect((await read("v-temp/EngineeringUnits")).value.value.displayName.text).toBe("°C");
  });

  test("names that mean something to the library are only names", async () => {
    const names = [
      "__proto__",
      "constructor",
      "nodeId",
      "browseName",
      "on",
      "toString",
      "Status",
      "a.b/c:1",
      "",
      "x".repeat(600),
      "Größe\u0000",
    ];
    const layout = layoutOf("constructor", ...names.map((name, i) => variableOf(name, { scalar: "int16" }, { uuid: `n-${i}` })));
    await describeNow(layout);
    await sink.write(
      batchOf(
        layout,
        names.map((_, i) => good(i)),
      ),
      rig.ctx(),
    );
    const values = await session.read(names.map((_, i) => ({ nodeId: `ns=1;s=n-${i}`, attributeId: AttributeIds.Value })));
    expect(values.map(({ value }) => value.value)).toEqual(names.map((_, i) => i));
    const displayed = await session.read(names.map((_, i) => ({ nodeId: `ns=1;s=n-${i}`, attributeId: AttributeIds.DisplayName })));
    expect(displayed.map(({ value }) => value.value.text)).toEqual(names.map((name) => name || "unnamed"));
    await describeNow();
    expect(await children("ns=1;s=DataSources")).toEqual([]);
  });

  test("the limits of the server stand under its capabilities", async () => {
    const { OperationLimits_MaxNodesPerRead, ...others } = Object.fromEntries(
      [
        "MaxSessions",
        "MaxMonitoredItems",
        "MaxSubscriptionsPerSession",
        "OperationLimits_MaxNodesPerRead",
        "OperationLimits_MaxMonitoredItemsPerCall",
      ].map((name) => [name, Reflect.get(VariableIds, `Server_ServerCapabilities_${name}`)]),
    );
    const nodes = [OperationLimits_MaxNodesPerRead, ...Object.values(others)].map((id) => ({
      nodeId: `i=${id}`,
      attributeId: AttributeIds.Value,
    }));
    const shown = await session.read(nodes);
    expect(shown.map(({ value }) => value.value)).toEqual([
      LIMITS.nodesPerRead,
      LIMITS.sessions,
      LIMITS.monitoredItems,
      LIMITS.subscriptionsPerSession,
      LIMITS.itemsPerCall,
    ]);
    const tooMany = Array.from({ length: LIMITS.nodesPerRead + 1 }, () => nodes[0] ?? "");
    await expect(session.read(tooMany as never)).rejects.toThrow("BadTooManyOperations");
  });

  test("10,000 variables are browsed and read to the last", async () => {
    const layout = layoutOf("big", ...Array.from({ length: 10_000 }, (_, i) => variableOf(`${i}`, { scalar: "int32" })));
    await describeNow(layout);
    await sink.write(
      batchOf(
        layout,
        layout.variables.map((_, i) => good(i)),
      ),
      rig.ctx(),
    );
    let page = await session.browse("ns=1;s=s-big");
    let found = page.references?.length ?? 0;
    while (page.continuationPoint) {
      page = await session.browseNext(page.continuationPoint, false);
      found += page.references?.length ?? 0;
    }
    expect(found).toBe(10_001);
    const last = await session.read(
      layout.variables.slice(-1000).map(({ uuid }) => ({ nodeId: `ns=1;s=${uuid}`, attributeId: AttributeIds.Value })),
    );
    expect(last.at(-1)?.value.value).toBe(9999);
  }, 30_000);
});

describe("changes while a client watches", () => {
  const temp = variableOf("temp", { scalar: "float64" });
  const layout = layoutOf("press", temp);

  test("a rename keeps id and subscription, and is seen by browsing", async () => {
    await describeNow(layout);
    await sink.write(batchOf(layout, [good(1)]), rig.ctx());
    const { seen } = await watch("v-temp");
    const renamed: Layout = {
      source: { uuid: "s-press", name: "Press-A" },
      variables: [{ ...temp, name: "Temperature", unit: "K", comment: "new" }],
    };
    await describeNow(renamed);
    await sink.write(batchOf(renamed, [good(2)]), rig.ctx());
    await expect.poll(() => seen).toEqual(["Good 1", "Good 2"]);
    expect(await children("ns=1;s=DataSources")).toEqual(["Press-A ns=1;s=s-press"]);
    expect(await children("ns=1;s=s-press")).toContain("Temperature ns=1;s=v-temp");
    expect((await read("v-temp", AttributeIds.DisplayName)).value.value.text).toBe("Temperature");
    expect((await read("v-temp", AttributeIds.Description)).value.value.text).toBe("new");
    expect((await read("v-temp/EngineeringUnits")).value.value.displayName.text).toBe("K");
    const path = await session.translateBrowsePath(makeBrowsePath("ObjectsFolder", "/1:DataSources/1:Press-A/1:Temperature"));
    expect(path.targets?.map(({ targetId }) => targetId.toString())).toEqual(["ns=1;s=v-temp"]);
  });

  test("others come and go, and the watched one goes on; one that is removed says so", async () => {
    await describeNow(layout);
    await sink.write(batchOf(layout, [good(1)]), rig.ctx());
    const { seen } = await watch("v-temp");
    const grown = layoutOf("press", variableOf("speed", { scalar: "int16" }), temp);
    await describeNow(grown, layoutOf("oven", variableOf("heat", { scalar: "int16" })));
    await sink.write(batchOf(grown, [good(7), good(2)]), rig.ctx());
    expect((await read("v-speed")).value.value).toBe(7);
    await describeNow(layout);
    await sink.write(batchOf(layout, [good(3)]), rig.ctx());
    await expect.poll(() => seen).toEqual(["Good 1", "Good 2", "Good 3"]);
    expect((await read("v-speed")).statusCode.name).toBe("BadNodeIdUnknown");
    expect((await read("v-heat")).statusCode.name).toBe("BadNodeIdUnknown");
    await describeNow();
    await expect.poll(() => seen.at(-1)).toMatch(/^BadNodeId/);
  });

  test("a type that is settled by the first value, and one that is configured again", async () => {
    const open = layoutOf("press", variableOf("x", { scalar: "auto" }));
    await describeNow(open);
    expect((await read("v-x", AttributeIds.DataType)).value.value.value).toBe(24);
    await sink.write(batchOf(open, [good(7, { type: { scalar: "uint16" } })]), rig.ctx());
    expect((await read("v-x")).value).toMatchObject({ dataType: BuiltIn.UInt16, value: 7 });
    const settled = layoutOf("press", variableOf("x", { scalar: "uint16" }));
    await describeNow(settled);
    expect((await read("v-x", AttributeIds.DataType)).value.value.value).toBe(BuiltIn.UInt16);
    expect((await read("v-x")).value.value).toBe(7);
    const changed = layoutOf("press", variableOf("x", { scalar: "float32", count: 2 }));
    await describeNow(changed);
    await sink.write(batchOf(changed, [good([1, 2])]), rig.ctx());
    expect((await read("v-x", AttributeIds.DataType)).value.value.value).toBe(BuiltIn.Float);
    expect((await read("v-x", AttributeIds.ValueRank)).value.value).toBe(1);
    expect((await read("v-x")).value.value).toEqual(new Float32Array([1, 2]));
  });

  test("an array that comes with another length says that its length is not known, until it is configured", async () => {
    const matrix = variableOf("m", { scalar: "int32", count: 6, dimensions: [2, 3] });
    const arrays = layoutOf("press", variableOf("a", { scalar: "int32", count: 2 }), matrix);
    await describeNow(arrays);
    const shape = async (id: string) => {
      const [rank, dimensions] = [await read(id, AttributeIds.ValueRank), await read(id, AttributeIds.ArrayDimensions)];
      return [rank.value.value, dimensions.value.value && [...dimensions.value.value]];
    };
    await sink.write(batchOf(arrays, [good([1, 2]), good([1, 2, 3, 4, 5, 6])]), rig.ctx());
    expect([await shape("v-a"), await shape("v-m")]).toEqual([
      [1, [2]],
      [2, [2, 3]],
    ]);
    for (const value of [[1, 2, 3], [], [4]]) {
      await sink.write(batchOf(arrays, [good(value), good([1, 2, 3, 4])]), rig.ctx());
      expect([...(await read("v-a")).value.value]).toEqual(value);
      expect(await shape("v-a")).toEqual([1, [0]]);
      expect((await shape("v-m"))[0]).toBe(-2);
      expect([...(await read("v-m")).value.value]).toEqual([1, 2, 3, 4]);
    }
    const again = layoutOf("press", variableOf("a", { scalar: "int32", count: 3 }), matrix);
    await describeNow(again);
    await sink.write(batchOf(again, [good([1, 2, 3]), good([1, 2, 3, 4, 5, 6])]), rig.ctx());
    expect([await shape("v-a"), await shape("v-m")]).toEqual([
      [1, [3]],
      [2, [2, 3]],
    ]);
  });

  test("each value that is read comes to the client once, whatever sampling it asks for", async () => {
    await describeNow(layout);
    await sink.write(batchOf(layout, [good(0)]), rig.ctx());
    const { seen } = await watch("v-temp");
    for (let i = 1; i <= 20; i++) {
      await sink.write(batchOf(layout, [good(i)], Date.now() + i), rig.ctx());
      await new Promise((done) => setTimeout(done, 20));
    }
    await expect.poll(() => seen).toEqual(Array.from({ length: 21 }, (_, i) => `Good ${i}`));
  });

  test("the quality goes with the source: last usable, no communication, and back", async () => {
    const fast = { interval_ms: 400 };
    await sink.describe?.([reportOf(layout, fast)], rig.ctx());
    await sink.write(batchOf(layout, [good(1)]), rig.ctx());
    const { seen } = await watch("v-temp");
    await sink.describe?.([failing(layout, fast)], rig.ctx());
    await expect.poll(() => seen.at(-1)).toBe("UncertainLastUsableValue 1");
    await expect.poll(() => seen.at(-1), { timeout: 10_000 }).toBe("BadNoCommunication null");
    await sink.write(batchOf(layout, [good(2)]), rig.ctx());
    await expect.poll(() => seen.at(-1)).toBe("Good 2");
    expect(seen).toHaveLength(4);
    expect((await read("s-press/Status/Reason")).value.value).toBe("TIMEOUT");
  });

  test("arrays that keep their value while only the quality changes", async () => {
    const array = layoutOf("press", variableOf("a", { scalar: "int16", count: 2 }));
    await describeNow(array);
    await sink.write(batchOf(array, [good([1, 2])]), rig.ctx());
    const { seen } = await watch("v-a");
    await sink.describe?.([failing(array)], rig.ctx());
    await expect.poll(() => seen).toEqual(["Good 1,2", "UncertainLastUsableValue 1,2"]);
  });
});

test("after a restart the ids are the same, and a client that comes back finds its nodes", async () => {
  const layout = layoutOf("press", variableOf("temp", { scalar: "float64" }));
  await describeNow(layout);
  const before = await children("ns=1;s=s-press");
  await session.close();
  await client.disconnect();
  await sink.close();
  sink = await rig.open({}, { users: USERS });
  await describeNow(layout);
  client = await rig.clientOf();
  await client.connect(sink.url);
  session = await client.createSession(user("op", USERS.op));
  expect(await children("ns=1;s=s-press")).toEqual(before);
  expect(await session.readNamespaceArray()).toEqual(["http://opcfoundation.org/UA/", rig.server.own.applicationUri]);
});
