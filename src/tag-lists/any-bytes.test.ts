import fc from "fast-check";
import { expect, test } from "vitest";
import { readList } from "./testing.ts";
import { xlsx } from "./testing-files.ts";

const BEGINNINGS = [
  "",
  "PK\x03\x04",
  "<?xml version='1.0'?><RSLogix5000Content><Controller><Tags><Tag Name='A' DataType='A' ",
  "DATA_BLOCK \"A\"\n{ S7_Optimized_Access := 'FALSE' }\nSTRUCT\n a : ",
  'TYPE "A"\nSTRUCT a : "A"; END_STRUCT END_TYPE DATA_BLOCK DB1 "A" BEGIN ',
];

test("any bytes behind the beginning of any kind of file end in tags, problems, or nothing", async () => {
  const spreadsheet = xlsx({
    "PLC Tags": [
      ["Name", "Data Type", "Logical Address"],
      ["a", "Int", "%MW0"],
    ],
  }).toString("latin1");
  const start = fc.constantFrom(...BEGINNINGS, spreadsheet.slice(0, -60), spreadsheet.slice(0, 200));
  const type = fc.constantFrom("vendor_a", "s7", "s7plus", "modbus_tcp", "nothing");
  await fc.assert(
    fc.asyncProperty(start, fc.uint8Array({ maxLength: 60 }), type, async (before, behind, of) => {
      const bytes = Buffer.concat([Buffer.from(before, "latin1"), Buffer.from(behind)]);
      const list = await readList(bytes, { type: of, blockNumbers: new Map([["", 1]]) });
      if (list?.refused) expect([list.variables.length, list.problems.length > 0]).toEqual([0, true]);
    }),
    { numRuns: 300 },
  );
});
