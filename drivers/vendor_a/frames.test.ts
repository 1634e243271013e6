import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  changesRequest,
  definitionRequest,
  emptyReply,
  fragmentRequest,
  identityRequest,
  multipleRequest,
  parseReply,
  readRequest,
  symbolsRequest,
  tagPath,
  templateRequest,
  walkMultiple,
} from "./cip.ts";
import {
  connectedRequest,
  messageLength,
  parseAnswer,
  registerRequest,
  setContext,
  setSequence,
  unconnectedRequest,
  unregisterRequest,
} from "./frames.ts";
import { parseIdentity } from "./identity.ts";
import { closeRequest, DIRECT, openRequest, parseOpened, parseRoute, routed, routeWords, slotRoute } from "./manager.ts";
import { settingsSchema } from "./settings.ts";
import { parseSymbols } from "./symbols.ts";
import { parseDefinition, parseTemplateHead } from "./template.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const plain = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

describe("encapsulation", () => {
  it("registers and ends a session", () => {
    expect(registerRequest()).toEqual(hex("6500 0400 00000000 00000000 0000000000000000 00000000 0100 0000"));
    expect(unregisterRequest(0x15000001)).toEqual(hex("6600 0000 01000015 00000000 0000000000000000 00000000"));
  });

  it("carries a message without a connection, with a context that comes back", () => {
    const message = unconnectedRequest(7, hex("01 02 2001 2401"));
    setContext(message, 0x1234);
    expect(message).toEqual(
      hex("6f00 1600 07000000 00000000 3412000000000000 00000000 00000000 0000 0200 0000 0000 b200 0600 010220012401"),
    );
  });

  it("carries a message over a connection, with its sequence count", () => {
    const message = connectedRequest(7, 0x00a70001, hex("4c 02 9101 5400 0100"));
    setSequence(message, 0xfffe);
    expect(message).toEqual(
      hex("7000 1e00 07000000 00000000 0000000000000000 00000000 00000000 0000 0200 a100 0400 0100a700 b100 0a00 feff 4c02910154000100"),
    );
  });

  it("takes answers apart", () => {
    expect(parseAnswer(hex("6500 0400 09000000 00000000 0000000000000000 00000000 01000000"))).toEqual({
      kind: "registered",
      session: 9,
      status: 0,
    });
    expect(parseAnswer(hex("7000 0000 09000000 64000000 0000000000000000 00000000"))).toEqual({
      kind: "error",
      command: 0x70,
      status: 0x64,
    });
    const unconnected = hex("6f00 1400 09000000 00000000 0500000000000000 00000000 00000000 0000 0200 0000 0000 b200 0400 cc000400");
    expect(parseAnswer(unconnected)).toEqual({ kind: "unconnected", context: 5, from: 40, to: 44 });
    const connected = hex(
      "7000 1a00 09000000 00000000 0000000000000000 00000000 00000000 0000 0200 a100 0400 44332211 b100 0600 0700 cc000400",
    );
    expect(parseAnswer(connected)).toEqual({ kind: "connected", connection: 0x11223344, sequence: 7, from: 46, to: 50 });
    expect(parseAnswer(hex("6300 0000 00000000 00000000 0000000000000000 00000000"))).toBeUndefined();
    // Socket addresses and the like may stand behind the data.
    expect(parseAnswer(hex("6f00 1400 09000000 00000000 0500000000000000 00000000 00000000 0000 0100 0000 0000 b200 0400 cc000400"))).toBe(
      "an answer without data",
    );
  });

  it("knows how long a message is once its header is there", () => {
    const message = registerRequest();
    for (let length = 0; length < 24; length++) expect(messageLength(message.subarray(0, length), 0)).toBeUndefined();
    expect(messageLength(message, 0)).toBe(28);
    expect(messageLength(Buffer.from("HTTP/1.1 400 Bad Request"), 0)).toBe("EtherNet/IP command 0x5448 in an answer");
    expect(messageLength(Buffer.concat([hex("6f00 f0ff"), Buffer.alloc(20)]), 0)).toBe("a message of 65544 bytes");
  });
});

