import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { csvRows, decodeText, delimiterOf } from "./csv.ts";
import { uuidV5 } from "./uuid-v5.ts";
import { MAX_PROBLEMS, parseNumber, parseVariableCsv, parseVariableYaml } from "./variable-file.ts";

const csv = (text: string) => parseVariableCsv(Buffer.from(text));
const yaml = (text: string) => parseVariableYaml(Buffer.from(text));

const PLAIN = { type: null, unit: null, scaling: null, comment: null, status: "ACTIVE" } as const;

test("uuid v5 as in RFC 9562, A.4", () => {
  expect(uuidV5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com")).toBe("2ed6657d-e927-568b-95e1-2665a8aea6a2");
  expect(() => uuidV5("press", "x")).toThrow(/not a UUID/);
});

describe("CSV", () => {
  const full = {
    name: "temp",
    address: "holding:0",
    type: "int16",
    unit: "°C",
    scaling: { factor: 0.1, offset: -40 },
    comment: "oil; tank",
    status: "EXPLORATION",
  };
  test.each([
    [
      "semicolons and decimal comma",
      'name;address;type;unit;factor;offset;comment;status\r\ntemp;holding:0;int16;°C;0,1;-40;"oil; tank";exploration\r\n',
    ],
    ["commas", 'Name,Address,Type,Unit,Factor,Offset,Comment,Status\ntemp,holding:0,int16,°C,"0,1",-40,oil; tank,EXPLORATION'],
    ["tabs", "status\tcomment\toffset\tfactor\tunit\ttype\taddress\tname\nExploration\toil; tank\t-40\t.1\t°C\tint16\tholding:0\ttemp\n"],
    [
      "a byte order mark",
      '\ufeffname;address;type;unit;factor;offset;comment;status\ntemp;holding:0;int16;°C;1e-1;-40,0;"oil; tank";EXPLORATION',
    ],
    [
      "the separator line of a spreadsheet",
      'sep=;\r\nname;address;type;unit;factor;offset;comment;status\r\ntemp;holding:0;int16;°C;0.1;-40;"oil; tank";EXPLORATION;;;',
    ],
  ])("with %s", (_, text) => {
    expect(csv(text)).toEqual({ variables: [full], problems: [] });
  });

  test("in Windows-1252 and UTF-16", () => {
    const cp1252 = Buffer.concat([Buffer.from("name;address;unit\np;holding:0;"), Buffer.from([0x80, 0x2f, 0xb0, 0x0a])]);
    expect(parseVariableCsv(cp1252).variables).toEqual([{ ...PLAIN, name: "p", address: "holding:0", unit: "€/°" }]);
    expect(parseVariableCsv(Buffer.from("\ufeffname\taddress\np\tholding:0\n", "utf16le")).variables).toEqual([
      { ...PLAIN, name: "p", address: "holding:0" },
    ]);
    expect(decodeText(new Uint8Array([0xfe, 0xff, 0, 0x41]))).toBe("A");
  });

  test("is decoded in pieces, which may end in the middle of a character, with a mark at the beginning alone", () => {
    // Characters of three bytes lie across any border of a power of two.
    const text = `x${"€ä𝄞".repeat(80_000)}`;
    expect(decodeText(new TextEncoder().encode(text))).toBe(text);
    expect(decodeText(Buffer.from(`\ufeff${text}`, "utf8"))).toBe(text);
    expect(decodeText(Buffer.from(`\ufeff${text}`, "utf16le"))).toBe(text);
    const broken = Buffer.concat([Buffer.from("ä".repeat(300_000)), Buffer.from([0xe4])]);
    expect(decodeText(broken)).toBe(`${"Ã¤".repeat(300_000)}ä`);
  });

  test("a bad line is named with its field, and the rest is read", () => {
    const { variables, problems } = csv(
      [
        "name;address;type;factor;status",
        "a;holding:0;uint16;;",
        "b;holding:1;uint 16;;",
        "",
        "c;;uint16;;",
        'd;"holding:3;uint16;;',
        "e;holding:4;;1.000,5;",
        "f;holding:5;;;on",
        "g;holding:6;;1;ACTIVE;surplus",
        "a;holding:7;;;",
        'h;holding:8;"bool"x;;',
        "i;holding:9;float32;0,5;INACTIVE",
      ].join("\n"),
    );
    expect(variables.map(({ name }) => name)).toEqual(["a", "i"]);
    expect(problems.map(({ line, message }) => `${line}: ${message}`)).toEqual([
      expect.stringMatching(/^3: type: "uint 16": expected a type such as/),
      "5: address: is empty; each variable needs one",
      expect.stringMatching(/^6: a field opens with " and is never closed/),
      expect.stringMatching(/^7: factor: "1\.000,5" is not a number; write 0\.1 or 0,1/),
      '8: status: "on" is not one of INACTIVE, EXPLORATION, ACTIVE',
      expect.stringMatching(/^9: has 6 fields and the first line 5; .*quotes/),
      expect.stringMatching(/^10: name: "a" is already in line 2/),
      expect.stringMatching(/^11: text follows a closing "/),
    ]);
  });

  test("columns that are unknown, missing or twice are named, and nothing is read", () => {
    expect(csv("name;adress\na;holding:0")).toEqual({
      variables: [],
      problems: [
        {
          line: 1,
          message:
            'the column "adress" is not known, did you mean address?; known columns: name, address, type, unit, factor, offset, comment, status',
        },
        { line: 1, message: "the column address is missing; known columns: name, address, type, unit, factor, offset, comment, status" },
      ],
    });
    expect(csv("name;address;NAME\na;b;c").problems).toEqual([{ line: 1, message: "the column name occurs twice; keep one of them" }]);
    expect(csv("\n\n").problems).toEqual([{ message: expect.stringMatching(/is empty; its first line must name the columns/) }]);
  });

  test("problems and rows are bounded, and what is beyond is counted", () => {
    const bad = csv(`name;address\n${";x\n".repeat(MAX_PROBLEMS + 7)}`);
    expect(bad.problems).toHaveLength(MAX_PROBLEMS + 1);
    expect(bad.problems.at(-1)?.message).toBe("has 7 more problems");
    const many = csv(`name;address\n${Array.from({ length: 100_002 }, (_, i) => `v${i};holding:0`).join("\n")}`);
    expect(many.variables).toHaveLength(100_000);
    expect(many.problems).toEqual([{ message: expect.stringMatching(/more than 100000 variables/) }]);
  });

  test("a quoted field keeps its line breaks, and lines are counted on", () => {
    expect(csv('name;address;comment\na;holding:0;"two\nlines"\n;x;\n')).toEqual({
      variables: [{ ...PLAIN, name: "a", address: "holding:0", comment: "two\nlines" }],
      problems: [{ line: 4, message: expect.stringMatching(/^name: is empty/) }],
    });
  });

  test("what is written as CSV is read as it was", () => {
    const field = fc
      .string({ unit: fc.constantFrom("a", "ö", '"', ";", ",", "\t", "\n", "0", " "), maxLength: 8 })
      .map((text) => text.trim());
    const quoted = (text: string) => (/[";,\t\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    fc.assert(
      fc.property(
        fc.constantFrom(";", ",", "\t"),
        fc.constantFrom("\n", "\r\n"),
        fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { maxLength: 6 }),
        (delimiter, end, table) => {
          const text = table.map((row) => row.map(quoted).join(delimiter)).join(end);
          const rows = [...csvRows(text, delimiter as ";", 100)];
          expect(rows.map(({ fields }) => fields)).toEqual(table.filter((row) => row.some((cell) => cell !== "")));
        },
      ),
    );
  });

  test("a text that comes in pieces is read as the whole one, wherever it is cut", () => {
    const all = (rows: ReturnType<typeof csvRows>) => {
      const found: unknown[] = [];
      for (;;) {
        const row = rows.next();
        found.push(row.value);
        if (row.done) return found;
      }
    };
    const word = fc.string({ unit: fc.constantFrom("a", "ö", '"', '"', ";", "\n", "\r", "\r\n", " ", ";a;b\n"), maxLength: 40 });
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 12 }), (pieces, maxRows) => {
        const [first = "", ...rest] = pieces;
        expect(all(csvRows(first, ";", maxRows, 1, rest[Symbol.iterator]()))).toEqual(all(csvRows(pieces.join(""), ";", maxRows)));
      }),
      { numRuns: 2000 },
    );
    // A quote that is never closed is known by what follows it for long, and so is one that is.
    for (const quoted of [9_000, 10_100])
      for (const cut of [1, 5_000, 9_003, 10_002, 10_050]) {
        const text = `a;"${"x\n".repeat(quoted / 2)}";c\nd;e;f\n`;
        expect(all(csvRows(text.slice(0, cut), ";", 20_000, 1, [text.slice(cut)][Symbol.iterator]()))).toEqual(
          all(csvRows(text, ";", 20_000)),
        );
      }
  });

  test("the delimiter is the one the first line holds most of, outside quotes", () => {
    expect(delimiterOf("a;b;c")).toBe(";");
    expect(delimiterOf('a,"x;y;z",b')).toBe(",");
    expect(delimiterOf("a\tb")).toBe("\t");
  });

  test("numbers with point or comma, and nothing else", () => {
    expect(["1", "-0.5", "0,25", ",5", "3.", "+1e3"].map(parseNumber)).toEqual([1, -0.5, 0.25, 0.5, 3, 1000]);
    expect(["", "1.000,5", "0x10", "NaN", "Infinity", "1e999", "1 000", "- 1"].map(parseNumber)).toEqual(Array(8).fill(undefined));
  });
});

