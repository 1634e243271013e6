import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ALLOWED } from "../../test/conformance/allowed.ts";
import { connectRequest, dataPackets } from "../lib/iso.ts";
import {
  type Answer,
  answerBytes,
  emptyResults,
  fence,
  itemsRoom,
  maxItemBytes,
  parseAnswer,
  parseSetup,
  type Range,
  readRequest,
  setupRequest,
  walkItems,
} from "./frames.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const plain = (text: string): string => text.replaceAll(" ", "");
const WISH = { pduBytes: 960, jobs: 8 };
const CONNECT = connectRequest({ callingTsap: Buffer.of(1, 0), calledTsap: Buffer.of(2, 2) });

function answerOf(text: string): Answer {
  const answer = parseAnswer(hex(text));
  if (answer === undefined || typeof answer === "string") throw new Error(`${answer}`);
  return answer;
}
/** Items of an answer behind its header and `04 <count>`. */
function readAnswer(count: number, data: string): Answer {
  const bytes = plain(data).length / 2;
  return answerOf(`3203 0000 0001 0002 ${bytes.toString(16).padStart(4, "0")} 0000 04${count.toString(16).padStart(2, "0")} ${data}`);
}
function walk(answer: Answer, sizes: readonly number[]) {
  const results = emptyResults(sizes.length);
  const answered = walkItems(answer, sizes, results);
  if (typeof answered === "string") return answered;
  return Array.from({ length: answered }, (_, i) => {
    const at = results.dataAt[i] ?? 0;
    const miscount = results.miscounts[i];
    if (miscount !== 0) return `${miscount} bytes`;
    return results.codes[i] === 0xff ? answer.message.toString("hex", at, at + (sizes[i] ?? 0)) : `code ${results.codes[i]}`;
  });
}

// Protocol notes, 2 and 3; the set-up and its answer are those that nodes7 and snap7 exchange.
describe("requests", () => {
  // Protocol notes, 3: an item of odd length is followed by a byte that fills it, so that the next one begins at an even place.
  it.each([
    [1, 6],
    [2, 6],
    [3, 8],
    [222, 226],
  ])("reckons with an item of %d bytes as %d of an answer", (bytes, taken) => expect(answerBytes(bytes)).toBe(taken));

  it("sets the communication up", () => {
    expect(setupRequest(1, WISH).toString("hex")).toBe(plain("3201 0000 0001 0008 0000 f000 0008 0008 03c0"));
    expect(parseSetup(answerOf("3203 0000 0001 0008 0000 0000 f000 0001 0002 01e0"), WISH)).toEqual({ pduBytes: 480, jobs: 1 });
    expect(parseSetup(answerOf("3203 0000 0001 0008 0000 0000 f000 0000 0000 1000"), WISH)).toEqual({ pduBytes: 960, jobs: 1 });
    expect(parseSetup(answerOf("3203 0000 0001 0008 0000 0000 f000 0008 0008 0010"), WISH)).toMatch(/16 bytes are granted/);
    expect(parseSetup(answerOf("3203 0000 0001 0000 0000 0000"), WISH)).toMatch(/without parameters/);
  });

  it.each<[string, Range, string]>([
    ["a data block", { area: "DB", block: 10, start: 4, length: 4 }, "120a10 02 0004 000a 84 000020"],
    ["an instance data block", { area: "DI", block: 5, start: 0, length: 1 }, "120a10 02 0001 0005 85 000000"],
    ["flags", { area: "M", block: 0, start: 20, length: 2 }, "120a10 02 0002 0000 83 0000a0"],
    ["inputs", { area: "I", block: 0, start: 1, length: 1 }, "120a10 02 0001 0000 81 000008"],
    ["outputs", { area: "Q", block: 0, start: 65_536, length: 1 }, "120a10 02 0001 0000 82 080000"],
    ["timers", { area: "T", block: 0, start: 5, length: 3 }, "120a10 1d 0003 0000 1d 000005"],
    ["counters", { area: "C", block: 0, start: 3, length: 1 }, "120a10 1c 0001 0000 1c 000003"],
  ])("reads %s", (_, range, item) =>
    expect(readRequest(0x1234, [range]).toString("hex")).toBe(plain(`3201 0000 1234 000e 0000 04 01 ${item}`)),
  );

  it("knows what a message has room for", () => {
    expect([240, 480, 960].map((pdu) => itemsRoom(pdu).requestItems)).toEqual([19, 39, 79]);
    expect([240, 480, 960].map(maxItemBytes)).toEqual([222, 462, 942]);
  });
});

