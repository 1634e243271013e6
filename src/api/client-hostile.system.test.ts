import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock } from "../../test/support/agent.ts";
import { type PollState, runPolling } from "../configuration/poll.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { ApiClient, type ApiClientOptions } from "./client.ts";
import type { Desired } from "./desired.ts";
import { COLLECTOR, recordingLog, temporaryFolder } from "./server/testing.ts";
import { EXPIRED_CERTIFICATE, TEST_CERTIFICATE, TEST_KEY } from "./server/testing-certificates.ts";
import { json, page, plainPlatform, scripted, source } from "./server/testing-scripted.ts";

const KEY = "Canary-key-8d01c4";
const never = new AbortController().signal;
/** Only where a deadline is what the test waits for. */
const FAST = { connectMs: 500, headersMs: 300, idleMs: 300, totalMs: 900, pullMs: 3000 };
const OPTIONS = { collector: COLLECTOR, readKey: () => KEY };

function clientOf(url: string, options: Partial<ApiClientOptions> = {}) {
  const client = new ApiClient({ url, ...OPTIONS, log: recordingLog(), ...options });
  onTestFinished(() => client.close());
  return client;
}

type Misbehaviour = (response: ServerResponse, path: string, request: IncomingMessage) => void;

/** The client polls a server that first answers well and then misbehaves, with short waits between the tries. */
async function polled(misbehave: Misbehaviour) {
  let well = true;
  const { url, requests, keys } = await scripted((request, response, path) => {
    if (well) plainPlatform((r) => json(r, page([source(1), source(2)])))(request, response, path);
    else misbehave(response, path, request);
  });
  const applied: Desired[] = [];
  const states: PollState[] = [];
  const stop = new AbortController();
  const log = recordingLog();
  const client = clientOf(url, { timeouts: FAST, maxBytes: 2 ** 20, log });
  const done = runPolling(
    {
      client,
      collector: COLLECTOR,
      version: "1",
      lastGoodFile: join(temporaryFolder(), "last-good.json"),
      clock,
      pollIntervalMs: 50,
      onConfiguration: (desired) => void applied.push(desired),
      onState: (state) => void states.push(state),
      onWarnings: () => {},
      glances: () => [],
      mayDiscover: () => true,
      times: { retryFirstMs: 100, retryMaxMs: 400 },
    },
    { signal: stop.signal, log },
  );
  onTestFinished(async () => {
    stop.abort();
    await done;
  });
  await expect.poll(() => applied.at(-1)?.sources.length, { timeout: 5000 }).toBe(2);
  const turn = (to: boolean): void => {
    well = to;
  };
  return { turn, requests, keys, applied, states, log };
}

/** Written piece by piece until the client has enough. */
const trickle = (response: ServerResponse, piece: string, everyMs: number): void => {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(piece), everyMs);
  response.on("close", () => clearInterval(timer));
};
const flood = (response: ServerResponse, headers: Record<string, number> = {}): void => {
  const piece = " ".repeat(65_536);
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
  };
  response.writeHead(200, headers).on("drain", more);
  more();
};

