import fc from "fast-check";
import { expect, test } from "vitest";
import { zip } from "./testing-files.ts";
import { readZip } from "./zip.ts";

const LIMITS = { files: 10, bytes: 1024, seconds: 5 };
const all = () => true;
const faultOf = async (bytes: Uint8Array, options = {}): Promise<string> => {
  const read = await readZip(bytes, all, { limits: LIMITS, ...options });
  return "fault" in read ? read.fault : "";
};

test("files come unpacked, those that are wanted only", async () => {
  const bytes = zip([
    { name: "a.txt", content: "A".repeat(100) },
    { name: "b/c.txt", content: "ä" },
  ]);
  const read = await readZip(bytes, (name) => name === "b/c.txt");
  expect(read).toEqual(new Map([["b/c.txt", Buffer.from("ä")]]));
});

test.each([
  ["declares too much", { size: 1025 }, "a.txt makes the file longer than"],
  ["declares less than it has", { size: 10 }, "too many bytes"],
  ["declares more than it has", { size: 900 }, "not enough bytes"],
  ["has a bit that has changed", { crc: 7 }, "the zip file is damaged: the checksum of a.txt is wrong"],
  ["is encrypted", { flags: 1 }, "the file is encrypted; save it without a password"],
  ["is encrypted strongly", { flags: 0x41 }, "encryption"],
  ["is compressed in another way", { method: 93 }, "unsupported compression method: 93"],
])("an entry that %s is a fault", async (_, declared, words) => {
  expect(await faultOf(zip([{ name: "a.txt", content: "A".repeat(100), declared }]))).toContain(words);
});

test("sizes count together, names once, files to the limit", async () => {
  const two = (name: string) => [
    { name: "a.txt", content: "A".repeat(600) },
    { name, content: "B".repeat(600) },
  ];
  expect(await faultOf(zip(two("b.txt")))).toBe("b.txt makes the file longer than 1 KiB once it is unpacked");
  expect(await faultOf(zip(two("a.txt")))).toBe("the zip file holds a.txt twice");
  const many = Array.from({ length: 11 }, (_, i) => ({ name: `${i}`, content: "" }));
  expect(await faultOf(zip(many))).toBe("the zip file holds 11 files; at most 10 are read");
});

test("a bomb ends at the limit, and a slow file at the time", async () => {
  // 8 MiB of zeros in 8 KiB, declared as 500 bytes.
  const bomb = zip([{ name: "a", content: Buffer.alloc(8 * 2 ** 20), declared: { size: 500 } }]);
  expect(await faultOf(bomb)).toContain("too many bytes");
  let clock = 0;
  const now = () => (clock += 3000);
  expect(await faultOf(zip([{ name: "a", content: "A" }]), { now })).toBe("");
  clock = 0;
  expect(await faultOf(zip([{ name: "a", content: "A" }]), { now: () => (clock += 6000) })).toBe("unpacking took longer than 5 s");
});

test("a file that is cut off is a fault, wherever it is cut", async () => {
  const whole = zip([
    { name: "a.txt", content: "A".repeat(100) },
    { name: "b.txt", content: "B" },
  ]);
  for (let length = 0; length < whole.length; length++) expect(await faultOf(whole.subarray(0, length)), `${length}`).not.toBe("");
});

test("any bytes, and any damage to a file, end in files or in a fault", async () => {
  const whole = zip([
    { name: "a.txt", content: "A".repeat(100) },
    { name: "b.txt", content: "B" },
  ]);
  const damaged = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }).map((changes) => {
    const bytes = Buffer.from(whole);
    for (const [at, byte] of changes) bytes[at] = byte;
    return bytes;
  });
  await fc.assert(
    fc.asyncProperty(fc.oneof(damaged, fc.uint8Array({ maxLength: 200 })), async (bytes) => {
      const read = await readZip(bytes, all, { limits: LIMITS });
      if ("fault" in read) expect(read.fault).not.toBe("");
      else expect([...read.values()].reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(LIMITS.bytes);
    }),
    { numRuns: 300 },
  );
});
