import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dataPackets, PAYLOAD_AT } from "../lib/iso.ts";
import { parseAnswer, parseCreated, parseExplored, parseItems } from "./answers.ts";
import { BytesOut } from "./bytes-out.ts";
import { Cursor, Malformed } from "./cursor.ts";
import { plainFence, sessionFence } from "./fence.ts";
import { frameLength, Joiner, parseEvent, wholeFrame } from "./frames.ts";
import { readPValue } from "./pvalue.ts";
import {
  ATTRIBUTE,
  createSession,
  deleteSession,
  explore,
  getAttribute,
  initSslFrame,
  itemAddress,
  MAX_ITEMS_BYTES,
  readItems,
  seal,
  setAttribute,
  setUpSession,
} from "./requests.ts";
import { codeOf, returnWords } from "./return-values.ts";

const bytes = (text: string): Buffer => Buffer.from(text.replace(/[\s|]/g, ""), "hex");
const hex = (frame: Uint8Array): string => Buffer.from(frame).toString("hex");
const SESSION = 0x7000_0c88;

describe("numbers of variable length", () => {
  // Widths and signs: sections of the public dissector (s7comm-plus, VLQ), and values that client and device exchange.
  it.each([
    ["00", 0],
    ["01", 1],
    ["7f", 127],
    ["8100", 128],
    ["8232", 306],
    ["8e32", 1842],
    ["9376", 2550],
    ["9d18", 3736],
    ["88d0b88001", 0x8a0e0001],
    ["8fffffff7f", 0xffff_ffff],
  ])("%s is %d, both ways", (text, value) => {
    expect(hex(new BytesOut().vlq32(value).done())).toBe(text);
    expect(new Cursor(bytes(text)).vlq32()).toBe(value);
  });

  it.each([
    ["3f", 63],
    ["8040", 64],
    ["87ffffff7f", 2_147_483_647],
    ["fe01", -255],
    ["f880808000", -2_147_483_648],
    ["7f", -1],
    ["40", -64],
    ["ff3f", -65],
    ["ffb4d279", -1_234_567],
    ["8fffb4d279", -1_234_567],
  ])("%s is %d with a sign", (text, value) => {
    expect(new Cursor(bytes(text)).signedVlq32()).toBe(value);
  });

  it.each([
    ["ffffffffffffff7f", 2n ** 56n - 1n],
    ["80c080808080808000", 2n ** 56n],
    ["80edd3b4dd98e1f34e", 123_456_789_012_345_678n],
    ["ffffffffffffffffff", 2n ** 64n - 1n],
  ])("%s is %d in 64 bits", (text, value) => {
    const cursor = new Cursor(bytes(text));
    expect([cursor.vlq64(), cursor.left]).toEqual([value, 0]);
  });

  it.each([
    ["bfffffffffffff7f", 2n ** 55n - 1n],
    ["80a080808080808000", 2n ** 55n],
    ["bfffffffffffffffff", 2n ** 63n - 1n],
    ["c080808080808000", -(2n ** 55n)],
    ["ffdfffffffffffffff", -(2n ** 55n) - 1n],
    ["c08080808080808000", -(2n ** 63n)],
  ])("%s is %d in 64 bits with a sign", (text, value) => {
    const cursor = new Cursor(bytes(text));
    expect([cursor.signedVlq64(), cursor.left]).toEqual([value, 0]);
  });

  it("every number comes back as it went", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (value) => new Cursor(new BytesOut().vlq32(value).done()).vlq32() === value),
    );
  });
});

