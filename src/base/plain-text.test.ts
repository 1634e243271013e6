import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../../test/support/any-text.ts";
import { cellText, escapeControls, escapeInLines, plain, safeCell, withoutCredentials } from "./plain-text.ts";

const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;
/** Texts with what matters here more often than by chance. */
const text = fc
  .array(
    fc.oneof(
      anyText({ maxLength: 3 }),
      fc.constantFrom(
        "\\",
        "\\\\",
        "\\u200b",
        "\\u0041",
        "\\U200B",
        "u200b",
        "\u200b",
        "\u202e",
        "\u{e0041}",
        "\ud800",
        "'",
        "=",
        "＝",
        "-",
        " ",
        "\n",
      ),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""));

describe("a text from outside in a line", () => {
  test("holds nothing that steers a terminal, hides or reorders", () => {
    fc.assert(fc.property(text, (given) => void expect(escapeControls(given)).not.toMatch(UNSAFE)));
    fc.assert(fc.property(text, (given) => void expect(escapeInLines(given).replaceAll("\n", "")).not.toMatch(UNSAFE)));
    expect(escapeControls("a\r\nb\t\u001b[31m\u202e\u200b\ufeff\u{e0041}")).toBe(
      "a\\r\\nb\\t\\u001b[31m\\u202e\\u200b\\ufeff\\udb40\\udc41",
    );
    expect(escapeInLines("a\nb\r\u0085")).toBe("a\nb\\r\\u0085");
    expect(escapeControls("Öl °C 温度 ½ 🏭")).toBe("Öl °C 温度 ½ 🏭");
    expect(plain`${"a\nb"}: ${2}\n`).toBe("a\\nb: 2\n");
  });

  test("stays the same value inside JSON", () => {
    fc.assert(
      fc.property(
        fc.dictionary(text, text),
        (value) => void expect(JSON.parse(escapeInLines(JSON.stringify(value, null, 1)))).toEqual(value),
      ),
    );
  });
});

describe("a CSV cell", () => {
  test("comes back as it was, and neither steers a terminal nor is run by a spreadsheet", () => {
    fc.assert(
      fc.property(text, (given) => {
        const cell = safeCell(given);
        expect(cellText(cell)).toBe(given);
        expect(cell.replaceAll("\n", "")).not.toMatch(UNSAFE);
        expect(cell).not.toMatch(/^\s|\s$|^[=+\-@＝＋－＠]/u);
      }),
      { numRuns: 1000 },
    );
  });

  test("that a person wrote is taken as it is", () => {
    for (const plainText of ["Press.Temperature", "C:\\users\\new", "a\\u0041", "'quoted'", "it's", "''", "-"])
      expect(cellText(plainText)).toBe(plainText);
    expect(safeCell("=1+2")).toBe("'=1+2");
    expect(safeCell("Öl 5 °C")).toBe("Öl 5 °C");
  });
});

test("a URL is told without user and password, also inside a sentence", () => {
  for (const [given, told] of [
    ["http://user:canary@host/path", "http://[redacted]@host/path"],
    [
      "cannot reach opc.tcp://u:canary@plc:4840, or https://t:canary@b.",
      "cannot reach opc.tcp://[redacted]@plc:4840, or https://[redacted]@b.",
    ],
    ['("mqtts://canary@broker")', '("mqtts://[redacted]@broker")'],
    ["http://u:can@ary@host", "http://[redacted]@host"],
    ["http://u:can/ary@host", "http://[redacted]@host"],
    ["http://u:can?a#ry@host", "http://[redacted]@host"],
    ["http://:canary@host", "http://[redacted]@host"],
    ["http://u:1234/canary@host", "http://[redacted]@host"],
    ["http://u:8080/canary@host/path and a@b", "http://[redacted]@host/path and a@b"],
    ["http://host/a%40b?c=d", "http://host/a%40b?c=d"],
    ["a@b", "a@b"],
  ] as const)
    expect(withoutCredentials(given)).toBe(told);
});
