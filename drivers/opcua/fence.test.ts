import * as opcua from "node-opcua-client";
import { expect, it } from "vitest";
import { ALLOWED_SERVICES, fence } from "./fence.ts";
import { encodingBytes, plainChunk, requestBody } from "./plain.ts";

type AnyRequest = new (
  options: object,
) => Parameters<typeof plainChunk>[3] & { schema: { encodingDefaultBinary: { namespace: number; value: number } } };
const requests = Object.entries(opcua).filter(([name, one]) => name.endsWith("Request") && typeof one === "function") as [
  string,
  AnyRequest,
][];

it("lets through what reads and refuses every other request that node-opcua can form", () => {
  const refused: string[] = [];
  for (const [name, Request] of requests) {
    const request = new Request({});
    if (!request.schema?.encodingDefaultBinary) continue;
    const allowed = ALLOWED_SERVICES.get(request.schema.encodingDefaultBinary.value);
    if (allowed === undefined) refused.push(name);
    else expect(`${allowed}Request`).toBe(name);
    expect(fence(encodingBytes(request)) === undefined, name).toBe(allowed !== undefined);
    const chunk = plainChunk(
      name === "OpenSecureChannelRequest" ? "OPN" : "MSG",
      7,
      "http://opcfoundation.org/UA/SecurityPolicy#None",
      request,
    );
    expect(chunk.readUInt32LE(4)).toBe(chunk.length);
    expect(fence(requestBody(chunk) ?? Buffer.alloc(0)) === undefined, name).toBe(allowed !== undefined);
  }
  for (const name of ["WriteRequest", "CallRequest", "HistoryReadRequest", "SetMonitoringModeRequest"]) expect(refused).toContain(name);
  expect(refused.length).toBeGreaterThan(5);
});

it("knows both other forms of a numeric id, and no id that is not of namespace 0", () => {
  expect(fence(Uint8Array.of(2, 0, 0, 0x77, 2, 0, 0))).toBeUndefined();
  expect(fence(Uint8Array.of(2, 0, 0, 0xa1, 2, 0, 0))).toContain("i=673");
  expect(fence(Uint8Array.of(1, 1, 0x77, 2))).toContain("namespace 0");
  expect(fence(Uint8Array.of(0, 200))).toContain("i=200");
  expect(fence(Uint8Array.of(3, 0, 0, 0))).toContain("namespace 0");
  expect(fence(new Uint8Array())).toContain("namespace 0");
});
