import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { stringLayout } from "../../../test/support/scripted-platform.ts";
import type { ApiAnswer, ApiRequest } from "../../api/requester.ts";
import { silentLog } from "../../model/context.ts";
import { addSent, type Content, type Delivered, DeliveredLog, readDelivered } from "./delivered-log.ts";
import { judgePlatform, readPlatform } from "./proof.ts";

const SOURCE = "8d5a7c5e-0000-4000-8000-000000000001";
const VARIABLES = ["5b1c0000-0000-4000-8000-00000000000a", "5b1c0000-0000-4000-8000-00000000000b"];
const START = Date.parse("2026-11-20T09:00:00.000Z");
const SPAN = { from: START, to: START + 60_000 };
const at = (second: number): string => new Date(START + second * 1000).toISOString();
const always = (): boolean => true;

/** A value in the form of the API; `value` is JSON. */
const sample = (second: number, place: number, value = "21.5", quality = "good"): string =>
  `{"time":"${at(second)}","variable":"${VARIABLES[place]}","value":${value},"quality":"${quality}"}`;
const contentsOf = (samples: readonly string[], isCertain = true): Map<number, Content> => {
  const contents = new Map<number, Content>();
  addSent(contents, samples, isCertain);
  return contents;
};
const layout = stringLayout(2, SOURCE);

function logIn(folder = mkdtempSync(path.join(tmpdir(), "delivered-")), maxBytes?: number, endpoint = "platform:443") {
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const log = new DeliveredLog({ folder, uuid: "sink", endpoint, log: silentLog }, maxBytes);
  const read = (): Delivered => readDelivered(folder, "sink", always) ?? { sinceMs: Number.POSITIVE_INFINITY, sources: new Map() };
  return { folder, log, read };
}

type Row = { data_source: string } & Record<string, unknown>;
const rowOf = (text: string, data_source = SOURCE): Row => ({ ...(JSON.parse(text) as object), data_source });
const json = (value: unknown): ApiAnswer => ({ type: "json", status: 200, value, etag: undefined, bytes: 0 });

/** A platform that answers these pages, one after the other, and the requests that came. */
function platformOf(...answers: readonly (readonly Row[] | ApiAnswer)[]) {
  const asked: string[] = [];
  const send = async ({ path: target }: ApiRequest): Promise<ApiAnswer> => {
    const answer = answers[asked.length];
    asked.push(target);
    if (!answer) throw new Error("asked too often");
    if ("type" in answer) return answer as ApiAnswer;
    return json({ data: answer, metadata: { next_cursor: asked.length < answers.length ? `c${asked.length}` : null } });
  };
  const read = (sources = [SOURCE]) => readPlatform({ send }, sources, SPAN, new AbortController().signal, () => {});
  return { asked, read };
}

