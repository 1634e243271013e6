import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  connectRequest,
  dataPackets,
  disconnectOf,
  isConnectRequest,
  isoCarrier,
  MAX_PACKET_BYTES,
  MessageJoiner,
  messageIn,
  packetLength,
  parseConnectAnswer,
} from "./iso.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
/** RFC 1006, 6; X.224, 13.3 and 13.7; S7 connections as in the protocol notes, 1. */
const CONNECT = hex("0300 0016 11 e0 0000 0001 00 c0 01 0a c1 02 0100 c2 02 0202");
const target = { callingTsap: Buffer.of(1, 0), calledTsap: Buffer.of(2, 2) };

/** Cuts bytes where the list says, as the exchange takes them. */
function packetsOf(bytes: Buffer, cuts: readonly number[]): readonly Buffer[] | string {
  const packets: Buffer[] = [];
  let held = Buffer.alloc(0);
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1))), bytes.length].sort((a, b) => a - b);
  let from = 0;
  for (const to of places) {
    held = Buffer.concat([held, bytes.subarray(from, to)]);
    from = to;
    for (;;) {
      if (held.length === 0) break;
      const length = packetLength(held, 0);
      if (typeof length === "string") return length;
      if (length === undefined || length > held.length) break;
      packets.push(held.subarray(0, length));
      held = held.subarray(length);
    }
  }
  return packets;
}

describe("connecting", () => {
  it("asks byte for byte as the protocol has it", () => {
    expect(connectRequest(target).toString("hex")).toBe(CONNECT.toString("hex"));
    expect(isConnectRequest(CONNECT)).toBe(true);
  });

  it("takes longer TSAPs", () => {
    const packet = connectRequest({ callingTsap: Buffer.of(6, 0), calledTsap: Buffer.from("SIMATIC-ROOT-HMI") });
    expect(packet.toString("hex")).toBe(
      hex("0300 0024 1f e0 0000 0001 00 c0 01 0a c1 02 0600 c2 10").toString("hex") + Buffer.from("SIMATIC-ROOT-HMI").toString("hex"),
    );
  });

  it.each([
    ["of 22 bytes", "0300 0016 11 d0 0001 0002 00 c0 01 0a c1 02 0100 c2 02 0202", 1024],
    ["of 14 bytes", "0300 000e 09 d0 0001 0000 00 c0 01 09", 512],
    ["of 11 bytes, without parameters", "0300 000b 06 d0 0001 0000 00", 1024],
    ["with the smallest size", "0300 000e 09 d0 0001 0000 00 c0 01 07", 128],
    ["with a larger size than was asked for", "0300 000e 09 d0 0001 0000 00 c0 01 0d", 1024],
    ["with a size that is none", "0300 000e 09 d0 0001 0000 00 c0 01 06", 1024],
    ["with a parameter that goes beyond its end", "0300 000e 09 d0 0001 0000 00 c1 09 01", 1024],
  ])("takes a confirm %s", (_, packet, tpduBytes) => {
    expect(parseConnectAnswer(hex(packet))).toEqual({ tpduBytes });
  });

  it("says why a device refuses, and what answers no connect request", () => {
    expect(parseConnectAnswer(hex("0300 000b 06 80 0001 0000 03"))).toEqual({
      refusal: "disconnect reason 3 (no such TSAP)",
      isUnknown: true,
    });
    expect(parseConnectAnswer(hex("0300 000b 06 80 0001 0000 63"))).toEqual({
      refusal: "disconnect reason 99 (not in the standard)",
      isUnknown: false,
    });
    expect(parseConnectAnswer(hex("0300 0009 04 70 0001 02"))).toEqual({ refusal: "it rejected a TPDU (cause 2)", isUnknown: false });
    expect(parseConnectAnswer(hex("0300 0007 02 f0 80"))).toBe("TPDU type 0xF0 answered a connect request");
    expect(disconnectOf(hex("0300 0007 02 f0 80"))).toBeUndefined();
  });
});

