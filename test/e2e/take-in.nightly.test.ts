import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { expect, onTestFinished, test } from "vitest";
import { ApiClient } from "../../src/api/client.ts";
import type { Desired } from "../../src/api/desired.ts";
import { saveLastGood, storedContentOf } from "../../src/api/last-good.ts";
import { COLLECTOR, recordingLog, temporaryFolder } from "../../src/api/server/testing.ts";
import { scripted, source } from "../../src/api/server/testing-scripted.ts";
import { desiredSources } from "../../src/configuration/desired-sources.ts";
import { plant, running } from "../support/agent.ts";
import { startCollector } from "../support/collector-process.ts";

const SOURCES = 101;
const VARIABLES = 1000;
const PAGE = 2000;
const FAST_MS = 50;
const never = new AbortController().signal;

/** Pages of a list as text, made before anything is measured. */
function pagesOf(records: readonly object[]): readonly Buffer[] {
  const pages: Buffer[] = [];
  for (let from = 0; from === 0 || from < records.length; from += PAGE) {
    const next_cursor = from + PAGE < records.length ? String(from / PAGE + 1) : null;
    pages.push(Buffer.from(JSON.stringify({ data: records.slice(from, from + PAGE), metadata: { next_cursor } })));
  }
  return pages;
}

/** A configuration of 100 sources of 1,000 variables, and one source that is read every 50 ms. */
function configuration(fastPort: number, round: number) {
  const sources = Array.from({ length: SOURCES }, (_, n) =>
    source(n, {
      readout_interval: n === 0 ? FAST_MS : 3_600_000,
      details: { type: "modbus_tcp", host: "127.0.0.1", port: n === 0 ? fastPort : 1, ephemeral_connections: false },
    }),
  );
  const variables = sources.flatMap(({ uuid }, n) =>
    Array.from({ length: n === 0 ? 2 : VARIABLES }, (_, i) => ({
      uuid: randomUUID(),
      data_source: uuid,
      name: `v${i}`,
      address: `holding:${i}`,
      type: "uint16",
      unit: null,
      scaling: null,
      comment: n === 0 ? "" : `comment ${round}`,
      status: "ACTIVE",
    })),
  );
  return { sources: pagesOf(sources), variables, pages: pagesOf(variables) };
}

/** An API with our extensions: these sources, and the variables and the revision of the moment. */
async function apiOf(
  sources: readonly Buffer[],
  now: () => { readonly variables: readonly Buffer[]; readonly revision: string },
): Promise<string> {
  const { url } = await scripted((_, response, path) => {
    const at = Number(new URL(path, "http://x").searchParams.get("cursor") ?? 0);
    const body = path.startsWith("/api/v2/data-sources")
      ? sources[at]
      : path.startsWith("/api/ext/v1/variables")
        ? now().variables[at]
        : path.startsWith("/api/ext/v1/revision")
          ? JSON.stringify({ revision: now().revision })
          : path === "/api/ext/v1"
            ? JSON.stringify({ extension: "collector", version: 1 })
            : JSON.stringify(path.startsWith("/api/ext/v1/secrets") ? { secrets: {} } : { data: [], metadata: { next_cursor: null } });
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  });
  return url;
}

