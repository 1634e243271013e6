import path from "node:path";
import { expect, it } from "vitest";
import { fence as finsFence } from "../../drivers/fins/frames.ts";
import { DRIVERS } from "../../drivers/index.ts";
import { fence as modbusFence } from "../../drivers/modbus_tcp/frames.ts";
import { fence as opcuaFence } from "../../drivers/opcua/fence.ts";
import { fence as s7Fence } from "../../drivers/s7/frames.ts";
import { sessionFence } from "../../drivers/s7plus/fence.ts";
import { CREATE_SESSION_BODY, REQUEST_HEADER_BYTES } from "../../drivers/s7plus/requests.ts";
import { fence as cipFence } from "../../drivers/vendor_a/fence.ts";
import { fence as gatewayFence } from "../../drivers/vendor_gateway/frames.ts";
import { HELLOS, fence as helloFence } from "../../src/commands/hello/hellos.ts";

/**
 * What each driver can send at most: every code that its protocol has room for is offered to the driver's fence, in each form in which one
 * of them might pass, and what passed is written to docs/generated/requests.md. A code that passes and has no name here fails.
 */

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/requests.md");

interface Probe {
  readonly what: string;
  readonly codes: number;
  readonly digits: number;
  /** True: a request with this code may be sent, in any of the forms. */
  readonly passes: (code: number) => boolean;
  /** By code: name and where it is specified. */
  readonly names: Readonly<Record<number, string>>;
}

const u16 = (value: number): readonly [number, number] => [value >> 8, value & 0xff];
const le16 = (value: number): readonly [number, number] => [value & 0xff, value >> 8];
const le32 = (value: number): readonly number[] => [...le16(value & 0xffff), ...le16(value >>> 16)];

/** FINS: a command to node 0.10.0 with these parameters (W227, 2-2). */
const fins = (code: number, parameters: readonly number[]): Buffer =>
  Buffer.from([0x80, 0, 2, 0, 10, 0, 0, 1, 0, 1, ...u16(code), ...parameters]);
const FINS_PARAMETERS = [[], [0], [0, 1], [0x82, 0, 0, 0], [0x82, 0, 0, 0, 0, 1], [0x82, 0, 0, 0, 0, 1, 0, 0], [0x82, 0, 0, 0, 0, 1, 0]];

/** An S7 job of this function in one data TPDU (RFC 1006, 6; X.224, 13.7). */
function s7Job(code: number, parameters: readonly number[], data: readonly number[] = []): Buffer {
  const job = [0x32, 1, 0, 0, 0, 1, ...u16(1 + parameters.length), ...u16(data.length), code, ...parameters, ...data];
  return Buffer.from([3, 0, ...u16(7 + job.length), 2, 0xf0, 0x80, ...job]);
}
const S7_ITEM = [0x12, 0x0a, 0x10, 2, 0, 1, 0, 1, 0x84, 0, 0, 0];
const S7_FORMS: readonly (readonly [parameters: readonly number[], data: readonly number[]])[] = [
  [[], []],
  [[0, 0, 1, 0, 1, 1, 0xe0], []],
  [[1, ...S7_ITEM], []],
  [
    [1, ...S7_ITEM],
    [0, 4, 0, 8, 0],
  ],
  [[0, 0, 0, 0, 0, 0, 0xfd, 0, 0, 9, 0x50], []],
];

/** Data of a Modbus request: start and count, one group of records, the basic identification. */
const MODBUS_FORMS = [
  [0, 0, 0, 1],
  [7, 6, 0, 4, 0, 1, 0, 1],
  [14, 1, 0],
];

