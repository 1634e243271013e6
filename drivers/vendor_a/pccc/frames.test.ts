import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fence } from "../fence.ts";
import { frameWords } from "../frame-words.ts";
import { connectedRequest, unconnectedRequest } from "../frames.ts";
import { openRequest, routed, slotRoute } from "../manager.ts";
import { replay } from "../replay.ts";
import { parseFileAddress } from "./address.ts";
import { dhpPath } from "./channel.ts";
import { filesIn } from "./directory.ts";
import { familyByStatus } from "./family.ts";
import { checkCommand } from "./fence.ts";
import type { FileFamily } from "./files.ts";
import {
  afterDhpHeader,
  afterRequester,
  DHP_TNS_AT,
  diagnosticStatus,
  directoryRead,
  ENVELOPE_TNS_AT,
  enveloped,
  logicalRead,
  parseCommandReply,
  parseDataType,
  toNode,
  typedRead,
  wordRangeRead,
} from "./frames.ts";
import { placeOf } from "./place.ts";
import { readCommand } from "./reader.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const plain = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
/** Behind CMD, STS and TNS. */
const dataOf = (command: Buffer): string => plain(command.subarray(4));

function commandFor(text: string, family: FileFamily, ways = { isBySlot: false, isByWords: false }): Buffer {
  const { address } = parseFileAddress(text, undefined, "windows-1252");
  const { kind, file, slot, start, count } = placeOf(address, family);
  const item = { family, kind, file, start, count, bytes: count * kind.bytes, name: text, ...(slot !== undefined && { slot }) };
  return readCommand(item, item, ways);
}

describe("requests", () => {
  // Byte vectors that independent clients and their tests agree on (a Go and a JavaScript client, pycomm3, nodepccc).
  it.each([
    ["N7:0", "A2 02 07 89 00 00"],
    ["N7:255", "A2 02 07 89 FF FF 00 00"],
    ["N300:2", "A2 02 FF 2C 01 89 02 00"],
    ["B3:300/4", "A2 02 03 85 FF 2C 01 00"],
    ["F8:1", "A2 04 08 8A 01 00"],
    ["T4:2", "A2 06 04 86 02 00"],
    ["ST9:0", "A2 54 09 8D 00 00"],
    ["L10:3", "A2 04 0A 91 03 00"],
    ["S:1/5", "A2 02 02 84 01 00"],
    ["N7:5{10}", "A2 14 07 89 05 00"],
    ["I:1.0/7", "A2 02 01 83 01 00"],
    ["O:2.1", "A2 02 00 82 02 01"],
  ])("are those of an SLC for %s", (text, bytes) => expect(dataOf(commandFor(text, "slc"))).toBe(plain(hex(bytes))));

  it("have the codes by slot for inputs and outputs where the others are refused", () => {
    const ways = { isBySlot: true, isByWords: false };
    expect(dataOf(commandFor("I:1.0/7", "slc", ways))).toBe("a20201" + "8c0100");
    expect(dataOf(commandFor("N7:0", "slc", ways))).toBe("a20207890000");
  });

  it("name a member of an element where that is wanted", () => {
    expect(dataOf(logicalRead({ bytes: 2, file: 4, code: 0x86, element: 2, sub: 2 }))).toBe("a20204860202");
    expect(dataOf(logicalRead({ bytes: 2, file: 6, code: 0x88, element: 1, sub: 1 }))).toBe("a20206880101");
  });

  // Addresses of 1770-6.5.16, 13-11, with the level of the data table left out; the sizes of 1770-KF2, 5-57.
  it("are those of a PLC-5", () => {
    expect(dataOf(commandFor("N7:30", "plc5"))).toBe("68" + "0000" + "0100" + "06071e" + "0100");
    expect(dataOf(commandFor("B3:300{4}", "plc5"))).toBe("68" + "0000" + "0400" + "0603ff2c01" + "0400");
    expect(dataOf(commandFor("I:012/17", "plc5"))).toBe("68" + "0000" + "0100" + "06010a" + "0100");
    expect(dataOf(commandFor("F8:2{3}", "plc5", { isBySlot: false, isByWords: true }))).toBe("01" + "0000" + "0600" + "060802" + "0c");
  });

  it("ask what there is", () => {
    expect(plain(diagnosticStatus())).toBe("0600000003");
    expect(dataOf(directoryRead({ bytes: 80, code: 1, offset: 40 }))).toBe("a150000128");
    expect(dataOf(directoryRead({ bytes: 80, code: 3, offset: 280 }))).toBe("a1500003ff1801");
  });

  it("stand in the envelope of CIP, and behind the header of DH+, with a number that comes back", () => {
    const cip = enveloped(commandFor("N7:0", "slc"));
    cip.writeUInt16LE(0x1234, ENVELOPE_TNS_AT);
    expect(plain(cip)).toBe("4b0220672401" + "07cc0c01000000" + "0f003412" + "a20207890000");
    const message = toNode(0o12, commandFor("N7:0", "plc5"));
    message.writeUInt16LE(0x1234, DHP_TNS_AT);
    expect(plain(message)).toBe("00000a0000000000" + "0f003412" + "680000010006" + "07000100");
    expect(plain(openRequest({ ...WISH, object: dhpPath({ channel: 1, node: 2 }) }).subarray(-10))).toBe("a304" + "0103" + "20a624012c01");
  });
});

