import { BinaryStream } from "node-opcua-binary-stream";
import { NodeId, ReadRequest, ReadValueId } from "node-opcua-client";
import { expect, it } from "vitest";
import { KeptRead } from "./kept-read.ts";

const { NUMERIC, STRING } = NodeId.NodeIdType;
const nodesOf = (count: number) =>
  Array.from(
    { length: count },
    (_, i) => new ReadValueId({ nodeId: new NodeId(i % 2 ? STRING : NUMERIC, i % 2 ? `ä.${i}` : 70_000 * i, i % 3), attributeId: 13 }),
  );
const encoded = (request: ReadRequest): Buffer => {
  const stream = new BinaryStream(request.binaryStoreSize());
  request.encode(stream);
  expect(stream.length).toBe(stream.buffer.length);
  return stream.buffer;
};

it.each([0, 1, 50])("is the request that node-opcua encodes, each time with its own header, of %i nodes", (count) => {
  const nodes = nodesOf(count);
  for (const [requestHandle, token] of [
    [7, new NodeId(NUMERIC, 5, 1)],
    [8, new NodeId(STRING, "another session", 1)],
  ] as const) {
    const [kept, whole] = [new KeptRead(nodes), new ReadRequest({ maxAge: 0, timestampsToReturn: 0 })];
    whole.nodesToRead = nodes;
    for (const request of [kept, whole]) {
      Object.assign(request.requestHeader, { requestHandle, authenticationToken: token, timestamp: new Date(1_795_000_000_000) });
    }
    expect(encoded(kept)).toEqual(encoded(whole));
  }
});
