import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import type { ServiceStatusJson } from "../support/collector-process.ts";
import { lookOf, Screen } from "./screen.ts";
import { clip, draw, type Picture, wrap } from "./view.ts";

const NAMES = ["press-1", "oven-2", "conveyor-3", "robot-4", "mixer-5", "palletizer-6", "packer-7", "filler-8", "capper-9"];

const picture: Picture = {
  elapsedS: 12.3,
  pageUrl: "http://127.0.0.1:8090",
  apiUrl: "http://127.0.0.1:8420",
  brokerUrl: "mqtt://127.0.0.1:1883",
  opcuaUrl: "opc.tcp://127.0.0.1:4840/",
  status: {
    sources: NAMES.map((name, n) => ({
      name,
      type: "modbus_tcp",
      endpoint: "127.0.0.1:44818",
      status: { state: n === 1 ? { type: "ERROR", reason: { type: "CONNECTION_REFUSED" } } : { type: "OK" } },
      counters: { readouts: 12345, values_read: 99999 },
      faults: n === 2 ? [{ variable: "not there", fault: "not_found" }] : [],
    })),
    sinks: [
      { name: "plant broker", type: "mqtt", state: "OK", ledger: { delivered: 123456, pending: 12, dropped: {} } },
      { name: "plant server", type: "opcua", state: "OK", ledger: null },
    ],
  } as unknown as ServiceStatusJson,
  values: Array.from({ length: 30 }, (_, n) => ({
    source: "press-1",
    variable: `value ${n}`,
    text: "x".repeat(40),
    ageMs: 100,
    bad: n === 3,
  })),
  messages: 3,
  news: ["4 s: oven-2 was switched off", "8 s: oven-2 was switched on again"],
  log: Array.from({ length: 40 }, (_, n) => `line ${n} ${"long ".repeat(60)}`),
};

test.each([
  [80, 24],
  [80, 25],
  [132, 43],
  [60, 20],
  [200, 100],
])("a screen of %i columns and %i rows is not overrun: tables first, log last", (columns, rows) => {
  for (const colour of [true, false]) {
    const lines = draw(picture, { columns, rows }, colour);
    const plain = lines.map(stripVTControlCharacters);
    expect(lines.length).toBeLessThanOrEqual(rows);
    for (const line of plain) expect([...line].length).toBeLessThanOrEqual(columns);
    for (const name of NAMES) expect(plain.findIndex((line) => line.startsWith(name.slice(0, 10)))).toBeGreaterThan(0);
    const at = (text: string) => plain.findIndex((line) => line.startsWith(text));
    expect([at("DATA SOURCE"), at("DATA SINK"), at("VALUE FROM")].every((n, i, all) => n > (all[i - 1] ?? 0))).toBe(true);
    expect(plain.at(-1)).toMatch(/^line 39 /);
    expect(plain.findIndex((line) => line.startsWith("line "))).toBeGreaterThan(at("VALUE FROM") + 2);
    // Colours are nothing but colours.
    expect(plain).toEqual(draw(picture, { columns, rows }, false));
  }
});

test("on 80 columns the state of a source and its fault are to be read", () => {
  const text = draw(picture, { columns: 80, rows: 24 }, false).join("\n");
  expect(text).toMatch(/oven-2 +modbus_tcp 127\.0\.0\.1:44818 CONNECTION_REFUSED/);
  expect(text).toMatch(/conveyor-3 .* not …$/m);
});

test("a screen cuts lines at words, and says that there is more", () => {
  expect(clip("press-1 was switched off", 24)).toBe("press-1 was switched off");
  expect(clip("press-1 was switched off", 23)).toBe("press-1 was switched …");
  expect(clip("press-1 was switched off", 20)).toBe("press-1 was …");
  expect(clip("a http://127.0.0.1:8420/api", 12)).toBe("a http://12…");
  expect(clip("\x1b[31mpress-1 was off\x1b[39m", 12)).toBe("\x1b[31mpress-1 …\x1b[39m");
  const log = draw(picture, { columns: 80, rows: 24 }, false).filter((line) => line.startsWith("line "));
  for (const line of log) expect(line).toMatch(/^line \d+ (long )+…$/);
});

test("without rows everything is there, and the log is wrapped", () => {
  const lines = draw(picture, { columns: 100 }, false);
  expect(lines.filter((line) => line.startsWith("press-1 / value"))).toHaveLength(30);
  expect(lines.join(" ")).toContain(picture.log.at(-1)?.trim());
  expect(wrap("a long line http://127.0.0.1:8420/api of the log", 12)).toEqual([
    "a long line",
    "http://127.0",
    ".0.1:8420/ap",
    "i of the log",
  ]);
});

test("NO_COLOR, a dumb terminal and none", () => {
  expect(lookOf(true, { TERM: "xterm" })).toEqual({ isScreen: true, hasColour: true });
  expect(lookOf(true, { TERM: "xterm", NO_COLOR: "" })).toEqual({ isScreen: true, hasColour: true });
  expect(lookOf(true, { TERM: "xterm", NO_COLOR: "1" })).toEqual({ isScreen: true, hasColour: false });
  expect(lookOf(true, { TERM: "dumb" })).toEqual({ isScreen: false, hasColour: false });
  expect(lookOf(false, {})).toEqual({ isScreen: false, hasColour: false });
});

test("the other screen is entered once and left, without a line feed that would scroll", () => {
  const out: string[] = [];
  const screen = new Screen({ write: (text: string) => out.push(text) > 0 } as never);
  screen.leave();
  screen.show(["a", "b"]);
  screen.show(["c"]);
  screen.leave();
  screen.leave();
  expect(out.join("|")).toBe("\x1b[?1049h\x1b[?25l|\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J|\x1b[Hc\x1b[K\x1b[J|\x1b[?25h\x1b[?1049l");
});
