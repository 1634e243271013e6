import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Context, silentLog } from "../../../model/context.ts";
import { ReasonError } from "../../../model/reason.ts";
import { LinkWindow } from "../../lib/link-window.ts";
import { hashOf, type Judgement, parseExact } from "../../lib/proof.ts";
import type { SinkBatch, WriteResult } from "../../sink.ts";
import type { Connection } from "../connect.ts";
import { HeldTopics } from "../held-topics.ts";
import type { PublishOutcome } from "../publish-queue.ts";
import { good, layoutOf, readoutOf, TIME, variableOf } from "../testing.ts";
import { TopicOwners } from "../topic-owners.ts";
import { parseTopic } from "../topics.ts";
import { type ValueOptions, ValuePublisher } from "../values.ts";
import { ManifestJournal } from "./journal.ts";
import { type Due, Manifest, MINUTE_MS } from "./manifest.ts";
import { ReceivedCopy, type Span } from "./received-copy.ts";

const ctx: Context = { signal: new AbortController().signal, log: silentLog };
const journalIn = (folder?: string) => new ManifestJournal({ folder, uuid: "sink", endpoint: "broker:1883", log: silentLog });
const newManifest = () => new Manifest(journalIn());

const LAYOUT = layoutOf(
  variableOf("temp", "float32"),
  variableOf("count", "uint64"),
  variableOf("text", "string"),
  variableOf("speed", "int16"),
);
const READ = { temp: 0.1, count: 2n ** 63n + 1n, text: `it's "5"` };
const readout = (n: number, more: object = {}) =>
  readoutOf(
    [good(READ.temp + n), good(READ.count + BigInt(n)), { quality: "uncertain", value: READ.text }, { quality: "bad", fault: "not_found" }],
    {
      time: TIME + n * 1000,
      ...more,
    },
  );
const idOf = (first: number, last = first) => `3f2a9c01-${first}-${last}`;
const batch = (first: number, last = first, more: Partial<SinkBatch> = {}): SinkBatch => ({
  id: idOf(first, last),
  layout: LAYOUT,
  readouts: Array.from({ length: last - first + 1 }, (_, i) => readout(first + i)),
  backlog: false,
  ...more,
});

/** A broker that takes everything, unless `answer` says otherwise of the message with this number; undefined: the connection ends there. */
function publisher(
  manifest: Manifest,
  more: Partial<ValueOptions> = {},
  answer: (number: number) => PublishOutcome | undefined = () => ({ type: "accepted" }),
) {
  const sent: string[] = [];
  const feed: Connection["feed"] = ({ make }) => {
    for (let made = make(); made; made = made.isLast ? undefined : make()) {
      const outcome = answer(sent.push(made.publish.payload.toString()));
      if (outcome) made.publish.done(outcome);
      else return made.publish.fail(new ReasonError("CONNECTION_CLOSED", "closed"));
    }
  };
  const values = new ValuePublisher({ feed, link: new LinkWindow() } as Connection, parseTopic("plant/{source}"), {
    owners: new TopicOwners(),
    int64: "number",
    payload: "envelope",
    compression: "none",
    timestamps: "iso",
    qos: 1,
    held: new HeldTopics(),
    holdMs: 1000,
    maxPacketBytes: 100_000,
    limitTooLow: () => {},
    manifest,
    ...more,
  });
  return { sent, write: (one: SinkBatch): Promise<WriteResult> => values.write(one, ctx) };
}

/** The records of all minutes, and then the retained message. */
function statements(manifest: Manifest, maxBytes = 100_000): readonly string[] {
  const due = manifest.due(TIME, performance.now(), true);
  for (const one of due) manifest.told(one);
  return [...due.map(({ payload }) => payload), manifest.textOf(LAYOUT.source.uuid, "press-1", TIME, maxBytes)?.payload ?? ""];
}

function judged(messages: readonly string[], manifests: readonly string[], span: Span = { isOpenEnd: true }): Judgement {
  const copy = new ReceivedCopy();
  for (const text of [...messages, ...manifests]) expect(copy.take(parseExact(text)), text).toBe(true);
  return copy.judge(span);
}
const kindsOf = ({ findings }: Judgement) => findings.map(({ kind, id, time }) => `${kind} ${id} ${(Date.parse(time) - TIME) / 1000}`);
const at = (texts: readonly string[], index: number): string => texts.at(index) ?? "";

