import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toRtu } from "../../drivers/modbus_tcp/rtu.ts";
import type { MadeAnswer, Protocol } from "../../drivers/replay.ts";
import {
  all,
  array,
  bytes,
  dataValue,
  double,
  f64,
  i64,
  node,
  qualified,
  str,
  text,
  u8,
  u32,
} from "../../test/support/opcua-wire/bytes.ts";
import { DeviceMemory } from "./memory.ts";
import { essenceOf, protocolOf } from "./protocols.ts";
import { Script } from "./script.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const NOTHING = Buffer.alloc(0);
const modbus = protocolOf("tcp", 502, NOTHING, "modbus_tcp");
const rtu = protocolOf("tcp", 4001, hex("01 03 0000 000a c5cd"), "modbus_tcp");
const s7 = protocolOf("tcp", 102, NOTHING, "s7");
const opcua = protocolOf("tcp", 4840, NOTHING, "opcua");
const tags = protocolOf("tcp", 44_818, NOTHING, "vendor_a");
const finsUdp = protocolOf("udp", 9600, NOTHING, "fins");
const finsTcp = protocolOf("tcp", 9600, NOTHING, "fins");

/** The memory of a recording with these requests and their answers, in hexadecimal. */
function memoryOf(protocol: Protocol, pairs: readonly (readonly [string, string])[]): DeviceMemory {
  const script = new Script(protocol, { bytes: 0, notKept: 0 });
  for (const [request, answer] of pairs) {
    const asked = script.ask(hex(request));
    if (asked) script.answer(asked, [hex(answer)]);
  }
  if (!protocol.memory) throw new Error("no memory");
  return new DeviceMemory(protocol.memory, script.asked());
}

/** An answer without the numbers that are filled in behind it, in hexadecimal; a refusal with `!`. */
function asked(protocol: Protocol, memory: DeviceMemory, request: string): string | undefined {
  const made: MadeAnswer | undefined = memory.answer(hex(request));
  return made && `${made.isRefusal ? "!" : ""}${essenceOf(protocol, made.message, true).toString("hex")}`;
}

describe("a memory of Modbus", () => {
  const memory = memoryOf(modbus, [
    ["0001 0000 0006 01 03 000a 0003", "0001 0000 0009 01 03 06 1111 2222 3333"],
    ["0002 0000 0006 01 03 000d 0001", "0002 0000 0005 01 03 02 4444"],
    ["0003 0000 0006 01 01 0003 000a", "0003 0000 0005 01 01 02 b502"],
    ["0004 0000 0006 01 03 0064 0001", "0004 0000 0003 01 83 02"],
    ["0005 0000 0006 01 06 000b 9999", "0005 0000 0006 01 06 000b 9999"],
    ["0006 0000 000a 01 14 07 06 0004 0001 0002", "0006 0000 0009 01 14 06 05 06 aaaa bbbb"],
    ["0007 0000 0006 02 04 0000 0001", "0007 0000 0007 02 04 04 0000 0001"],
  ]);
  it.each([
    ["a range over two requests", "0009 0000 0006 01 03 000b 0003", "0000000901030622223333 4444"],
    ["a range that touches a hole", "0009 0000 0006 01 03 000b 0004", "!00000003018302"],
    ["another unit", "0009 0000 0006 05 03 000b 0001", "!00000003058302"],
    ["coils at another place", "0009 0000 0006 01 01 0005 0004", "000000040101010d"],
    ["a place that the device refused", "0009 0000 0006 01 03 0064 0001", "!00000003018302"],
    ["a write", "0009 0000 0006 01 06 000b 0001", "!00000003018601"],
    ["no register", "0009 0000 0006 01 03 000b 0000", "!00000003018303"],
    ["a record of a file", "0009 0000 000a 01 14 07 06 0004 0002 0001", "000000070114040306bbbb"],
    ["a register of 32 bits", "0009 0000 0006 02 04 0000 0001", "00000007020404 00000001"],
  ])("answers %s", (_, request, answer) => expect(asked(modbus, memory, request)).toBe(answer.replaceAll(" ", "")));

  it("over RTU has the frames of the line", () => {
    const framed = (body: string): string => toRtu(hex(`0000 0000 0000 ${body}`)).toString("hex");
    const line = memoryOf(rtu, [[framed("11 03 006b 0003"), framed("11 03 06 022b 0000 0064")]]);
    const made = line.answer(hex(framed("11 03 006d 0001")))?.message;
    expect(made?.toString("hex", 0, 5)).toBe("1103020064");
    expect(made && rtu.lengthOf?.(made)).toBe(7);
    expect(line.answer(hex("11 03 006d 0001 0000"))).toBeUndefined();
  });
});