describe("CIP requests", () => {
  it("writes paths: symbols padded, elements by their size", () => {
    expect(plain(tagPath(["Program:Main", "Arr", 2, 300, "Member", 70_000]))).toBe(
      "910c50726f6772616d3a4d61696e 910341727200 2802 29002c01 91064d656d626572 2a0070110100".replaceAll(" ", ""),
    );
    expect(() => tagPath(["a".repeat(256)])).toThrow(RangeError);
    expect(() => tagPath(Array.from({ length: 20 }, () => "a".repeat(40)))).toThrow(RangeError);
  });

  it("reads tags, parts of them, and several in a packet", () => {
    expect(plain(readRequest(tagPath(["Tag"]), 3))).toBe("4c03910354616700" + "0300");
    expect(plain(fragmentRequest(tagPath(["Tag"]), 1000, 490))).toBe("5203910354616700" + "e803" + "ea010000");
    expect(plain(multipleRequest([readRequest(tagPath(["A"]), 1), readRequest(tagPath(["Bc"]), 2)]))).toBe(
      "0a0220022401" + "0200" + "0600" + "0e00" + "4c02910141000100" + "4c02910242630200",
    );
  });

  it("asks what there is", () => {
    expect(plain(identityRequest())).toBe("010220012401");
    expect(plain(changesRequest())).toBe("030220ac2401" + "0500" + "0100" + "0200" + "0300" + "0400" + "0a00");
    expect(plain(symbolsRequest(undefined, 0, [1, 2]))).toBe("5503206b25000000" + "0200" + "01000200");
    expect(plain(symbolsRequest("Program:A", 0x12345, [1]))).toBe(
      "550a" + "910950726f6772616d3a4100" + "206b260045230100" + "0100" + "0100",
    );
    expect(plain(templateRequest(0x101))).toBe("0303206c25000101" + "0400" + "0400050002000100");
    expect(plain(definitionRequest(0x101, 480, 20))).toBe("4c03206c25000101" + "e0010000" + "1400");
  });

  it("takes replies apart, one by one and in a packet", () => {
    const reply = emptyReply();
    expect(parseReply(hex("cc00 ff02 0521 0300 c400"), 0, 10, reply)).toBeUndefined();
    expect(reply).toMatchObject({ service: 0xcc, status: 0xff, extended: 0x2105, second: 3, at: 8, end: 10 });
    expect(parseReply(hex("cc00 ff02 0521"), 0, 6, reply)).toContain("2 words of status");
    const packet = hex("8a00 1e00 0200 0600 0e00 cc000000c4000100 cc000400");
    expect(parseReply(packet, 0, packet.length, reply)).toBeUndefined();
    const [seen, one] = [[] as object[], emptyReply()];
    expect(walkMultiple(reply, 2, one, (i) => seen.push({ i, status: one.status, at: one.at, end: one.end }))).toBeUndefined();
    expect(seen).toEqual([
      { i: 0, status: 0, at: 14, end: 18 },
      { i: 1, status: 4, at: 22, end: 22 },
    ]);
    expect(walkMultiple(reply, 3, one, () => {})).toBe("2 replies to 3 requests in one");
    packet.writeUInt16LE(0xff00, 8);
    expect(walkMultiple(reply, 2, one, () => {})).toContain("reply 0 of 2");
  });
});

