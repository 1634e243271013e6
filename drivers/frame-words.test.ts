import fc from "fast-check";
import { expect, it } from "vitest";
import { frameWords as fins } from "./fins/frame-words.ts";
import { commandFrame, rangeCommand } from "./fins/frames.ts";
import { nodeRequest, putFrameHeader, TCP_HEADER_BYTES } from "./fins/tcp-frames.ts";
import { connectRequest, dataPackets } from "./lib/iso.ts";
import { frameWords } from "./modbus_tcp/frame-words.ts";
import { requestFrame } from "./modbus_tcp/frames.ts";
import { frameWords as s7 } from "./s7/frame-words.ts";
import { rangesIn, readRequest, setupRequest } from "./s7/frames.ts";

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

it("takes any bytes in both directions (property)", () => {
  const begins = fc.constantFrom("", "00010000000601", "0300", "0300001f02f08032", "46494e53", "46494e530000000c", "c0000200");
  fc.assert(
    fc.property(begins, fc.uint8Array({ maxLength: 60 }), fc.constantFrom("out" as const, "in" as const), (begin, rest, direction) => {
      const frame = Buffer.concat([hex(begin), rest]);
      for (const words of [frameWords, s7, fins]) expect(typeof words(frame, direction)).toMatch(/string|undefined/);
    }),
    { numRuns: 3000 },
  );
});