const WISH = {
  triple: { serial: 1, originator: 2 },
  ownId: 3,
  sizeBytes: 258,
  isLarge: false,
  route: slotRoute(3),
  timeoutMs: 4000,
};

describe("replies", () => {
  it("are taken apart by their number, command and status", () => {
    const good = hex("4f00 3412 0100 0200");
    expect(parseCommandReply(good, 0, 8, 0x0f, 0x1234)).toMatchObject({ at: 4, end: 8, status: 0, extended: undefined });
    expect(parseCommandReply(good, 0, 8, 0x0f, 0x1235)).toBe("PCCC reply 4660 answers request 4661");
    expect(parseCommandReply(good, 0, 8, 0x0f, 0x1233)).toBe("PCCC reply 4660 answers request 4659");
    expect(parseCommandReply(good, 0, 8, 0x06, 0x1234)).toBe("PCCC command 0x4f answers command 0x06");
    expect(parseCommandReply(hex("4ff0 3412 06"), 0, 5, 0x0f, 0x1234)).toMatchObject({ status: 0xf0, extended: 6, at: 5 });
    expect(parseCommandReply(hex("4ff0 3412"), 0, 4, 0x0f, 0x1234)).toContain("no extended status");
    for (let end = 0; end < 4; end++) expect(parseCommandReply(good, 0, end, 0x0f, 0x1234)).toBe(`a PCCC reply of ${end} bytes`);
  });

  it("stand behind the requester's id, however long it is, and behind the header of DH+", () => {
    expect(afterRequester(hex("07 000000000000 4f"), 0, 8)).toBe(7);
    expect(afterRequester(hex("0b 00000000000000000000 4f"), 0, 12)).toBe(11);
    expect(afterRequester(hex("09 00 00"), 0, 3)).toBeUndefined();
    expect(afterRequester(hex("00 4f"), 0, 2)).toBeUndefined();
    expect(afterRequester(hex("07"), 1, 1)).toBeUndefined();
    expect([afterDhpHeader(5, 12), afterDhpHeader(5, 13)]).toEqual([undefined, 13]);
  });

  it.each([
    ["43 112233", { id: 4, bytes: 3, isArray: false, at: 1 }],
    ["4903 112233", { id: 4, bytes: 3, isArray: false, at: 2 }],
    ["4a0300 112233", { id: 4, bytes: 3, isArray: false, at: 3 }],
    ["9408 00004842", { id: 8, bytes: 4, isArray: false, at: 2 }],
    ["990905 42 0100 0200", { id: 4, bytes: 2, isArray: true, at: 4 }],
    ["99090a 9408 0000484200004842", { id: 8, bytes: 4, isArray: true, at: 5 }],
    ["9a090500 42 0100 0200", { id: 4, bytes: 2, isArray: true, at: 5 }],
  ])("of a typed read say their type: %s", (text, type) => {
    const bytes = hex(text);
    expect(parseDataType(bytes, 0, bytes.length)).toEqual({ ...type, end: bytes.length });
  });

  it.each([
    "",
    "42",
    "42 010203",
    "4d0000000000 01",
    "f2",
    "990905 42 0100",
    "990905 9905 42 01",
    "9909 05",
    "40 01",
    "99090190",
    "48 0100",
  ])("of a typed read that are none break the protocol: %s", (text) => {
    const bytes = hex(text);
    expect(typeof parseDataType(bytes, 0, bytes.length)).toBe("string");
  });

  it("never throw, and never point behind their end, whatever their bytes (property)", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(300), (given, cut) => {
        const bytes = Buffer.from(given);
        const end = Math.min(cut, bytes.length);
        const type = parseDataType(bytes, 0, end);
        if (typeof type !== "string") {
          expect(type.at).toBeLessThanOrEqual(end);
          expect((type.end - type.at) % type.bytes).toBe(0);
        }
        const reply = parseCommandReply(bytes, 0, end, 0x0f, 1);
        if (typeof reply !== "string") expect(reply.at).toBeLessThanOrEqual(end);
        const from = afterRequester(bytes, 0, end);
        if (from !== undefined) expect(from).toBeLessThanOrEqual(end);
        familyByStatus(bytes.subarray(0, end));
        for (const { bytes: length } of filesIn(bytes, { code: 1, rowsAt: 79 })) expect(length).toBeLessThanOrEqual(0xffff);
      }),
      { numRuns: 3000 },
    );
  });
});

