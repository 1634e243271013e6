import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WirePeer, WireTrace } from "../../model/wire.ts";
import { tcpPacket, udpPacket } from "./frames.ts";
import { pcapngHead, pcapngPacket } from "./pcapng.ts";
import { Ring, recordIn, ringMemory } from "./ring.ts";
import { withoutSecrets } from "./secrets.ts";
import { CaptureWriter } from "./write.ts";

const PEER: WirePeer = { transport: "tcp", address: "192.168.7.12", port: 1502 };
const ORIGIN = { version: "1.0.0", source: "press-1", type: "modbus_tcp", standardPort: 502 };
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s|\/\/.*$/gm, ""), "hex");

/** What a writer makes of what `pass` does. */
function written(pass: (ring: Ring) => void, { bytes = 1 << 20, secrets = [] as readonly string[] } = {}): Buffer {
  const memory = ringMemory(bytes);
  let now = 0;
  pass(
    new Ring(
      memory,
      () => now++,
      () => 1_700_000_000_000 + now,
    ),
  );
  const { events, peers } = recordIn(memory);
  const writer = new CaptureWriter(ORIGIN);
  const blocks = withoutSecrets(events, secrets).map((event) => writer.take(event, peers.get(event.connection)));
  return Buffer.concat([writer.head(), ...blocks]);
}

const opened = (ring: Ring): WireTrace => {
  const trace = ring.opening(PEER);
  trace.opened();
  return trace;
};

interface Segment {
  readonly isOut: boolean;
  readonly flags: number;
  readonly sequence: number;
  readonly acknowledged: number;
  readonly length: number;
  readonly payload: Buffer;
  readonly text: string;
}

/** The packets of a capture; each block says its length twice. */
function segmentsIn(capture: Buffer): readonly Segment[] {
  const segments: Segment[] = [];
  for (let at = 0; at < capture.length; ) {
    const [type, length] = [capture.readUInt32LE(at), capture.readUInt32LE(at + 4)];
    expect(capture.readUInt32LE(at + length - 4)).toBe(length);
    expect(length % 4).toBe(0);
    if (type === 6) segments.push(segmentIn(capture.subarray(at, at + length)));
    at += length;
  }
  return segments;
}

function segmentIn(block: Buffer): Segment {
  const ip = block.subarray(28, 28 + block.readUInt32LE(20));
  expect(ip.readUInt16BE(2)).toBe(block.readUInt32LE(24));
  return {
    isOut: ip.readUInt8(12) === 10,
    flags: ip.readUInt8(33),
    sequence: ip.readUInt32BE(24),
    acknowledged: ip.readUInt32BE(28),
    length: ip.readUInt16BE(2) - 40,
    payload: ip.subarray(40),
    text: block.subarray(28 + ip.length).toString("latin1"),
  };
}

