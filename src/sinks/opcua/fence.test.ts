import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFence, errorMessage, type Fence, HEADER_BYTES, type Refusal } from "./fence.ts";
import { LIMITS } from "./limits.ts";
import { TYPE, text, u32 } from "./testing/raw-client.ts";

const NONE = "http://opcfoundation.org/UA/SecurityPolicy#None";
const SECURE = "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256";

const chunkOf = (head: string, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(head, "latin1"), u32(body.length + HEADER_BYTES), body]);
};
const typed = (type: number): Buffer => Buffer.from([1, 0, type & 0xff, type >> 8]);
const hello = (): Buffer => chunkOf("HELF", Buffer.alloc(20), text("opc.tcp://x"));
const open = (policy: string, type: number = TYPE.openSecureChannel): Buffer =>
  chunkOf("OPNF", u32(0), text(policy), text(null), text(null), u32(1), u32(1), typed(type), Buffer.alloc(100));
const message = (body: Buffer, kind = "F"): Buffer => chunkOf(`MSG${kind}`, u32(1), u32(1), u32(2), u32(2), body);
const request = (type: number, bytes = 100): Buffer => message(Buffer.concat([typed(type), Buffer.alloc(bytes)]));

function pass(fence: Fence, chunk: Buffer): Refusal | undefined {
  return fence.judgeHeader(chunk.subarray(0, HEADER_BYTES)) ?? fence.judge(chunk);
}
/** What came of the last of these; all others pass. */
function last(fence: Fence, ...chunks: readonly Buffer[]): string | undefined {
  for (const chunk of chunks.slice(0, -1)) expect(pass(fence, chunk)).toBeUndefined();
  return pass(fence, chunks.at(-1) ?? Buffer.alloc(HEADER_BYTES))?.words;
}

const fenceOf = (offersNone = false, isActivated = false): Fence => createFence({ offersNone, isActivated: () => isActivated });

describe("on a channel without security that is not offered", () => {
  test.each([
    ["GetEndpoints", TYPE.getEndpoints],
    ["FindServers", TYPE.findServers],
  ])("%s passes", (_name, type) => {
    expect(last(fenceOf(), hello(), open(NONE), request(type))).toBeUndefined();
    const wide = message(Buffer.concat([Buffer.from([2, 0, 0]), u32(type), Buffer.alloc(50)]));
    expect(last(fenceOf(), hello(), open(NONE), wide)).toBeUndefined();
  });

  test.each(Object.entries(TYPE).filter(([name]) => name !== "getEndpoints" && name !== "findServers"))("%s does not", (_name, type) => {
    expect(last(fenceOf(), hello(), open(NONE), request(type))).toContain("only GetEndpoints and FindServers");
    expect(last(fenceOf(true), hello(), open(NONE), request(type))).toBeUndefined();
    expect(last(fenceOf(), hello(), open(SECURE), request(type))).toBeUndefined();
  });

  test.each([
    ["in an OPN", open(NONE, TYPE.write)],
    ["in a CLO", chunkOf("CLOF", u32(1), u32(1), u32(2), u32(2), typed(TYPE.write))],
    ["in two chunks, its type too", message(Buffer.of(1, 0), "C")],
    ["in another namespace", message(Buffer.from([1, 1, 0xac, 1]))],
    ["with a namespace by its URI", message(Buffer.from([0x81, 0, 0xac, 1]))],
    ["as text", message(Buffer.concat([Buffer.from([3, 0, 0]), text("428")]))],
    ["after an abort", message(Buffer.concat([typed(TYPE.write), Buffer.alloc(9)]), "C")],
    ["of no bytes", message(Buffer.alloc(0))],
  ])("no other request passes %s", (_name, chunk) => {
    expect(last(fenceOf(), hello(), open(NONE), chunk)).toBeDefined();
    expect(last(fenceOf(), hello(), open(NONE), message(Buffer.alloc(8), "A"), chunk)).toBeDefined();
  });

  test("the second chunk of a request is not taken for a request", () => {
    const first = message(Buffer.concat([typed(TYPE.getEndpoints), Buffer.alloc(9)]), "C");
    expect(last(fenceOf(), hello(), open(NONE), first, request(TYPE.write))).toBeUndefined();
    expect(last(fenceOf(), hello(), open(NONE), first, message(Buffer.alloc(1)), request(TYPE.write))).toContain("only GetEndpoints");
  });
});

