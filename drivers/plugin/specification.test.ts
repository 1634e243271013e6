import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { DEVICE_FAULTS } from "../../src/model/fault.ts";
import { parseDataType } from "../../src/model/value.ts";
import { CHECKS } from "./check.ts";
import { answerSchema, helloSchema, MAX_LINE_BYTES, pageSchema, readSchema, VERBS, validatedSchema } from "./contract.ts";
import { LineSplitter } from "./lines.ts";
import { readingOf } from "./values.ts";

const TEXT = readFileSync(path.resolve(import.meta.dirname, "../../docs/plugin-protocol.md"), "utf8");
const EXAMPLES = [...TEXT.matchAll(/```json\n([\s\S]*?)\n```/g)].map(([, line = ""]) => line);
const contents = EXAMPLES.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);

test("each example is one line, of the form that the collector takes or sends", () => {
  expect(EXAMPLES.every((line) => !line.includes("\n"))).toBe(true);
  const requests = contents.filter((one) => "verb" in one);
  expect(requests.map(({ verb }) => verb).sort()).toEqual([...VERBS].sort());
  for (const one of contents) {
    if ("hello" in one) helloSchema.parse(one);
    else if (!("verb" in one)) answerSchema.parse(one);
  }
});

test("the results of the verbs are of their form", () => {
  const resultOf = (wanted: string) => {
    const { id } = contents.find(({ verb }) => verb === wanted) ?? {};
    return contents.find((one) => one["id"] === id && "result" in one)?.["result"];
  };
  validatedSchema.parse(resultOf("validate"));
  pageSchema.parse(resultOf("discover"));
  const { readings } = readSchema.parse(resultOf("read"));
  const points = contents.find(({ verb }) => verb === "read")?.["points"] as { type: string | null }[];
  const types = points.map(({ type }) => (type === null ? undefined : parseDataType(type)) ?? ({ scalar: "auto" } as const));
  expect(readings.map((raw, at) => readingOf(raw, types[at] ?? { scalar: "auto" }))).toEqual([
    { quality: "good", value: 21.5, sourceTime: Date.UTC(2026, 10, 20, 9, 0, 0, 250) },
    { quality: "uncertain", value: 18446744073709551615n, type: { scalar: "uint64" } },
    { quality: "bad", fault: "not_found", detail: "the device has no speed" },
  ]);
});

test("it lists the checks, the faults and the longest line", () => {
  const rows = [...TEXT.matchAll(/^\| `([\w-]+)` \| (.*?) \| (yes)? ?\|$/gm)].map(([, name, what, device]) => [
    name,
    what,
    device === "yes",
  ]);
  expect(rows.slice(-CHECKS.length)).toEqual(CHECKS.map((check) => [check.name, check.what, "needsDevice" in check]));
  for (const fault of DEVICE_FAULTS) expect(TEXT).toContain(`\`${fault}\``);
  expect(TEXT).toContain(`at most ${MAX_LINE_BYTES} bytes`);
});

test.each([
  [{ value: 7 }, "int64", { quality: "good", value: 7n }],
  [{ value: "-9223372036854775808" }, "int64", { quality: "good", value: -(2n ** 63n) }],
  [{ value: "18446744073709551616" }, "uint64", { quality: "bad", fault: "out_of_range" }],
  [{ value: 1.5 }, "uint64", { quality: "bad", fault: "type_mismatch" }],
  [{ value: [1, 2] }, "uint16[2]", { quality: "good", value: [1, 2] }],
  [{ value: [1, 2, 3] }, "uint16[2]", { quality: "bad", fault: "type_mismatch" }],
  [{ value: "1" }, "uint16", { quality: "bad", fault: "type_mismatch" }],
  [{ value: 1, type: "float32" }, "uint16", { quality: "good", value: 1 }],
  [{ value: 1 }, "", { quality: "bad", fault: "type_mismatch" }],
  [{ value: 1, type: "furlong" }, "", { quality: "bad", fault: "type_mismatch" }],
  [{ value: [1, 2], type: "uint8[2]" }, "", { quality: "good", type: { scalar: "uint8", count: 2 } }],
])("%j as %s", (raw, type, expected) => {
  const [given] = readSchema.parse({ readings: [raw] }).readings;
  expect(given && readingOf(given, parseDataType(type) ?? { scalar: "auto" })).toMatchObject(expected);
});

test("lines are whole whatever the pieces, and hold one that is too long for no longer than that", () => {
  const bytes = Buffer.from('{"a":"°"}\n\n{"b":1}\n{"c"');
  for (const size of [1, 2, 5, bytes.length]) {
    const splitter = new LineSplitter();
    const lines = [];
    for (let at = 0; at < bytes.length; at += size) lines.push(...splitter.push(bytes.subarray(at, at + size)));
    expect(lines).toEqual(['{"a":"°"}', "", '{"b":1}']);
  }
  const splitter = new LineSplitter();
  expect(splitter.push(Buffer.alloc(MAX_LINE_BYTES, "x"))).toEqual([]);
  expect(() => splitter.push(Buffer.from("x\n"))).toThrow(`more than ${MAX_LINE_BYTES} bytes`);
});