describe("a memory of S7", () => {
  const job = (...items: readonly string[]): string => {
    const parameters = Buffer.concat([Buffer.of(4, items.length), ...items.map((item) => hex(`120a10${item}`))]);
    const head = hex("0300 0000 02f080 3201 0000 0007 0000 0000");
    head.writeUInt16BE(head.length + parameters.length, 2);
    head.writeUInt16BE(parameters.length, 13);
    return Buffer.concat([head, parameters]).toString("hex");
  };
  const ack = (items: number, data: string, error = "0000"): string => {
    const head = hex("0300 0000 02f080 3203 0000 0007 0002 0000");
    const body = hex(`${error}04${items.toString(16).padStart(2, "0")}${data}`);
    head.writeUInt16BE(head.length + body.length, 2);
    head.writeUInt16BE(body.length - 4, 15);
    return Buffer.concat([head, body]).toString("hex");
  };
  const memory = memoryOf(s7, [
    [job("02 0005 0001 84 000010", "02 0001 0000 83 000000"), ack(2, "ff04 0028 0102030405 00 ff04 0008 81")],
    [job("1d 0002 0000 1d 000003", "08 0001 0002 84 000000"), ack(2, "ff09 0004 00110022 0a00 0000")],
    ["0300001902f08032010000ccc100080000f0000001000101e0", "0300001b02f08032030000ccc1000800000000f0000001000100f0"],
  ]);
  /** The items of an answer. */
  const read = (...items: readonly string[]): string | undefined => {
    const made = memory.answer(hex(job(...items)));
    return made && `${made.isRefusal ? "!" : ""}${made.message.toString("hex", 21)}`;
  };
  it.each([
    ["a word of another grouping", ["04 0001 0001 84 000018"], "ff0400100203"],
    ["a real", ["08 0001 0001 84 000010"], "ff07000401020304"],
    ["a bit", ["01 0001 0000 83 000007", "01 0001 0000 83 000001"], "ff03000101" + "00" + "ff03000100"],
    ["a timer", ["1d 0001 0000 1d 000004"], "ff0900020022"],
    ["what touches a hole, and a block that was not captured", ["02 0006 0001 84 000010", "02 0001 0009 84 000010"], "!050000000a000000"],
    ["another way of addressing", ["01 0002 0000 83 000000"], "!06000000"],
  ])("answers %s", (_, items, data) => expect(read(...items)).toBe(data));

  it("has the length of messages that the device granted, a connection for any names, and refuses a write", () => {
    const setup = memory.answer(hex("0300001902f08032010000000100080000f0000001000103c0"))?.message;
    expect(setup?.readUInt16BE(25)).toBe(240);
    expect(memory.answer(hex("0300001611e00000000600c1020100c2020101c0010a"))?.message.toString("hex")).toBe(
      "0300001611d00006000100c1020100c2020101c0010a",
    );
    const write = memory.answer(hex("0300002402f080320100000005000e00050501120a100200010001840000000004000801"));
    expect(write).toMatchObject({ isRefusal: true });
    expect(write?.message.toString("hex")).toBe("0300001302f0803202000000050000" + "0000" + "8104");
  });
});