const MISBEHAVIOURS: Readonly<Record<string, Misbehaviour>> = {
  "500": (response) => json(response, { detail: "oops" }, 500),
  "401": (response) => json(response, { detail: "no such key" }, 401),
  "403": (response) => json(response, { detail: "not for you" }, 403),
  "a page with 200": (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>log in</html>"),
  "truncated JSON": (response) => response.writeHead(200).end('{"data":[{"uuid"'),
  "half a list": (response, path) => (path.includes("cursor") ? json(response, {}, 503) : json(response, page([source(1)], "next"))),
  "a repeated cursor": (response) => json(response, page([source(1)], "again")),
  "endless pages": (response, path) => json(response, page([source(1)], `${path.length}-${Math.random()}`)),
  "10 GB by its own word": (response) => flood(response, { "content-length": 10 * 2 ** 30 }),
  "10 GB without a word": (response) => flood(response),
  "one byte now and then": (response) => trickle(response, " ", 100),
  silence: () => {},
  "a reset": (response) => response.socket?.resetAndDestroy(),
};

test.each(Object.entries(MISBEHAVIOURS))("%s: the last good configuration stays, and all is well when it ends", async (_, misbehave) => {
  const { turn, applied, states, log } = await polled(misbehave);
  turn(false);
  await expect.poll(() => states.at(-1)?.ok, { timeout: 10_000 }).toBe(false);
  expect(applied.at(-1)?.sources).toHaveLength(2);
  turn(true);
  await expect.poll(() => states.at(-1)?.ok, { timeout: 10_000 }).toBe(true);
  // An empty list was never taken for the configuration on the way.
  expect(applied.map(({ sources }) => sources.length).every((length) => length === 2)).toBe(true);
  expect(JSON.stringify([states, log.lines])).not.toContain(KEY);
});

test("at most one request for each step of the waiting; the other form of the header is tried once, and not with each", async () => {
  const times: number[] = [];
  const { turn, states } = await polled((response, path) => {
    if (path.includes("data-sources")) times.push(performance.now());
    json(response, {}, 401);
  });
  turn(false);
  await expect.poll(() => times.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(6);
  expect(states.at(-1)?.ok).toBe(false);
  // The list answered before: the two forms of the header follow one another at the first 401.
  const [, second = 0, ...later] = times;
  for (const [n, time] of later.entries()) expect(time - (later[n - 1] ?? second)).toBeGreaterThan(Math.min(100 * 2 ** n, 400) * 0.85);
});

test("429 with Retry-After is obeyed: nothing is asked before", async () => {
  const times: number[] = [];
  const { turn, states } = await polled((response, path) => {
    if (path.includes("data-sources")) times.push(performance.now());
    response.writeHead(429, { "retry-after": "1" }).end();
  });
  turn(false);
  await expect.poll(() => times.length, { timeout: 10_000 }).toBeGreaterThanOrEqual(3);
  for (const [n, time] of times.slice(1).entries()) expect(time - (times[n] ?? 0)).toBeGreaterThan(950);
  expect(states.at(-1)?.message).toContain("429");
});

test("10 GB are not held: what is read ends at the bound", async () => {
  let sent = 0;
  const { url } = await scripted(
    plainPlatform((response) => {
      flood(response, { "content-length": 10 * 2 ** 30 });
      response.on("close", () => {
        sent = response.socket?.bytesWritten ?? 0;
      });
    }),
  );
  const result = await clientOf(url, { maxBytes: 2 ** 20 }).pull(null, never);
  expect(result).toMatchObject({ type: "failed", kind: "too_large", message: expect.stringContaining("larger than") });
  expect(sent).toBeLessThan(64 * 2 ** 20);
});

test("an expired certificate, and one of nobody's, are refused before the key is sent", async () => {
  for (const [cert, ca, words] of [
    [EXPIRED_CERTIFICATE, EXPIRED_CERTIFICATE, "CERT_HAS_EXPIRED"],
    [TEST_CERTIFICATE, undefined, "SELF_SIGNED"],
  ] as const) {
    const { url, requests } = await scripted((_, response) => json(response, page([])), { key: TEST_KEY, cert });
    const result = await clientOf(url, { readRoute: () => ({ ca }) }).pull(null, never);
    expect(result).toMatchObject({ type: "failed", kind: "tls", message: expect.stringContaining(words) });
    expect(requests).toEqual([]);
  }
  const good = await scripted(
    plainPlatform((response) => json(response, page([]))),
    { key: TEST_KEY, cert: TEST_CERTIFICATE },
  );
  expect(await clientOf(good.url, { readRoute: () => ({ ca: TEST_CERTIFICATE }) }).pull(null, never)).toMatchObject({
    type: "configuration",
  });
});

test("a redirect to another host is not followed, from whatever page it comes", async () => {
  const other = await scripted((_, response) => json(response, page([])));
  const { url } = await scripted(
    plainPlatform((response, path) =>
      path.includes("cursor")
        ? void response.writeHead(307, { location: `${other.url}/api/v2/data-sources` }).end()
        : json(response, page([source(1)], "next")),
    ),
  );
  expect(await clientOf(url).pull(null, never)).toMatchObject({ type: "failed", kind: "redirect", status: 307 });
  expect([other.requests, other.keys]).toEqual([[], []]);
});

test("lists that change between pages: what is listed twice counts once, the first one, and is said", async () => {
  const { url } = await scripted(
    plainPlatform((response, path) =>
      path.includes("cursor")
        ? json(response, page([source(2, { name: "later" }), source(3)]))
        : json(response, page([source(1), source(2)], "next")),
    ),
  );
  const result = await clientOf(url).pull(null, never);
  if (result.type !== "configuration") throw new Error(JSON.stringify(result));
  expect(result.configuration.sources.map(({ name }) => name)).toEqual(["source 1", "source 2", "source 3"]);
  expect(textsOf(result.warnings)).toEqual([`data source ${source(2).uuid} is listed 2 times; its first usable record is used`]);
});

test("unknown types and fields are no failure: the type is that source's own trouble, the field is dropped", async () => {
  const strange = source(1, { type: "of_next_year", details: { type: "of_next_year", wires: 3 }, invented: { deep: [1] } });
  const { url } = await scripted((_, response, path) => {
    if (path.includes("data-sources")) json(response, { ...page([strange, source(2)]), invented: 1 });
    else if (path.includes("data-sinks")) json(response, page([{ ...strange, name: null, uuid: source(9).uuid }]));
    else json(response, {}, 404);
  });
  const result = await clientOf(url).pull(null, never);
  if (result.type !== "configuration") throw new Error(JSON.stringify(result));
  expect(result.warnings).toEqual([]);
  expect(result.configuration.sources.map(({ type }) => type)).toEqual(["of_next_year", "modbus_tcp"]);
  expect(result.configuration.sources[0]).not.toHaveProperty("invented");
  expect(result.configuration.sinks.map(({ type }) => type)).toEqual(["of_next_year"]);
});
