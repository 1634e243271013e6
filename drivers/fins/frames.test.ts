import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ALLOWED } from "../../test/conformance/allowed.ts";
import { READ_CODES } from "./areas.ts";
import {
  CONTROLLER_DATA_COMMAND,
  commandFrame,
  commandOf,
  endCodeOf,
  fence,
  hasFatalError,
  hasNonFatalError,
  isAnswer,
  isRelayError,
  itemsCommand,
  modelOf,
  type Route,
  rangeCommand,
  rawEndCode,
  relayOf,
  sidOf,
  takeItems,
} from "./frames.ts";
import { messageLength, nodeRequest, nodesOf, putFrameHeader, tcpErrorWords, tcpFence } from "./tcp-frames.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const plain = (text: string): string => text.replaceAll(" ", "");
const ROUTE: Route = { destination: { network: 0, node: 10, unit: 0 }, source: { network: 0, node: 11, unit: 0 } };
const FAR: Route = { destination: { network: 2, node: 17, unit: 0x10 }, source: { network: 1, node: 50, unit: 0 } };
const itemsFrame = (codes: readonly number[], addresses: readonly number[]) =>
  commandFrame(ROUTE, itemsCommand(Uint8Array.from(codes), Uint16Array.from(addresses)));
const overTcp = (frame: Buffer): Buffer => {
  const message = Buffer.concat([Buffer.alloc(16), frame]);
  putFrameHeader(message);
  return message;
};

// Protocol notes, 1, 4 and 5.
describe("requests", () => {
  it.each<[string, Buffer, string]>([
    ["a word of D", rangeCommand({ code: 0x82, address: 100, count: 1 }), "0101 82 0064 00 0001"],
    ["999 words of CIO", rangeCommand({ code: 0xb0, address: 0, count: 999 }), "0101 b0 0000 00 03e7"],
    ["flags of counters", rangeCommand({ code: 0x09, address: 0x8003, count: 4 }), "0101 09 8003 00 0004"],
    ["the model", CONTROLLER_DATA_COMMAND, "0501 00"],
  ])("asks for %s", (_, command, bytes) => {
    expect(commandFrame(ROUTE, command).toString("hex")).toBe(plain(`800002 000a00 000b00 00 ${bytes}`));
    expect(commandFrame(FAR, command).toString("hex")).toBe(plain(`800002 021110 013200 00 ${bytes}`));
  });

  it("asks for scattered words and flags", () => {
    expect(itemsFrame([0x82, 0xb1, 0x09], [100, 10, 0x8003]).toString("hex")).toBe(
      plain("800002 000a00 000b00 00 0104 82006400 b1000a00 09800300"),
    );
  });

  it("leaves room before a frame", () => {
    const message = commandFrame(ROUTE, CONTROLLER_DATA_COMMAND, 16);
    putFrameHeader(message);
    expect(message.toString("hex")).toBe(plain("46494e53 00000015 00000002 00000000 800002 000a00 000b00 00 0501 00"));
    expect(nodeRequest(0).toString("hex")).toBe(plain("46494e53 0000000c 00000000 00000000 00000000"));
    expect(nodeRequest(200).toString("hex")).toBe(plain("46494e53 0000000c 00000000 00000000 000000c8"));
  });
});