describe("a memory of FINS", () => {
  const command = (rest: string): string => `8000 02 000a00 000100 07 ${rest}`;
  const answered = (rest: string): string => `c000 02 000100 000a00 07 ${rest}`;
  const memory = memoryOf(finsUdp, [
    [command("0101 82 0064 00 0003"), answered("0101 0000 1111 8001 3333")],
    [command("0104 82 0070 00 31 0002 05 09 0003 00"), answered("0104 0040 82 abcd 31 01 09 01")],
    [command("0101 30 0001 0e 0003"), answered("0101 0000 01 00 01")],
    [command("0102 82 0065 00 0001 9999"), answered("0102 0000")],
    [command("0101 dc 0104 00 0002"), answered("0101 0000 00010064 fedcba98")],
    [command("0104 dc 0108 00 bc 0203 00"), answered("0104 0000 dc 0000c000 bc fffb")],
  ]);
  /** Command code, end code and data of an answer. */
  const read = (rest: string): string | undefined => {
    const made = memory.answer(hex(command(rest)));
    expect(made?.message.toString("hex", 0, 10)).toBe("c0000200010000" + "0a0007");
    return made && `${made.isRefusal ? "!" : ""}${made.message.toString("hex", 10)}`;
  };
  it.each([
    ["words of another range", "0101 82 0065 00 0002", "0101000080013333"],
    ["bits of a word", "0101 02 0065 0f 0002", "010100000101"],
    ["single items of ranges", "0104 82 0066 00 82 0070 00", "0104000082333382abcd"],
    ["index and data registers", "0104 dc 0105 00 dc 0108 00 bc 0203 00", "01040000dcfedcba98dc0000c000bcfffb"],
    ["a flag", "0101 09 0003 00 0001", "0101000001"],
    ["bits over the end of a word", "0104 30 0001 0f 30 0002 00", "0104000030003001"],
    ["what touches a hole", "0101 82 0065 00 0003", "!01011103"],
    ["a word of which one bit was read", "0101 b1 0002 00 0001", "!01011103"],
    ["an area that was not captured", "0101 b2 0000 00 0001", "!01011101"],
    ["a write", "0102 82 0065 00 0001 1234", "!01020401"],
  ])("answers %s", (_, request, answer) => expect(read(request)).toBe(answer));

  it("over TCP gives a client a node, and the server's as the capture has it", () => {
    const line = memoryOf(finsTcp, [
      [
        `46494e53 0000001a 00000002 00000000 ${command("0101 82 0064 00 0001")}`,
        `46494e53 00000018 00000002 00000000 ${answered("0101 0000 1111")}`,
      ],
    ]);
    expect(asked(finsTcp, line, "46494e53 0000000c 00000000 00000000 00000000")).toBe("46494e53000000100000000100000000000000ef0000000a");
    expect(asked(finsTcp, line, "46494e53 0000000c 00000000 00000000 00000021")).toContain("000000210000000a");
  });
});

