import { styleText } from "node:util";
import { expect, test } from "vitest";
import { svgOf } from "./svg.ts";

const paint = (style: Parameters<typeof styleText>[0], text: string) => styleText(style, text, { validateStream: false });

test("a line's pieces stand in their columns, in their colours, and what would be markup is text", () => {
  const svg = svgOf([`press-1   ${paint("green", "OK    ")}${paint("yellow", "a<b & c>d")}`, "", paint("dim", "log")], 40);
  const texts = [...svg.matchAll(/<text x="([\d.]+)" y="(\d+)" (.*?) textLength="([\d.]+)" xml:space="preserve">(.*)<\/text>/g)];
  expect(texts.map(([, x, y, style, length, text]) => [Number(x), Number(y), style, Number(length), text])).toEqual([
    [16, 48, 'fill="#d7dae0"', 59, "press-1"],
    [100.3, 48, 'fill="#5fd38d"', 16.9, "OK"],
    [150.9, 48, 'fill="#f2c94c"', 75.9, "a&lt;b &amp; c&gt;d"],
    [16, 84, 'fill="#d7dae0" opacity=".6"', 25.3, "log"],
  ]);
  expect(svg).toContain('viewBox="0 0 370 102"');
});