describe("answers", () => {
  it("knows an answer by its ICF, whatever its nodes and gateways are", () => {
    const answer = hex("c00007 000b00 00c800 2a 0101 0000 1234");
    expect([isAnswer(answer), sidOf(answer), commandOf(answer), rawEndCode(answer)]).toEqual([true, 42, 0x0101, 0]);
    expect(isAnswer(hex("c10002 000b00 000a00 2a 0101 0000"))).toBe(true);
    expect(isAnswer(hex("800002 000b00 000a00 2a 0101 0000"))).toBe(false);
    expect(isAnswer(hex("c00002 000b00 000a00 2a 0101 00"))).toBe(false);
  });

  it.each([
    [0x0000, 0, false, false, false],
    [0x0040, 0, false, false, true],
    [0x0080, 0, false, true, false],
    [0x1103, 0x1103, false, false, false],
    [0x11c3, 0x1103, false, true, true],
    [0x8201, 0x0201, true, false, false],
    [0x8241, 0x0201, true, false, true],
  ])("takes the end code 0x%s apart", (raw, code, isRelay, isFatal, isNonFatal) => {
    expect([endCodeOf(raw), isRelayError(raw), hasFatalError(raw), hasNonFatalError(raw)]).toEqual([code, isRelay, isFatal, isNonFatal]);
  });

  it("says where a relay error was found, and nothing where the frame ends before", () => {
    const frame = hex("c000020032000507001101018201020a");
    expect([rawEndCode(frame), relayOf(frame)]).toEqual([0x8201, { network: 2, node: 10 }]);
    expect(relayOf(frame.subarray(0, 14))).toBeUndefined();
    expect(relayOf(frame.subarray(0, 15))).toBeUndefined();
  });

  it("reads the model up to the first NUL", () => {
    const answer = (model: string) => Buffer.concat([hex("c00002 000b00 000a00 01 0501 0000"), Buffer.from(model, "latin1")]);
    expect(modelOf(answer(`CP1L-EL20\0${" ".repeat(10)}`))).toBe("CP1L-EL20");
    expect(modelOf(answer("CJ2M-CPU33".padEnd(20)))).toBe("CJ2M-CPU33");
    expect(modelOf(answer("C200HX-CPU64-E 01.00"))).toBe("C200HX-CPU64-E 01.00");
    for (const none of ["", "CP1L", "\0".repeat(20), "\xff".repeat(20)]) expect(modelOf(answer(none))).toBeUndefined();
  });

  const [codes, sizes] = [Uint8Array.of(0x82, 0x09, 0xb1), Uint8Array.of(2, 1, 2)];
  const items = (data: string) => {
    const into = Buffer.alloc(5);
    return takeItems(hex(`c00002 000b00 000a00 01 0104 0000 ${data}`), codes, sizes, into) ?? into.toString("hex");
  };
  it("takes a register of four bytes out of its area code, and no part of one", () => {
    const register = (data: string) => {
      const into = Buffer.alloc(6);
      const answer = hex(`c00002 000b00 000a00 01 0104 0000 ${data}`);
      return takeItems(answer, Uint8Array.of(0xdc, 0xbc), Uint8Array.of(4, 2), into) ?? into.toString("hex");
    };
    expect(register("dc 00010064 bc fffb")).toBe("00010064fffb");
    expect(register("dc 0001 bc fffb")).toMatch(/6 bytes answered a read of 2 items|area code/);
  });
  it("takes items out of their area codes", () => expect(items("82 1234 09 01 b1 5678")).toBe("1234015678"));
  it.each([
    ["another area code", "82 1234 89 01 b1 5678", /item 1 has the area code 0x89, it must be 0x09/],
    ["fewer items", "82 1234 09 01", /5 bytes answered a read of 3 items/],
    ["half an item", "82 1234 09 01 b1 56", /7 bytes/],
    ["more items", "82 1234 09 01 b1 5678 00", /1 bytes follow the 3 items/],
    ["nothing", "", /0 bytes answered/],
  ])("refuses %s", (_, data, words) => expect(items(data)).toMatch(words));

  it("takes any bytes without failing", () => {
    const size = fc.constantFrom(1, 2);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.array(fc.tuple(fc.nat(255), size), { maxLength: 8 }), (bytes, some) => {
        const frame = Buffer.from(bytes);
        if (!isAnswer(frame)) return;
        modelOf(frame);
        relayOf(frame);
        const into = Buffer.alloc(16);
        const wrong = takeItems(
          frame,
          Uint8Array.from(some, ([code]) => code),
          Uint8Array.from(some, ([, one]) => one),
          into,
        );
        const asked = some.reduce((sum, [, one]) => sum + 1 + one, 0);
        if (wrong === undefined) expect(frame.length).toBe(14 + asked);
      }),
      { numRuns: 3000 },
    );
  });
});

// Protocol notes, 3; the first conversation is a capture of a CP1L.
describe("messages of FINS/TCP", () => {
  it("reads the nodes that were agreed", () => {
    const answer = hex("46494e53 00000010 00000001 00000000 000000fb 000000c8");
    expect(nodesOf(answer)).toEqual({ client: 251, server: 200 });
    expect(nodesOf(answer.subarray(0, 20))).toBeUndefined();
    expect(nodesOf(hex("46494e53 00000010 00000001 00000000 00000000 000000c8"))).toBeUndefined();
    expect(nodesOf(hex("46494e53 00000010 00000001 00000000 000000fb 000000ff"))).toBeUndefined();
  });

  it("knows how long a message is, wherever it is split", () => {
    const message = overTcp(commandFrame(ROUTE, CONTROLLER_DATA_COMMAND));
    const two = Buffer.concat([Buffer.alloc(3), message]);
    for (let have = 0; have <= message.length; have++)
      expect(messageLength(two.subarray(0, 3 + have), 3)).toBe(have < 8 ? undefined : message.length);
  });

  it.each([
    ["another protocol", "48545450", /48545450 where a FINS\/TCP header begins/],
    ["half another protocol", "4648", /4648 where/],
    ["a length that is too short", "46494e53 00000007", /length of 7, it must be 8 to 2020/],
    ["a length that is too long", "46494e53 000007e5", /length of 2021/],
    ["a length that is far too long", "46494e53 ffffffff", /length of 4294967295/],
  ])("refuses %s", (_, bytes, words) => expect(messageLength(hex(bytes), 0)).toMatch(words));

  it("names error codes, which are hexadecimal", () => {
    expect(tcpErrorWords(0x20)).toMatch(/^error 0x20: all connections/);
    expect(tcpErrorWords(20)).toBe("error 0x14: not in the protocol's list");
    expect(tcpErrorWords(0x21)).toMatch(/connected already/);
  });
});