describe("a memory of tags", () => {
  const u16 = (...numbers: readonly number[]): string => numbers.map((one) => `${Buffer.of(one & 255, one >> 8).toString("hex")}`).join("");
  const bytesIn = (text: string): number => hex(text).length;
  const header = (command: string, body: string): string =>
    `${command}00${u16(bytesIn(body))}07000000 00000000 1122334455667788 00000000 ${body}`;
  /** A message without a connection, and one in it. */
  const plain = (cip: string): string => header("6f", `000000000000 0200 00000000 b200${u16(bytesIn(cip))}${cip}`);
  const unit = (cip: string): string => header("70", `000000000000 0200 a1000400 44332211 b100${u16(bytesIn(cip) + 2)} 0900 ${cip}`);
  const name = (text: string): string =>
    `91${text.length.toString(16).padStart(2, "0")}${Buffer.from(text).toString("hex")}${text.length % 2 === 1 ? "00" : ""}`;
  const request = (service: string, path: string, data: string): string =>
    `${service}${(bytesIn(path) / 2).toString(16).padStart(2, "0")}${path}${data}`;
  const read = (path: string, count = 1): string => request("4c", path, u16(count));
  const part = (path: string, count: number, offset: number): string => request("52", path, u16(count, offset, 0));
  const several = (...parts: readonly string[]): string => {
    const lengths = parts.map(bytesIn);
    const offsets = lengths.map((_, i) => 2 + lengths.length * 2 + lengths.slice(0, i).reduce((sum, one) => sum + one, 0));
    return `${u16(parts.length, ...offsets)}${parts.join("")}`;
  };
  const packet = (...parts: readonly string[]): string => request("0a", "20022401", several(...parts));

  const memory = memoryOf(tags, [
    [
      unit(packet(read(name("Line"), 4), read(name("Gone")), request("03", "20ac2401", u16(1, 1)))),
      unit(`8a001e00${several("cc000000c300 0a00 0b00 0c00 0d00", "cc000400", "83000000 0100 0100 0000 beef")}`),
    ],
    [plain(read(`${name("Line")}2804`, 1)), plain("cc000000c3000e00")],
    [plain(part(name("Recipe"), 2, 0)), plain("d2000600a0023412 01020304")],
    [plain(part(name("Recipe"), 2, 4)), plain("d2000000a0023412 05060708")],
    [plain(request("4d", name("Set"), "c3000100 0700")), plain("cd000000")],
  ]);
  /** The reply to a message, without what carries it. */
  const asked = (cip: string, isUnit: boolean): string | undefined => {
    const made = memory.answer(hex(isUnit ? unit(cip) : plain(cip)));
    return made && `${made.isRefusal ? "!" : ""}${made.message.toString("hex", isUnit ? 46 : 40)}`;
  };
  it.each([
    ["elements of two requests, in any case", read(`${name("LINE")}2802`, 3), "cc000000c3000c000d000e00"],
    ["a part of a tag", part(name("Line"), 4, 4), "d2000000c3000c000d00"],
    ["a structure that came in parts", part(name("Recipe"), 2, 2), "d2000000a0023412030405060708"],
    ["elements that were not captured", read(`${name("Line")}2803`, 3), "!cc000500"],
    ["a tag that was not captured", read(name("Other")), "!cc000400"],
    ["a write, which tells nothing", read(name("Set")), "!cc000400"],
    ["a write", request("4d", name("Line"), "c3000100 0700"), "!cd000800"],
    ["what was asked word by word", request("03", "20ac2401", u16(1, 1)), "83000000010001000000beef"],
  ])("answers %s", (_, cip, reply) => {
    expect([asked(cip, true), asked(cip, false)]).toEqual([reply, reply]);
    const both = asked(packet(read(name("Line")), cip.replaceAll(" ", "")), true);
    const isBad = reply.startsWith("!");
    const first = "cc000000c3000a00";
    expect(both).toBe(`${isBad ? "!8a001e00" : "8a000000"}${several(first, reply.replace("!", ""))}`);
  });

  it("gives no connection, but a session, and takes a request along a route", () => {
    const opening = request("54", "20062401", "07ff 00000000 04030201 0100 0200 07000000 00000000".replaceAll(" ", ""));
    expect(asked(opening, false)).toBe("!d4000800");
    const inside = read(name("Line")).replaceAll(" ", "");
    const routed = request("52", "20062401", `07ff${u16(bytesIn(inside))}${inside}01000100`);
    expect(asked(routed, false)).toBe("cc000000c3000a00");
    expect(memory.answer(hex(`65000400 00000000 00000000 1122334455667788 00000000 01000000`))?.message.readUInt32LE(4)).toBe(1);
    expect(memory.answer(hex(plain(request("4b", "20672401", "00"))))).toBeUndefined();
  });
});

