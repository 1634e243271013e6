import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { FramingOf } from "../../src/model/profile.ts";
import { profileSchema } from "../../src/model/profile.ts";
import { type Framing, frameOf, framingOf, nextFrame, payloadOf } from "./framing.ts";

/** As a profile has it, defaults filled in. */
function made(form: object, resync: "close" | "start" = "close"): Framing {
  const profile = profileSchema.parse({
    profile: 1,
    name: "test",
    for: ["vendor_b"],
    framing: form,
    resync,
    requests: { r: { reads: "r", send: "R" } },
    variables: { v: { request: "r", whole: true } },
  });
  return framingOf(profile.framing as FramingOf, resync);
}

const framing = (form: object, resync?: "close" | "start"): Framing => made({ max_bytes: 200, ...form }, resync);
const fixed = (form: object): Framing => made({ type: "fixed", ...form });

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
/** Payload, and its frame. */
const CASES: readonly (readonly [name: string, framing: Framing, payload: string, frame: string])[] = [
  ["a delimiter", framing({ type: "delimiter", end: "<CR><LF>" }), "41 42", "41 42 0d 0a"],
  ["a delimiter with a start", framing({ type: "delimiter", start: "\\x3a", end: "<CR>" }), "41", "3a 41 0d"],
  [
    "a delimiter behind a checksum in digits",
    framing({ type: "delimiter", start: "@", end: "*<CR>", checksum: { kind: "xor", written: "HEX" } }),
    // Worked by hand: 40 ^ 30 ^ 31 = 41.
    "30 31",
    "40 30 31 34 31 2a 0d",
  ],
  ["a length of the rest", framing({ type: "length", header: "\\xAA{length:u16be}" }), "01 02 03", "aa 00 03 01 02 03"],
  [
    "a length of the frame, with a CRC",
    framing({ type: "length", header: "{length:u8}", counts: "frame", checksum: { kind: "sum8", covers_start: false } }),
    "01 02",
    "04 01 02 03",
  ],
  [
    "a length of the payload, with a CRC, low byte first",
    framing({ type: "length", header: "{length:u16le}<NUL>", counts: "payload", checksum: { kind: "lrc" } }),
    "10",
    "01 00 00 10 ef",
  ],
  ["a length in digits", framing({ type: "length", header: "L{length:d3};" }), "41", "4c 30 30 31 3b 41"],
  ["a fixed size", fixed({ start: "<SOH>", bytes: 4 }), "aa bb cc", "01 aa bb cc"],
  ["control characters", framing({ type: "control" }), "41 42", "02 41 42 03"],
  [
    "X3.28: the block check of all behind STX with ETX",
    framing({ type: "x328" }),
    // 50 ^ 56 ^ 31 ^ 03 = 34.
    "50 56 31",
    "02 50 56 31 03 34",
  ],
  ["an escape character", framing({ type: "control", escape: "<DLE>" }), "02 41 10 03", "02 10 02 41 10 10 10 03 03"],
  [
    "DLE STX to DLE ETX",
    framing({ type: "control", start: "<DLE><STX>", end: "<DLE><ETX>", escape: "<DLE>" }),
    "10 03 02",
    "10 02 10 10 03 02 10 03",
  ],
  [
    "an escape with xor, and the checksum inside",
    framing({
      type: "control",
      start: "~",
      end: "~",
      escape: "}".replace("}", "\\}"),
      escape_xor: 32,
      checksum: { kind: "sum8", at: "before_end" },
    }),
    "7e 01",
    "7e 7d 5e 01 7f 7e",
  ],
];

describe.each(CASES)("%s", (_name, form, payload, frame) => {
  const bytes = hex(frame);

  test("a payload has its frame, and the frame its payload", () => {
    expect(frameOf(form, hex(payload))).toEqual(bytes);
    expect(nextFrame(form, bytes, 0)).toEqual({ kind: "frame", length: bytes.length });
    expect(payloadOf(form, bytes)).toEqual(hex(payload));
  });

  test("however it is split, no frame ends too early", () => {
    for (let length = 1; length < bytes.length; length++) {
      const found = nextFrame(form, bytes.subarray(0, length), 0);
      // If the length is known before the frame is whole, it is right.
      if (found !== undefined) expect(found).toEqual({ kind: "frame", length: bytes.length });
    }
  });

  test("what follows it, and what is before it, is no part of it", () => {
    const two = Buffer.concat([bytes, bytes]);
    expect(nextFrame(form, two, bytes.length)).toEqual({ kind: "frame", length: bytes.length });
    expect(nextFrame(form, two, 0)).toEqual({ kind: "frame", length: bytes.length });
  });
});