describe("a comparison of the platform with its acknowledgements", () => {
  const sent = [1, 2, 3].map((second) => [sample(second, 0), sample(second, 1, "null", "bad")]);
  async function judged(rows: readonly Row[], change: (log: DeliveredLog) => void = () => {}) {
    const { log, read } = logIn();
    for (const [i, samples] of sent.entries()) log.append({ id: `life-${i}-${i}`, layout }, contentsOf(samples));
    change(log);
    const delivered = { ...read(), sinceMs: START + 1500 };
    return judgePlatform(delivered, await platformOf(rows).read(), delivered);
  }
  const rows = sent.flat().map((text) => rowOf(text));

  test("is the same, in any order of values, form of times and numbers, and case of identifiers", async () => {
    const other = rows.map((row): Row => ({ ...row, time: String(row["time"]).replace(".000Z", "+00:00") })).toReversed();
    const upper = other.map((row) => ({ ...row, variable: String(row["variable"]).toUpperCase(), data_source: SOURCE.toUpperCase() }));
    expect(await judged(upper)).toEqual({
      findings: [],
      readouts: 3,
      sources: 1,
      from: at(1),
      to: at(3),
      unproved: 0,
      before_oldest: 0,
    });
  });

  test.each([
    ["missing", rows.slice(2), 0],
    ["incomplete", rows.slice(1), 0],
    ["different", rows.with(0, rowOf(sample(1, 0, "21.25"))), 0],
    ["different", rows.with(0, rowOf(sample(1, 0, "21.5", "uncertain"))), 0],
    ["double", [...rows, rowOf(sample(1, 0))], 0],
    ["double", [...rows, rowOf(sample(1, 0, "7"))], 0],
    ["extra", [...rows, rowOf(sample(2.001, 0))], 2.001],
  ])("names a readout that is %s", async (kind, copy, extraAt) => {
    const { findings } = await judged(copy);
    expect(findings).toMatchObject([{ kind, source: "press-1", time: at(extraAt || 1), id: extraAt ? "" : "life-0-0" }]);
  });

  test("says of missing readouts that they are older than all that is there, as retention drops them", async () => {
    expect(await judged(rows.slice(4))).toMatchObject({ before_oldest: 2, findings: [{ kind: "missing" }, { kind: "missing" }] });
    expect(await judged([...rows.slice(0, 2), ...rows.slice(4)])).toMatchObject({ before_oldest: 0, findings: [{ kind: "missing" }] });
  });

  test("calls nothing extra from before the manifest, nor what was delivered meanwhile", async () => {
    expect(await judged([...rows, rowOf(sample(0.5, 0))])).toMatchObject({ findings: [] });
    const { log, read } = logIn();
    log.append({ id: "life-1-1", layout }, contentsOf(sent[0] ?? []));
    const before = { ...read(), sinceMs: START };
    log.append({ id: "life-2-2", layout }, contentsOf(sent[1] ?? []));
    const copy = await platformOf(rows.slice(0, 4)).read();
    expect(judgePlatform(before, copy, { ...read(), sinceMs: START })).toMatchObject({ findings: [], readouts: 1 });
  });

  test("a readout that came again is one, and one of several contents, or taken in part, is not proved", async () => {
    expect(await judged(rows, (log) => log.append({ id: "next-0-0", layout }, contentsOf(sent[0] ?? [])))).toMatchObject({
      findings: [],
      unproved: 0,
    });
    const other = (log: DeliveredLog) => log.append({ id: "next-0-0", layout }, contentsOf([sample(1, 0, "5")]));
    expect(await judged(rows, other)).toMatchObject({ findings: [], unproved: 1, readouts: 3 });
    const part = (log: DeliveredLog) => log.append({ id: "next-9-9", layout }, contentsOf([sample(9, 0)], false));
    expect(await judged([...rows, rowOf(sample(9, 0))], part)).toMatchObject({ findings: [], unproved: 1, readouts: 4 });
  });
});