describe("a memory of OPC UA", () => {
  /** A message in one chunk: numbers of its channel, service, and what follows. */
  const wire = (numbers: readonly number[], service: number, ...rest: readonly Buffer[]): string => {
    const body = all(...numbers.map(u32), node(`i=${service}`), ...rest);
    return all(Buffer.from("MSGF"), u32(body.length + 8), body).toString("hex");
  };
  const asking = (token: string, handle: number): Buffer =>
    all(node(token), i64(BigInt(handle)), u32(handle), u32(0), str(null), u32(0), Buffer.alloc(3));
  const answering = (handle: number): Buffer => all(i64(99n), u32(handle), u32(0), u8(0), array([]), Buffer.alloc(3));
  const read = (numbers: readonly number[], handle: number, ...nodes: readonly string[]): string => {
    const wanted = nodes.map((one) => all(node(one), u32(13), str(null), qualified(0, "")));
    return wire(numbers, 631, asking("i=77", handle), f64(0), u32(3), array(wanted));
  };
  const values = (numbers: readonly number[], handle: number, ...results: readonly Buffer[]): string =>
    wire(numbers, 634, answering(handle), array(results), array(null));
  const good = (n: number): Buffer => dataValue({ value: double(n) });
  const long = dataValue({ value: text("longer than before"), status: 0x4000_0000 });

  const memory = memoryOf(opcua, [
    [read([5, 1, 51, 1], 11, "ns=2;s=A", "i=2258"), values([5, 1, 1, 1], 11, good(1), good(2))],
    [read([5, 1, 52, 2], 12, "ns=2;s=A", "ns=2;i=3"), values([5, 1, 2, 2], 12, long, good(3))],
    [read([5, 1, 53, 3], 13, "ns=2;s=Signed"), wire([5, 1, 3, 3], 634, answering(13), array([good(4)]), array(null), u32(99))],
    [wire([5, 1, 54, 4], 673, asking("i=77", 14), array([])), wire([5, 1, 4, 4], 676, answering(14), array([]), array(null))],
  ]);
  const numbers = [1, 9, 60, 7];
  const answerOf = (request: string): string | undefined => {
    const made = memory.answer(hex(request));
    return made && `${made.isRefusal ? "!" : ""}${made.message.toString("hex")}`;
  };
  const unknown = dataValue({ status: 0x8034_0000 });

  it("answers nodes of several reads with the numbers of the request, and has no node that was not captured", () => {
    const results = (message: string | undefined): Buffer => hex((message ?? "").replace("!", ""));
    const first = results(answerOf(read(numbers, 70, "ns=2;s=A")));
    expect(first.subarray(8, 24)).toEqual(all(...numbers.map(u32)));
    expect(first.readUInt32LE(4)).toBe(first.length);
    expect(first.includes(good(1))).toBe(true);
    expect(results(answerOf(read(numbers, 70, "ns=2;i=3", "i=2258"))).includes(all(u32(2), good(3), good(2), u32(0xffff_ffff)))).toBe(true);
    // Asked once more, it has come to the next moment.
    expect(results(answerOf(read(numbers, 70, "ns=2;s=A"))).includes(long)).toBe(true);
    for (const gone of ["ns=2;s=B", "ns=2;s=Signed"]) {
      const refused = answerOf(read(numbers, 70, "ns=2;i=3", gone));
      expect(refused?.startsWith("!")).toBe(true);
      expect(results(refused).includes(all(good(3), unknown, u32(0xffff_ffff)))).toBe(true);
    }
  });

  it("opens a channel and a session for any client without security, and refuses a write", () => {
    const hello = all(Buffer.from("HELF"), u32(36), u32(0), u32(8192), u32(65_536), u32(0), u32(0), str("o://"));
    expect(answerOf(hello.toString("hex"))).toBe(
      all(Buffer.from("ACKF"), u32(28), u32(0), u32(8192), u32(65_536), u32(0), u32(0)).toString("hex"),
    );
    const opening = (policy: string): string => {
      const body = all(u32(0), str(`http://opcfoundation.org/UA/SecurityPolicy#${policy}`), bytes(null), bytes(null), u32(51), u32(1));
      const rest = all(node("i=446"), asking("i=0", 1), u32(0), u32(0), u32(1), bytes(null), u32(60_000));
      return all(Buffer.from("OPNF"), u32(8 + body.length + rest.length), body, rest).toString("hex");
    };
    expect(answerOf(opening("None"))?.startsWith(Buffer.from("OPNF").toString("hex"))).toBe(true);
    expect(answerOf(opening("Basic256Sha256"))).toMatch(/^!45525246/);
    const write = answerOf(wire(numbers, 673, asking("i=2", 70), array([])));
    expect(write?.startsWith("!")).toBe(true);
    expect(hex(write?.slice(1) ?? "").includes(u32(0x800b_0000))).toBe(true);
  });

  it("is answered literally by token, time and handle of any session, where the service only reads", () => {
    const essence = (message: string): string => essenceOf(opcua, hex(message), false).toString("hex");
    expect(essence(read(numbers, 70, "i=3"))).toBe(essence(read([3, 4, 5, 6], 9, "i=3")));
    const publish = (handle: number): string => wire(numbers, 826, asking("i=2", handle), array([]));
    expect(essence(publish(1))).not.toBe(essence(publish(2)));
  });
});

