import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { frameWords } from "./frame-words.ts";
import { requestFrame } from "./frames.ts";
import { crcOf, fromRtu, MAX_HELD_BYTES, nextRtu, rtuFence, toRtu } from "./rtu.ts";
import { checksum } from "./simulator.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const wire = (body: string): Buffer => Buffer.from([...hex(body), ...checksum(hex(body))]);
const request = requestFrame(0, { unit: 17, functionCode: 3, start: 107, count: 3 });
/** The example of MODBUS Application Protocol V1.1b3, 6.3. */
const ANSWER = wire("11 03 06 022b 0000 0064");

/** The frames in these bytes, as an exchange takes them out: as soon as they are whole. */
function framesOf(chunks: readonly Buffer[], asked: Uint8Array | undefined = request): { frames: string[]; garbage: number } {
  let held: Buffer = Buffer.alloc(0);
  const frames: string[] = [];
  let garbage = 0;
  for (const chunk of chunks) {
    held = Buffer.concat([held, chunk]);
    for (let step = nextRtu(held, 0, asked, false); held.length > 0; step = nextRtu(held, 0, asked, false)) {
      if (step.length === undefined) break;
      if (step.isFrame) frames.push(held.toString("hex", 0, step.length));
      else garbage += step.length;
      held = held.subarray(step.length);
    }
    expect(held.length).toBeLessThanOrEqual(MAX_HELD_BYTES);
  }
  return { frames, garbage };
}

describe("a frame of a serial line", () => {
  it.each([
    // The worked CRC of MODBUS over Serial Line V1.02, appendix B: 0x1241, low byte first.
    ["read exception status of unit 2", "02 07", "4112"],
    // Printed in many manuals of devices.
    ["read ten holding registers of unit 1", "01 03 0000 000a", "c5cd"],
  ])("has the CRC of the specification: %s", (_, body, crc) => {
    const value = crcOf(hex(body));
    expect(Buffer.of(value & 0xff, value >> 8).toString("hex")).toBe(crc);
    expect(Buffer.from(checksum(hex(body))).toString("hex")).toBe(crc);
  });

  it("carries each request and gives it back", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 65_535 }), fc.uint8Array({ minLength: 2, maxLength: 254 }), (transaction, body) => {
        const frame = Buffer.concat([Buffer.from([transaction >> 8, transaction & 0xff, 0, 0, 0, body.length]), body]);
        expect(fromRtu(toRtu(frame), transaction)).toEqual(frame);
        const damaged = toRtu(frame);
        damaged.writeUInt8(damaged.readUInt8(0) ^ 0x10, 0);
        expect(fromRtu(damaged, 0)).toBeUndefined();
      }),
    );
  });

  it("passes the fence with the functions that read and a right CRC", () => {
    expect(rtuFence(wire("01 03 0000 0001"))).toBe(true);
    expect(rtuFence(wire("01 14 07 06 0004 0009 0002"))).toBe(true);
    expect(rtuFence(wire("01 2b 0e 01 00"))).toBe(true);
    expect(rtuFence(hex("01 03 0000 0001 0000"))).toContain("wrong CRC");
    for (const body of ["01 06 0000 0001", "01 10 0000 0001 02 0001", "01 15 07 06 0004 0009 0002", "01 2b 0d 01 00"])
      expect(rtuFence(wire(body))).not.toBe(true);
  });

  it("is named in words", () => {
    expect(frameWords(wire("01 03 0000 000a"), "out")).toBe("read holding registers 0..9 of unit 1");
    expect(frameWords(wire("01 14 07 06 0004 0009 0002"), "out")).toBe("read file records 9..10 of file 4 of unit 1");
    expect(frameWords(ANSWER, "in")).toBe("6 bytes of holding registers from unit 17");
    expect(frameWords(wire("11 83 02"), "in")).toBe("exception 2 (illegal data address) from unit 17");
  });
});

describe("the search of an answer", () => {
  it("finds it whatever parts it comes in", () => {
    for (let at = 1; at < ANSWER.length; at++)
      expect(framesOf([ANSWER.subarray(0, at), ANSWER.subarray(at)]).frames).toEqual([ANSWER.toString("hex")]);
    expect(framesOf([...ANSWER].map((byte) => Buffer.of(byte)))).toEqual({ frames: [ANSWER.toString("hex")], garbage: 0 });
  });

  it.each([
    ["an exception", "11 83 02"],
    ["an answer of another unit", "12 03 06 022b 0000 0064"],
    ["an answer with another size", "11 03 02 022b"],
    ["an identification", "11 2b 0e 01 01 00 00 02 00 02 4142 01 01 43"],
    ["an identification that counts what is to follow", "11 2b 0e 01 01 ff 02 03 00 02 4142 01 01 43"],
    ["records", "11 14 04 03 06 0102"],
  ])("gives %s for judgement", (_, body) => expect(framesOf([wire(body)]).frames).toEqual([wire(body).toString("hex")]));

  it("finds it behind stray bytes, in any parts", () => {
    // Bytes that do not begin as the answer: such ones are waited for until the time-out.
    const noise = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes).map((byte) => (byte === 17 ? 0 : byte)));
    fc.assert(
      fc.property(noise, fc.integer({ min: 1, max: 60 }), (before, at) => {
        const all = Buffer.concat([before, ANSWER]);
        const { frames } = framesOf([all.subarray(0, at), all.subarray(at)]);
        expect(frames.at(-1)).toBe(ANSWER.toString("hex"));
      }),
    );
  });

  it("never gives bytes with a wrong CRC for a frame, and never holds more than its bound", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 700 }), { maxLength: 4 }), (chunks) => {
        for (const frame of framesOf(chunks.map((chunk) => Buffer.from(chunk))).frames)
          expect(fromRtu(Buffer.from(frame, "hex"), 0)).toBeDefined();
      }),
    );
  });

  it("notes an answer whose CRC is wrong, and waits for the right one", () => {
    const damaged = Buffer.from(ANSWER);
    damaged.writeUInt8(0xff, 5);
    expect(nextRtu(damaged, 0, request, false)).toEqual({ length: undefined, isDamaged: true });
    expect(framesOf([damaged, ANSWER]).frames).toEqual([ANSWER.toString("hex")]);
  });

  it("takes nothing while no request is under way", () =>
    expect(nextRtu(ANSWER, 0, undefined, false)).toEqual({ length: ANSWER.length, isFrame: false }));
});