const SESSION = 0x0000_0102;
/** An S7CommPlus request in version 2 with this object and rest (notes of the wire in drivers/s7plus). */
function s7plus(code: number, object: number, rest: string): Buffer {
  const data = Buffer.alloc(22);
  data.writeUInt8(0x31, 0);
  data.writeUInt16BE(code, 3);
  data.writeUInt32BE(SESSION, 9);
  data.writeUInt32BE(object, 14);
  const whole = Buffer.concat([data.subarray(0, 18), Buffer.from(rest, "hex")]);
  return Buffer.concat([Buffer.from([0x72, 2, ...u16(whole.length)]), whole, Buffer.from([0x72, 2, 0, 0])]);
}
/** Attributes 306, 1846, 304 and another one, set alone; and nothing to set. */
const S7PLUS_RESTS = ["01018232", "018e36", "018230", "01019001", "00"].map((rest) => rest.padEnd(24, "0"));

/** The request for the driver's own session, with this function instead (version 1, before there is a session). */
function s7plusFirst(code: number): Buffer {
  const head = Buffer.alloc(REQUEST_HEADER_BYTES);
  head.writeUInt8(0x31, 0);
  head.writeUInt16BE(code, 3);
  const whole = Buffer.concat([head, CREATE_SESSION_BODY, Buffer.alloc(4)]);
  return Buffer.concat([Buffer.from([0x72, 1, ...u16(whole.length)]), whole, Buffer.from([0x72, 1, 0, 0])]);
}

/** A CIP request in an unconnected message (CIP Vol. 2, 2-3 and 2-4.7.2). */
function unconnected(service: number, cipPath: readonly number[], data: readonly number[]): Buffer {
  const cip = [service, cipPath.length / 2, ...cipPath, ...data];
  const body = [...le32(0), ...le16(5), ...le16(2), ...le16(0), ...le16(0), ...le16(0xb2), ...le16(cip.length), ...cip];
  return Buffer.from([...le16(0x6f), ...le16(body.length), ...le32(1), ...le32(0), 0, 0, 0, 0, 0, 0, 0, 0, ...le32(0), ...body]);
}
const CLASS = (cls: number): readonly number[] => [0x20, cls, 0x24, 1];
const TAG = [0x91, 3, 0x61, 0x62, 0x63, 0];
const CIP_PATHS = [
  TAG,
  [0x20, 0x6a, 0x25, 0, 0, 0],
  [0x20, 0x6b, 0x25, 0, 1, 0],
  [0x20, 0x6c, 0x25, 0, 1, 0],
  ...Array.from({ length: 256 }, (_, cls) => CLASS(cls)),
];
const READ_ONE = [0x4c, 3, ...TAG, 1, 0];
const ROUTER = [0x20, 2, 0x24, 1];
const CIP_DATA = [
  [],
  [1, 0],
  [0, 0],
  [1, 0, 1, 0],
  [1, 0, 0, 0, 0, 0],
  [1, 0, 4, 0, ...READ_ONE],
  [1, 0, 0, 0, 100, 0, 0, 0, 2, 0],
  [10, 14, ...le16(READ_ONE.length), ...READ_ONE, 1, 0, 1, 0],
  [...Array.from({ length: 34 }, () => 0), 0xa3, 2, ...ROUTER],
  [...Array.from({ length: 38 }, () => 0), 0xa3, 2, ...ROUTER],
  [...Array.from({ length: 10 }, () => 0), 2, 0, ...ROUTER],
  [7, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 3],
];

/** A PCCC command behind the id of the requester, with the data of each function that reads (Rockwell 1770-6.5.16, 7-17 and 13-11). */
const pccc = (code: number, data: readonly number[]): Buffer =>
  unconnected(0x4b, CLASS(0x67), [7, 0, 0, 0, 0, 0, 0, code >> 8, 0, 0, 0, code & 0xff, ...data]);
const PCCC_FORMS = [[], [2, 7, 0x89, 0, 0], [2, 0, 1, 0], [0, 0, 1, 0, 6, 7, 0, 1, 0], [0, 0, 1, 0, 6, 7, 0, 2]];
/** Commands within another protocol's messages. */
const PCCC = "vendor_a, in Execute PCCC and over DH+";

const anyOf =
  <F>(forms: readonly F[], passes: (form: F) => boolean) =>
  (): boolean =>
    forms.some(passes);

