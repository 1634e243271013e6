import type { ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { reported } from "../../model/testing/warnings.ts";
import { LivePages } from "./live-pages.ts";
import type { FromPage } from "./messages.ts";
import { addressOf, type PageAddress } from "./pages.ts";
import { failing, HEAD, reportOf, TestService, uuidOf } from "./testing.ts";

const OVERVIEW: PageAddress = { type: "overview", query: { failing: false, filter: "", page: 1 } };
const detailOf = (n: number): PageAddress => ({ type: "source", name: `press-${n}`, query: { filter: "", page: 1 } });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A response that takes what is written, or, while it is stuck, keeps it waiting. */
function viewer() {
  const stream = new PassThrough({ highWaterMark: 1 });
  const response = Object.assign(stream, { writeHead: () => stream }) as unknown as ServerResponse;
  return {
    response,
    /** Of the parts of all events so far. */
    read: () => String(stream.read() ?? ""),
    waiting: () => stream.writableLength + stream.readableLength,
    destroyed: () => stream.destroyed,
    close: () => void stream.destroy(),
  };
}

function pagesOf(service = new TestService()) {
  const asks: Extract<FromPage, { type: "ask" }>[] = [];
  const pages: LivePages = new LivePages({
    post(message) {
      if (message.type !== "ask") return;
      asks.push(message);
      void Promise.resolve().then(() => service.answer(message, (answer) => pages.take(answer as never)));
    },
  });
  return { pages, asks, service };
}

async function load(pages: LivePages, address: PageAddress) {
  await pages.refresh(address);
  return pages.page(address);
}

describe("the load of the reading thread", () => {
  it("asks about sources only while somebody looks, once a second for ten viewers", async () => {
    const { pages, asks } = pagesOf();
    await vi.advanceTimersByTimeAsync(300_000);
    expect(asks.map(({ scope }) => scope)).toEqual(["all", "head", "head", "head", "head", "head"]);
    asks.length = 0;
    const viewers = Array.from({ length: 10 }, () => viewer());
    for (const { response } of viewers) pages.watch(OVERVIEW, "", response, () => true);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asks.length).toBeGreaterThanOrEqual(9);
    expect(asks.length).toBeLessThanOrEqual(11);
    for (const { close } of viewers) close();
    await vi.advanceTimersByTimeAsync(2000);
    asks.length = 0;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(asks.filter(({ scope }) => scope === "all")).toEqual([]);
    pages.close();
  });

  it("is at most four looks a second, however many pages are loaded", async () => {
    const { pages, asks, service } = pagesOf();
    service.reports = Array.from({ length: 40 }, (_, n) => reportOf(n));
    await vi.advanceTimersByTimeAsync(2000);
    void load(pages, OVERVIEW);
    await vi.advanceTimersByTimeAsync(2000);
    asks.length = 0;
    const loads = Array.from({ length: 40 }, (_, n) => load(pages, detailOf(n)));
    await vi.advanceTimersByTimeAsync(3000);
    await Promise.all(loads);
    expect(asks.length).toBeLessThanOrEqual(12);
    expect(Math.max(...asks.map(({ looks }) => looks.length))).toBeLessThanOrEqual(32);
    pages.close();
  });

  it("asks again where an answer is lost, and who loads a page gets what there is", async () => {
    const asks: FromPage[] = [];
    const pages = new LivePages({ post: (message) => asks.push(message) });
    const loading = load(pages, OVERVIEW);
    await vi.advanceTimersByTimeAsync(2000);
    expect((await loading)?.main.text).toContain("The collector is starting");
    expect(asks).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asks).toHaveLength(2);
    pages.close();
  });
});