describe.each<Partial<ValueOptions>>([
  { payload: "envelope" },
  { payload: "envelope", int64: "string", compression: "none", maxPacketBytes: 420 },
  { payload: "columns" },
  { payload: "rows" },
  { payload: "rows", timestamps: "epoch_ms", maxPacketBytes: 400 },
])("%j", (options) => {
  test("all that the broker acknowledged is found, and nothing else is said", async () => {
    const manifest = newManifest();
    const { sent, write } = publisher(manifest, options);
    for (let n = 0; n < 100; n += 4) await write(batch(n, n + 3));
    expect(judged(sent, statements(manifest))).toMatchObject({
      findings: [],
      readouts: 100,
      sources: 1,
      repeated: 0,
      unlisted: 0,
      unproved: 0,
    });
  });

  test("a lost and a changed message are named by readout, and the same message twice is a repetition", async () => {
    const manifest = newManifest();
    const { sent, write } = publisher(manifest, options);
    for (let n = 0; n < 10; n++) await write(batch(n));
    const manifests = statements(manifest);
    const of = (n: number) =>
      sent.filter((text) => text.includes(new Date(TIME + n * 1000).toISOString()) || text.includes(String(TIME + n * 1000)));
    const rest = sent.filter((text) => !of(3).includes(text) && !of(5).includes(text));
    const changed = of(5).map((text) => text.replaceAll("it's", "its"));
    expect(changed).not.toEqual(of(5));
    const judgement = judged([...rest, ...changed, ...of(7)], manifests);
    expect(kindsOf(judgement)).toEqual([`missing ${idOf(3)} 3`, `different ${idOf(5)} 5`]);
    expect(judgement).toMatchObject({ repeated: 1, readouts: 10, unlisted: 0 });
  });
});

test("a part of a readout that is lost, a digit of a 64-bit integer that is changed, and a copy under another identifier", async () => {
  const manifest = newManifest();
  const { sent, write } = publisher(manifest, { maxPacketBytes: 320 });
  for (let n = 0; n < 4; n++) await write(batch(n));
  const [first = "", second = ""] = sent.filter((text) => text.includes(`"${idOf(1)}.`));
  const messages = sent
    .filter((text) => text !== second)
    .map((text) => (text.includes(`"${idOf(2)}.`) ? text.replace(String(READ.count + 2n), String(READ.count + 3n)) : text));
  const copies = sent.filter((text) => text.includes(`"${idOf(3)}.`)).map((text) => text.replace(idOf(3), idOf(8)));
  const judgement = judged([...messages, ...copies], statements(manifest));
  expect(first).not.toBe("");
  expect(kindsOf(judgement)).toEqual([`incomplete ${idOf(1)} 1`, `different ${idOf(2)} 2`, `double ${idOf(3)} 3`]);
  expect(judgement.findings[0]?.values).toMatchObject({ expected: 4 });
});

test("a batch that was under way as the connection ended comes again in another division: it counts once", async () => {
  const manifest = newManifest();
  const { sent, write } = publisher(manifest, { maxPacketBytes: 320 }, (number) => (number === 2 ? undefined : { type: "accepted" }));
  await expect(write(batch(0, 5))).rejects.toThrow("closed");
  expect(statements(manifest)).toEqual([""]);
  await write(batch(0, 3, { maxMessageBytes: 4000 }));
  await write(batch(4, 5));
  expect(judged(sent, statements(manifest))).toMatchObject({ findings: [], readouts: 6, repeated: 1, unproved: 0 });
});

test("a readout that the broker refuses is not in the manifest; what comes of it in pieces is there, and its content is not proved", async () => {
  const manifest = newManifest();
  const { sent, write } = publisher(manifest, {}, (number) => (number === 1 ? { type: "refused", detail: "no" } : { type: "accepted" }));
  expect((await write(batch(0))).refusals).toHaveLength(1);
  expect(statements(manifest)).toEqual([""]);
  const piece = (from: number, to: number): SinkBatch => {
    const whole = readout(0);
    return batch(0, 0, {
      readouts: [{ ...whole, readings: whole.readings.map((one, place) => (place >= from && place < to ? one : undefined)) }],
    });
  };
  await write(piece(0, 2));
  expect(judged(sent.slice(1), statements(manifest))).toMatchObject({ findings: [], readouts: 1, unproved: 0 });
  await write(piece(2, 4));
  expect(judged(sent.slice(1), statements(manifest))).toMatchObject({ findings: [], readouts: 1, unproved: 1 });
  expect(kindsOf(judged([], statements(manifest), { sinceMs: TIME }))).toEqual([`missing ${idOf(0)} 0`]);
});

