import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  changesRequest,
  definitionRequest,
  fragmentRequest,
  identityRequest,
  multipleRequest,
  readRequest,
  request,
  symbolsRequest,
  tagPath,
  templateRequest,
} from "./cip.ts";
import { fence } from "./fence.ts";
import { connectedRequest, registerRequest, unconnectedRequest, unregisterRequest } from "./frames.ts";
import { closeRequest, openRequest, routed, slotRoute } from "./manager.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const tag = tagPath(["Program:Main", "Arr", 2, "Member", 70_000]);
const READS = {
  identity: identityRequest(),
  changes: changesRequest(),
  tag: readRequest(tag, 1),
  fragment: fragmentRequest(tag, 9, 480),
  symbols: symbolsRequest(undefined, 0, [1, 2, 8, 10]),
  "symbols of a program": symbolsRequest("Program:Main", 70_000, [1, 2]),
  template: templateRequest(0x101),
  definition: definitionRequest(0x101, 0, 100),
} as const;
const triple = { serial: 1, originator: 2 };
const wish = { triple, ownId: 3, sizeBytes: 504, isLarge: false, route: slotRoute(0), timeoutMs: 4000 };
const write = request(0x4d, tag, hex("c400 0100 2a000000"));

describe("what reads", () => {
  it.each(Object.entries(READS))("passes: %s", (_, cip) => {
    expect(fence(connectedRequest(1, 2, cip))).toBe(true);
    expect(fence(unconnectedRequest(1, cip))).toBe(true);
    expect(fence(unconnectedRequest(1, routed(cip, slotRoute(2), 500)))).toBe(true);
    const packet = multipleRequest([READS.tag, cip, READS.tag]);
    expect(fence(connectedRequest(1, 2, packet))).toBe(true);
    expect(fence(unconnectedRequest(1, routed(packet, slotRoute(2), 500)))).toBe(true);
  });

  it.each([-1, 1, 256])("does not pass a message that says it has %d bytes more than it has", (more) => {
    for (const frame of [connectedRequest(1, 2, READS.tag), unconnectedRequest(1, READS.tag), registerRequest(), unregisterRequest(1)]) {
      const changed = Buffer.from(frame);
      changed.writeUInt16LE((changed.readUInt16LE(2) + more) & 0xffff, 2);
      expect(fence(changed)).toContain("bytes that are not an EtherNet/IP message");
    }
  });

  it("passes what begins and ends sessions and connections", () => {
    for (const frame of [registerRequest(), unregisterRequest(1)]) expect(fence(frame)).toBe(true);
    for (const cip of [openRequest(wish), openRequest({ ...wish, sizeBytes: 4002, isLarge: true }), closeRequest(triple, slotRoute(0))])
      expect(fence(unconnectedRequest(1, cip))).toBe(true);
  });
});

const router = hex("2002 2401");
const WRITES: Readonly<Record<string, Buffer>> = {
  "write a tag": write,
  "write a part of a tag": request(0x53, tag, hex("c400 0100 00000000 2a000000")),
  "read, modify and write a tag": request(0x4e, tag, hex("0400 ffffffff 00000000")),
  "set attributes": request(0x02, hex("2001 2401"), Buffer.alloc(0)),
  "set one attribute": request(0x10, hex("20ac 2401"), hex("0100")),
  reset: request(0x05, hex("2001 2401"), Buffer.alloc(0)),
  "start or stop": request(0x06, hex("208e 2401"), Buffer.alloc(0)),
  "a PCCC command": request(0x4b, hex("2067 2401"), hex("0704")),
  "another class read like a tag": request(0x4c, hex("20 8d 25000100"), hex("0100")),
  "all attributes of another class": request(0x01, hex("2006 2401"), Buffer.alloc(0)),
  "a list with something behind it": Buffer.concat([READS.symbols, hex("00")]),
  "a read with something behind it": Buffer.concat([READS.tag, hex("00")]),
  "a packet in a packet": multipleRequest([multipleRequest([READS.tag])]),
  "an unconnected send in a packet": multipleRequest([routed(READS.tag, slotRoute(1), 500)]),
};

describe("what does anything else", () => {
  it.each(Object.entries(WRITES))("does not pass: %s", (_, cip) => {
    expect(typeof fence(connectedRequest(1, 2, cip))).toBe("string");
    expect(typeof fence(unconnectedRequest(1, cip))).toBe("string");
    expect(typeof fence(unconnectedRequest(1, routed(cip, slotRoute(2), 500)))).toBe("string");
    expect(typeof fence(connectedRequest(1, 2, multipleRequest([READS.tag, cip])))).toBe("string");
    expect(typeof fence(unconnectedRequest(1, routed(multipleRequest([cip, READS.tag]), slotRoute(2), 500)))).toBe("string");
  });

  it("does not pass connections of another kind", () => {
    const open = openRequest(wish);
    const [transport, target] = [Buffer.from(open), Buffer.from(open)];
    transport[6 + 34] = 0x01;
    target[target.length - 3] = 0x04;
    for (const cip of [transport, target, Buffer.concat([open, hex("0000")])])
      expect(typeof fence(unconnectedRequest(1, cip))).toBe("string");
    expect(typeof fence(connectedRequest(1, 2, open))).toBe("string");
    expect(typeof fence(unconnectedRequest(1, request(0x4f, hex("2006 2401"), Buffer.alloc(12))))).toBe("string");
  });

  it("does not pass a packet whose requests overlap or leave something between them", () => {
    const packet = multipleRequest([READS.tag, write, READS.tag]);
    const at = packet.readUInt16LE(6 + 4);
    // The write is stepped over: its bytes would belong to the first request, which then has too many.
    packet.writeUInt16LE(at, 6 + 2 + 2);
    expect(typeof fence(connectedRequest(1, 2, packet))).toBe("string");
    const one = request(0x0a, router, Buffer.concat([hex("0100 0600"), hex("0000"), READS.tag]));
    expect(typeof fence(connectedRequest(1, 2, one))).toBe("string");
  });

  it("does not pass other commands, nor frames whose lengths are wrong", () => {
    expect(typeof fence(hex("0400 0000 00000000 00000000 0000000000000000 00000000"))).toBe("string");
    const good = connectedRequest(1, 2, READS.tag);
    for (let length = 0; length < good.length; length++) expect(typeof fence(good.subarray(0, length))).toBe("string");
    const longer = Buffer.concat([good, hex("00")]);
    longer.writeUInt16LE(longer.length - 24, 2);
    expect(typeof fence(longer)).toBe("string");
  });

  it("takes nothing for a read by which one byte of a write or of a read is another", () => {
    // Only services of the list pass, whatever else is changed.
    const services = new Set([0x01, 0x03, 0x0a, 0x4c, 0x52, 0x55]);
    const frames = [
      connectedRequest(1, 2, write),
      connectedRequest(1, 2, READS.tag),
      connectedRequest(1, 2, multipleRequest([READS.tag, write])),
    ];
    fc.assert(
      fc.property(fc.constantFrom(...frames), fc.nat(), fc.nat(255), (frame, at, byte) => {
        const changed = Buffer.from(frame);
        changed[at % changed.length] = byte;
        if (fence(changed) === true) expect(services.has(changed[46] ?? 0)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