describe("the connection manager", () => {
  const triple = { serial: 0x0102, originator: 0x11223344 };

  it("hands a request on along a route, padded where its length is odd", () => {
    expect(plain(routed(identityRequest(), slotRoute(3), 1000))).toBe("520220062401" + "02fa" + "0600" + "010220012401" + "0100" + "0103");
    expect(plain(routed(hex("0102200124"), slotRoute(3), 200))).toBe("520220062401" + "00c8" + "0500" + "010220012400" + "0100" + "0103");
    expect(routed(identityRequest(), DIRECT, 1000)).toEqual(identityRequest());
  });

  it("opens a connection, large or small, and closes it", () => {
    const wish = { triple, ownId: 0x55667788, sizeBytes: 4002, isLarge: true, route: slotRoute(0), timeoutMs: 4000 };
    const head = "04fa" + "00000000" + "88776655" + "0201" + "cc0c" + "44332211" + "03" + "000000";
    expect(plain(openRequest(wish))).toBe(`5b0220062401${head}80841e00a20f004280841e00a20f0042a303010020022401`);
    expect(plain(openRequest({ ...wish, sizeBytes: 504, isLarge: false, route: DIRECT }))).toBe(
      `540220062401${head}80841e00f84380841e00f843a30220022401`,
    );
    expect(plain(closeRequest(triple, slotRoute(0)))).toBe(
      "4e0220062401" + "0a0e" + "0201" + "cc0c" + "44332211" + "0300" + "010020022401",
    );
    const answer = hex("0100a700 88776655 0201 cc0c 44332211 80841e00 80841e00 0000");
    expect(parseOpened(answer, 0, answer.length, wish)).toBe(0x00a70001);
    expect(parseOpened(answer, 0, answer.length, { ...wish, ownId: 1 })).toContain("another connection");
    expect(parseOpened(answer, 0, 12, wish)).toContain("12 bytes");
  });

  it.each([
    ["1,0", "0100", "slot 0"],
    ["1, 12", "010c", "slot 12"],
    ["1,2,2,10.1.2.3,1,0", "0102" + "120831302e312e322e33" + "0100", "path 1,2,2,10.1.2.3,1,0"],
    ["2,10.1.20.3", "120931302e312e32302e3300", "path 2,10.1.20.3"],
  ])("takes the route %s", (text, bytes, words) => {
    const route = parseRoute(text);
    if (typeof route === "string") throw new Error(route);
    expect(plain(route)).toBe(bytes);
    expect(routeWords(route)).toBe(words);
  });

  it.each(["1", "0,1", "15,0", "1,256", "1,plc", "x,1", "1,2,3"])("refuses the route %s", (text) => {
    expect(typeof parseRoute(text)).toBe("string");
  });

  it("says how the port of another tool is written here", () => {
    const path = settingsSchema.safeParse({ path: "18,10.1.2.3" });
    expect(path.error?.issues[0]?.message).toContain("port 18 is port 2 with an address behind it: write 2,10.1.2.3");
    expect(settingsSchema.parse({ path: "2,10.1.2.3" }).path).toBe("2,10.1.2.3");
  });
});

describe("what devices send", () => {
  it("reads an identity", () => {
    const bytes = hex("0100 0e00 a600 210b 6000 eeffc000 05 313735362d");
    expect(parseIdentity(bytes, 0, bytes.length)).toEqual({
      vendor: 1,
      deviceType: 14,
      revision: "33.011",
      serial: 0xc0ffee,
      name: "1756-",
    });
    expect(parseIdentity(bytes, 0, 14)).toBeUndefined();
  });

  it("reads a page of symbols, with and without external access", () => {
    const first = "01000000 0400 466c6f77 ca00 00000000 00000000 00000000";
    const second = "0a010000 0300 417272 c440 02000000 03000000 00000000";
    const page = (text: string, hasAccess: boolean) => {
      const bytes = hex(text);
      return parseSymbols({ bytes, at: 0, end: bytes.length }, hasAccess);
    };
    expect(page(`${first} 00 ${second} 03`, true)).toMatchObject([
      { instance: 1, name: "Flow", type: { code: 0xca, template: undefined }, dimensions: [], isReadable: true },
      { instance: 266, name: "Arr", type: { code: 0xc4, dimensions: 2 }, dimensions: [2, 3], isReadable: false },
    ]);
    expect(page(first + second, false)).toHaveLength(2);
    expect(page(`${first} 00 ${second}`, true)).toContain("beyond its end");
  });

  it("never fails over bytes of a device", () => {
    const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
    const [reply, one] = [emptyReply(), emptyReply()];
    fc.assert(
      fc.property(bytes, fc.nat(40), fc.boolean(), (data, members, hasAccess) => {
        messageLength(data, 0);
        if (data.length >= 24) parseAnswer(data);
        if (parseReply(data, 0, data.length, reply) === undefined) walkMultiple(reply, members, one, () => {});
        parseIdentity(data, 0, data.length);
        parseSymbols({ bytes: data, at: 0, end: data.length }, hasAccess);
        parseTemplateHead(data, 0, data.length);
        parseDefinition(0x200, { bytes: 1, structureBytes: 100, members, handle: 1 }, data);
      }),
      { numRuns: 2000 },
    );
  });
});