describe("frames out, byte for byte", () => {
  it("asks for TLS", () => {
    expect(hex(dataPackets(initSslFrame(1), 1024))).toBe(
      hex(bytes("03000021 02f080 72010012 31 0000 05b3 0000 0001 00000000 30 00000000 72010000")),
    );
  });

  it("makes a session object", () => {
    expect(hex(seal(createSession(), 2, 0))).toBe(
      hex(
        bytes(`7201003a 31 0000 04ca 0000 0002 00000120 36 0000011d 000400 00000000 a1000000d3821f0000 a3822c001280c3c901
               a1000000d3817f0000 a2 a2 00000000 72010000`),
      ),
    );
  });

  it("gives the version of the session back as it came", () => {
    expect(hex(seal(setUpSession(SESSION, bytes("00170000013a00")), 3, 0))).toBe(
      hex(
        bytes(`7202003a 31 0000 0542 0000 0003 70000c88 34 70000c88 0101 8232 01 00170000013a00 00
               000004e88969001200000000896a001300896b00040000 00000000 72020000`),
      ),
    );
  });

  it("reads one variable by its ids", () => {
    const draft = readItems(SESSION, itemAddress({ area: 0x8a0e0001, lids: [0x11] }), 1, 5);
    const one = `7202003a 31 0000 054c 0000 0009 70000c88 34 00000000 01 05 00 88d0b88001 02 9376 11
                 000004e88969001200000000896a001300896b00040000 03 00000000 72020000`;
    expect(hex(seal(draft, 9, 3))).toBe(hex(bytes(one)));
    // Sealed again with a number that takes two bytes, and back.
    expect(hex(seal(draft, 10, 128))).toBe(
      hex(bytes(one.replace("7202003a", "7202003b").replace("0009", "000a").replace(" 03 0000", " 8100 0000"))),
    );
    expect(hex(seal(draft, 9, 3))).toBe(hex(bytes(one)));
  });

  it("addresses memory, and system limits", () => {
    expect(hex(itemAddress({ area: 82, lids: [10] }))).toBe("0052029d180a");
    expect(hex(itemAddress({ area: 201, lids: [1000] }))).toBe("00814902880d8768");
  });

  it("asks for the blocks", () => {
    const frame = seal(explore(SESSION, 3, [233, 2521, 4288]), 8, 4);
    expect(hex(frame.subarray(4, -4))).toBe(
      hex(bytes("31000004bb0000000870000c8834 00000003 00 01 01 00 00 03 8169 9359 a140 04 0000000000")),
    );
  });

  it("reads and sets attributes of the session, and deletes it", () => {
    const qualifier = "000004e88969001200000000896a001300896b00040000";
    expect(hex(seal(getAttribute(SESSION, ATTRIBUTE.protectionLevel), 5, 2).subarray(18, -4))).toBe(
      hex(bytes(`70000c88 200401 8e32 ${qualifier} 0001 02 00000000`)),
    );
    expect(hex(seal(setAttribute(SESSION, ATTRIBUTE.legacyAnswer, bytes("10021400")), 6, 1).subarray(18, -4))).toBe(
      hex(bytes(`70000c88 01 8230 10021400 ${qualifier} 00 01 00000000`)),
    );
    expect(hex(seal(deleteSession(SESSION), 7, 2).subarray(18, -4))).toBe(hex(bytes(`70000c88 00 ${qualifier} 02 00000000`)));
  });

  it("keeps the longest read below 900 bytes", () => {
    const frame = seal(readItems(0xffff_ffff, Buffer.alloc(MAX_ITEMS_BYTES), 1000, 100_000), 65_535, 0xffff_ffff);
    expect(frame.length).toBeLessThanOrEqual(900);
  });
});

