import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reported } from "../../src/model/testing/warnings.ts";
import { failing, HEAD, reportOf, sinkOf, startTestPage, type TestPage, uuidOf } from "../../src/service/page/testing.ts";
import { isChromiumMissing, TestBrowser } from "../support/chromium/browser.ts";
import { barriersOf, overflowsOf } from "../support/chromium/checks.ts";
import { layoutFlawsOf } from "../support/chromium/layout.ts";
import type { Visit } from "../support/chromium/visit.ts";

const WIDTHS = [390, 768, 1280, 1920] as const;
const PLANTS = [0, 10, 300, 2000] as const;
/** Three times the figure: 2,000 sources are painted within a second of the navigation. */
const PAINTED_WITHIN_MS = 3000;

const LONG = "a machine whose name says where it stands, whose it is and what it makes ".repeat(3).slice(0, 196);

/** A plant in which every ninth source fails, every ninth has a bad variable, and some have notes. */
function plantOf(count: number, isLong: boolean) {
  const nameOf = (n: number): string => (isLong ? `${LONG}${n}` : `press-${n}`);
  return Array.from({ length: count }, (_, n) =>
    reportOf(n, {
      name: nameOf(n),
      endpoint: isLong ? `${"long-".repeat(12)}host${n}.example:502` : `10.0.0.${n % 250}:502`,
      ...(n % 9 === 4 && failing("connect ECONNREFUSED 10.0.0.5:502")),
      ...(n % 9 === 7 && {
        faults: [{ variable: isLong ? LONG : "temperature", fault: "not_found", detail: "exception 2 for holding:99" }],
      }),
      ...(n % 31 === 2 && { warnings: [reported(`answers take longer than ${n} ms`)] }),
    }),
  );
}

it.runIf(process.env["COLLECTOR_REQUIRE_PARTS"] === "1")("chromium is here", () => expect(isChromiumMissing).toBe(false));

describe.skipIf(isChromiumMissing)("the console, laid out", { timeout: 120_000 }, () => {
  let page: TestPage;
  let browser: TestBrowser;
  let visit: Visit;
  beforeAll(async () => {
    page = await startTestPage();
    page.service.head = {
      ...HEAD,
      sinks: [
        sinkOf(),
        sinkOf({
          uuid: uuidOf(901),
          name: LONG,
          state: "ERROR",
          error: { reason: { type: "TIMEOUT" }, condition: null, detail: "no answer in 5 s" },
        }),
      ],
      alarms: [reported("the disk is nearly full")],
    };
    page.service.values = Array.from({ length: 30 }, (_, n) => ({
      uuid: uuidOf(5000 + n),
      name: n === 0 ? LONG : `variable ${n}`,
      address: `holding:${n}`,
      type: "float32",
      unit: "°C",
      exploration: false,
      quality: n === 3 ? ("bad" as const) : ("good" as const),
      value: n === 3 ? null : String(n * 1.5),
      raw: null,
      fault: n === 3 ? "not_found" : null,
      detail: n === 3 ? "exception 2" : null,
      source_time: null,
    }));
    browser = await TestBrowser.start();
    visit = await browser.open(`${page.url}/`, { width: 1280, height: 900 });
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await page?.stop();
  });

  /** The strip of sums counts all of them. */
  const expectSources = (count: number): Promise<void> =>
    expect.poll(() => visit.text("#sums .figure:first-of-type"), { timeout: 30_000 }).toMatch(new RegExp(`^\\d+ of ${count} `));

  async function expectNoFlaws(what: string): Promise<void> {
    for (const width of WIDTHS)
      for (const dark of [false, true]) {
        await visit.lookAs({ width, height: 900, dark });
        // Drawn once more after the change of size.
        await visit.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
        const flaws = [...(await overflowsOf(visit)), ...(await layoutFlawsOf(visit))];
        expect([what, width, dark, flaws]).toEqual([what, width, dark, []]);
      }
    expect([...visit.complaints, ...(await barriersOf(visit))]).toEqual([]);
  }

  describe.each(PLANTS)("with %i sources", (count) => {
    // The shape of the list is that of ten: longer ones only repeat it.
    it.each(count > 10 ? [false] : [false, true])("has no flaw in any size and colour; long names: %s", async (isLong) => {
      page.service.reports = plantOf(count, isLong);
      await visit.lookAs({ width: 1280, height: 900 });
      await visit.go(`${page.url}/`);
      await expectSources(count);
      await expectNoFlaws(`${count} sources${isLong ? " with long names" : ""}`);
    });
  });

  it("shows a source and a sink without a flaw", async () => {
    // The page of 2,000 that is open learns that there are ten, as a fresh one does.
    page.service.reports = plantOf(10, true);
    await expectSources(10);
    await visit.go(`${page.url}/`);
    await expectSources(10);
    for (const path of [
      `/sources/${encodeURIComponent(`${LONG}4`)}`,
      `/sources/${encodeURIComponent(`${LONG}1`)}`,
      `/sinks/${encodeURIComponent(LONG)}`,
    ]) {
      await visit.go(page.url + path);
      await visit.page.waitForSelector("#state", { timeout: 30_000 });
      await expectNoFlaws(path.slice(0, 20));
    }
  });

  it("paints 2,000 sources soon", async () => {
    page.service.reports = plantOf(2000, false);
    await visit.lookAs({ width: 1280, height: 900 });
    await visit.go(`${page.url}/`);
    await expectSources(2000);
    await visit.go(`${page.url}/`);
    // The page without scripts is painted before: the strip of sums is the console's.
    const paintedMs = await visit.page.evaluate<number>(
      `new Promise((done) => { const look = () => document.querySelector("#sums .figure") ? requestAnimationFrame(() => done(performance.now())) : setTimeout(look, 10); look(); })`,
    );
    expect(paintedMs).toBeLessThan(PAINTED_WITHIN_MS);
  });
});
