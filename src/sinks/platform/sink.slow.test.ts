import { writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { beforeEach, describe, expect, test } from "vitest";
import {
  type Answer,
  anyTime,
  batchOf,
  EXTENSION,
  failureOf,
  KEY,
  keyFolder,
  openPlatform,
  scriptedPlatform,
  taken,
} from "../../../test/support/scripted-platform.ts";
import { recordingLog } from "../../api/server/testing.ts";
import { json } from "../../api/server/testing-scripted.ts";
import type { ApiAccess } from "../../model/api-access.ts";
import type { Context } from "../../model/context.ts";
import type { Sink } from "../sink.ts";

let keyFile: string;
beforeEach(async () => {
  ({ keyFile } = await keyFolder());
});

const open = (url: string, settings: object = {}, more: Partial<ApiAccess> = {}, ctx?: Context): Promise<Sink> =>
  openPlatform({ url, keyFile, ...more }, settings, ctx);

describe("the size of a request", () => {
  test("is bounded: a batch goes in parts whose identifiers name what is in them", async () => {
    const far = await scriptedPlatform(taken);
    const values = Array.from({ length: 30 }, (_, i) => String(i % 10).repeat(100_000));
    expect(await (await open(far.url)).write(batchOf("e-1-1", values), anyTime())).toEqual({ refused: 0 });
    expect(far.posted.length).toBe(6);
    expect(far.posted.map(({ id }) => id)).toEqual(["0-5", "5-10", "10-15", "15-20", "20-25", "25-30"].map((at) => `e-1-1.${at}`));
    expect(far.posted.flatMap((one) => one.values.map(({ value }) => value))).toEqual(values);
  });

  test("follows what the API takes: the same is not too large twice", async () => {
    const far = await scriptedPlatform((response, posted, bytes) => {
      if (bytes > 100_000) json(response, { detail: "too large" }, 413);
      else taken(response, posted, bytes);
    });
    const values = Array.from({ length: 40 }, (_, i) => String(i % 10).repeat(10_000));
    const sink = await open(far.url);
    expect(await sink.write(batchOf("e-1-1", values), anyTime())).toEqual({ refused: 0 });
    const first = far.posted.length;
    expect(await sink.write(batchOf("e-2-2", values), anyTime())).toEqual({ refused: 0 });
    const second = far.posted.slice(first);
    expect(second.flatMap((one) => one.values.map(({ value }) => value))).toEqual(values);
    expect(second.every(({ values: held }) => held.length <= 8)).toBe(true);
  });

  test("is not cut below 4 KiB but for single values: what takes nothing does not cost a request for each value", async () => {
    const far = await scriptedPlatform((response) => json(response, { detail: "too large" }, 413));
    const values = Array.from({ length: 100 }, (_, i) => `${i}`);
    const { refused, detail } = await (await open(far.url)).write(batchOf("e-1-1", values), anyTime());
    expect(refused).toBe(100);
    expect(detail).toContain("413: too large");
    expect(far.posted.length).toBeLessThan(10);
  });

  test("is what the delivery asks for, down to single values", async () => {
    const far = await scriptedPlatform(taken);
    const sink = await open(far.url);
    await sink.write(batchOf("e-1-1", ["a", "b", "c"], { maxMessageBytes: 1 }), anyTime());
    expect(far.posted.map(({ id }) => id)).toEqual(["e-1-1.0-1", "e-1-1.1-2", "e-1-1.2-3"]);
  });
});

test.each([
  [undefined, undefined],
  [["values.other"], undefined],
  [["values.clock"], "unsynchronised"],
])("what is said of the clock is sent to an API that names it among the fields it takes: %j", async (optional_fields, clock) => {
  const far = await scriptedPlatform(taken, (response) => json(response, { ...EXTENSION, optional_fields }));
  const batch = batchOf("e-1-1", [1]);
  const readouts = [...batch.readouts].map((readout) => ({ ...readout, clockSynced: false }));
  expect(await (await open(far.url)).write({ ...batch, readouts }, anyTime())).toEqual({ refused: 0 });
  expect(far.posted[0]?.values[0]?.clock).toBe(clock);
});

describe("values that the API refuses", () => {
  const entry = (place: number) => ({ loc: ["body", "values", place, "value"], msg: "not a value", type: "custom" });

  test("are counted, and all beside them are taken", async () => {
    const far = await scriptedPlatform((response, posted, bytes) => {
      const bad = posted.values.flatMap(({ value }, place) => (value === "bad" ? [entry(place)] : []));
      // One entry at a time, as a server may say only the first.
      if (bad.length > 0) json(response, { detail: bad.slice(0, 1) }, 422);
      else taken(response, posted, bytes);
    });
    const values = ["a", "bad", "b", "c", "bad", "bad", "d"];
    const { refused, detail } = await (await open(far.url)).write(batchOf("e-1-1", values), anyTime());
    expect(refused).toBe(3);
    expect(detail).toMatch(/422: values\.1\.value: not a value/);
    const held = far.posted.filter((one) => !one.values.some(({ value }) => value === "bad"));
    expect(held.flatMap((one) => one.values.map(({ value }) => value))).toEqual(["a", "b", "c", "d"]);
    expect(new Set(held.map(({ id }) => id)).size).toBe(held.length);
  });

  test("are looked for with a bounded number of requests", async () => {
    const far = await scriptedPlatform((response) => json(response, { detail: [entry(1)] }, 422));
    const values = Array.from({ length: 500 }, (_, i) => `${i}`);
    expect((await (await open(far.url)).write(batchOf("e-1-1", values), anyTime())).refused).toBe(500);
    expect(far.posted.length).toBeLessThan(40);
  });

  test.each([
    ["of the whole request", { detail: [{ loc: ["body", "data_source"], msg: "no such data source", type: "x" }] }],
    ["without entries", { detail: "no" }],
    ["that are not there", { detail: [entry(99)] }],
    ["in words that are none", "<html>no</html>"],
  ])("%s are refused at once", async (_what, body) => {
    const far = await scriptedPlatform((response) => json(response, body, 422));
    const { refused, detail } = await (await open(far.url)).write(batchOf("e-1-1", ["a", "b"]), anyTime());
    expect([refused, far.posted.length]).toEqual([2, 1]);
    expect(detail).toContain("answered 422");
  });

  test("without a word are counted by what the API says it took", async () => {
    const far = await scriptedPlatform((response) => json(response, { accepted: 1, duplicate: false }));
    const result = await (await open(far.url)).write(batchOf("e-1-1", ["a", "b", "c"]), anyTime());
    expect(result).toEqual({ refused: 2, detail: "press-1: the API took 1 of 3 values and did not say why not all" });
  });

  test.each([
    ["200 with duplicate", 200, { accepted: 0, duplicate: true }],
    ["409", 409, { detail: "known" }],
  ])("before are none: %s", async (_what, status, body) => {
    const far = await scriptedPlatform((response) => json(response, body, status));
    expect(await (await open(far.url)).write(batchOf("e-1-1", ["a", "b"]), anyTime())).toEqual({ refused: 0 });
  });
});

describe("the connection is lost, and nothing is refused", () => {
  test.each<[string, Answer, string, RegExp, object]>([
    ["202", (r) => json(r, { accepted: 2, duplicate: false }, 202), "UNKNOWN", /answered 202: .* sent again until it answers 200/, {}],
    ["401", (r) => json(r, { detail: "no" }, 401), "UNKNOWN", /the API key is refused \(401\)/, {}],
    ["403", (r) => json(r, { detail: "not you" }, 403), "UNKNOWN", /403: not you; give the key .* the right/, {}],
    ["404", (r) => json(r, { detail: "no path" }, 404), "UNKNOWN", /does not offer to take values/, { isLasting: true }],
    ["405", (r) => json(r, {}, 405), "UNKNOWN", /does not offer/, { isLasting: true }],
    ["501", (r) => json(r, {}, 501), "UNKNOWN", /does not offer/, { isLasting: true }],
    ["400", (r) => json(r, { detail: "what" }, 400), "UNKNOWN", /400: what/, { retryAfterMs: undefined, isLasting: false }],
    ["429", (r) => r.writeHead(429, { "retry-after": "7" }).end(), "UNKNOWN", /429/, { retryAfterMs: 7000 }],
    ["503", (r) => r.writeHead(503, { "retry-after": "2" }).end("<html>"), "UNKNOWN", /503/, { retryAfterMs: 2000 }],
    ["500", (r) => json(r, { detail: "oops" }, 500), "UNKNOWN", /500: oops/, {}],
    [
      "a redirect",
      (r) => r.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
      "UNKNOWN",
      /redirect/,
      { condition: "protocol_violation" },
    ],
    ["a page", (r) => r.end("<html>log in</html>"), "UNKNOWN", /a page/, { condition: "protocol_violation" }],
    ["half of an answer", (r) => r.end('{"accepted":'), "UNKNOWN", /damaged or truncated/, { condition: "protocol_violation" }],
    ["another shape", (r) => json(r, { ok: true }), "UNKNOWN", /another shape/, { condition: "protocol_violation" }],
    ["no body", (r) => r.writeHead(204).end(), "UNKNOWN", /without a body/, { condition: "protocol_violation" }],
    ["too much", (r) => r.end(`"${"x".repeat(2 ** 20)}"`), "UNKNOWN", /larger than/, { condition: "protocol_violation" }],
    ["silence", () => {}, "TIMEOUT", /within 300 ms/, {}],
    ["an end without an answer", (r) => r.destroy(), "CONNECTION_CLOSED", /reset|closed/, {}],
    [
      "an end in the middle",
      (r) => r.writeHead(200, { "content-length": "500" }).write("{", () => r.destroy()),
      "UNKNOWN",
      /in the middle/,
      {},
    ],
    [
      "bytes that are no HTTP",
      (r) => r.socket?.end("220 mail.example ready\r\n"),
      "UNKNOWN",
      /does not speak HTTP/,
      { condition: "protocol_violation" },
    ],
    ["one byte now and then", (r) => void drip(r), "TIMEOUT", /within 300 ms/, {}],
  ])("%s", async (_what, answer, type, words, more) => {
    const far = await scriptedPlatform(answer);
    const sink = await open(far.url, { request_timeout: "300ms" });
    const began = performance.now();
    const error = await failureOf(sink.write(batchOf("e-1-1", ["a"]), anyTime()));
    expect(error).toMatchObject({ reason: { type }, ...more });
    expect(error.message).toMatch(words);
    expect(await sink.lost).toBe(error);
    expect(await failureOf(sink.write(batchOf("e-1-1", ["a"]), anyTime()))).toBe(error);
    expect(performance.now() - began).toBeLessThan(5000);
    expect(far.posted.length).toBeLessThanOrEqual(2);
  });

  test("with all that is under way, for one reason", async () => {
    const held: ServerResponse[] = [];
    const far = await scriptedPlatform((response) => {
      if (held.push(response) === 4) json(response, { detail: "oops" }, 500);
    });
    const sink = await open(far.url);
    const errors = await Promise.all(["e-1", "e-2", "e-3", "e-4", "e-5"].map((id) => failureOf(sink.write(batchOf(id, ["a"]), anyTime()))));
    for (const error of errors) expect(error.message).toMatch(/500: oops/);
    expect(far.most()).toBe(4);
  });
});

function drip(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" "), 50);
  response.on("close", () => clearInterval(timer));
}