test("a configuration of 100,000 variables is taken in while a source of 50 ms is read on, and an unchanged one costs no validation", async () => {
  const device = await plant();
  const first = configuration(device.port, 1);
  const fast = first.variables.slice(0, 2);
  let variables: readonly Buffer[] = pagesOf(fast);
  let revision = "0";
  const url = await apiOf(first.sources, () => ({ variables, revision }));
  const client = new ApiClient({ url, collector: COLLECTOR, readKey: () => "key", log: recordingLog(), maxBytes: 256 * 2 ** 20 });
  onTestFinished(() => client.close());
  const { agent, of } = running();
  const folder = temporaryFolder();
  const settings = { sources: {}, readout_interval_unit: "milliseconds" as const };
  let current: Desired | null = null;
  const round = async (): Promise<string> => {
    const pulled = await client.pull(current, never);
    if (pulled.type !== "configuration") return pulled.type;
    current = pulled.configuration;
    await agent.apply(await desiredSources(current, { bySource: new Map(), problems: [] }, settings, new Map()));
    await storedContentOf(current);
    await saveLastGood(`${folder}/last-good.json`, current);
    return "taken in";
  };
  const readouts = () => of("source 0").length;
  const measured = async (title: string, work: () => Promise<unknown>) => {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    const [before, began] = [readouts(), performance.now()];
    delay.enable();
    await work();
    delay.disable();
    const ms = performance.now() - began;
    const [p99, max] = [delay.percentile(99) / 1e6, delay.max / 1e6];
    console.log(
      `${title}: ${ms.toFixed(0)} ms, ${readouts() - before} readouts of the ${FAST_MS} ms source; event loop p99 ${p99.toFixed(1)} ms, max ${max.toFixed(1)} ms`,
    );
    // Of the whole work, which a busy machine makes longer as it does a slice.
    expect.soft(max, `longest slice of ${title}`).toBeLessThan(ms / 6);
    return { ms, readouts: readouts() - before };
  };

  expect(await round()).toBe("taken in");
  await expect.poll(readouts, { timeout: 10_000 }).toBeGreaterThan(3);

  variables = [...first.pages];
  revision = "1";
  const taken = await measured("100,000 variables come", () => round());
  expect(agent.reports()).toHaveLength(SOURCES);
  expect(taken.readouts).toBeGreaterThan(taken.ms / FAST_MS / 3);

  const judged = client.judged();
  revision = "2";
  const unchanged = await measured("unchanged, under another revision", () => round());
  expect(client.judged()).toBe(judged);
  expect(unchanged.readouts).toBeGreaterThanOrEqual(Math.floor(unchanged.ms / FAST_MS / 3));

  // The last page has changed: its records alone are validated.
  const changed = { ...first.variables.at(-1), comment: "changed" };
  variables = pagesOf([...first.variables.slice(0, -1), changed]);
  revision = "3";
  await measured("one variable has changed", () => round());
  expect(client.judged() - judged).toBeLessThanOrEqual(PAGE);
}, 120_000);

/** `name{labels} value` lines of a scrape: the value of the first that begins so, 0 where there is none. */
const figure = (text: string, start: string): number =>
  Number(
    text
      .split("\n")
      .find((line) => line.startsWith(start))
      ?.split(" ")
      .at(-1) ?? 0,
  );

test("as it is shipped, the collector takes 100,000 variables in without a long slice, and takes them away again", async () => {
  const device = await plant();
  const large = configuration(device.port, 1);
  let variables: readonly Buffer[] = pagesOf(large.variables.slice(0, 2));
  let revision = "0";
  const url = await apiOf(large.sources, () => ({ variables, revision }));
  const dir = temporaryFolder();
  mkdirSync(dir, { recursive: true });
  writeFileSync(`${dir}/collector.key`, "key\n");
  const collector = await startCollector({
    dir,
    settings: {
      collector: COLLECTOR,
      readout_interval_unit: "milliseconds",
      api: { url, key_file: `${dir}/collector.key`, poll_interval: "500ms" },
    },
  });
  onTestFinished(() => collector.kill());
  const scrape = async (): Promise<string> => (await fetch(`${collector.httpUrl}/metrics`)).text();
  const readouts = async () => figure(await scrape(), 'collector_source_readouts_total{source="source 0"');
  const isRead = expect.poll(readouts, { timeout: 30_000 });
  await isRead.toBeGreaterThan(10);
  // The large ones have nobody who answers; without variables nothing is asked.
  const refused = 'collector_sources{state="ERROR",reason="CONNECTION_REFUSED"';
  for (const [title, pages, count] of [
    ["100,000 variables come", large.pages, SOURCES - 1],
    ["they go", pagesOf(large.variables.slice(0, 2)), 0],
  ] as const) {
    // What is measured begins with a scrape.
    const before = await readouts();
    const beganMs = performance.now();
    variables = pages;
    revision = title;
    let longestMs = 0;
    let text = "";
    do {
      await new Promise((done) => setTimeout(done, 200));
      text = await scrape();
      longestMs = Math.max(longestMs, figure(text, 'collector_event_loop_delay_seconds{quantile="1"}') * 1000);
    } while (figure(text, refused) !== count);
    const ms = performance.now() - beganMs;
    const read = figure(text, 'collector_source_readouts_total{source="source 0"') - before;
    console.log(`${title}: ${ms.toFixed(0)} ms, ${read} readouts of the ${FAST_MS} ms source; longest slice ${longestMs.toFixed(1)} ms`);
    expect.soft(longestMs, `longest slice while ${title}`).toBeLessThan(ms / 10);
    expect(read).toBeGreaterThan(ms / FAST_MS / 3);
  }
}, 120_000);
