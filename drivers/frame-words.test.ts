import fc from "fast-check";
import { expect, it } from "vitest";
import { frameWords as fins } from "./fins/frame-words.ts";
import { commandFrame, rangeCommand } from "./fins/frames.ts";
import { nodeRequest, putFrameHeader, TCP_HEADER_BYTES } from "./fins/tcp-frames.ts";
import { connectRequest, dataPackets } from "./lib/iso.ts";
import { frameWords } from "./modbus_tcp/frame-words.ts";
import { requestFrame } from "./modbus_tcp/frames.ts";
import { frameWords as opcua } from "./opcua/frame-words.ts";
import { frameWords as s7 } from "./s7/frame-words.ts";
import { rangesIn, readRequest, setupRequest } from "./s7/frames.ts";
import { frameWords as s7plus } from "./s7plus/frame-words.ts";
import { wholeFrame } from "./s7plus/frames.ts";
import {
  definitionRequest,
  fragmentRequest,
  identityRequest,
  multipleRequest,
  readRequest as readTag,
  symbolsRequest,
  tagPath,
} from "./vendor_a/cip.ts";
import { frameWords as cip } from "./vendor_a/frame-words.ts";
import { connectedRequest, registerRequest, unconnectedRequest, unregisterRequest } from "./vendor_a/frames.ts";
import { routed, slotRoute } from "./vendor_a/manager.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

it("says what a Modbus frame asks and answers", () => {
  expect(frameWords(requestFrame(7, { unit: 3, functionCode: 3, start: 10, count: 6 }), "out")).toBe(
    "read holding registers 10..15 of unit 3",
  );
  expect(frameWords(hex("0007 0000 0005 03 03 02 022b"), "in")).toBe("2 bytes of holding registers from unit 3");
  expect(frameWords(hex("0007 0000 0003 03 83 02"), "in")).toBe("exception 2 (illegal data address) from unit 3");
  expect(frameWords(hex("0007 0000 0006 03 06 0000 0001"), "out")).toBeUndefined();
  expect(frameWords(hex("0007 0000 0005 03 03 02"), "in")).toBeUndefined();
});

it("says what an S7 message asks and answers", () => {
  const ranges = [
    { area: "DB", block: 12, start: 4, length: 22 },
    { area: "T", block: 0, start: 5, length: 4 },
  ] as const;
  const packets = (message: Buffer): Buffer => Buffer.from(dataPackets(message, 1024));
  const request = readRequest(1, ranges);
  expect(rangesIn(request)).toEqual(ranges);
  expect(s7(packets(request), "out")).toBe("read DB12.DBB4..25, T5..8");
  expect(s7(packets(setupRequest(1, { pduBytes: 480, jobs: 1 })), "out")).toBe("set-up of messages and jobs");
  expect(s7(Buffer.from(connectRequest({ callingTsap: Buffer.of(1, 0), calledTsap: Buffer.of(1, 2) } as never)), "out")).toBe(
    "connect request (COTP)",
  );
  expect(s7(packets(hex("3203 0000 0001 0002 0005 0000 0401 ff04 0008 2a")), "in")).toBe("1 items read");
  expect(s7(packets(hex("3203 0000 0001 0002 0004 0000 0401 0a00 0000")), "in")).toBe(
    "1 items, the first with item code 0x0A (object does not exist)",
  );
  expect(s7(packets(hex("3202 0000 0001 0000 0000 8104")), "in")).toMatch(/^error 0x8104: the service is not permitted/);
});

it("says what a FINS frame asks and answers, over TCP and UDP", () => {
  const node = { network: 0, node: 1, unit: 0 };
  const command = commandFrame({ destination: node, source: { ...node, node: 2 } }, rangeCommand({ code: 0x82, address: 100, count: 2 }));
  expect(fins(command, "out")).toBe("memory area read of 2 elements from 100 in area 0x82");
  const message = Buffer.concat([Buffer.alloc(TCP_HEADER_BYTES), command]);
  putFrameHeader(message);
  expect(fins(message, "out")).toBe("memory area read of 2 elements from 100 in area 0x82");
  expect(fins(nodeRequest(0), "out")).toBe("asks for a node number (FINS/TCP)");
  expect(fins(hex("c000 0200 0200 0001 0000 0101 0000 002a 002b"), "in")).toBe("memory area read: 4 bytes");
  expect(fins(hex("c000 0200 0200 0001 0000 0101 1103"), "in")).toBe("memory area read: end code 0x1103 (the address is out of range)");
});