describe("packets", () => {
  it("refuses another version and impossible lengths as soon as they are there", () => {
    expect(packetLength(hex("48"), 0)).toMatch(/version 72/);
    expect(packetLength(hex("0300"), 0)).toBeUndefined();
    expect(packetLength(hex("0300 0006"), 0)).toMatch(/6 bytes/);
    expect(packetLength(hex("0300 2001"), 0)).toMatch(/8193 bytes/);
    expect(packetLength(hex("ff 0300 2000"), 1)).toBe(MAX_PACKET_BYTES);
  });

  it("is one where the message fits, else several, the end on the last alone", () => {
    expect(dataPackets(hex("3201"), 128).toString("hex")).toBe(hex("0300 0009 02f080 3201").toString("hex"));
    const long = Buffer.alloc(126, 0x32);
    expect(dataPackets(long, 128).toString("hex")).toBe(
      `${hex("0300 0084 02f000").toString("hex")}${"32".repeat(125)}${hex("0300 0008 02f080 32").toString("hex")}`,
    );
  });

  it("joins any message from packets of any size, however the stream is cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 400 }), { minLength: 1, maxLength: 4 }),
        fc.constantFrom(128, 256, 1024),
        fc.array(fc.nat(4000), { maxLength: 20 }),
        (messages, tpduBytes, cuts) => {
          const stream = Buffer.concat(messages.map((message) => dataPackets(message, tpduBytes)));
          const packets = packetsOf(stream, cuts);
          if (typeof packets === "string") throw new Error(packets);
          const joiner = new MessageJoiner(8192);
          const joined = packets.map((packet) => joiner.take(packet)).filter((message) => message !== undefined);
          expect(joined.map((message) => Buffer.from(message).toString("hex"))).toEqual(
            messages.map((message) => Buffer.from(message).toString("hex")),
          );
          expect(joiner.pendingBytes).toBe(0);
        },
      ),
    );
  });

  it("passes over empty ones, which old processors acknowledge with", () => {
    const joiner = new MessageJoiner(100);
    const take = (packet: string) => joiner.take(hex(packet));
    expect(take("0300 0007 02f000")).toBeUndefined();
    expect(take("0300 0007 02f080")).toBeUndefined();
    expect(take("0300 0009 02f000 3203")).toBeUndefined();
    expect(joiner.pendingBytes).toBe(2);
    expect(take("0300 0007 02f000")).toBeUndefined();
    expect(take("0300 0008 02f080 00")).toEqual(hex("320300"));
  });

  it("bounds a message that never ends, and refuses what is not data", () => {
    const joiner = new MessageJoiner(5);
    const part = hex("0300 0009 02f000 3203");
    expect([joiner.take(part), joiner.take(part)]).toEqual([undefined, undefined]);
    expect(joiner.take(part)).toBe("a message of more than 5 bytes");
    expect(joiner.take(hex("0300 000b 06 d0 0001 0000 00"))).toMatch(/type 0xD0/);
    expect(joiner.take(hex("0300 0007 09f080"))).toMatch(/instead of data/);
    expect(joiner.take(hex("0300 0007 01f080"))).toMatch(/instead of data/);
  });

  it("never fails over bytes, whatever they are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const packet = Buffer.from(bytes);
        packetLength(packet, 0);
        parseConnectAnswer(packet);
        disconnectOf(packet);
        messageIn(packet);
        isConnectRequest(packet);
        new MessageJoiner(100).take(packet);
        isoCarrier(128).unwrap(packet);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("what fences see", () => {
  it("is the message of one or of several packets, if they are exactly that", () => {
    const message = Buffer.from(Array.from({ length: 300 }, (_, i) => i & 255));
    for (const tpduBytes of [128, 256, 1024])
      expect(Buffer.from(messageIn(dataPackets(message, tpduBytes)) ?? []).equals(message)).toBe(true);
    const packets = dataPackets(message, 128);
    for (let cut = 0; cut < packets.length; cut++) expect(messageIn(packets.subarray(0, cut)), `the first ${cut} bytes`).toBeUndefined();
    expect(messageIn(Buffer.concat([packets, packets]))).toBeUndefined();
    expect(messageIn(Buffer.concat([packets, hex("00")]))).toBeUndefined();
    expect(messageIn(hex("0300 0008 02f081 32"))).toBeUndefined();
    expect(messageIn(CONNECT)).toBeUndefined();
  });

  it("is not a connect request where anything else is with it", () => {
    expect(isConnectRequest(Buffer.concat([CONNECT, hex("00")]))).toBe(false);
    expect(isConnectRequest(CONNECT.subarray(0, 21))).toBe(false);
    expect(isConnectRequest(Buffer.concat([CONNECT, dataPackets(hex("3201"), 128)]))).toBe(false);
    expect(isConnectRequest(hex("0300 0016 11 d0 0000 0001 00 c0 01 0a c1 02 0100 c2 02 0202"))).toBe(false);
  });
});

it("carries a stream whose ends of messages mean nothing", () => {
  const carrier = isoCarrier(128);
  expect(carrier.maxPayloadBytes).toBe(125);
  const packet = Buffer.from(carrier.wrap(hex("160301")));
  expect(packet.toString("hex")).toBe(hex("0300 000a 02f080 160301").toString("hex"));
  expect(carrier.frameLength(packet, 0)).toBe(packet.length);
  expect(Buffer.from(carrier.unwrap(packet) as Uint8Array)).toEqual(hex("160301"));
  expect(carrier.unwrap(hex("0300 000b 06 80 0001 0000 80"))).toMatch(/disconnect reason 128/);
});