const READS: readonly Buffer[] = [
  logicalRead({ bytes: 236, file: 7, code: 0x89, element: 300, sub: 0 }),
  logicalRead({ bytes: 2, file: 300, code: 0x85, element: 0, sub: 300 }),
  directoryRead({ bytes: 80, code: 3, offset: 300 }),
  typedRead({ file: 7, element: 300, count: 117 }),
  wordRangeRead({ file: 300, element: 1, bytes: 244 }),
  diagnosticStatus(),
];

describe("the fence", () => {
  const frames = (command: Buffer): readonly Buffer[] => [
    unconnectedRequest(1, enveloped(command)),
    unconnectedRequest(1, routed(enveloped(command), slotRoute(2), 500)),
    connectedRequest(1, 2, enveloped(command)),
    connectedRequest(1, 2, toNode(0o77, command)),
  ];

  it("passes each command that reads, in each way that leads to a controller", () => {
    for (const command of READS) for (const frame of frames(command)) expect(fence(frame)).toBe(true);
    expect(fence(unconnectedRequest(1, openRequest({ ...WISH, object: dhpPath({ channel: 2, node: 1 }) })))).toBe(true);
  });

  it("passes no other function, whatever is behind it", () => {
    const good = new Set([0x0f01, 0x0f68, 0x0fa1, 0x0fa2, 0x0603]);
    const passed = new Set<number>();
    for (const command of READS) {
      const changed = Buffer.from(command);
      for (let code = 0; code < 0x1_0000; code++) {
        changed[0] = code >> 8;
        changed[4] = code & 0xff;
        if (checkCommand(changed, 0, changed.length) === true) passed.add(code);
      }
    }
    expect(passed).toEqual(good);
  });

  it("passes no command that is longer or shorter, and no directory of another file", () => {
    for (const command of READS) {
      for (let end = 0; end < command.length; end++) expect(typeof checkCommand(command, 0, end)).toBe("string");
      const longer = Buffer.concat([command, Buffer.of(0)]);
      expect(typeof checkCommand(longer, 0, longer.length)).toBe("string");
    }
    const directory = directoryRead({ bytes: 80, code: 1, offset: 0 });
    directory[6] = 7;
    expect(typeof checkCommand(directory, 0, directory.length)).toBe("string");
  });

  // Writes of 1770-6.5.16: unprotected (00 to 08), typed, bits, masked, mode, download.
  it.each([
    "0f00 0100 aa 02 07 89 00 00 2a00",
    "0f00 0100 a9 02 07 89 00 2a00",
    "0f00 0100 ab 02 07 89 00 00 ffff 2a00",
    "0f00 0100 67 0000 0100 06 07 00 42 2a00",
    "0f00 0100 00 0000 0100 06 07 00 2a00",
    "0f00 0100 26 06 07 00 ffff 0100",
    "0f00 0100 80 06",
    "0f00 0100 3a 02",
    "0f00 0100 52",
    "0f00 0100 8f",
    "0800 0100 0000 2a00",
    "0500 0100 0000 0101",
    "0600 0100 02",
  ])("passes no write: %s", (text) => {
    for (const frame of frames(hex(text))) expect(typeof fence(frame)).toBe("string");
  });

  it("passes nothing else to the object, nor through another one", () => {
    const cip = enveloped(READS[0] ?? Buffer.alloc(0));
    for (const [at, value] of [
      [0, 0x4c],
      [0, 0x4d],
      [3, 0x68],
      [6, 8],
    ] as const) {
      const changed = Buffer.from(cip);
      changed[at] = value;
      expect(typeof fence(unconnectedRequest(1, changed))).toBe("string");
    }
    const object = Buffer.from(dhpPath({ channel: 1, node: 1 }));
    object[1] = 0xa7;
    expect(typeof fence(unconnectedRequest(1, openRequest({ ...WISH, object })))).toBe("string");
  });
});

