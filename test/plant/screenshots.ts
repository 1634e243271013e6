import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { failing, reportOf, startTestPage } from "../../src/service/page/testing.ts";
import { TestBrowser } from "../support/chromium/browser.ts";
import { DESKTOP, type Look, PHONE, type Visit } from "../support/chromium/visit.ts";

/** `npm run screenshots`: pictures of the local page, of the demo while one of its machines is off, and of a plant of 300 sources. */

const ROOT = path.resolve(import.meta.dirname, "../..");
const PICTURES: readonly { readonly file: string; readonly path: string; readonly look: Look }[] = [
  { file: "docs/page-light.png", path: "/", look: DESKTOP },
  { file: "docs/page-dark-phone.png", path: "/sources/oven-2", look: { ...PHONE, dark: true } },
];
/** Until lines of values have become lines. */
const RUN_MS = 25_000;
/** A machine is off once in half a minute, for four seconds. */
const OFF_WITHIN_MS = 45_000;
const MAX_BYTES = 200 * 1024;

/** Takes the demo's own place out of the commands: a package's settings are where commands look for them. */
const WITHOUT_PLACE = `for (const code of document.querySelectorAll("code"))
  for (const text of code.childNodes) text.textContent = text.textContent.replace(/ -c \\S+/, "")`;

/** A plant in which every ninth source fails and every ninth has a bad variable. */
const LARGE = 300;

const demo = spawn(path.join(ROOT, "bin/collector-node"), [path.join(ROOT, "test/plant/demo.ts")], {
  cwd: ROOT,
  stdio: ["ignore", "pipe", "inherit"],
});
const browser = await TestBrowser.start();
try {
  const url = await pageOf(demo);
  const windows: (readonly [string, Visit])[] = [];
  for (const { file, path: page, look } of PICTURES) windows.push([file, await browser.open(new URL(page, url).href, look)]);
  await delay(RUN_MS);
  await Promise.all(windows.map(([, { page }]) => page.waitForSelector("[data-source].bad", { timeout: OFF_WITHIN_MS })));
  for (const [file, window] of windows) {
    await window.page.evaluate(WITHOUT_PLACE);
    await window.screenshot(path.join(ROOT, file));
  }
  await large(path.join(ROOT, "docs/page-300.png"));
  for (const file of [...PICTURES.map((picture) => picture.file), "docs/page-300.png"]) {
    const { size } = statSync(path.join(ROOT, file));
    console.log(`${file}: ${(size / 1024).toFixed(0)} KiB`);
    if (size > MAX_BYTES) throw new Error(`${file} is larger than ${MAX_BYTES / 1024} KiB`);
  }
} finally {
  await browser.close();
  demo.kill("SIGTERM");
  if (demo.exitCode === null) await once(demo, "exit");
}
process.exit(0);

async function large(file: string): Promise<void> {
  const plant = await startTestPage();
  plant.service.reports = Array.from({ length: LARGE }, (_, n) =>
    reportOf(n + 1, {
      endpoint: `10.0.${n % 8}.${n % 250}:502`,
      ...(n % 9 === 4 && failing("connect ECONNREFUSED")),
      ...(n % 9 === 7 && { faults: [{ variable: "temperature", fault: "not_found", detail: "exception 2 (illegal data address)" }] }),
    }),
  );
  const window = await browser.open(plant.url, { ...DESKTOP, dark: true });
  for (let readAt = 0; readAt < 10; readAt++) {
    plant.service.readAt = Date.now() + (readAt % 3) * 100;
    await delay(1000);
  }
  await window.screenshot(file);
  await plant.stop();
}

/** The page's address, as the demo prints it. Throws where the demo ends before. */
async function pageOf({ stdout }: ChildProcess): Promise<string> {
  if (!stdout) throw new Error("the demo has no output");
  const lines = createInterface({ input: stdout });
  for await (const line of lines) {
    const url = /^page for a browser: (\S+)$/.exec(line)?.[1];
    if (url === undefined) continue;
    stdout.resume();
    return url;
  }
  throw new Error("the demo ended before it had a page");
}