test("no more requests are under way than are allowed; the rest waits its turn", async () => {
  const held: (() => void)[] = [];
  const far = await scriptedPlatform((response, posted, bytes) => void held.push(() => taken(response, posted, bytes)));
  const sink = await open(far.url, { in_flight: 2 });
  expect(sink.inFlight).toBe(2);
  const writing = Promise.all(Array.from({ length: 7 }, (_, i) => sink.write(batchOf(`e-${i}`, ["a"]), anyTime())));
  for (let answered = 0; answered < 7; answered++) {
    await expect.poll(() => held.length).toBeGreaterThan(0);
    held.shift()?.();
  }
  expect(await writing).toEqual(new Array(7).fill({ refused: 0 }));
  expect(far.most()).toBe(2);
  expect(new Set(far.posted.map(({ id }) => id)).size).toBe(7);
});

test("letting go ends what is under way at once, and the key is in no word of it", async () => {
  const log = recordingLog();
  const stop = new AbortController();
  const far = await scriptedPlatform(() => {});
  const sink = await open(far.url, {}, {}, { signal: stop.signal, log });
  const writing = failureOf(sink.write(batchOf("e-1", ["a"]), { signal: stop.signal, log }));
  await expect.poll(() => far.posted.length).toBe(1);
  stop.abort();
  const error = await writing;
  expect(error.reason).toEqual({ type: "CONNECTION_CLOSED" });
  expect((await sink.lost).message).toBe("stopped by the collector");
  expect(JSON.stringify([error, error.stack, log.lines])).not.toContain(KEY);
  expect(far.keys).toEqual([KEY, KEY]);
});

test("a key that is changed is used from the next request on", async () => {
  const far = await scriptedPlatform(taken);
  const sink = await open(far.url);
  await writeFile(keyFile, "another-key\n");
  await sink.write(batchOf("e-1", ["a"]), anyTime());
  expect(far.keys).toEqual([KEY, "another-key"]);
});