describe("the blocks of a file", () => {
  // draft-ietf-opsawg-pcapng-03: 4.1 section header, 4.2 interface description, 4.3 enhanced packet, 3.5 options.
  it("are these, byte for byte", () => {
    expect(pcapngHead("app", "note")).toEqual(
      hex(`
        0a0d0d0a 30000000 4d3c2b1a 0100 0000 ffffffffffffffff // type, length, byte order, version 1.0, length not known
        0100 0400 6e6f7465                                     // opt_comment "note"
        0400 0300 61707000                                     // shb_userappl "app", filled up
        00000000 30000000                                      // opt_endofopt, length again
        01000000 30000000 6500 0000 00000000                   // type, length, LINKTYPE_RAW, reserved, no bound of a packet
        0200 0900 636f6c6c6563746f72000000                     // if_name "collector"
        0900 0100 06000000                                     // if_tsresol: 10^-6 s
        00000000 30000000`),
    );
    expect(pcapngPacket({ bytes: hex("4500000102"), length: 7 }, 0x1_0000_0001 / 1000 + 0.001, "in", ["why"])).toEqual(
      hex(`
        06000000 3c000000 00000000 // type, length, interface 0
        01000000 02000000          // time: upper half, lower half
        05000000 07000000          // bytes here, bytes of the packet
        4500000102 000000          // filled up
        0100 0300 77687900         // opt_comment "why"
        0200 0400 01000000         // epb_flags: inbound
        00000000 3c000000`),
    );
  });

  // RFC 1071, 3: the sum of a header with its checksum is 0xffff.
  it("have packets whose checksums are right", () => {
    const sum = (bytes: Buffer): number => {
      let total = 0;
      for (let at = 0; at < bytes.length; at += 2)
        total += (bytes.readUInt8(at) << 8) | (at + 1 < bytes.length ? bytes.readUInt8(at + 1) : 0);
      while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
      return total;
    };
    const ends = fc.constantFrom(4, 16).chain((size) => {
      const end = fc.record({ address: fc.uint8Array({ minLength: size, maxLength: size }), port: fc.nat(65_535) });
      return fc.tuple(end, end);
    });
    fc.assert(
      fc.property(ends, fc.uint8Array({ maxLength: 1500 }), fc.boolean(), ([from, to], payload, isTcp) => {
        const { bytes, length } = isTcp
          ? tcpPacket({ from, to, flags: 0x18, sequence: 7, acknowledged: 2 ** 32 - 1 }, payload, payload.length)
          : udpPacket(from, to, payload, payload.length);
        expect(length).toBe(bytes.length);
        const headerBytes = from.address.length === 4 ? 20 : 40;
        if (headerBytes === 20) expect(sum(bytes.subarray(0, 20))).toBe(0xffff);
        const carried = bytes.subarray(headerBytes);
        const pseudo = Buffer.from([...from.address, ...to.address, 0, isTcp ? 6 : 17, carried.length >> 8, carried.length & 0xff]);
        expect(sum(Buffer.concat([pseudo, carried]))).toBe(0xffff);
      }),
    );
  });
});