describe("the fence", () => {
  const OWN = SESSION;
  const fence = sessionFence(() => OWN);
  const before = sessionFence(() => undefined);
  const item = itemAddress({ area: 82, lids: [9] });
  const sealed = [
    seal(readItems(OWN, item, 1, 5), 1, 1),
    seal(explore(OWN, 3, []), 1, 1),
    seal(getAttribute(OWN, 1842), 1, 1),
    seal(setUpSession(OWN, bytes("0000")), 1, 1),
    seal(setAttribute(OWN, ATTRIBUTE.legitimate, bytes("0000")), 1, 1),
    seal(setAttribute(OWN, ATTRIBUTE.legacyAnswer, bytes("0000")), 1, 1),
    seal(deleteSession(OWN), 1, 1),
  ];

  it("lets requests pass that read, and those about the session itself", () => {
    for (const frame of sealed) expect(fence(frame)).toBe(true);
    expect(before(seal(createSession(), 1, 1))).toBe(true);
    expect(plainFence(dataPackets(initSslFrame(1), 1024))).toBe(true);
  });

  it.each([
    ["a variable that is set", seal(setAttribute(OWN, 233, bytes("0000")), 1, 1), /something other than our log-in/],
    ["the log-in of another session", seal(setAttribute(OWN + 1, 304, bytes("0000")), 1, 1), /of another session/],
    ["several variables that are set", wholeFrame(2, bytes("31000005420000000170000c8834 70000c88 0201 8232")), /session's version/],
    ["values in a block", wholeFrame(2, bytes("31000005420000000170000c8834 00000000 0105 00 88d0b88001")), /session's version/],
    ["another function", wholeFrame(2, bytes("310000056b0000000170000c8834 00000000")), /function 0x056b/],
    ["a second session", seal(createSession(), 1, 1), /other than our own session/],
    ["the deletion of another object", wholeFrame(2, bytes("31000004d40000000170000c8834 8a0e0001 00")), /other than our session/],
    ["a message that is no request", wholeFrame(2, bytes("330000054c0000000170000c8834")), /no(t a)? request/],
    ["a request without its end", wholeFrame(2, bytes("31000004d40000000170000c8834 70")), /not whole/],
  ])("does not let pass %s", (_, frame, why) => {
    expect(fence(frame)).toMatch(why);
  });

  it("lets pass nothing but the request for TLS in the clear, and no part of a frame anywhere", () => {
    expect(plainFence(dataPackets(sealed[0] ?? Buffer.alloc(0), 1024))).toMatch(/without TLS/);
    for (const frame of sealed) for (let end = 0; end < frame.length; end += 5) expect(fence(frame.subarray(0, end))).not.toBe(true);
    const init = dataPackets(initSslFrame(1), 1024);
    expect(plainFence(init.subarray(PAYLOAD_AT))).not.toBe(true);
  });

  it("lets pass nothing of what is changed in function or object", () => {
    fc.assert(
      fc.property(fc.constantFrom(...sealed.slice(3)), fc.integer({ min: 0x0400, max: 0x0600 }), (frame, code) => {
        const changed = Buffer.from(frame);
        changed.writeUInt16BE(code, 7);
        const allowed = fence(changed) === true;
        return !allowed || [0x04bb, 0x04d4, 0x0586, 0x04f2, 0x0542, 0x054c].includes(code);
      }),
    );
  });
});

describe("messages in", () => {
  const data = bytes("32000005420000000336 00 00 00 00000000");
  const stream = Buffer.concat([
    bytes("72fe0010 00000000 00000010 00000000 00000000"),
    bytes("72ff0700"),
    bytes("72020006"),
    data.subarray(0, 6),
    Buffer.concat([bytes("7202"), Buffer.of(0, data.length - 6), data.subarray(6)]),
    bytes("72020000"),
  ]);

  it("joins fragments, passes events by, and takes the trailer as the end", () => {
    const joiner = new Joiner();
    const kinds: string[] = [];
    for (let at = 0; at < stream.length; ) {
      const length = frameLength(stream, at);
      if (typeof length !== "number") throw new Error(`${length}`);
      const arrived = joiner.take(stream.subarray(at, at + length));
      kinds.push(arrived.kind);
      if (arrived.kind === "message") expect(hex(arrived.data)).toBe(hex(data));
      at += length;
    }
    expect(kinds).toEqual(["event", "nothing", "nothing", "nothing", "message"]);
  });

  it.each([
    ["7302 0000", /protocol id 0x73/],
    ["00", /protocol id 0x00/],
  ])("refuses %s", (text, why) => {
    expect(frameLength(bytes(text), 0)).toMatch(why);
  });

  it.each([
    [["72030001aa"], /version 3/],
    [["72040001aa"], /version 4/],
    [["72020001aa", "72010001aa"], /versions 2 and 1/],
    [["72020001aa", "72010000"], /trailer of version 1/],
  ])("refuses %j", (frames, why) => {
    const joiner = new Joiner();
    expect(() => {
      for (const frame of frames) joiner.take(bytes(frame));
    }).toThrow(why);
  });

  it("reads what a device says of a new session", () => {
    // Of a CPU 1512SP with firmware 4.1, its challenge replaced.
    const answer = parseAnswer(
      bytes(`32 0000 04ca 0000 0002 36 b088d0808084d68011 02 8780809c41 8780809c42 a1 00000120 821f 01 00
        a3 8169 00 15 13 30303a31383142374230383437443131363934 a3 822b 00 04 02
        a3 822d 00 15 24 5365727665723a204f4d53505f31362e30302e30302e30355f30312e31352e30302e3031
        a3 822f 10 02 14 0102030405060708090a0b0c0d0e0f1011121314
        a3 8232 00 17 0000013a 823b 00 04 8800 823c 00 04 8701 823d 00 04 84818640 823e 00 04 84818540
        823f 00 15 1a 313b36455337203531322d31444d30332d304142303b56342e31 8240 00 15 08 323b393334373338 8241 00 03 0003 00
        a2 00000000`),
    );
    expect(answer?.code).toBe(0x04ca);
    const value = answer?.cursor.vlq64() ?? 0n;
    expect(codeOf(value)).toBe(17);
    const created = parseCreated(answer?.cursor ?? new Cursor(Buffer.alloc(0)));
    expect(created.ids).toEqual([0x7000_0e41, 0x7000_0e42]);
    expect(created.device).toBe("1;6ES7 512-1DM03-0AB0;V4.1");
    expect(hex(created.versionValue ?? Buffer.alloc(0))).toMatch(/^00170000013a823b.*0003000300$/);
  });

  it("reads values and refusals of a read", () => {
    const cursor = new Cursor(bytes("8dc08081ac8013 01 000e41bc0000 03 000b1234 00 02 c08096a08080d7ff01 00 0c 00000000"));
    expect(codeOf(cursor.vlq64())).toBe(19);
    const [first, second, third] = parseItems(cursor, 3);
    expect([first, third]).toEqual([{ value: { flags: 0, wire: 14, value: 23.5 } }, { value: { flags: 0, wire: 11, value: 0x1234 } }]);
    expect(codeOf(second && "refusal" in second ? second.refusal : 0n)).toBe(-255);
  });

  it("takes an explore's integrity id for what it is, also where it begins like an object", () => {
    const object = "a1 90030000 837f 00 00 a3 8169 00 15 05 4d41726561 a2 00000000";
    for (const [head, id] of [
      ["05", 5],
      ["a100", 0x1080],
      ["", 77],
    ] as const) {
      const [found] = parseExplored(new Cursor(bytes(`90030000 ${head} ${object}`)), id);
      expect(found?.attributes.get(233)?.value.value).toBe("MArea");
    }
  });

  it.each([
    ["", { isFatal: false, text: undefined }],
    ["4c4f474f5554", { isFatal: false, text: "LOGOUT" }],
    ["00ff0017 00000001 00009d71 00ff0009 a2013b000236ff88 00000000", { isFatal: true, code: 0xa201_3b00_0236_ff88n }],
    ["00ff0017 00000001 00000001 00ff0004 00000007 00009d71 00ff0009 0000000000000000 00000000", { isFatal: false }],
    ["00ff0017 00000001 00000000", { isFatal: true, code: undefined }],
  ])("reads the event %s", (body, expected) => {
    expect(parseEvent(bytes(`00000000 00000010 00000000 00000000 ${body}`))).toMatchObject(expected);
  });

  it("says return values in words", () => {
    expect(returnWords(0xa201_9a00_019c_ff89n)).toBe(
      "return value -119 (unknown request), generic code 26 (unknown service), 0xA2019A00019CFF89",
    );
    expect(returnWords(0xa027_a600_0054_fffcn)).toContain("return value -4 (not enough memory), generic code 38 (no memory)");
  });
});

describe("whatever comes", () => {
  it("ends in a value or in Malformed", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (random) => {
        const data = Buffer.from(random);
        for (const read of [
          () => readPValue(new Cursor(data)),
          () => parseItems(new Cursor(data), 10),
          () => parseExplored(new Cursor(data), 1),
          () => parseCreated(new Cursor(data)),
          () => parseAnswer(data),
          () => parseEvent(data),
        ])
          try {
            read();
          } catch (error) {
            expect(error).toBeInstanceOf(Malformed);
          }
      }),
      { numRuns: 2000 },
    );
  });

  it("ends so too where a value is cut or changed at any place", () => {
    const value = bytes(
      "00 17 0000013a 823b 00 04 8800 823c 10 02 03 010203 823d 00 17 02000043 0000000000001234 02 03 aabbcc 823e 00 14 00 02 0102 00",
    );
    for (let at = 0; at < value.length; at++) {
      expect(() => readPValue(new Cursor(value.subarray(0, at)))).toThrow(Malformed);
      for (const byte of [0x00, 0x7f, 0x80, 0xff]) {
        const changed = Buffer.from(value);
        changed[at] = byte;
        try {
          readPValue(new Cursor(changed));
        } catch (error) {
          expect(error).toBeInstanceOf(Malformed);
        }
      }
    }
  });
});
