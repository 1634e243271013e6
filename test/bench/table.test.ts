import { describe, expect, test } from "vitest";
import { rowsOf, withRows } from "./table.ts";

const MEASURED = { machine: "2 × EPYC", date: "2026-11-26", command: "npm run bench plan" };
const row = (what: string, figure: string, command = MEASURED.command) => ({ ...MEASURED, what, budget: "", figure, command });
const PAGE = [
  "# Figures",
  "",
  "Words.",
  "",
  "| what | budget | figure | machine | date | command |",
  "| --- | --- | --- | --- | --- | --- |",
  "| one | 5 ms | 3 ms | m | d | `npm run bench a` |",
  "| two |  | 4 | m | d | `npm run bench plan` |",
  "| three |  | 5 | m | d | `npm run bench plan` |",
  "| four |  | 6 | m | d | `npm run bench b` |",
  "",
  "More words.",
];

describe("a table of figures", () => {
  test("has a row for each line of a bench that names what it measured", () => {
    const printed = "a heading\n  CPU per scan: 12 us, nodes7 60 us: 0.20 times (budget 0.70)\n\nmemory idle: 141 MiB (peak 150 MiB)\n";
    expect(rowsOf(printed, MEASURED)).toEqual([
      { ...MEASURED, what: "CPU per scan", budget: "0.70", figure: "12 us, nodes7 60 us: 0.20 times" },
      { ...MEASURED, what: "memory idle", budget: "", figure: "141 MiB (peak 150 MiB)" },
    ]);
  });

  test("renews the rows of the command that ran, and keeps all else", () => {
    const renewed = withRows(PAGE.join("\n"), [row("five", "7")]).split("\n");
    expect(renewed).toEqual([...PAGE.slice(0, 7), "| five |  | 7 | 2 × EPYC | 2026-11-26 | `npm run bench plan` |", ...PAGE.slice(9)]);
    expect(withRows(renewed.join("\n"), [row("five", "7")])).toBe(renewed.join("\n"));
  });

  test("takes a command that it does not have yet as the last one", () => {
    const renewed = withRows(PAGE.join("\n"), [row("six", "a | b", "npm run bench c")]).split("\n");
    expect(renewed[10]).toBe("| six |  | a \\| b | 2 × EPYC | 2026-11-26 | `npm run bench c` |");
    expect(renewed.toSpliced(10, 1)).toEqual(PAGE);
  });

  test("is asked for by its header", () => expect(() => withRows("# Figures\n", [])).toThrow("no table"));
});