test("whatever comes, a frame is at most as long as it may be, and taking it apart never throws", () => {
  const all = [...CASES.map(([, form]) => form), framing({ type: "control", alone: "<EOT>" }, "start"), fixed({ start: "AB", bytes: 9 })];
  fc.assert(
    fc.property(fc.constantFrom(...all), fc.uint8Array({ maxLength: 400 }), fc.nat(10), (form, random, start) => {
      const bytes = Buffer.from(random);
      if (start >= bytes.length) return;
      const found = nextFrame(form, bytes, start);
      if (typeof found !== "object") return;
      expect(found.length).toBeGreaterThan(0);
      expect(found.length).toBeLessThanOrEqual(found.kind === "frame" ? form.maxBytes : bytes.length - start);
      if (found.kind === "frame" && start + found.length <= bytes.length)
        expect(payloadOf(form, bytes.subarray(start, start + found.length))).toBeDefined();
    }),
    { numRuns: 2000 },
  );
});

test("every payload that has a frame comes out of it again, next to garbage behind it", () => {
  fc.assert(
    fc.property(fc.constantFrom(...CASES.map(([, form]) => form)), fc.uint8Array({ maxLength: 60 }), (form, random) => {
      const payload = Buffer.from(random);
      const frame = frameOf(form, payload);
      if (typeof frame === "string") return;
      expect(nextFrame(form, Buffer.concat([frame, Buffer.from("zz")]), 0)).toMatchObject({ length: frame.length });
      expect(payloadOf(form, frame)).toEqual(payload);
    }),
    { numRuns: 1000 },
  );
});

test("one flipped bit of a frame with a checksum is seen", () => {
  for (const [, form, , frame] of CASES.filter(([, { checksum }]) => checksum?.coversStart)) {
    for (let bit = 0; bit < hex(frame).length * 8; bit++) {
      const bytes = hex(frame);
      bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      const found = nextFrame(form, bytes, 0);
      const isWhole = typeof found === "object" && found.kind === "frame" && found.length === bytes.length;
      if (isWhole && typeof payloadOf(form, bytes) !== "string")
        expect(bytes.toString("latin1").toUpperCase()).toBe(hex(frame).toString("latin1"));
    }
  }
});

test.each([
  ["a frame that does not end", framing({ type: "delimiter", end: "<LF>", max_bytes: 4 }), "41 42 43 44 45", /more than 4 bytes/],
  ["a length beyond the maximum", framing({ type: "length", header: "{length:u16be}" }), "ff ff", /more than 200 bytes/],
  ["a length below the header", framing({ type: "length", header: "{length:u16be}", counts: "frame" }), "00 01", /fewer than its header/],
  ["a header of another kind", framing({ type: "length", header: "\\xAA{length:u8}" }), "ab 01", /begin no frame: ab01/],
  ["digits that are none", framing({ type: "length", header: "{length:d2}" }), "34 61", /without a length/],
  ["another start", framing({ type: "control" }), "41 02", /begin no frame: 4102/],
])("%s is out of step", (_name, form, bytes, said) => {
  expect(nextFrame(form, hex(bytes), 0)).toMatch(said);
});

test("with resync: start bytes are skipped up to what could begin a frame", () => {
  const form = framing({ type: "control", alone: "<EOT>" }, "start");
  expect(nextFrame(form, hex("41 42 02 43"), 0)).toEqual({ kind: "noise", length: 2 });
  expect(nextFrame(form, hex("41 42 04"), 0)).toEqual({ kind: "noise", length: 2 });
  expect(nextFrame(form, hex("04 41"), 0)).toEqual({ kind: "frame", length: 1 });
  expect(nextFrame(form, Buffer.concat([hex("02"), Buffer.alloc(300, 0x41)]), 0)).toEqual({ kind: "noise", length: 301 });
});

test("a payload that would end its own frame has none", () => {
  expect(frameOf(framing({ type: "delimiter", end: "<LF>" }), hex("41 0a 42"))).toMatch(/cannot be in one frame/);
  expect(frameOf(framing({ type: "control" }), hex("41 03"))).toMatch(/cannot be in one frame/);
  expect(frameOf(fixed({ bytes: 3 }), hex("41"))).toMatch(/cannot be in one frame/);
});
