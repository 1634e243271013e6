import fc from "fast-check";
import { expect, test } from "vitest";
import { xlsx, zip } from "./testing-files.ts";
import { readXlsx } from "./xlsx.ts";
import { ZIP_LIMITS } from "./zip.ts";

const read = async (bytes: Uint8Array, maxRows = 100) => readXlsx(bytes, { maxRows });

test("sheets, rows and cells, with the numbers of rows that a spreadsheet shows", async () => {
  const bytes = xlsx({ "PLC Tags": [["Name", "", "Größe"], [], ["<&>", "2"]], Empty: [] });
  expect(await read(bytes)).toEqual([
    {
      name: "PLC Tags",
      rows: [
        { row: 1, cells: ["Name", "", "Größe"] },
        { row: 3, cells: ["<&>", "2"] },
      ],
      isCut: false,
    },
    { name: "Empty", rows: [], isCut: false },
  ]);
  expect(await read(bytes, 1)).toMatchObject([{ rows: [{ row: 1 }], isCut: true }, { isCut: false }]);
});

/** A workbook with one sheet, as its XML is given. */
const sheet = (content: string, more: readonly { readonly name: string; readonly content: string }[] = []): Buffer =>
  zip([
    {
      name: "xl/workbook.xml",
      content: '<x:workbook xmlns:x="m" xmlns:r="r"><x:sheets><x:sheet name="S" sheetId="1" r:id="R1"/></x:sheets></x:workbook>',
    },
    { name: "xl/_rels/workbook.xml.rels", content: '<Relationships><Relationship Id="R1" Target="/xl/worksheets/s.xml"/></Relationships>' },
    { name: "xl/worksheets/s.xml", content },
    ...more,
  ]);

test("cells with a text of their own, of runs, of a formula, numbers, booleans, errors and without a place", async () => {
  const shared = "<sst><si><r><t>Mo</t></r><r><t>tor</t></r><rPh><t>never</t></rPh></si></sst>";
  const cells = [
    '<c t="inlineStr"><is><t>own</t></is></c>',
    '<c t="str"><f>A1&amp;B1</f><v>made</v></c>',
    "<c><v>0.1</v></c>",
    '<c t="b"><v>1</v></c>',
    '<c t="e"><v>#REF!</v></c>',
    '<c t="s"><v>0</v></c>',
    '<c t="s"><v>99</v></c>',
    '<c r="J1" t="s"><v>x</v></c>',
    '<c r="K1"><v>9</v></c>',
    `<c r="XFD1"><v>far</v></c>`,
  ].join("");
  const bytes = sheet(`<x:worksheet><x:sheetData><x:row>${cells}</x:row></x:sheetData></x:worksheet>`, [
    { name: "xl/sharedStrings.xml", content: shared },
  ]);
  expect(await read(bytes)).toMatchObject([
    { rows: [{ row: 1, cells: ["own", "made", "0.1", "True", "", "Motor", "", "", "", "", "9"] }] },
  ]);
});

test("a file that is not a workbook, is damaged or too large is a fault with the part's name", async () => {
  expect(await read(zip([{ name: "word/document.xml", content: "<a/>" }]))).toEqual({
    fault: "the zip file holds no workbook of a spreadsheet (xl/workbook.xml)",
  });
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`S${i}`, [["a"]]]));
  expect(await read(xlsx(many))).toEqual({ fault: "the workbook has more than 50 sheets" });
  expect(await read(xlsx(Object.fromEntries(Object.entries(many).slice(1))))).toHaveLength(50);
  expect(await read(sheet("<worksheet><row>"))).toMatchObject({ fault: expect.stringMatching(/^xl\/worksheets\/s\.xml: .*Unclosed/) });
  expect(await read(sheet('<!DOCTYPE a [<!ENTITY b "c">]><worksheet>&b;</worksheet>'))).toMatchObject({
    fault: expect.stringContaining("DOCTYPE"),
  });
  const limits = { ...ZIP_LIMITS, bytes: 2 ** 20 };
  expect(await readXlsx(sheet(`<worksheet><row>${"<c><v>1</v></c>".repeat(100_000)}`), { maxRows: 100, limits })).toMatchObject({
    fault: "xl/worksheets/s.xml makes the file longer than 1024 KiB once it is unpacked",
  });
});

test("any change of a spreadsheet ends in sheets or in a fault", async () => {
  const whole = xlsx({
    A: [
      ["Name", "Path"],
      ["a", "b"],
    ],
  });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 4 }), async (changes) => {
      const bytes = Buffer.from(whole);
      for (const [at, byte] of changes) bytes[at] = byte;
      const sheets = await read(bytes);
      if ("fault" in sheets) expect(sheets.fault).not.toBe("");
    }),
    { numRuns: 200 },
  );
});

test("signs that XML cannot hold come back, and a sheet whose part is missing is a fault", async () => {
  expect(await read(xlsx({ S: [["a_x000D_b", "_x005F_x0041_"]] }))).toMatchObject([{ rows: [{ cells: ["a\rb", "_x0041_"] }] }]);
  const content = '<workbook xmlns:r="r"><sheets><sheet name="S" r:id="R1"/><sheet name="Chart" r:id="R2"/></sheets></workbook>';
  const relations =
    '<Relationships><Relationship Id="R1" Target="worksheets/s.xml"/><Relationship Id="R2" Target="chartsheets/c.xml"/></Relationships>';
  const parts = [
    { name: "xl/workbook.xml", content },
    { name: "xl/_rels/workbook.xml.rels", content: relations },
  ];
  expect(await read(zip(parts))).toEqual({ fault: 'the sheet "S" is missing from the workbook' });
  expect(await read(zip([...parts, { name: "xl/worksheets/s.xml", content: "<worksheet/>" }]))).toMatchObject([{ name: "S" }]);
});