const PROBES: Readonly<Record<string, Probe>> = {
  modbus_tcp: {
    what: "function (MODBUS Application Protocol V1.1b3, 6)",
    codes: 0x100,
    digits: 2,
    passes: (code) => MODBUS_FORMS.some((form) => modbusFence(Buffer.from([0, 1, 0, 0, 0, form.length + 2, 1, code, ...form])) === true),
    names: {
      1: "Read Coils",
      2: "Read Discrete Inputs",
      3: "Read Holding Registers",
      4: "Read Input Registers",
      20: "Read File Record (one group)",
      43: "Read Device Identification (14, basic)",
    },
  },
  opcua: {
    what: "service, by the encoding of its request (OPC 10000-6, NodeIds)",
    codes: 0x1_0000,
    digits: 4,
    passes: (code) => opcuaFence(Buffer.from([1, 0, ...le16(code)])) === undefined,
    names: {
      428: "GetEndpoints",
      446: "OpenSecureChannel",
      452: "CloseSecureChannel",
      461: "CreateSession",
      467: "ActivateSession",
      473: "CloseSession",
      527: "Browse",
      533: "BrowseNext",
      554: "TranslateBrowsePathsToNodeIds",
      560: "RegisterNodes (ids that are faster to read, until the session ends)",
      631: "Read",
      751: "CreateMonitoredItems (of the driver's own subscription)",
      781: "DeleteMonitoredItems (of the driver's own subscription)",
      787: "CreateSubscription",
      826: "Publish",
      847: "DeleteSubscriptions (the driver's own)",
    },
  },
  s7: {
    what: "function of a job",
    codes: 0x100,
    digits: 2,
    passes: (code) => anyOf(S7_FORMS, ([parameters, data]) => s7Fence(s7Job(code, parameters, data)) === true)(),
    names: { 4: "Read Var", 240: "Setup Communication" },
  },
  s7plus: {
    what: "function, inside TLS",
    codes: 0x1_0000,
    digits: 4,
    passes: (code) =>
      sessionFence(() => undefined)(s7plusFirst(code)) === true ||
      [0, SESSION, 0x8a0e_0001].some((object) =>
        S7PLUS_RESTS.some((rest) => sessionFence(() => SESSION)(s7plus(code, object, rest)) === true),
      ),
    names: {
      1211: "Explore (what the program has)",
      1226: "CreateObject (the driver's own session alone)",
      1236: "DeleteObject (the driver's own session alone)",
      1266: "SetVariable (the log-in of the driver's own session alone)",
      1346: "SetMultiVariables (the version of the driver's own session alone)",
      1356: "GetMultiVariables",
      1414: "GetVarSubStreamed (of the driver's own session)",
    },
  },
  fins: {
    what: "command (Omron W227)",
    codes: 0x1_0000,
    digits: 4,
    passes: (code) => anyOf(FINS_PARAMETERS, (parameters) => finsFence(fins(code, parameters)) === true)(),
    names: { 257: "Memory Area Read", 260: "Multiple Memory Area Read", 1281: "Controller Data Read" },
  },
  vendor_a: {
    what: "CIP service (CIP Vol. 1, A-4; Logix 5000 Data Access)",
    codes: 0x100,
    digits: 2,
    passes: (code) => CIP_PATHS.some((cipPath) => CIP_DATA.some((data) => cipFence(unconnected(code, cipPath, data)) === true)),
    names: {
      1: "Get Attributes All (of the identity, and of Omron's variables and types)",
      3: "Get Attribute List (of the controller's program and of templates)",
      10: "Multiple Service Packet (of services in this list)",
      75: "Execute PCCC (of commands in the list below)",
      76: "Read Tag, and Read Template",
      78: "Forward Close (of the driver's own connection)",
      82: "Read Tag Fragmented, and Unconnected Send (of services in this list)",
      84: "Forward Open (class 3, to the message router or a channel of DH+)",
      85: "Get Instance Attribute List (of the tags)",
      91: "Large Forward Open (class 3, to the message router or a channel of DH+)",
      95: "List of variables (Omron's tag name server)",
    },
  },
  [PCCC]: {
    what: "command and function of PCCC (Rockwell 1770-6.5.16)",
    codes: 0x1_0000,
    digits: 4,
    passes: (code) => anyOf(PCCC_FORMS, (data) => cipFence(pccc(code, data)) === true)(),
    names: {
      1539: "Diagnostic status",
      3841: "Word range read",
      3944: "Typed read",
      4001: "Protected typed logical read with two fields (of the file directory)",
      4002: "Protected typed logical read with three fields",
    },
  },
};

