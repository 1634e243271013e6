import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endText } from "../../src/model/address.ts";
import type { Piece } from "../../src/model/workbench.ts";
import { framed, ipPacket, pcap, pcapng, tcpPacket, udpPacket } from "../../test/support/capture-file.ts";
import { collectGarbage } from "../../test/support/collect-garbage.ts";
import { CaptureError } from "./packets.ts";
import { CaptureReader, factsWords, readCapture } from "./read.ts";

const ENDS = { fromPort: 50_000, toPort: 502 };
const BACK = { from: "10.0.0.2", to: "10.0.0.1", fromPort: 502, toPort: 50_000 };

function readAll(file: Buffer, chunkBytes = file.length || 1): { readonly pieces: readonly Piece[]; readonly reader: CaptureReader } {
  const reader = new CaptureReader();
  const pieces: Piece[] = [];
  for (let at = 0; at < file.length; at += chunkBytes) pieces.push(...reader.push(file.subarray(at, at + chunkBytes)));
  pieces.push(...reader.end());
  return { pieces, reader };
}

/** `> text` from who opened the conversation, `< text` from the other end. */
const said = (pieces: readonly Piece[]): readonly string[] =>
  pieces.map(
    ({ isFromFirst, bytes, lostBytes }) =>
      `${isFromFirst ? ">" : "<"} ${bytes.toString("latin1")}${lostBytes > 0 ? ` (-${lostBytes})` : ""}`,
  );

const TALK = [
  tcpPacket({ ...ENDS, sequence: 99, flags: "S" }),
  tcpPacket({ ...BACK, sequence: 499, acknowledged: 100, flags: "SA" }),
  tcpPacket({ ...ENDS, sequence: 100, acknowledged: 500, payload: "ask" }),
  tcpPacket({ ...BACK, sequence: 500, acknowledged: 103, payload: "answer" }),
  udpPacket({ ...ENDS, toPort: 9600, payload: "datagram" }),
];
const TOLD = ["> ask", "< answer", "> datagram"];

