import { AttributeIds, MessageSecurityMode, SecurityPolicy } from "node-opcua-client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Sink } from "../sink.ts";
import type * as DataTypes from "./data-type.ts";
import { itemsBody, rawClient, readBody, subscriptionBody, TYPE, u32 } from "./testing/raw-client.ts";
import { ANONYMOUS, batchOf, createRig, good, layoutOf, type Rig, reportOf, variableOf } from "./testing/rig.ts";

/** What no check lets pass: the fault of a library to come, or of a check. */
const UNENCODABLE = 4711;
vi.mock("./data-type.ts", async (load) => {
  const original = await load<typeof DataTypes>();
  const contentOf: typeof original.contentOf = (value, type) =>
    value === UNENCODABLE
      ? { dataType: 6, kind: "matrix", value: new Int32Array(6), dimensions: [-2, -3] }
      : original.contentOf(value, type);
  return { ...original, contentOf };
});

const BAD_ENCODING = 0x8006_0000;
const LAYOUT = layoutOf("press", variableOf("a", { scalar: "int32" }), variableOf("b", { scalar: "int32" }));

let rig: Rig;
let sink: Sink & { readonly url: string };
beforeAll(async () => {
  rig = await createRig();
  sink = await rig.open({ security_modes: ["None"], anonymous: true });
  await sink.describe?.([reportOf(LAYOUT)], rig.ctx());
});
afterAll(() => rig.end());

const write = (a: number, b: number) => sink.write(batchOf(LAYOUT, [good(a), good(b)]), rig.ctx());
const port = (): number => Number(new URL(sink.url.replace("opc.tcp", "http")).port);

test("an answer that cannot be encoded is a service fault to that request, and to no other", async () => {
  await write(UNENCODABLE, 2);
  const client = await rawClient(port());
  await client.open();
  await client.login();
  const read = async (...ids: string[]) => (await client.answer(client.send(TYPE.read, readBody(ids)))).result;
  const pipelined = [["v-b"], ["v-a"], ["v-a", "v-b"], ["v-b"]].map((ids) => client.send(TYPE.read, readBody(ids)));
  const results: number[] = [];
  for (const id of pipelined) results.push((await client.answer(id)).result);
  expect(results).toEqual([0, BAD_ENCODING, BAD_ENCODING, 0]);

  const other = await rig.clientOf({ securityMode: MessageSecurityMode.None, securityPolicy: SecurityPolicy.None });
  await other.connect(sink.url);
  const session = await other.createSession(ANONYMOUS);
  await expect(session.read({ nodeId: "ns=1;s=v-a", attributeId: AttributeIds.Value })).rejects.toThrow("BadEncodingError");
  expect((await session.read({ nodeId: "ns=1;s=v-b", attributeId: AttributeIds.Value })).value.value).toBe(2);

  await write(1, 3);
  expect(await read("v-a", "v-b")).toBe(0);
  await session.close();
  await other.disconnect();
  client.end();
});

test("a notification that cannot be encoded is a service fault to one Publish, and the next has the next value", async () => {
  await write(1, 1);
  const client = await rawClient(port());
  await client.open();
  await client.login();
  const subscription = (await client.answer(client.send(TYPE.createSubscription, subscriptionBody()))).rest.readUInt32LE(0);
  await client.answer(client.send(TYPE.createMonitoredItems, itemsBody(subscription, ["v-a"])));
  const publish = () => client.send(TYPE.publish, u32(0xffff_ffff));
  expect((await client.answer(publish())).result).toBe(0);
  const [bad, next] = [publish(), publish()];
  await write(UNENCODABLE, 1);
  expect(await client.answer(bad)).toMatchObject({ type: TYPE.serviceFault, result: BAD_ENCODING });
  await write(2, 1);
  expect((await client.answer(next)).result).toBe(0);
  client.end();
});