/** Requests by a word: those of the protocol, and some that none has. */
const GATEWAY_WORDS = [
  "hello",
  "servers",
  "open",
  "browse",
  "resolve",
  "read",
  "write",
  "set",
  "call",
  "subscribe",
  "close",
  "delete",
  "exec",
];

const PASSING = new Map(
  Object.entries(PROBES).map(([type, { codes, passes }]) => [
    type,
    Array.from({ length: codes }, (_, code) => code).filter((code) => passes(code)),
  ]),
);

/** What these can send is in the profile or plugin that the settings of the machine bind them to. */
const BY_PROFILE = ["odac", "plastcontrol", "vendor_b"];

it("every driver's fence is probed", () => {
  const probed = [...Object.keys(PROBES).filter((type) => type !== PCCC), ...BY_PROFILE, "vendor_gateway"];
  expect(probed.sort()).toEqual(Object.keys(DRIVERS).sort());
});

it.each(Object.entries(PROBES))("%s: no code passes but those that read", (type, probe) => {
  expect(PASSING.get(type)).toEqual(
    Object.keys(probe.names)
      .map(Number)
      .sort((one, next) => one - next),
  );
});

it("the list of requests is what passes", async () => {
  const words = GATEWAY_WORDS.filter((word) => gatewayFence(Buffer.from(`{"id":1,"request":"${word}"}\n`)) === true);
  const rows = Object.entries(PROBES).flatMap(([type, probe]) => [
    `| \`${type}\` | ${probe.what}; all ${probe.codes} were tried | |`,
    ...(PASSING.get(type) ?? []).map(
      (code) => `| | 0x${code.toString(16).toUpperCase().padStart(probe.digits, "0")} | ${probe.names[code]} |`,
    ),
  ]);
  const text = [
    "# Requests that the drivers can send",
    "",
    "Every byte to a device passes its driver's fence, which lets whole requests of these kinds through and nothing else. This list is written by `test/conformance/requests.test.ts`: it offers every code to the fence, in several forms each, and writes down what passed. What goes over the wire in the conformance suite is decoded a second time by code of its own (`test/conformance/allowed.ts`).",
    "",
    "| type | code | request |",
    "| --- | --- | --- |",
    ...rows,
    "| `vendor_gateway` | field `request` ([protocol](../gateway-protocol.md)) | |",
    ...words.map((word) => `| | \`${word}\` | |`),
    ...BY_PROFILE.map(
      (type) => `| \`${type}\` | the templates of its profile, or what its plugin sends, which passes no fence; nothing without one | |`,
    ),
    "",
    "# Requests that a person can send to find out what a port is",
    "",
    "`collector probe`, where a device does not answer in the protocol of its data source, and `collector find` send these first requests, each over a connection of its own. Their fence lets these bytes through and no others, but for the two node numbers in Controller Data Read, which are those that the device gave. The service sends none of them. Before, `collector probe` tries the usual other units, slots, nodes and connection types with the driver of the source: those are requests of the table above, through the same fence.",
    "",
    "| hello | request | bytes |",
    "| --- | --- | --- |",
    ...HELLOS.flatMap(({ name, requests }) => requests.map(([what, bytes]) => `| ${name} | ${what} | \`${bytes.toString("hex")}\` |`)),
  ];
  expect(HELLOS.flatMap(({ requests }) => requests.filter(([, bytes]) => helloFence(bytes) !== true))).toEqual([]);
  expect(words).not.toContain("write");
  await expect(`${text.join("\n")}\n`).toMatchFileSnapshot(DOC);
});