describe("the reader of captures", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), "capture-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  describe.each([
    ["pcap", pcap],
    ["pcapng", pcapng],
  ])("%s", (_, form) => {
    it.each([0, 1, 12, 14, 101, 108, 113, 228, 276])("link type %i in both byte orders", (link) => {
      const packets = TALK.map((ip) => framed(link, ip));
      for (const isLittle of [true, false]) expect(said(readAll(form(packets, { link, isLittle })).pieces)).toEqual(TOLD);
    });

    it("the same in pieces of any length", () => {
      const file = form(TALK);
      for (const chunkBytes of [1, 2, 7, 64, 1000]) expect(said(readAll(file, chunkBytes).pieces)).toEqual(TOLD);
    });

    it("a file that is cut at any byte: what came before, and that it is cut, or one sentence", () => {
      const file = form(TALK);
      for (let end = 0; end < file.length; end++) {
        try {
          const { pieces, reader } = readAll(file.subarray(0, end));
          expect(TOLD.slice(0, pieces.length)).toEqual(said(pieces));
          expect(reader.facts.packets).toBeLessThan(TALK.length);
        } catch (error) {
          expect(error).toBeInstanceOf(CaptureError);
          expect(end).toBeLessThan(24);
        }
      }
    });

    it("any bytes end in pieces or in one sentence, and lengths are bounded", () => {
      const file = form(
        TALK.map((ip) => framed(1, ip, [0x8100])),
        { link: 1 },
      );
      fc.assert(
        fc.property(fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(255)), { maxLength: 4 }), (changes) => {
          const bytes = Buffer.from(file);
          for (const [at, byte] of changes) bytes[at] = byte;
          try {
            expect(readAll(bytes, 50).pieces.every(({ bytes: { length } }) => length <= file.length)).toBe(true);
          } catch (error) {
            expect(error).toBeInstanceOf(CaptureError);
            expect(String(error)).toMatch(/cut or damaged|neither pcap nor pcapng/);
          }
        }),
        { numRuns: 400 },
      );
    });

    it("packets that were cut by the snap length leave a gap, and say so", () => {
      const packets = [
        tcpPacket({ ...ENDS, sequence: 1, payload: Buffer.alloc(100, "a") }),
        tcpPacket({ ...ENDS, sequence: 101, payload: "end" }),
      ];
      const { pieces, reader } = readAll(form(packets, { snapBytes: 60 }));
      expect(said(pieces)).toEqual([`> ${"a".repeat(20)}`, "> end (-80)"]);
      expect(factsWords(reader.facts)).toEqual([expect.stringContaining("80 bytes of conversations are not in the capture")]);
    });
  });

  it.each([[[0x8100]], [[0x88a8, 0x8100]], [[0x9100, 0x8100, 0x8100]]])("VLAN tags %j", (tags) => {
    expect(
      said(
        readAll(
          pcap(
            TALK.map((ip) => framed(1, ip, tags)),
            { link: 1 },
          ),
        ).pieces,
      ),
    ).toEqual(TOLD);
  });

  it("IPv6, behind extension headers too, with addresses as they are written", () => {
    const ends = { from: "fd00::1", to: "fe80::2:0:0:1", ...ENDS };
    const tcp = tcpPacket({ ...ends, sequence: 5, payload: "six" });
    const body = tcp.subarray(40);
    // Hop-by-hop (8 bytes), then an atomic fragment, then TCP.
    const extended = ipPacket(0, ends, Buffer.concat([Buffer.from([44, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 9]), body]));
    const { pieces } = readAll(pcap([framed(1, tcp), framed(1, extended)], { link: 1 }));
    // The second is the first again.
    expect(said(pieces)).toEqual(["> six"]);
    expect(pieces.map(({ conversation: { first, second } }) => [endText(first), endText(second)])).toEqual([
      ["[fd00::1]:50000", "[fe80::2:0:0:1]:502"],
    ]);
  });

  it("fragments are refused in words, and so is what is no IP, cut or of another link", () => {
    const fragment = Buffer.from(TALK[2] ?? []);
    fragment.writeUInt16BE(0x2000, 6);
    const last = Buffer.from(TALK[2] ?? []);
    last.writeUInt16BE(20, 6);
    const six = ipPacket(44, { from: "fd00::1", to: "fd00::2" }, Buffer.from([6, 0, 0, 1, 0, 0, 0, 9]));
    const arp = Buffer.concat([Buffer.alloc(12), Buffer.from([8, 6]), Buffer.alloc(28)]);
    const packets = [...[fragment, last, six].map((ip) => framed(1, ip)), arp, framed(1, TALK[2] ?? Buffer.alloc(0)).subarray(0, 40)];
    const { reader, pieces } = readAll(pcap(packets, { link: 1 }));
    expect(pieces).toEqual([]);
    expect(reader.facts.unread).toEqual({ fragment: 3, other: 1, cut: 1, damaged: 0, link: 0 });
    expect(factsWords(reader.facts)).toEqual([
      "3 packets are fragments of IP packets, which are not put together: what they carried is missing",
      "1 packets are shorter than their headers (capture whole packets, tcpdump -s 0)",
    ]);
    expect(readAll(pcap(TALK, { link: 147 })).reader.facts.unread.link).toBe(TALK.length);
  });

  it("bytes sent twice count once, and reordered ones come in order, whatever way they are cut", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 20, maxLength: 400 }),
        fc.array(fc.tuple(fc.nat(399), fc.integer({ min: 1, max: 60 })), { maxLength: 60 }),
        fc.nat(0xffff_ffff),
        (content, cuts, initial) => {
          const bytes = Buffer.from(content);
          const whole = Array.from({ length: Math.ceil(bytes.length / 30) }, (_, i) => [i * 30, 30] as const);
          // Any segments in any order, retransmissions and overlaps among them, and then all of it once more.
          const packets = [...cuts.map(([at, length]) => [at % bytes.length, length] as const), ...whole].map(([at, length]) =>
            tcpPacket({ ...ENDS, sequence: initial + 1 + at, payload: bytes.subarray(at, at + length) }),
          );
          const opening = tcpPacket({ ...ENDS, sequence: initial, flags: "S" });
          const { pieces } = readAll(pcap([opening, ...packets]));
          expect(Buffer.concat(pieces.map((piece) => piece.bytes)).equals(bytes)).toBe(true);
          expect(pieces.every(({ lostBytes }) => lostBytes === 0)).toBe(true);
        },
      ),
      { numRuns: 100 },
    );
  });

  it("a gap is named once the other end acknowledges what is behind it, before its answer", () => {
    const packets = [
      tcpPacket({ ...ENDS, sequence: 1, acknowledged: 1, payload: "one" }),
      tcpPacket({ ...ENDS, sequence: 10, acknowledged: 1, payload: "two" }),
      tcpPacket({ ...BACK, sequence: 1, acknowledged: 13, payload: "answer" }),
      tcpPacket({ ...ENDS, sequence: 20, acknowledged: 7, payload: "three" }),
    ];
    const { pieces, reader } = readAll(pcap(packets));
    expect(said(pieces)).toEqual(["> one", "> two (-6)", "< answer", "> three (-7)"]);
    expect(reader.facts.lostBytes).toBe(13);
  });

  it("tells connections between the same ports apart, and who opened one", () => {
    const again = [
      tcpPacket({ ...ENDS, sequence: 9000, flags: "S" }),
      tcpPacket({ ...ENDS, sequence: 9000, flags: "S" }),
      tcpPacket({ ...ENDS, sequence: 9001, payload: "again" }),
    ];
    const late = tcpPacket({ ...BACK, toPort: 1, sequence: 1, acknowledged: 2, flags: "SA" });
    const { pieces } = readAll(pcap([...TALK, ...again, late, tcpPacket({ ...BACK, toPort: 1, sequence: 2, payload: "hello" })]));
    expect(said(pieces)).toEqual([...TOLD, "> again", "< hello"]);
    expect(pieces.map(({ conversation: { id, isOpeningSeen } }) => [id, isOpeningSeen])).toEqual([
      [1, true],
      [1, true],
      [2, false],
      [3, true],
      [4, true],
    ]);
  });

  it("comments are counted, and the first different ones are shown", () => {
    const comments = new Map([
      [0, "the real port is 40123"],
      [2, "withheld"],
      [3, "withheld"],
    ]);
    const { reader } = readAll(pcapng(TALK, { comments }));
    expect(reader.facts).toMatchObject({ commented: 3, comments: ["the real port is 40123", "withheld"] });
  });

  it("100 MB in bounded memory, with progress", async () => {
    const packets = Array.from({ length: 700 }, (_, i) => tcpPacket({ ...ENDS, sequence: i * 1440, payload: Buffer.alloc(1440, i) }));
    const chunk = pcap(packets).subarray(24);
    const chunks = Math.ceil(100_000_000 / chunk.length);
    async function* stream() {
      yield pcap([]);
      for (let i = 0; i < chunks; i++) {
        const copy = Buffer.from(chunk);
        // The next bytes of the same end: the sequence number of each packet goes on.
        for (let at = 0, n = 0; at < copy.length; at += 16 + 20 + 20 + 1440, n++)
          copy.writeUInt32BE(((i * packets.length + n) * 1440) >>> 0, at + 16 + 24);
        yield copy;
      }
    }
    let [bytes, seen, peak, calls] = [0, 0, 0, 0];
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    const facts = await readCapture(
      stream(),
      (pieces) => {
        for (const piece of pieces) bytes += piece.bytes.length;
        // What is held, whenever V8 would collect the rest.
        if (calls++ % 20 !== 10) return;
        collectGarbage();
        peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
      },
      { onProgress: (done) => (seen = done) },
    );
    expect(facts).toMatchObject({ packets: chunks * packets.length, conversations: 1, lostBytes: 0, isCut: false });
    expect(bytes).toBe(facts.packets * 1440);
    expect(seen).toBe(facts.bytes);
    expect(facts.bytes).toBeGreaterThan(100_000_000);
    expect(calls).toBeGreaterThan(20);
    expect(peak).toBeLessThan(20_000_000);
  });

  it("holds a bounded part of what waits for packets that never come", () => {
    const packets = Array.from({ length: 3000 }, (_, i) => tcpPacket({ ...ENDS, sequence: 10 + i * 1440, payload: Buffer.alloc(1440, i) }));
    const reader = new CaptureReader();
    const opening = tcpPacket({ ...ENDS, sequence: 0, flags: "S" });
    const pieces = reader.push(pcap([opening, ...packets]));
    expect(pieces.length).toBeGreaterThan(2000);
    expect(pieces[0]?.lostBytes).toBe(9);
  });

  it("a file: absent, a folder, or no capture is a sentence that names it", async () => {
    const text = path.join(folder, "text");
    writeFileSync(text, "no capture");
    await expect(readCapture(text, () => {})).rejects.toThrow(`${text}: it begins as neither pcap nor pcapng does`);
    await expect(readCapture(path.join(folder, "absent"), () => {})).rejects.toThrow(/absent does not exist$/);
    await expect(readCapture(folder, () => {})).rejects.toThrow(/it is not a plain file; a capture comes from a file/);
    const good = path.join(folder, "good");
    writeFileSync(good, pcapng(TALK));
    const progress: unknown[] = [];
    await readCapture(good, () => {}, { onProgress: (done, total) => progress.push([done, total]) });
    expect(progress).toEqual([[pcapng(TALK).length, pcapng(TALK).length]]);
    await expect(readCapture(good, () => {}, { signal: AbortSignal.abort(new Error("stopped")) })).rejects.toThrow("stopped");
  });
});