it("says what an EtherNet/IP message asks and answers", () => {
  const one = readTag(tagPath(["Program:Main", "Line", 3, "Speed"]), 1);
  const array = readTag(tagPath(["Temps", 1, 70_000]), 10);
  const unit = (request: Buffer): string | undefined => cip(connectedRequest(1, 2, request), "out");
  expect(unit(one)).toBe("Read Tag Program:Main.Line[3].Speed");
  expect(unit(array)).toBe("Read Tag Temps[1,70000], 10 elements");
  expect(unit(multipleRequest([array, one]))).toBe("Multiple Service Packet of 2, the first: Read Tag Temps[1,70000], 10 elements");
  expect(unit(fragmentRequest(tagPath(["Big"]), 900, 480))).toBe("Read Tag Fragmented Big, 900 elements, from byte 480");
  expect(unit(symbolsRequest(undefined, 0, [1, 2]))).toBe("list of tags");
  expect(unit(definitionRequest(5, 0, 100))).toBe("definition of a template");
  const send = (request: Buffer): string | undefined => cip(unconnectedRequest(1, request), "out");
  expect(send(identityRequest())).toBe("identity");
  expect(send(routed(identityRequest(), slotRoute(2), 1000))).toBe("along a route: identity");
  expect([cip(registerRequest(), "out"), cip(unregisterRequest(1), "out")]).toEqual(["RegisterSession", "UnRegisterSession"]);
  const answered = (reply: string): string | undefined => cip(connectedRequest(1, 2, hex(reply)), "in");
  expect(answered("cc00 0000 c300 2a00")).toBe("Read Tag: 4 bytes");
  expect(answered("cc00 0600 c300 2a00")).toBe("Read Tag: 4 bytes, more follow");
  expect(answered("cc00 0400")).toMatch(/^Read Tag: status 0x04 \(/);
  const written = readTag(tagPath(["Speed"]), 1);
  written[0] = 0x4d;
  expect(unit(written)).toBeUndefined();
});

it("says which service an OPC UA message calls and answers", () => {
  const message = (type: string, rest: string): Buffer => {
    const body = hex(rest);
    const head = Buffer.alloc(8);
    head.write(type);
    head.writeUInt32LE(8 + body.length, 4);
    return Buffer.concat([head, body]);
  };
  const around = "01000000 01000000 02000000 03000000";
  expect(opcua(message("MSGF", `${around} 01007702 00`), "out")).toBe("Read");
  expect(opcua(message("MSGF", `${around} 01007a02 0000000000000000 01000000 00000000`), "in")).toBe("Read answered");
  expect(opcua(message("MSGF", `${around} 01008d01 0000000000000000 01000000 00002580`), "in")).toBe(
    "ServiceFault: BadSessionIdInvalid (0x80250000)",
  );
  expect(opcua(message("HELF", "00"), "out")).toBe("hello");
  expect(opcua(message("OPNF", "00"), "in")).toBe("OpenSecureChannel answered");
  expect(opcua(message("ERRF", "00007d80 ffffffff"), "in")).toMatch(/^the server ends the connection: .*0x807D0000/);
  // A Write, and what cannot be read because it is encrypted.
  expect(opcua(message("MSGF", `${around} 0100a102 00`), "out")).toBeUndefined();
  expect(opcua(message("MSGF", `${around} 9f3371aa 00`), "in")).toBeUndefined();
});

it("says which function an S7CommPlus message calls and answers", () => {
  const request = (code: string): Buffer => wholeFrame(2, hex(`31 0000 ${code} 0000 0001 00000380 34`));
  const answer = (code: string, value: string): Buffer => wholeFrame(2, hex(`32 0000 ${code} 0000 0001 00 ${value}`));
  expect(s7plus(request("054c"), "out")).toBe("read of variables");
  expect(s7plus(answer("054c", "00"), "in")).toBe("read of variables answered");
  expect(s7plus(answer("04bb", "ffffffffffffffff9c"), "in")).toMatch(/^read of the program's objects: return value -100 \(access denied\)/);
});

it("takes any bytes in both directions (property)", () => {
  const begins = fc.constantFrom(
    "",
    "00010000000601",
    "0300",
    "0300001f02f08032",
    "46494e53",
    "46494e530000000c",
    "c0000200",
    "6f001000",
    "70001600",
    "4d5347462400000001000000010000000200000003000000",
    "7202001432",
  );
  fc.assert(
    fc.property(begins, fc.uint8Array({ maxLength: 60 }), fc.constantFrom("out" as const, "in" as const), (begin, rest, direction) => {
      const frame = Buffer.concat([hex(begin), rest]);
      for (const words of [frameWords, s7, fins, cip, opcua, s7plus]) expect(typeof words(frame, direction)).toMatch(/string|undefined/);
    }),
    { numRuns: 3000 },
  );
});