/** A viewer that takes all at once, and the parts that its browser has after all events so far. */
function reader(pages: LivePages, address: PageAddress) {
  const { response, close } = viewer();
  let text = "";
  response.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  pages.watch(address, "", response, () => true);
  return {
    text: () => text,
    close,
    parts: (): Readonly<Record<string, unknown>> =>
      Object.assign(
        {},
        ...[...text.matchAll(/^data: (\{"title".*)$/gm)].map(([, data = ""]) => (JSON.parse(data) as { parts: object }).parts),
      ),
  };
}

describe("a viewer of the overview", () => {
  it("learns of changes although the clock was set back by a year", async () => {
    const { pages, service } = pagesOf();
    const watching = reader(pages, OVERVIEW);
    await vi.advanceTimersByTimeAsync(2000);
    vi.setSystemTime(Date.now() - 365 * 86_400_000);
    service.reports = [reportOf(7)];
    await vi.advanceTimersByTimeAsync(3000);
    expect(watching.parts()).toMatchObject({ sources: [uuidOf(7)], head: { sums: { sources: 1, well: 1 } } });
    pages.close();
  });

  it("has after all changes what one that came last has: names that cannot be a path, two of one name, 2,000 sources and ten again", async () => {
    const { pages, service } = pagesOf();
    const first = reader(pages, OVERVIEW);
    const odd = [
      "__proto__",
      "gone",
      "..",
      ".",
      "<b>",
      "turned \u202eround",
      "half \ud800",
      "x".repeat(200),
      uuidOf(3),
      "a/b",
      "same",
      "same",
    ];
    const plants = [
      Array.from({ length: 2000 }, (_, n) => reportOf(n, n % 9 === 4 ? failing("connect ECONNREFUSED") : {})),
      odd.map((name, n) => reportOf(n + 1, { name, ...(n % 2 ? failing(`mqtt://u:canary@host ${name}`) : {}) })),
      Array.from({ length: 10 }, (_, n) => reportOf(n)),
      odd.map((name, n) => reportOf(n + 1, { name: odd[(n + 1) % odd.length] ?? name })),
    ];
    for (const reports of plants) {
      service.reports = reports;
      await vi.advanceTimersByTimeAsync(3000);
      const last = reader(pages, OVERVIEW);
      await vi.advanceTimersByTimeAsync(1000);
      const [before, parts] = [first.parts(), last.parts()];
      // Parts of what is not listed any more are forgotten by the browser.
      expect(Object.fromEntries(Object.keys(parts).map((id) => [id, before[id]]))).toEqual(parts);
      expect(JSON.stringify(parts)).not.toContain("canary");
      for (const { uuid } of reports) {
        const { path } = parts[`s-${uuid}`] as { path: string };
        const address = addressOf(new URL(path, "http://localhost").pathname);
        expect(address?.type === "source" && pages.state.find(address.name)?.uuid).toBe(uuid);
      }
      last.close();
    }
    pages.close();
  });

  it("learns that its source was removed, and that it was added again", async () => {
    const { pages, service } = pagesOf();
    await vi.advanceTimersByTimeAsync(2000);
    const watching = reader(pages, detailOf(9));
    expect(watching.parts()).toEqual({ gone: true });
    service.reports = [reportOf(9)];
    await vi.advanceTimersByTimeAsync(3000);
    expect(watching.parts()).toMatchObject({ sources: [uuidOf(9)] });
    service.reports = [reportOf(8)];
    await vi.advanceTimersByTimeAsync(3000);
    expect(watching.parts()).toMatchObject({ gone: true });
    pages.close();
  });

  it("gets an event that says nothing every quarter of a minute", async () => {
    const { pages } = pagesOf();
    const watching = reader(pages, OVERVIEW);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(watching.text().match(/^event: quiet$/gm)?.length).toBeGreaterThanOrEqual(2);
    pages.close();
  });
});

describe("a slow viewer", () => {
  it("has a bounded queue, gets the newest state when it reads again, and goes where it never does", async () => {
    const { pages, service } = pagesOf();
    service.reports = Array.from({ length: 50 }, (_, n) => reportOf(n));
    const slow = viewer();
    pages.watch(OVERVIEW, "", slow.response, () => true);
    for (let n = 1; n <= 30; n++) {
      service.readAt = n * 1000;
      service.reports = service.reports.map((report) => ({ ...report, warnings: [reported(`note ${n} ${"x".repeat(900)}`)] }));
      await vi.advanceTimersByTimeAsync(1000);
    }
    const waiting = slow.waiting();
    expect(waiting).toBeGreaterThan(64 * 1024);
    expect(waiting).toBeLessThan(1024 * 1024);
    for (let text = slow.read(); text !== ""; text = slow.read());
    await vi.advanceTimersByTimeAsync(2000);
    const text = slow.read();
    expect(text).toContain("note 30 ");
    expect(text).not.toContain("note 29 ");
    pages.close();
  });

  it("goes where it may look no more, also one that takes nothing", async () => {
    const { pages, service } = pagesOf();
    const [stuck, refused] = [viewer(), viewer()];
    let isAdmitted = true;
    for (const { response } of [stuck, refused]) pages.watch(OVERVIEW, "", response, () => isAdmitted);
    refused.response.on("data", () => undefined);
    for (let n = 1; n <= 40; n++) {
      service.head = { ...HEAD, alarms: [reported(`alarm ${n} ${"x".repeat(9000)}`)] };
      if (n === 20) isAdmitted = false;
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(pages.viewers.count).toBe(0);
    pages.close();
  });
});

describe("what the page remembers", () => {
  it("has the ledger in hours within its bound", async () => {
    vi.setSystemTime(new Date("2026-11-20T00:00:00Z"));
    const { pages, service } = pagesOf();
    const watching = viewer();
    pages.watch(OVERVIEW, "", watching.response, () => true);
    watching.response.on("data", () => undefined);
    let delivered = 0;
    for (let hour = 0; hour < 60; hour++) {
      delivered += 5;
      const [sink] = HEAD.sinks;
      if (sink?.ledger)
        service.head = {
          ...HEAD,
          sinks: [{ ...sink, ledger: { ...sink.ledger, accepted: delivered, delivered, unconfirmed: (delivered / 5) * 2, pending: hour } }],
        };
      vi.setSystemTime(new Date(Date.now() + 3_600_000));
      await vi.advanceTimersByTimeAsync(2000);
    }
    const hours = pages.state.hoursOf(uuidOf(900));
    expect(hours).toHaveLength(48);
    expect(hours.map((one) => one.delivered)).toEqual(new Array(48).fill(5));
    expect(hours.map((one) => one.unconfirmed)).toEqual(new Array(48).fill(2));
    expect(hours[0]?.pending).toBe(59);
    pages.close();
  });

  it("lists 200 sources on a page without scripts, those in trouble first", async () => {
    const { pages, service } = pagesOf();
    service.reports = Array.from({ length: 1000 }, (_, n) => reportOf(n, n === 999 ? { warnings: [reported("late")] } : {}));
    await vi.advanceTimersByTimeAsync(2000);
    const loading = load(pages, OVERVIEW);
    await vi.advanceTimersByTimeAsync(2000);
    const text = (await loading)?.main.text ?? "";
    const rows = [...text.matchAll(/<tr data-source="([^"]+)"/g)].map(([, name]) => name);
    expect([rows.length, rows[0]]).toEqual([200, "press-999"]);
    expect(text).toContain("Page 1 of 5, 1000 data sources");
    pages.close();
  });
});
