import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { TestBrowser } from "../support/chromium/browser.ts";
import { DESKTOP, type Look, PHONE, type Visit } from "../support/chromium/visit.ts";

/** `npm run screenshots`: the README's pictures of the local page, taken of the demo while one of its machines is off. */

const ROOT = path.resolve(import.meta.dirname, "../..");
const PICTURES: readonly { readonly file: string; readonly path: string; readonly look: Look }[] = [
  { file: "docs/page-light.png", path: "/", look: DESKTOP },
  { file: "docs/page-dark-phone.png", path: "/sources/oven-2", look: { ...PHONE, dark: true } },
];
/** Until lines of values have become lines. */
const RUN_MS = 25_000;
/** A machine is off once in half a minute, for four seconds. */
const OFF_WITHIN_MS = 45_000;
const MAX_BYTES = 150 * 1024;

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
  for (const [file, window] of windows) await window.screenshot(path.join(ROOT, file));
  for (const [file] of windows) {
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
