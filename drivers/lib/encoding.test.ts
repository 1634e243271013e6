import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { AUTO, decodeAll, decodeText, decodeWide, encodingSetting, WESTERN } from "./encoding.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

describe("decodeText", () => {
  it.each([
    ["ABC", "ABC"],
    ["ABC\0DEF", "ABC"],
    ["ABC   ", "ABC"],
    ["  ABC \0\0", "  ABC"],
    ["Mühle", "Mühle"],
    ["", ""],
    ["\0", ""],
  ])("reads %j as %j", (raw, text) => expect(decodeText(Buffer.from(raw), AUTO)).toBe(text));

  it.each([
    ["Mühle ä", 1, "Mühle"],
    ["Temperatur °C", 1, "Temperatur °"],
    ["Messung ä", 1, "Messung"],
    ["Größe €", 1, "Größe"],
    ["Größe €", 2, "Größe"],
    ["ok 🙂 🙂", 3, "ok 🙂"],
    ["emoji 😀", 1, "emoji "],
    ["emoji 😀", 2, "emoji "],
    ["Wert 日", 1, "Wert "],
  ])("leaves out what the field has cut of %j (%i bytes)", (whole, cut, text) => {
    const bytes = Buffer.from(whole);
    expect(decodeText(bytes.subarray(0, bytes.length - cut), AUTO)).toBe(text.trimEnd());
  });

  it.each([
    ["München ü", "München"],
    ["emoji 😀", "emoji"],
    ["日本語", "日本"],
  ])("leaves out what was cut of %j before the NULs that fill the field", (whole, text) => {
    expect(decodeText(Buffer.concat([Buffer.from(whole).subarray(0, -1), Buffer.alloc(2)]), AUTO)).toBe(text);
  });

  it.each(["Prä", "10 °", "Voilà", "Ã", "café©"])("takes %j in windows-1252 before a NUL for what it is", (text) => {
    expect(decodeText(Buffer.concat([Buffer.from(text, "latin1"), Buffer.alloc(1)]), AUTO)).toBe(text);
  });

  it("takes a last character of windows-1252 for one", () => expect(decodeText(Buffer.from("Prä", "latin1"), AUTO)).toBe("Prä"));

  it("takes bytes that are not UTF-8 as windows-1252", () => expect(decodeText(Buffer.from("Mühle", "latin1"), AUTO)).toBe("Mühle"));
});

describe("encodings", () => {
  // WHATWG Encoding Standard: index-windows-1252, index-windows-1251, index-gb18030, index-jis0208, index-euc-kr, index-big5.
  it.each([
    ["windows-1252", "80 93 94 99", "€“”™"],
    ["latin1", "4d fc 6c 6c 20 80", "Müll €"],
    ["iso-8859-1", "96 20 9f", "– Ÿ"],
    ["windows-1251", "cd e0 f1 ee f1 20 b9 31", "Насос №1"],
    ["windows-1250", "8a e8", "Šč"],
    ["iso-8859-15", "a4", "€"],
    ["koi8-r", "ee c1 d3 cf d3", "Насос"],
    ["gbk", "b1 c3 20 31", "泵 1"],
    ["gb18030", "81 30 81 30", "\ufffd"],
    ["shift_jis", "83 7c 83 93 83 76", "ポンプ"],
    ["euc-kr", "c6 df c7 c1", "펌프"],
    ["big5", "c0 a3 a4 4f", "壓力"],
    ["utf-8", "e2 82 ac", "€"],
    ["utf-16le", "ac 20 41 00", "€A"],
    ["utf-16be", "20 ac 00 41", "€A"],
  ])("reads %s", (encoding, bytes, text) => {
    expect(decodeAll(hex(bytes), encoding)).toBe(text);
    // A decoder is used again, and has kept nothing of the text before.
    expect(decodeAll(hex(bytes), encoding)).toBe(text);
  });

  it("has every character of windows-1252 from 80 to 9F, and none of control", () => {
    const all = decodeAll(
      Uint8Array.from({ length: 32 }, (_, i) => 0x80 + i),
      WESTERN,
    );
    expect(all).toBe("€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ");
  });

  it.each(["gbk", "shift_jis", "euc-kr", "big5", "gb18030", "utf-16le", "utf-8"])("leaves out what the end cuts in %s", (encoding) => {
    const whole = { gbk: "b1 c3", shift_jis: "83 7c", "euc-kr": "c6 df", big5: "c0 a3", gb18030: "b1 c3" }[encoding];
    const wide = { "utf-16le": "41 00 ac", "utf-8": "41 e2 82" }[encoding];
    const bytes = whole === undefined ? hex(wide ?? "") : hex(`41 ${whole}`).subarray(0, -1);
    expect(decodeAll(bytes, encoding)).toBe("A");
    expect(decodeAll(hex("42".padEnd(encoding === "utf-16le" ? 4 : 2, "0")), encoding)).toBe("B");
  });

  it("takes the NUL of two bytes for the end of a text in UTF-16", () => {
    expect(decodeText(hex("0041 0100 0000 0042"), "utf-16be")).toBe("AĀ");
    expect(decodeText(hex("4100 0001 0000 4200"), "utf-16le")).toBe("AĀ");
  });

  it("gives no lone surrogate and no control character from 80 to 9F, whatever the bytes", () => {
    const encodings = [
      AUTO,
      WESTERN,
      "windows-1251",
      "iso-8859-2",
      "gbk",
      "gb18030",
      "shift_jis",
      "iso-2022-jp",
      "big5",
      "utf-16le",
      "utf-8",
    ];
    fc.assert(
      fc.property(fc.constantFrom(...encodings), fc.uint8Array({ maxLength: 40 }), (encoding, bytes) => {
        for (const text of [decodeAll(bytes, encoding), decodeText(bytes, encoding)]) {
          expect(text.isWellFormed()).toBe(true);
          expect(text).not.toMatch(/[\u0080-\u009f]/);
        }
      }),
    );
  });

  it("reads what another encoder wrote", () => {
    const character = fc.constantFrom(
      ...Array.from({ length: 0x5f }, (_, i) => String.fromCharCode(0x20 + i)),
      ..."äöüÄÖÜßéèàçñ°µ±²³½".split(""),
    );
    fc.assert(
      fc.property(fc.array(character, { maxLength: 30 }), (characters) => {
        const text = characters.join("").trimEnd();
        expect(decodeText(Buffer.from(text, "latin1"), WESTERN)).toBe(text);
        expect(decodeText(Buffer.from(text, "utf16le"), "utf-16le")).toBe(text);
        expect(decodeText(Buffer.from(text, "utf8"), "utf-8")).toBe(text);
      }),
    );
  });
});

it("puts U+FFFD in the place of a lone surrogate", () => {
  expect(decodeWide(hex("d83d de42 d83d 0041 de42"))).toBe("🙂\ufffdA\ufffd");
});

describe("the setting", () => {
  const schema = z.strictObject({ encoding: encodingSetting(AUTO) });

  it.each([
    ["GBK", "gbk"],
    [" Windows-1252 ", "windows-1252"],
    ["auto", "auto"],
    [undefined, "auto"],
  ])("takes %j", (given, encoding) => expect(schema.parse({ encoding: given })).toEqual({ encoding }));

  it.each(["ebcdic", "", "utf-7", "cp850", "a".repeat(500)])("refuses %j with examples", (given) => {
    const { error } = schema.safeParse({ encoding: given });
    expect(error?.issues).toMatchObject([{ path: ["encoding"], message: expect.stringContaining("windows-1252, windows-1251, gbk") }]);
  });
});