describe("a memory", () => {
  const read = (at: number, count: number): string => `0001 0000 0006 01 03 ${at.toString(16).padStart(4, "0")} 000${count}`;
  const registers = (...values: readonly number[]): string =>
    `0001 0000 000${3 + values.length * 2} 01 03 0${values.length * 2} ${values.map((one) => one.toString(16).padStart(4, "0")).join("")}`;
  const valuesOf = (memory: DeviceMemory, at: number, count: number): readonly number[] => {
    const message = memory.answer(hex(read(at, count)))?.message ?? NOTHING;
    return Array.from({ length: count }, (_, i) => message.readUInt16BE(9 + i * 2));
  };
  /** Two groups that are read in turn, and a register that is read once at the end. */
  const plant = (): DeviceMemory =>
    memoryOf(modbus, [
      ...[1, 2, 2, 3].flatMap((cycle) => [
        [read(0, 2), registers(cycle, 10 + cycle)] as const,
        [read(2, 1), registers(20 + cycle)] as const,
      ]),
      [read(9, 1), registers(99)],
    ]);

  it("moves as in the recording when the same is read again, and has one moment for all", () => {
    const memory = plant();
    const seen = [1, 2, 3, 4, 5, 6].map(() => [...valuesOf(memory, 1, 1), ...valuesOf(memory, 0, 1)]);
    expect(seen).toEqual([
      [11, 1],
      [12, 2],
      [12, 2],
      [13, 3],
      [13, 3],
      [13, 3],
    ]);
  });

  it("gives the first value of what is read later, without a move", () => {
    const memory = plant();
    expect([valuesOf(memory, 9, 1), valuesOf(memory, 9, 1), valuesOf(memory, 1, 1)]).toEqual([[99], [99], [11]]);
  });

  it("comes to a later moment with an answer of the recording, and never goes back", () => {
    const memory = plant();
    memory.moveTo(7);
    memory.moveTo(2);
    expect(valuesOf(memory, 1, 1)).toEqual([13]);
  });

  it("takes any bytes of any protocol", () => {
    const bytes = fc.uint8Array({ maxLength: 60 }).map((one) => Buffer.from(one));
    const heads = [
      "",
      "000100000006",
      "0300001902f0803201000000010002000004",
      "0300001902f0803203",
      "8000020000",
      "c000",
      "46494e530000001a00000002",
      "4d5347464000000001000000090000003c0000000700000001007702",
      "4d5347464000000001000000090000003c0000000700000001007a02",
      "4f504e4640000000000000002f000000687474703a2f2f6f7063666f756e646174696f6e2e6f72672f55412f5365637572697479506f6c696379234e6f6e65ffffffffffffffff",
    ];
    const messages = fc.tuple(fc.constantFrom(...heads), bytes).map(([head, rest]) => Buffer.concat([hex(head), rest]));
    fc.assert(
      fc.property(
        fc.constantFrom(modbus, rtu, s7, finsUdp, finsTcp, tags, opcua),
        messages,
        messages,
        messages,
        (protocol, request, answer, other) => {
          const memory = memoryOf(protocol, [[request.toString("hex"), answer.toString("hex")]]);
          expect(memory.facts.leftOut).toBe(0);
          for (const one of [request, answer, other]) memory.answer(one);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