describe("frames in words", () => {
  const out = (command: Buffer): string | undefined => frameWords(unconnectedRequest(1, enveloped(command)), "out");
  it("say what is read", () => {
    expect(out(commandFor("N7:5{10}", "slc"))).toBe("protected typed logical read of 20 bytes from N7:5");
    expect(out(commandFor("I:1.2", "slc"))).toBe("protected typed logical read of 2 bytes from I:1.2");
    expect(out(commandFor("N7:5{10}", "plc5"))).toBe("typed read of 10 elements from file 7, element 5");
    expect(out(wordRangeRead({ file: 8, element: 300, bytes: 8 }))).toBe("word range read of 8 bytes from file 8, element 300");
    expect(out(directoryRead({ bytes: 80, code: 1, offset: 300 }))).toBe("read of the file directory, 80 bytes from word 300");
    expect(frameWords(unconnectedRequest(1, routed(enveloped(diagnosticStatus()), slotRoute(2), 500)), "out")).toBe(
      "along a route: diagnostic status",
    );
    expect(frameWords(connectedRequest(1, 2, toNode(0o12, diagnosticStatus())), "out")).toBe("node 12 (octal) of DH+: diagnostic status");
  });

  it("say what is answered", () => {
    const unconnected = (reply: string) => frameWords(unconnectedRequest(1, hex(`cb00 0000 07 000000000000 ${reply}`)), "in");
    expect(unconnected("4f00 0100 0100 0200")).toBe("PCCC: 4 bytes");
    expect(unconnected("4ff0 0100 06")).toMatch(/^PCCC status 0xF0\/0x06 \(there is no such file/);
    expect(unconnected("4f10 0100")).toMatch(/^PCCC status 0x10 \(/);
    expect(frameWords(connectedRequest(1, 2, hex("00000000000a0000 4f02 0100")), "in")).toMatch(/^PCCC status 0x02 \(/);
    expect(frameWords(unconnectedRequest(1, hex("cb00 0800")), "in")).toMatch(/^Execute PCCC: status 0x08/);
  });

  it("take any bytes (property)", () => {
    const begins = fc.constantFrom("cb000000", "cb00000007000000000000", "0000000000000000", "4b022067240107", "0f00");
    fc.assert(
      fc.property(begins, fc.uint8Array({ maxLength: 40 }), (begin, rest) => {
        const bytes = Buffer.concat([hex(begin), rest]);
        for (const frame of [unconnectedRequest(1, bytes), connectedRequest(1, 2, bytes)])
          for (const way of ["out", "in"] as const) expect(typeof frameWords(frame, way)).toMatch(/string|undefined/);
      }),
      { numRuns: 2000 },
    );
  });
});

it("a recording is played for commands with other numbers", () => {
  const fieldsOf = (message: Buffer, isFromDevice: boolean) =>
    replay.fieldsOf?.(message, isFromDevice).find(({ name }) => name === "command");
  const cip = enveloped(commandFor("N7:0", "slc"));
  cip.writeUInt16LE(0x1234, ENVELOPE_TNS_AT);
  const numberIn = (message: Buffer, isFromDevice: boolean): number | undefined => {
    const found = fieldsOf(message, isFromDevice);
    return found && message.readUInt16LE(found.from);
  };
  expect(numberIn(unconnectedRequest(1, cip), false)).toBe(0x1234);
  expect(numberIn(unconnectedRequest(1, routed(cip, slotRoute(2), 500)), false)).toBe(0x1234);
  expect(numberIn(unconnectedRequest(1, hex("cb00 0000 07 000000000000 4f00 3412 0100")), true)).toBe(0x1234);
  const message = toNode(1, commandFor("N7:0", "plc5"));
  message.writeUInt16LE(0x1234, DHP_TNS_AT);
  expect(numberIn(connectedRequest(1, 2, message), false)).toBe(0x1234);
  expect(fieldsOf(unconnectedRequest(1, hex("cb00 0800")), true)).toBeUndefined();
});