test("report by exception: a readout in which nothing changed is missed, too", async () => {
  const manifest = newManifest();
  const { sent, write } = publisher(manifest);
  const unchanged = { readings: [undefined, undefined, undefined, undefined], unchanged: new Uint8Array([1, 1, 1, 1]) };
  for (let n = 0; n < 3; n++) await write(batch(n, n, { readouts: [readout(n, n === 1 ? unchanged : {})] }));
  const manifests = statements(manifest);
  expect(judged(sent, manifests)).toMatchObject({ findings: [], readouts: 3 });
  expect(kindsOf(judged([at(sent, 0), at(sent, 2)], manifests))).toEqual([`missing ${idOf(1)} 1`]);
});

test("the file outlasts a kill in the middle of a line, and a batch that comes again changes nothing", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "manifest-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const manifest = new Manifest(journalIn(folder));
  const { sent, write } = publisher(manifest);
  for (let n = 0; n < 5; n++) await write(batch(n));
  manifest.lost({ id: "l-1", from: TIME, to: TIME + 1, values: 7, reason: "buffer_full" });
  appendFileSync(path.join(folder, "sink.manifest.jsonl"), '{"s":"cut');
  const after = new Manifest(journalIn(folder));
  const again = publisher(after);
  for (let n = 3; n < 7; n++) await again.write(batch(n));
  const all = [...sent, ...again.sent];
  const judgement = judged(all, statements(after));
  expect(judgement).toMatchObject({ findings: [], readouts: 7, repeated: 2, unproved: 0, losses: [{ count: 7, reason: "buffer_full" }] });
  // Its records are published: a third start has none to publish.
  const third = new Manifest(journalIn(folder));
  expect(third.due(TIME, performance.now(), true)).toEqual([]);
  expect(kindsOf(judged(all.slice(1), statements(third), { sinceMs: TIME }))).toEqual([`missing ${idOf(0)} 0`]);
  expect(readFileSync(path.join(folder, "sink.manifest.jsonl"), "utf8")).not.toContain("cut");
  const other = new Manifest(new ManifestJournal({ folder, uuid: "sink", endpoint: "other:1883", log: silentLog }));
  expect(statements(other)).toEqual([""]);
});

test("above its size the retained message has the lists of the newest minutes, and the number and one hash of the others", async () => {
  const manifest = newManifest();
  const { sent, write } = publisher(manifest);
  for (let n = 0; n < 240; n++) await write(batch(n, n, { readouts: [readout(n - 240)] }));
  const retained = at(statements(manifest, 5000), -1);
  expect(Buffer.byteLength(retained)).toBeLessThanOrEqual(5000);
  const { minutes } = JSON.parse(retained) as { minutes: { readouts?: unknown }[] };
  expect(minutes.map((minute) => minute.readouts !== undefined)).toEqual([false, false, true, true]);
  expect(judged(sent, [retained])).toMatchObject({ findings: [], unproved: 0 });
  const second = sent.findIndex((text) => text.includes("08:57:"));
  const rest = sent.filter((_, i) => i !== second && i !== second + 1);
  expect(judged(rest, [retained], { sinceMs: 0, isOpenEnd: true }).findings).toEqual([
    {
      kind: "missing",
      source: "press-1",
      id: idOf(second < 0 ? 0 : Number(/-(\d+)-/.exec(at(sent, second))?.[1])),
      time: "2026-11-20T08:57:00.000Z",
      readouts: 2,
    },
  ]);
  const changed = sent.map((text, i) => (i === second ? text.replace("it's", "its") : text));
  expect(kindsOf(judged(changed, [retained]))).toEqual([expect.stringMatching(/^different /)]);
});

test("above the bound of memory the oldest list gives way, and what is in none is said", async () => {
  const manifest = new Manifest(journalIn(), 100);
  const { sent, write } = publisher(manifest);
  for (let n = 0; n < 240; n++) await write(batch(n, n, { readouts: [readout(n - 240)] }));
  const judgement = judged(sent.slice(1), statements(manifest), { sinceMs: 0, isOpenEnd: true });
  expect(judgement.findings).toEqual([]);
  expect(judgement.readouts + judgement.unproved).toBe(240);
  expect(judgement.readouts).toBeGreaterThan(50);
});