describe("answers", () => {
  it("takes items with the byte that fills an odd one, unless it is the last", () => {
    expect(walk(readAnswer(3, "ff04 0008 aa00 ff04 0010 bbcc ff04 0018 010203"), [1, 2, 3])).toEqual(["aa", "bbcc", "010203"]);
    expect(walk(readAnswer(1, "ff04 0008 aa00"), [1])).toEqual(["aa"]);
  });

  it.each([
    ["04 in bits", "ff04 0020 01020304"],
    ["04 in bytes", "ff04 0004 01020304"],
    ["05 in bits", "ff05 0020 01020304"],
    ["06 in bits", "ff06 0020 01020304"],
    ["06 in bytes", "ff06 0004 01020304"],
    ["07 in bytes", "ff07 0004 01020304"],
    ["09 in bytes", "ff09 0004 01020304"],
  ])("takes the transport size %s", (_, data) => expect(walk(readAnswer(1, data), [4])).toEqual(["01020304"]));

  it("takes one bit as its byte", () => expect(walk(readAnswer(1, "ff03 0001 01"), [1])).toEqual(["01"]));

  it("takes nothing behind a refused item, whatever its length says", () => {
    expect(walk(readAnswer(3, "0a00 0004 ff04 0010 0102 0500 0000"), [4, 2, 9])).toEqual(["code 10", "0102", "code 5"]);
  });

  it("names an item that brings more or fewer bytes, and goes on behind it", () => {
    expect(walk(readAnswer(3, "ff04 0008 0100 ff04 0010 0102 ff04 0020 01020304"), [2, 2, 2])).toEqual(["1 bytes", "0102", "4 bytes"]);
    expect(walk(readAnswer(1, "ff00 0000"), [2])).toEqual(["-1 bytes"]);
  });

  it("counts those of a device that answers some of them", () => {
    expect(walk(readAnswer(1, "ff04 0010 0102"), [2, 2])).toEqual(["0102"]);
    expect(walk(readAnswer(0, ""), [2, 2])).toEqual([]);
  });

  it.each([
    ["more items than were asked for", readAnswer(2, "ff04 0010 0102 ff04 0010 0102"), /2 items answered a read of 1/],
    ["fewer items, and something behind them", readAnswer(0, "ff04 0010 0102"), /6 bytes follow/],
    ["an item that is missing", readAnswer(1, "ff04"), /item 0 of 1 is missing/],
    ["an item beyond the end", readAnswer(1, "ff04 0010 01"), /1 bytes beyond/],
    ["another function", answerOf("3203 0000 0001 0002 0000 0000 0501"), /without parameters to a read/],
    ["no parameters", answerOf("3202 0000 0001 0000 0000 0000"), /without parameters to a read/],
  ])("refuses %s", (_, answer, words) => expect(walk(answer, [2])).toMatch(words));

  it("reads the error of a job", () => {
    expect(answerOf("3203 0000 0007 0000 0000 8104")).toMatchObject({ reference: 7, error: 0x8104 });
    expect(answerOf("3202 0000 0007 0000 0000 8104")).toMatchObject({ reference: 7, error: 0x8104 });
  });

  it("passes over what answers nothing, and refuses what is not S7", () => {
    expect(parseAnswer(hex("3207 0000 0000 000c 0000"))).toBeUndefined();
    expect(parseAnswer(hex("3201 0000 0000 0008 0000 f000"))).toBeUndefined();
    expect(parseAnswer(hex("7203"))).toMatch(/protocol id 0x72/);
    expect(parseAnswer(hex("3203 0000 0001"))).toMatch(/6 bytes/);
    expect(parseAnswer(hex("3203 0000 0001 0002 0004 0000 0401"))).toMatch(/lengths make 18/);
  });

  it("takes any bytes without failing", () => {
    const size = fc.nat(20);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.array(size, { maxLength: 5 }), (bytes, sizes) => {
        const answer = parseAnswer(Buffer.concat([hex("3203 0000 0001"), bytes]));
        if (answer === undefined || typeof answer === "string") return;
        parseSetup(answer, WISH);
        const walked = walk(answer, sizes);
        if (typeof walked !== "string") expect(walked.length).toBeLessThanOrEqual(sizes.length);
      }),
      { numRuns: 5000 },
    );
  });
});