describe("YAML", () => {
  test("is a list with the names of the columns", () => {
    expect(
      yaml("- name: a\n  address: holding:0\n  type: uint16\n  factor: 0.5\n- { name: 7, address: 40001, status: inactive, comment: ~ }\n"),
    ).toEqual({
      variables: [
        { ...PLAIN, name: "a", address: "holding:0", type: "uint16", scaling: { factor: 0.5, offset: 0 } },
        { ...PLAIN, name: "7", address: "40001", status: "INACTIVE" },
      ],
      problems: [],
    });
  });

  test("a bad entry is named with its line, and the rest is read", () => {
    const { variables, problems } = yaml("- name: a\n  adress: x\n- 3\n- name: b\n  address: holding:0\n- name: b\n  address: [1]\n");
    expect(variables.map(({ name }) => name)).toEqual(["b"]);
    expect(problems).toEqual([
      { line: 1, message: expect.stringMatching(/^the key "adress" is not known, did you mean address\?/) },
      { line: 3, message: "a variable must be a mapping with name and address" },
      { line: 6, message: "address: must be text or a number" },
    ]);
  });

  test("what is no list or no YAML is a problem of the file", () => {
    expect(yaml("name: a").problems).toEqual([{ message: "must be a list of variables, each beginning with `- name: …`" }]);
    expect(yaml("").problems).toHaveLength(1);
    expect(yaml("- a: 1\n\t- b").problems).toEqual([{ line: 2, message: expect.stringMatching(/^is not valid YAML/) }]);
    expect(parseVariableYaml(new Uint8Array([0xff])).problems).toEqual([{ message: "is not UTF-8; save the file as UTF-8" }]);
  });
});

test("no bytes make a parser throw", () => {
  const near = fc
    .string({ unit: fc.constantFrom("name", "address", ";", ",", "\t", '"', "\n", "\r", "- ", ": ", "&a", "*a", "é", "\0"), maxLength: 40 })
    .map((text) => Buffer.from(text));
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), near), (bytes) => {
      for (const parse of [parseVariableCsv, parseVariableYaml]) {
        const { variables, problems } = parse(bytes);
        expect(variables.length + problems.length).toBeGreaterThanOrEqual(0);
      }
    }),
    { numRuns: 1000 },
  );
});