test("minutes are published once they are over and quiet, again where more came, and are forgotten after an hour", async () => {
  const manifest = newManifest();
  const { write } = publisher(manifest);
  await write(batch(0));
  const minute = Math.floor(TIME / MINUTE_MS) * MINUTE_MS;
  const quietMs = performance.now() + 10_000;
  let last: Due | undefined;
  const due = (nowMs: number, monotonicMs = quietMs) => {
    const found = manifest.due(nowMs, monotonicMs);
    last = found.at(-1);
    return found.map((one) => [one.minute, one.source]);
  };
  expect(due(minute + MINUTE_MS + 4000)).toEqual([]);
  expect(due(minute + MINUTE_MS + 5000, performance.now())).toEqual([]);
  expect(due(minute + MINUTE_MS + 5000)).toEqual([[minute, "press-1"]]);
  if (last) manifest.told(last);
  expect(due(minute + MINUTE_MS + 5000)).toEqual([]);
  await write(batch(0));
  expect(due(minute + MINUTE_MS + 5000)).toEqual([]);
  await write(batch(1));
  expect(due(minute + MINUTE_MS + 5000)).toEqual([[minute, "press-1"]]);
  // Another readout comes while the record is on its way.
  const before: Due | undefined = last;
  await write(batch(2));
  if (before) manifest.told(before);
  expect(due(minute + MINUTE_MS + 5000)).toEqual([[minute, "press-1"]]);
  if (last) manifest.told(last);
  expect(due(minute + 61 * MINUTE_MS)).toEqual([]);
  expect(manifest.textOf(LAYOUT.source.uuid, "press-1", minute, 10_000)).toBeUndefined();
});

test("a source of which nothing came is missed, where others show that something came; nothing is missed before the first", async () => {
  const manifest = newManifest();
  const other = layoutOf(variableOf("x", "bool"));
  const oven = { ...other, source: { uuid: "oven", name: "oven-2" } };
  const { sent, write } = publisher(manifest);
  for (let n = 0; n < 240; n++) {
    await write(batch(n));
    await write(batch(n, n, { layout: oven, readouts: [readoutOf([good(true)], { time: TIME + n * 1000 })], id: `x-${n}-${n}` }));
  }
  const records = statements(manifest);
  const press = sent.filter((text) => text.includes("press-1"));
  const { findings } = judged(press.slice(10), records, {});
  const ofPress = records.filter((text) => text.includes("press-1"));
  expect(judged(sent, ofPress)).toMatchObject({ findings: [], without_manifest: 1 });
  expect(new Set(findings.map(({ kind, source }) => `${kind} ${source}`))).toEqual(new Set(["missing oven-2"]));
  // From a minute after the first to a minute before the last.
  expect(findings.map(({ time }) => (Date.parse(time) - TIME) / 1000)).toEqual(Array.from({ length: 110 }, (_, i) => 70 + i));
});

test("the record in the README is what this writes", async () => {
  const manifest = newManifest();
  const { write } = publisher(manifest);
  const layout = layoutOf(variableOf("temp", "float64"));
  const one = (time: number, value: number) => readoutOf([good(value)], { time });
  await write({ id: idOf(118), layout, readouts: [one(TIME, 21.5)], backlog: false });
  await write({ id: idOf(119, 127), layout, readouts: [one(TIME + 1000, 21.6)], backlog: false });
  const readme = readFileSync(path.join(import.meta.dirname, "../README.md"), "utf8");
  const [, example = ""] = /^## Manifest$[\s\S]*?```json\n([\s\S]*?)```/m.exec(readme) ?? [];
  expect(JSON.parse(at(statements(manifest), 0))).toEqual(JSON.parse(example));
});

test("the hash is the documented one, and the same for values as a database writes them", () => {
  // printf '%s' '["temp","good",21.5]' | sha256sum
  expect(hashOf("temp", "good", 21.5).toString(16)).toBe("c1c885e0");
  const same = (one: string, other: string) => expect(hashOf("v", "good", parseExact(one))).toBe(hashOf("v", "good", parseExact(other)));
  same("21.50", "21.5");
  same("1e21", "1000000000000000000000");
  same("18446744073709551615", "18446744073709551615");
  same('{"a":1,"b":[2, null]}', '{"b":[2,null],"a":1.0}');
  expect(hashOf("v", "good", parseExact("18446744073709551615"))).not.toBe(hashOf("v", "good", parseExact("18446744073709551614")));
  expect(hashOf("v", "good", 5)).not.toBe(hashOf("v", "good", "5"));
  expect(hashOf("v", "good", 5)).not.toBe(hashOf("v", "uncertain", 5));
});