describe("the fence", () => {
  const ranges = Array.from({ length: 20 }, (_, i): Range => ({ area: "DB", block: 1, start: i * 100, length: 4 }));
  const good = [setupRequest(1, WISH), readRequest(2, ranges.slice(0, 1)), readRequest(3, ranges)];

  it("lets the three requests of a reader pass, in one packet or in several", () => {
    expect(fence(CONNECT)).toBe(true);
    for (const tpduBytes of [128, 1024]) for (const message of good) expect(fence(dataPackets(message, tpduBytes))).toBe(true);
    expect(ALLOWED["s7"]?.(Buffer.concat([CONNECT, ...good.map((message) => dataPackets(message, 128))]))).toEqual([]);
  });

  const changed = (change: (message: Buffer) => Buffer | undefined) => {
    const message = readRequest(1, ranges.slice(0, 2));
    return change(message) ?? message;
  };
  it.each<[string, Buffer]>([
    ["write var", changed((message) => void message.writeUInt8(5, 10))],
    ["PLC stop", hex("3201 0000 0001 0010 0000 29 0000000000 09 505f50524f4752414d")],
    ["PLC control", hex("3201 0000 0001 0014 0000 28 000000000000fd 0000 09 505f50524f4752414d")],
    ["a download", hex("3201 0000 0001 0012 0000 1a 00 0000 0000 0000 09 5f304130303030314100")],
    ["user data", hex("3207 0000 0001 0008 0004 0001120411440100 0a000000")],
    ["a job with data", hex("3201 0000 0001 0002 0001 0400 00")],
    ["no items", hex("3201 0000 0001 0002 0000 0400")],
    ["21 items", readRequest(1, [...ranges, ...ranges.slice(0, 1)])],
    ["peripheral inputs, whose reading may change them", changed((message) => void message.writeUInt8(0x80, 20))],
    ["the other end's local data", changed((message) => void message.writeUInt8(0x86, 20))],
    ["bits", changed((message) => void message.writeUInt8(1, 15))],
    ["another syntax", changed((message) => void message.writeUInt8(0xb2, 14))],
    ["bytes behind the items", changed((message) => Buffer.concat([message, hex("00")]))],
    ["an S7+ message", hex("7201 0000 0001 0008 0000 f000 0008 0008 03c0")],
  ])("stops %s, in one packet and in several", (_, message) => {
    for (const tpduBytes of [8 + 3, 128, 1024]) {
      const packets = dataPackets(message, tpduBytes);
      expect(fence(packets), `in TPDUs of ${tpduBytes} bytes`).toEqual(expect.any(String));
      expect(ALLOWED["s7"]?.(Buffer.concat([CONNECT, packets]))).not.toEqual([]);
    }
  });

  it("stops any other bytes, and a good request with one bit changed in what it asks for", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        expect(fence(bytes)).toEqual(expect.any(String));
        expect(fence(dataPackets(bytes, 1024))).toEqual(expect.any(String));
      }),
    );
    const packets = dataPackets(readRequest(1, ranges.slice(0, 1)), 1024);
    // But the reference, length, block and address of what is read: these are any number.
    const free = new Set([11, 12, 23, 24, 25, 26, 28, 29, 30]);
    for (let at = 0; at < packets.length; at++) {
      if (free.has(at)) continue;
      for (let bit = 0; bit < 8; bit++) {
        const other = Buffer.from(packets);
        other.writeUInt8(other.readUInt8(at) ^ (1 << bit), at);
        // Another area that is read without a side effect.
        const isArea = at === 27 && [0x81, 0x82, 0x83, 0x84, 0x85].includes(other.readUInt8(27));
        if (!isArea) expect(fence(other), `byte ${at}, bit ${bit}`).toEqual(expect.any(String));
      }
    }
  });
});
