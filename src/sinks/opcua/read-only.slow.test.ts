import {
  AttributeIds,
  type ClientSession,
  coerceNodeId,
  DataType,
  NodeClass,
  ObjectIds,
  type OPCUAClient,
  StatusCodes,
  Variant,
} from "node-opcua-client";
import { AddNodesRequest, DeleteNodesRequest } from "node-opcua-service-node-management";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { batchOf, createRig, good, layoutOf, type Rig, reportOf, user, variableOf } from "./testing/rig.ts";

const LAYOUT = layoutOf("press", variableOf("temp", { scalar: "float64" }, { unit: "K" }));
const OURS = ["v-temp", "v-temp/EngineeringUnits", "s-press", "s-press/Status/State", "DataSources", "Collector/Status/State"];

let rig: Rig;
let client: OPCUAClient;
let session: ClientSession;

beforeAll(async () => {
  rig = await createRig();
  rig.server.trust(rig.client.own);
  const sink = await rig.open({}, { users: { op: "secret" } });
  await sink.describe?.([reportOf(LAYOUT)], rig.ctx());
  await sink.write(batchOf(LAYOUT, [good(1)]), rig.ctx());
  client = await rig.clientOf();
  await client.connect(sink.url);
  session = await client.createSession(user("op", "secret"));
});
afterAll(async () => {
  await session.close();
  await rig.end();
});

const ATTRIBUTES = Object.values(AttributeIds).filter((id): id is AttributeIds => typeof id === "number" && id >= 1 && id <= 27);
const value = new Variant({ dataType: DataType.Double, value: 99 });

/** Every variable that the server has, its own included. */
async function allVariables(): Promise<string[]> {
  const found = new Set<string>();
  const seen = new Set<string>();
  let level = ["i=85"];
  while (level.length > 0) {
    const pages = await session.browse(level.map((nodeId) => ({ nodeId, referenceTypeId: "i=33", includeSubtypes: true, resultMask: 63 })));
    const next: string[] = [];
    for (const { references } of pages)
      for (const { nodeId, nodeClass } of references ?? []) {
        const id = nodeId.toString();
        if (seen.has(id)) continue;
        seen.add(id);
        if (nodeClass === NodeClass.Variable) found.add(id);
        next.push(id);
      }
    level = next.slice(0, 1000);
  }
  return [...found];
}

describe("whoever is logged in", () => {
  test("writes no attribute of any node of ours", async () => {
    for (const id of OURS) {
      const results = await session.write(
        ATTRIBUTES.map((attributeId) => ({ nodeId: coerceNodeId(`ns=1;s=${id}`), attributeId, value: { value } })),
      );
      expect(new Set(results.map(({ name }) => name))).toEqual(new Set(["BadNotWritable"]));
    }
    const after = await session.read({ nodeId: "ns=1;s=v-temp", attributeId: AttributeIds.Value });
    expect(after.value.value).toBe(1);
  });

  test("writes no variable of the server's own", async () => {
    const variables = await allVariables();
    expect(variables.length).toBeGreaterThan(200);
    const before = await session.read(variables.map((nodeId) => ({ nodeId, attributeId: AttributeIds.Value })));
    const results = await session.write(
      variables.map((nodeId, i) => ({ nodeId, attributeId: AttributeIds.Value, value: { value: before[i]?.value ?? value } })),
    );
    expect(results.filter(({ name }) => name !== "BadNotWritable")).toEqual([]);
  });

  test("calls no method, of the standard's either, and sees that none can be called", async () => {
    const methods = [ObjectIds.Server, ObjectIds.Server].map((objectId, i) => ({
      objectId: `i=${objectId}`,
      methodId: ["i=11492", "i=12873"][i] ?? "",
      inputArguments: [new Variant({ dataType: DataType.UInt32, value: 1 })],
    }));
    const results = await session.call([...methods, { objectId: "ns=1;s=s-press", methodId: "ns=1;s=anything", inputArguments: [] }]);
    expect(results.map(({ statusCode }) => statusCode.name)).toEqual(["BadNotExecutable", "BadNotExecutable", "BadNotExecutable"]);
    const executable = await session.read({ nodeId: "i=11492", attributeId: AttributeIds.Executable });
    expect(executable.value.value).toBe(false);
  });

  test.each([
    ["AddNodes", () => new AddNodesRequest({ nodesToAdd: [] })],
    ["DeleteNodes", () => new DeleteNodesRequest({ nodesToDelete: [{ nodeId: coerceNodeId("ns=1;s=v-temp") }] })],
  ])("has no %s", async (_name, make) => {
    const performed = (session as unknown as { performMessageTransaction(request: unknown): Promise<unknown> }).performMessageTransaction(
      make(),
    );
    await expect(performed).rejects.toThrow(StatusCodes.BadServiceUnsupported.name);
    expect((await session.read({ nodeId: "ns=1;s=v-temp", attributeId: AttributeIds.Value })).statusCode.name).toBe("Good");
  });

  test("reads no history and updates none", async () => {
    const history = await session.readHistoryValue({ nodeId: "ns=1;s=v-temp" }, new Date(0), new Date());
    expect(history.statusCode.isBad()).toBe(true);
  });
});