describe("a capture", () => {
  it("has the handshake, what passed, and the end", () => {
    const capture = written((ring) => {
      const trace = opened(ring);
      trace.data("out", Buffer.from("question"));
      trace.data("in", Buffer.from("answer"));
      trace.ended("fin_out");
      trace.ended("fin_in");
    });
    expect(
      segmentsIn(capture).map(({ isOut, flags, sequence, acknowledged, length }) => [isOut, flags, sequence, acknowledged, length]),
    ).toEqual([
      [true, 0x02, 0, 0, 0],
      [false, 0x12, 0, 1, 0],
      [true, 0x10, 1, 1, 0],
      [true, 0x18, 1, 1, 8],
      [false, 0x18, 1, 9, 6],
      [true, 0x11, 9, 7, 0],
      [false, 0x10, 7, 10, 0],
      [false, 0x11, 7, 10, 0],
      [true, 0x10, 10, 8, 0],
    ]);
    expect(segmentsIn(capture)[0]?.text).toContain("port 1502 is written as 502");
    expect(
      segmentsIn(capture)
        .map(({ payload }) => payload.toString())
        .join(""),
    ).toBe("questionanswer");
  });

  it.each([
    ["refused", [0x02, 0x14]],
    ["unanswered", [0x02]],
  ] as const)("shows an attempt that is %s", (ending, flags) => {
    const capture = written((ring) => ring.opening(PEER).ended(ending));
    expect(segmentsIn(capture).map((segment) => segment.flags)).toEqual(flags);
  });

  it("keeps the length of what is withheld, and says why", () => {
    const capture = written(
      (ring) => {
        const trace = opened(ring);
        trace.data("out", Buffer.from("login hunter2"), "log_in");
        // A device that says it back, in two parts.
        trace.data("in", Buffer.from("hello hun"));
        trace.data("in", Buffer.from("ter3, no: hunter2"));
        trace.data("in", Buffer.from("welcome"));
      },
      { secrets: ["hunter2"] },
    );
    const data = segmentsIn(capture).slice(3);
    expect(data.map(({ sequence, length, payload }) => [sequence, length, payload.toString()])).toEqual([
      [1, 13, ""],
      [1, 9, "hello hun"],
      [10, 17, ""],
      [27, 7, "welcome"],
    ]);
    expect(data[0]?.text).toContain("13 bytes are left out: this frame logs in");
    expect(data[2]?.text).toContain("17 bytes are left out: this frame holds a secret");
  });

  it.each(["hunter2", "S3cr3t-äöü", "0123456789abcdef"])("leaves the secret %s out in every form, wherever frames end", (secret) => {
    const utf16 = Buffer.from(secret, "utf16le");
    for (const bytes of [Buffer.from(secret), utf16, Buffer.from(utf16).swap16()])
      for (const form of [
        bytes,
        Buffer.from(bytes.toString("hex")),
        Buffer.from(bytes.toString("hex").toUpperCase()),
        Buffer.from(bytes.toString("base64")),
      ]) {
        const whole = Buffer.concat([Buffer.from("before"), form, Buffer.from("behind")]);
        const capture = written(
          (ring) => {
            const trace = opened(ring);
            for (let at = 0; at < whole.length; at += 5) trace.data("in", whole.subarray(at, at + 5));
          },
          { secrets: [secret] },
        );
        const kept = Buffer.concat(segmentsIn(capture).map(({ payload }) => payload));
        expect(kept.includes(form.subarray(0, 6))).toBe(false);
        expect(segmentsIn(capture).reduce((sum, { length }) => sum + length, 0)).toBe(whole.length);
      }
  });

  it("begins with a request where the beginning of the connection is gone", () => {
    const capture = written(
      (ring) => {
        const trace = opened(ring);
        for (let i = 0; i < 50; i++) {
          trace.data("out", Buffer.from(`question ${i}`));
          trace.data("in", Buffer.alloc(200, "a"));
        }
      },
      { bytes: 4096 },
    );
    const [first] = segmentsIn(capture);
    expect(first?.payload.toString()).toMatch(/^question \d+$/);
    expect(first?.text).toContain("is kept no more");
  });

  it("has sequence numbers that fit, whatever passes", () => {
    const step = fc.record({ direction: fc.constantFrom("out" as const, "in" as const), bytes: fc.nat(70_000) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const capture = written(
          (ring) => {
            const trace = opened(ring);
            for (const { direction, bytes } of steps) trace.data(direction, Buffer.alloc(bytes));
          },
          { bytes: 1 << 22 },
        );
        const sent = { true: 1, false: 1 };
        for (const { isOut, sequence, acknowledged, length, flags } of segmentsIn(capture).slice(2)) {
          expect(sequence).toBe(sent[`${isOut}`]);
          expect(acknowledged).toBe(sent[`${!isOut}`]);
          expect(flags & 0x10).toBe(0x10);
          sent[`${isOut}`] += length;
        }
        const total = (direction: string): number => steps.reduce((sum, one) => sum + (one.direction === direction ? one.bytes : 0), 0);
        expect(sent).toEqual({ true: 1 + total("out"), false: 1 + total("in") });
      }),
      { numRuns: 20 },
    );
  });

  it("says when the clock was set, and goes on with the time of then", () => {
    const memory = ringMemory(1 << 16);
    let [monotonicMs, wallMs] = [100.25, 1_700_000_000_000];
    const ring = new Ring(
      memory,
      () => monotonicMs,
      () => Math.floor(wallMs),
    );
    const trace = ring.opening(PEER);
    trace.opened();
    trace.data("out", Buffer.from("a"));
    monotonicMs += 100;
    wallMs += 100 + 3_600_000;
    trace.data("in", Buffer.from("b"));
    const { events, peers } = recordIn(memory);
    const writer = new CaptureWriter(ORIGIN);
    const capture = Buffer.concat([writer.head(), ...events.map((event) => writer.take(event, peers.get(event.connection)))]);
    expect(segmentsIn(capture).map(({ text }) => /was set by ([\d.]+) s/.exec(text)?.[1])).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      "3600.0",
    ]);
  });
});