describe("the fence", () => {
  const range = commandFrame(ROUTE, rangeCommand({ code: 0x82, address: 1, count: 2 }));
  const full = itemsFrame(
    Array.from({ length: 167 }, () => 0xb1),
    Array.from({ length: 167 }, (_, i) => i),
  );
  const good = [range, full, commandFrame(FAR, CONTROLLER_DATA_COMMAND)];

  it("lets the three requests of a reader pass, over either transport", () => {
    for (const frame of good) expect([fence(frame), tcpFence(overTcp(frame))]).toEqual([true, true]);
    expect(tcpFence(nodeRequest(0))).toBe(true);
    expect(ALLOWED["fins"]?.(Buffer.concat([nodeRequest(0), ...good.map(overTcp)]))).toEqual([]);
    expect(ALLOWED["fins"]?.(Buffer.concat(good))).toEqual([]);
  });

  const command = (text: string): Buffer => commandFrame(ROUTE, hex(text));
  it.each<[string, Buffer]>([
    ["memory area write", command("0102 82 0001 00 0001 1234")],
    ["memory area fill", command("0103 82 0001 00 0001 1234")],
    ["memory area transfer", command("0105 82 0001 00 82 0002 00 0001")],
    ["parameter area write", command("0202 8010 0000 8001 00")],
    ["program area write", command("0307 0000 00000000 0001 00")],
    ["run", command("0401 ffff 04")],
    ["stop", command("0402 ffff")],
    ["cycle time read, which can clear the record", command("0620 00")],
    ["clock write", command("0702 261122 163000")],
    ["access right acquire", command("0c01 ffff")],
    ["access right forced acquire", command("0c02 ffff")],
    ["error clear", command("2101 ffff")],
    ["forced set", command("2301 0001 0001 30000100")],
    ["controller data with another parameter", command("0501 01")],
    ["a range with something behind it", command("0101 82 0001 00 0001 00")],
    ["a range of nothing", command("0101 82 0001 00 0000")],
    ["a range of 1000 words", command("0101 82 0001 00 03e8")],
    ["a single bit", command("0101 30 0001 03 0001")],
    ["a bit of a word", command("0101 82 0001 03 0001")],
    ["no items", command("0104")],
    ["half an item", command("0104 820001")],
    ["168 items", command(`0104 ${"82000100".repeat(168)}`)],
    ["an area without a code", command("0104 82000100 ff000100")],
    ["a broadcast", commandFrame({ ...ROUTE, destination: { network: 0, node: 255, unit: 0 } }, hex("0101 82 0001 00 0001"))],
    ["a response", hex("c00002 000a00 000b00 00 0101 82 0001 00 0001")],
    ["a command without an answer", hex("810002 000a00 000b00 00 0101 82 0001 00 0001")],
    ["half a frame", range.subarray(0, 17)],
  ])("stops %s, over either transport", (_, frame) => {
    expect(fence(frame)).toEqual(expect.any(String));
    expect(tcpFence(overTcp(frame))).toEqual(expect.any(String));
    const isWrong = ALLOWED["fins"]?.(Buffer.concat([nodeRequest(0), overTcp(frame)]));
    expect(isWrong).not.toEqual([]);
  });

  it("stops messages that are none, notifications, and nodes out of range", () => {
    const changed = (at: number, byte: number) => {
      const message = overTcp(range);
      message[at] = byte;
      return message;
    };
    for (const message of [changed(0, 0x47), changed(7, 8), changed(11, 3), changed(11, 6), changed(15, 1), range, nodeRequest(255)])
      expect(tcpFence(message)).toEqual(expect.any(String));
    expect(tcpFence(Buffer.concat([overTcp(range), overTcp(range)]))).toEqual(expect.any(String));
  });

  it("stops any other bytes, and a good request with one bit changed in what it asks for", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => void expect(fence(bytes)).toEqual(expect.any(String))));
    // But nodes, SID, the address and the count of what is read, and gateways: these are any number within their bounds.
    const free = new Set([2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 16, 17]);
    for (let at = 0; at < range.length; at++) {
      if (free.has(at)) continue;
      for (let bit = 0; bit < 8; bit++) {
        const other = Buffer.from(range);
        other.writeUInt8(other.readUInt8(at) ^ (1 << bit), at);
        // Another area that is read without a side effect.
        if (at === 12 && READ_CODES.has(other.readUInt8(12))) continue;
        expect(fence(other), `byte ${at}, bit ${bit}`).toEqual(expect.any(String));
      }
    }
  });
});
