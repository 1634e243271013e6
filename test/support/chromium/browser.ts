import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { type Browser, chromium } from "playwright-core";
import { type Look, Visit } from "./visit.ts";

/** The place where Debian's package `chromium` has it. */
const CHROMIUM = "/usr/bin/chromium";
const START_WITHIN_MS = 60_000;

/** True: tests with a browser are left out on this machine; where each part is required they fail instead. */
export const isChromiumMissing = !existsSync(CHROMIUM) && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1";

const FLAGS = [
  // Only what is on loopback can be reached: all else goes to a proxy that nobody is.
  "--proxy-server=http://127.0.0.1:1",
  "--proxy-bypass-list=127.0.0.1;[::1];localhost",
];

/** A headless browser with a profile folder of its own. It is driven over a pipe, so that it ends with the process that started it. */
export class TestBrowser {
  readonly #chromium: Browser;
  readonly #folder: string;

  private constructor(browser: Browser, folder: string) {
    this.#chromium = browser;
    this.#folder = folder;
  }

  /** `enter`: program and arguments before the browser's own, such as `nsenter` into the network of what is looked at. */
  static async start(enter: readonly string[] = []): Promise<TestBrowser> {
    const folder = await mkdtemp(path.join(os.tmpdir(), "chromium-"));
    const launcher = path.join(folder, "chromium");
    await writeFile(launcher, `#!/bin/sh\nexec ${[...enter, CHROMIUM].join(" ")} "$@"\n`, { mode: 0o755 });
    const browser = await chromium.launch({
      executablePath: launcher,
      // As root, as which the suite runs, the sandbox does not start; it opens nothing but our own page.
      chromiumSandbox: false,
      args: FLAGS,
      timeout: START_WITHIN_MS,
      // What it keeps beside its profile.
      env: { ...process.env, TMPDIR: folder, HOME: folder },
    });
    return new TestBrowser(browser, folder);
  }

  /** Opens an address in a window that shares nothing with others. Whatever the page does wrong from now on is in `complaints`. */
  async open(url: string, look: Look): Promise<Visit> {
    const context = await this.#chromium.newContext({
      viewport: { width: look.width, height: look.height },
      colorScheme: look.dark ? "dark" : "light",
      javaScriptEnabled: look.javascript ?? true,
      reducedMotion: "reduce",
      ...(look.token !== undefined && { extraHTTPHeaders: { Authorization: `Bearer ${look.token}` } }),
    });
    const visit = new Visit(await context.newPage());
    await visit.go(url);
    return visit;
  }

  async close(): Promise<void> {
    await this.#chromium.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