describe("the log of acknowledged batches", () => {
  const append = (log: DeliveredLog, second: number) =>
    log.append({ id: `l-${second}-${second}`, layout }, contentsOf([sample(second, 0)]));
  const times = ({ sources }: Delivered): readonly number[] => [...(sources.get(SOURCE)?.readouts.keys() ?? [])];

  test("outlasts a kill and a cut line, in files of a bounded size for their owner and group", () => {
    const { folder, log, read } = logIn(undefined, 1000);
    append(log, 1);
    const [file = ""] = readdirSync(folder);
    appendFileSync(path.join(folder, file), '{"s":"cut');
    append(logIn(folder, 1000).log, 2);
    expect(times(read())).toEqual([1, 2].map((second) => START + second * 1000));
    const { log: last } = logIn(folder, 1000);
    for (let second = 3; second < 40; second++) append(last, second);
    const sizes = readdirSync(folder).map((name) => statSync(path.join(folder, name)).size);
    expect(sizes).toHaveLength(2);
    expect(Math.max(...sizes)).toBeLessThan(1300);
    expect(times(read()).at(-1)).toBe(START + 39_000);
    expect(times(read()).length).toBeLessThan(30);
  });

  test("is of one platform: another endpoint, or a removal, begins with nothing", () => {
    const { folder, log, read } = logIn(undefined, 100);
    for (const second of [1, 2, 3]) append(log, second);
    append(logIn(folder, 100, "other:443").log, 4);
    expect(times(read())).toEqual([START + 4000]);
    logIn(folder).log.remove();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("a folder that cannot be written costs one line of the log, and nothing else", () => {
    const lines: string[] = [];
    const warn = (_: object, message: string) => lines.push(message);
    const folder = path.join(mkdtempSync(path.join(tmpdir(), "delivered-")), "file");
    onTestFinished(() => rmSync(path.dirname(folder), { recursive: true }));
    appendFileSync(folder, "");
    const log = new DeliveredLog({ folder, uuid: "sink", endpoint: "p:1", log: { ...silentLog, warn } });
    append(log, 1);
    append(log, 2);
    expect([lines.length, readFileSync(folder, "utf8")]).toEqual([1, ""]);
  });

  test("a 64-bit integer has all its digits", () => {
    const [one, other] = ["9007199254740993", "9007199254740992"].map((value) => contentsOf([sample(1, 0, value)]).get(START + 1000));
    expect(one?.hash).not.toBe(other?.hash);
  });
});

describe("the platform's answers", () => {
  const failed = (kind: "http_status" | "timeout", status?: number): ApiAnswer => ({
    type: "failed",
    kind,
    message: `said ${status}`,
    ...(status && { status }),
  });

  test("are read page by page, fifty data sources at once", async () => {
    const sources = Array.from({ length: 60 }, (_, i) => `8d5a7c5e-0000-4000-8000-${String(i).padStart(12, "0")}`);
    const rows = [sample(1, 0), sample(2, 0)].map((text) => [rowOf(text, sources[0])]);
    const { asked, read } = platformOf(...rows);
    const copy = await read(sources.slice(0, 3));
    expect([...(copy.get(sources[0] ?? "")?.keys() ?? [])]).toEqual([START + 1000, START + 2000]);
    expect(asked[1]).toContain("cursor=c1");
    const many = platformOf(json({ data: [], metadata: {} }), json({ data: [], metadata: {} }));
    await many.read(sources);
    expect(many.asked.map((one) => one.split("data_source=").length - 1)).toEqual([50, 10]);
  });

  test.each<[string, readonly ApiAnswer[], RegExp]>([
    ["a platform without it", [failed("http_status", 404)], /does not let its values be read back .*GET \/ext\/v1\/values/],
    ["a failure", [failed("http_status", 500)], /said 500/],
    ["no answer in time", [failed("timeout")], /said/],
    ["another shape", [json({ data: [{ time: 1 }] })], /another shape than the API's: data\.0\.time/],
    ["a value that is nested", [json({ data: [rowOf(sample(1, 0, "[[1]]"))], metadata: {} })], /another shape/],
    ["another data source", [json({ data: [rowOf(sample(1, 0), VARIABLES[0])], metadata: {} })], /not asked for/],
    ["another time", [json({ data: [rowOf(sample(60, 0))], metadata: {} })], /not asked for/],
    ["a circle", Array<ApiAnswer>(2).fill(json({ data: [rowOf(sample(1, 0))], metadata: { next_cursor: "c" } })), /leads in a circle/],
    [
      "empty pages without an end",
      Array.from({ length: 200 }, (_, i) => json({ data: [], metadata: { next_cursor: `c${i}` } })),
      /has no end/,
    ],
  ])("%s ends the comparison with the reason", async (_, answers, words) => {
    await expect(platformOf(...answers).read()).rejects.toMatchObject({ message: expect.stringMatching(words), reason: expect.anything() });
  });
});