describe("sizes, in every mode", () => {
  const part = (bytes: number, kind: string) => message(Buffer.concat([typed(TYPE.getEndpoints), Buffer.alloc(bytes - 28)]), kind);
  test.each([NONE, SECURE])("64 KiB with all chunks before a session is activated, 1 MiB then: %s", (policy) => {
    const half = LIMITS.messageBeforeSession / 2;
    for (const offers of [true, false]) {
      expect(last(fenceOf(offers), hello(), open(policy), part(half, "C"), part(half, "F"), part(half, "F"))).toBeUndefined();
      expect(last(fenceOf(offers), hello(), open(policy), part(half, "C"), part(half + 1, "F"))).toContain("before a session is activated");
      // The library keeps the chunks of a message that is aborted.
      expect(last(fenceOf(offers), hello(), open(policy), part(half, "C"), part(28, "A"), part(half, "F"))).toContain("before a session");
    }
    const many = Array.from({ length: LIMITS.request / half }, () => part(half, "C"));
    expect(last(fenceOf(true, true), hello(), open(policy), ...many)).toBeUndefined();
    expect(last(fenceOf(true, true), hello(), open(policy), ...many, part(28, "F"))).toContain(`at most ${LIMITS.request} bytes`);
  });

  test("a chunk is refused by its header alone", () => {
    const header = Buffer.concat([Buffer.from("HELF"), u32(LIMITS.chunk + 1)]);
    expect(fenceOf().judgeHeader(header)).toMatchObject({ status: 0x8080_0000, isForeign: false });
  });
});

test.each([
  ["what is not OPC UA", [Buffer.from("GET / HTTP/1.1\r\n\r\n")]],
  ["a message before hello", [request(TYPE.getEndpoints)]],
  ["hello twice", [hello(), hello()]],
  ["a message before the channel is open", [hello(), request(TYPE.getEndpoints)]],
  ["an answer", [hello(), chunkOf("ACKF", Buffer.alloc(20))]],
  ["an open channel in chunks", [hello(), chunkOf("OPNC", Buffer.alloc(100))]],
  ["a chunk of 8 bytes", [hello(), open(NONE), chunkOf("MSGF")]],
  ["an unknown kind of chunk", [hello(), open(NONE), chunkOf("MSGX", Buffer.alloc(30))]],
  ["lengths that lead outside", [hello(), chunkOf("OPNF", u32(0), u32(0x7fff_ffff), Buffer.alloc(60))]],
  ["another policy when it is renewed", [hello(), open(NONE), open(SECURE)]],
])("%s is refused", (_name, chunks) => {
  expect(last(fenceOf(true), ...chunks)).toBeDefined();
});

test("any bytes get a verdict, and never an exception", () => {
  const some = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(hello(), open(NONE), open(SECURE)),
  );
  const heads = fc.constantFrom("HELF", "OPNF", "MSGF", "MSGC", "MSGA", "CLOF", "????");
  fc.assert(
    fc.property(fc.array(fc.tuple(heads, some), { maxLength: 8 }), fc.boolean(), (parts, offersNone) => {
      const fence = fenceOf(offersNone);
      for (const [head, body] of parts) if (pass(fence, chunkOf(head, body))) return;
    }),
    { numRuns: 2000 },
  );
});

test("a refusal is an ERR message", () => {
  const bytes = errorMessage({ status: 0x8080_0000, words: "too large", isForeign: false });
  expect(bytes.toString("latin1", 0, 4)).toBe("ERRF");
  expect([bytes.readUInt32LE(4), bytes.readUInt32LE(8), bytes.readUInt32LE(12)]).toEqual([bytes.length, 0x8080_0000, 9]);
  expect(bytes.toString("utf8", 16)).toBe("too large");
});
