import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { runCommand, runCommandWith } from "../testing.ts";

const UUID = "8d5a7c5e-0000-4000-8000-000000000001";
const envelope = (second: number, value: number, id = `3f2a9c01-${118 + second}-${118 + second}`): string =>
  JSON.stringify({
    v: 1,
    id,
    source: "press-1",
    source_id: UUID,
    readouts: [{ ts: `2026-11-20T09:00:0${second}.123Z`, span_ms: 40, clock: "synchronised", values: { temp: value } }],
  });
/** The hash is the sum of one value: printf '%s' '["temp","good",21.5]' | sha256sum. */
const RECORD = JSON.stringify({
  v: 1,
  source: "press-1",
  source_id: UUID,
  minute: "2026-11-20T09:00:00.000Z",
  count: 4,
  first: "3f2a9c01-118-118",
  last: "3f2a9c01-121-121",
  hash: null,
  readouts: [0, 1, 2, 3].map((second) => [second * 1000 + 123, "c1c885e0", 1, String(118 + second)]),
});
const GOOD = [0, 1, 2, 3].map((second) => envelope(second, 21.5));

function fileOf(...lines: readonly string[]): string {
  const folder = mkdtempSync(path.join(tmpdir(), "verify-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "received.jsonl");
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}
const verify = (...words: string[]) => runCommand("verify", "broker", ...words);

describe("collector verify SINK FILE", () => {
  const wrapped = (text: string, isObject: boolean): string =>
    JSON.stringify({ tst: "x", topic: "plant/press-1", qos: 1, retain: 0, payload: isObject ? JSON.parse(text) : text });
  const rows = [0, 1, 2, 3].map((second) =>
    JSON.stringify({
      variable: "temp",
      ts: `2026-11-20T10:00:0${second}.123+01:00`,
      source: "press-1",
      value: 21.5,
      quality: "good",
      machine: null,
    }),
  );
  test.each<[string, readonly string[]]>([
    ["plain payloads", [...GOOD, RECORD]],
    ["mosquitto_sub -F '%j'", [...GOOD, RECORD].map((text) => wrapped(text, false))],
    ["mosquitto_sub -F '%J'", [...GOOD, RECORD].map((text) => wrapped(text, true))],
    ["rows of a table, in any order, and the record before them", [RECORD, ...rows.toReversed()]],
    ["lists of rows, and other topics", [`[${rows.join(",")}]`, '{"state":"online"}', RECORD]],
  ])("%s: all well", async (_, lines) => {
    const { code, out, err } = await verify(fileOf(...lines));
    expect([code, err]).toEqual([0, ""]);
    expect(out).toBe(
      "broker: 4 readouts of 1 data source, 2026-11-20T09:00:00.123Z to 2026-11-20T09:00:03.123Z\nEach is in the copy as the broker acknowledged it.\n",
    );
  });

  test("each fault is named by source, time and identifier; the exit code is 1", async () => {
    const [first = "", second = "", , fourth = ""] = GOOD;
    const file = fileOf(
      first,
      first,
      second,
      envelope(1, 21.5, "3f2a9c01-200-200"),
      envelope(3, 21.6),
      "{cut",
      fourth.slice(0, 20),
      RECORD,
    );
    const { code, out, err } = await verify(file);
    expect(code).toBe(1);
    expect(out.split("\n").slice(1)).toEqual([
      "WHAT       SOURCE   TIME                      ID                DETAIL",
      "double     press-1  2026-11-20T09:00:01.123Z  3f2a9c01-119-119",
      "missing    press-1  2026-11-20T09:00:02.123Z  3f2a9c01-120-120",
      "different  press-1  2026-11-20T09:00:03.123Z  3f2a9c01-121-121",
      "1 double, 1 missing, 1 different",
      "1 repeated: the same again, as after a lost connection; no fault",
      "",
    ]);
    expect(err).toBe("collector: 2 of 8 messages cannot be read as JSON and were left out\n");
    const json = await verify(file, "--json");
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({
      ok: false,
      sink: "broker",
      readouts: 4,
      repeated: 1,
      unreadable: 2,
      findings: [{ kind: "double" }, { kind: "missing", source: "press-1", id: "3f2a9c01-120-120" }, { kind: "different" }],
    });
  });

  test("through a pipe, of the time that --since and --until name", async () => {
    const stdin = [...GOOD.slice(0, 2), RECORD].join("\n");
    const words = ["verify", "broker", "-", "--since", "2026-11-20T09:00:00Z", "--until", "2026-11-20T09:00:02.5Z", "--json"];
    const { code, out } = await runCommandWith({ stdin }, ...words);
    expect([code, JSON.parse(out).findings.length, JSON.parse(out).readouts]).toEqual([1, 1, 3]);
  });

  test("nothing in common ends with 3, and says what to do", async () => {
    const apart = await verify(fileOf(...GOOD, RECORD.replaceAll("T09:00:00.000Z", "T08:00:00.000Z")));
    expect([apart.code, apart.out, apart.err]).toEqual([3, "", expect.stringMatching(/no time in common: .*--since/)]);
    const empty = await verify(fileOf(RECORD), "--json");
    expect([empty.code, JSON.parse(empty.out)]).toEqual([3, expect.objectContaining({ ok: false, detail: expect.any(String) })]);
  });

  test.each([
    [["/nowhere/received.jsonl"], /nowhere.*cannot be read/],
    [["x", "--for", "5min"], /--for/],
    [["--since", "yesterday"], /--since yesterday: expected a time/],
    [["--for", "soon"], /--for soon/],
  ])("%j is refused", async (words, expected) => {
    const { code, err } = await verify(...words);
    expect([code, err]).toEqual([2, expect.stringMatching(expected)]);
  });
});
