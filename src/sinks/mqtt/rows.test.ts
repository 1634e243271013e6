import { readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { anyText } from "../../../test/support/any-text.ts";
import type { Reading } from "../../model/value.ts";
import { type MessageOptions, writeBatch, writeEach } from "./message.ts";
import { PayloadPool } from "./payload-pool.ts";
import { settingsSchema, topicNeed } from "./settings.ts";
import { batchOf, good, layoutOf, readoutOf, TIME, variableOf } from "./testing.ts";

const OPTIONS: MessageOptions = {
  int64: "number",
  rows: { timestamps: "iso" },
  maxBytes: 1_000_000,
  partBytes: 1_000_000,
  splitBytes: 1_000_000,
};
const { source, variables } = layoutOf(
  variableOf("temp", "float32", { unit: "°C" }),
  variableOf("count", "uint64"),
  variableOf("secret", "uint16", { exploration: true }),
  variableOf("speed", "uint16", { unit: "1/min" }),
);
const LAYOUT = { source: { ...source, machine: "3ac41e00-0000-4000-8000-000000000001" }, variables };
const BAD: Reading = { quality: "bad", fault: "not_found", detail: "exception 2 at holding:12" };
const READINGS = [good(21.5), good(18_446_744_073_709_551_615n), good(7), BAD];

const messagesOf = (batch: Parameters<typeof writeBatch>[0], options = OPTIONS) => writeBatch(batch, options, new PayloadPool()).messages;
const rowsIn = (payload: Buffer | undefined): readonly Record<string, unknown>[] => JSON.parse(String(payload));

test("rows are as the README shows them", () => {
  const readme = readFileSync(path.join(import.meta.dirname, "README.md"), "utf8");
  const [, shown = ""] = /## Message: rows[\s\S]*?```json\n([\s\S]*?)\n```/.exec(readme) ?? [];
  const [message, ...others] = messagesOf(batchOf(LAYOUT, readoutOf(READINGS)));
  expect([others, message?.values]).toEqual([[], 3]);
  expect(rowsIn(message?.payload)).toEqual(JSON.parse(shown));
  // The order of the fields, too.
  expect(String(message?.payload)).toBe(JSON.stringify(JSON.parse(shown)));
});

test("a time may be a number, and a value that is in doubt says why", () => {
  const doubted: Reading = { quality: "uncertain", value: 1.5, doubt: { fault: "not_a_number", detail: "element 3 is NaN" } };
  const options = { ...OPTIONS, rows: { timestamps: "epoch_ms" } } as const;
  const [message] = messagesOf(batchOf(LAYOUT, readoutOf([doubted])), options);
  expect(rowsIn(message?.payload)).toEqual([
    {
      ...{ source: "press-1", machine: LAYOUT.source.machine, variable: "temp", ts: TIME, value: 1.5, quality: "uncertain", unit: "°C" },
      ...{ fault: "not_a_number", detail: "element 3 is NaN" },
    },
  ]);
});

test("with a topic of each variable a message is a list of one row, and what is not published has none", () => {
  const messages = [...writeEach(batchOf(LAYOUT, readoutOf(READINGS)), OPTIONS)];
  expect(messages.map(({ place, payload }) => [place, rowsIn(payload).map(({ variable }) => variable)])).toEqual([
    [0, ["temp"]],
    [1, ["count"]],
    [3, ["speed"]],
  ]);
});

test("payload: rows fits any topic", () => {
  expect(topicNeed(settingsSchema.parse({ payload: "rows" }), "plant/{source}")).toBeUndefined();
});

test("however small the messages, each value comes once, in order, in a list that fits; what alone is too large is counted", () => {
  const texts = fc.array(anyText(), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 100, max: 600 }), (names, readouts, maxBytes) => {
      const layout = layoutOf(...names.map((name) => variableOf(name, "string")));
      const readings = Array.from({ length: readouts }, (_, n) => readoutOf(names.map((name) => good(`${name} ${n}`))));
      const options = { ...OPTIONS, maxBytes, partBytes: maxBytes, splitBytes: maxBytes };
      const { messages, tooLarge } = writeBatch(batchOf(layout, ...readings), options, new PayloadPool());
      const rows = messages.flatMap(({ payload }) => rowsIn(payload));
      expect(rows.length + tooLarge).toBe(names.length * readouts);
      for (const { payload, values } of messages) {
        expect(payload.length).toBeLessThanOrEqual(maxBytes);
        expect(rowsIn(payload)).toHaveLength(values);
      }
      const all = readings.flatMap((_, n) => names.map((name) => `${name} ${n}`));
      const found = rows.map(({ value }) => String(value));
      let at = -1;
      for (const value of found) {
        const next = all.indexOf(value, at + 1);
        expect(next).toBeGreaterThan(at);
        at = next;
      }
    }),
  );
});
