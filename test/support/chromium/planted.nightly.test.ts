import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isChromiumMissing, TestBrowser } from "./browser.ts";
import { barriersOf, overflowsOf, tabTo } from "./checks.ts";
import { layoutFlawsOf } from "./layout.ts";
import { DESKTOP, LOOKS, PHONE, type Visit } from "./visit.ts";

/** Each check finds what is planted for it, and nothing on a page that is well: a check that finds nothing proves nothing. */

const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' http://127.0.0.1:1 http://192.0.2.7";
const STYLE = `
  :root { color-scheme: light dark; }
  body { font: 16px sans-serif; color: CanvasText; background: Canvas; }
  a { color: LinkText; }
  .pale { color: #999; background: #fff; }
  .picture { background: url("/dot.svg"); }
  body, p, h1 { margin: 0; }
  .wide { width: 50em; }
  .cut { overflow: hidden; white-space: nowrap; width: 4em; }
  .narrow { width: 3em; overflow-wrap: anywhere; display: block; }
  .odd { margin-top: 7px; }
  button { padding: 4px; }
  .tile { height: 20px; }
  .raised { margin-top: -16px; }
  .scrolls { overflow-x: auto; }
  .unmarked:focus-visible { outline: none; }`;
const SCRIPT = `
  document.querySelector("#live").textContent = "scripts run";
  new EventSource("/events").onmessage = ({ data }) => { document.querySelector("#live").textContent = data; };`;

/** What is added to the page that is well, and what must be said of it. */
const PLANTED: Readonly<Record<string, { readonly html: string; readonly found: RegExp }>> = {
  "an error on the console": { html: '<script src="/fails.js"></script>', found: /^console: planted http:.*\/fails\.js$/ },
  "an exception of a script": { html: '<script src="/throws.js"></script>', found: /^script: thrown$/ },
  "a script inside the page": { html: "<script>1</script>", found: /^console: .*Content Security Policy.*script-src/s },
  "a style inside the page": { html: '<p style="color: red">x</p>', found: /^console: .*Content Security Policy.*style-src/s },
  "a picture of a foreign host": {
    html: '<img alt="x" src="http://192.0.2.7/x.png">',
    found: /^foreign request: http:\/\/192\.0\.2\.7\/x\.png$/,
  },
  "a host beyond loopback, which is not reached": {
    html: '<img alt="x" src="http://192.0.2.7/x.png">',
    found: /^request failed: net::ERR_PROXY_CONNECTION_FAILED: http:\/\/192\.0\.2\.7/,
  },
  "a picture that is not there": { html: '<img alt="x" src="/none.png">', found: /^answer 404: http:.*\/none\.png$/ },
  "a button without a name": { html: "<button></button>", found: /^button-name: .*button: Fix/ },
  "a link without a name": { html: '<a href="/"></a>', found: /^link-name: / },
  "low contrast": { html: '<p class="pale">pale</p>', found: /^color-contrast: \.pale: .*2\.8/ },
  "a contrast that cannot be computed": { html: '<p class="picture">on a picture</p>', found: /^color-contrast: \.picture: .*background/ },
  "a heading out of order": { html: "<h4>deep</h4>", found: /^heading-order: h4/ },
  "a picture without words": { html: '<img src="/dot.svg">', found: /^image-alt: img/ },
  "a page that is wider than the phone": { html: '<p class="wide">wide</p>', found: /^the page is \d+ px wide in a window of 360$/ },
  "text that is cut without a title": { html: '<p class="cut">cut without a title</p>', found: /^cut: p\.cut cut without/ },
  "a word that is broken inside a cell": {
    html: '<div role="table"><div role="row"><span role="cell" class="narrow">CONNECTION</span></div></div>',
    found: /^broken word CONNECTION/,
  },
  "a distance of no scale": { html: '<p class="odd">odd</p>', found: /^distance marginTop 7px: p\.odd/ },
  "boxes over each other": {
    html: '<div class="tile">one</div><div class="tile raised">two</div>',
    found: /^over each other: div\.tile one and div\.tile\.raised two/,
  },
  "an element that is cut at the edge": { html: '<p class="wide">wide</p>', found: /^p: wide$/ },
};

const page = (planted: string): string => `<!doctype html>
  <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>planted</title>
  <link rel="icon" href="/dot.svg"><link rel="stylesheet" href="/style.css"><script type="module" src="/script.js"></script></head>
  <body><main><h1><span aria-hidden="true">✗</span> Sources</h1><p id="live">no scripts</p>
  <div class="scrolls" tabindex="0" role="region" aria-label="Values"><p class="wide">scrolls by itself</p></div>
  <p><a href="/one">press-1</a> <button class="unmarked">Show all</button></p>${planted}</main></body></html>`;

const FILES: Readonly<Record<string, readonly [type: string, text: string]>> = {
  "/style.css": ["text/css", STYLE],
  "/script.js": ["text/javascript", SCRIPT],
  "/fails.js": ["text/javascript", 'console.error("planted")'],
  "/throws.js": ["text/javascript", 'throw new Error("thrown")'],
  "/dot.svg": ["image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'],
  "/one": [
    "text/html",
    "<!doctype html><html lang='en'><link rel='icon' href='/dot.svg'><title>one</title><main><h1>press-1</h1></main></html>",
  ],
  "/events": ["text/event-stream", "data: by an event\n\n"],
};

describe.skipIf(isChromiumMissing)("a page in a browser", () => {
  let server: Server;
  let browser: TestBrowser;
  let url = "";
  let visit: Visit;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const [type, text] = FILES[request.url ?? ""] ?? [];
      const planted = PLANTED[decodeURIComponent((request.url ?? "").slice("/planted/".length))];
      const isPage = request.url === "/" || planted !== undefined;
      response.writeHead(isPage || text !== undefined ? 200 : 404, {
        "content-type": type ?? "text/html; charset=utf-8",
        "content-security-policy": POLICY,
      });
      // A stream of events stays open.
      if (type === "text/event-stream") response.write(text);
      else response.end(isPage ? page(planted?.html ?? "") : text);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await TestBrowser.start();
    visit = await browser.open(`${url}/`, PHONE);
  }, 90_000);
  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  }, 60_000);

  const all = async (): Promise<readonly string[]> => [
    ...visit.complaints,
    ...(await barriersOf(visit)),
    ...(await overflowsOf(visit)),
    ...(await layoutFlawsOf(visit)),
  ];

  it.each(LOOKS)("that is well is found well: $name", async (look) => {
    visit.forgive();
    await visit.go(`${url}/`);
    await visit.lookAs(look);
    expect(await all()).toEqual([]);
    expect(await visit.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")).toBe(look.dark);
    await expect.poll(() => visit.text("#live")).toBe("by an event");
    expect(await visit.named("link")).toEqual(["press-1"]);
    expect(await visit.named("heading")).toEqual(["Sources"]);
  });

  it.each(Object.entries(PLANTED))("%s is found", async (name, { found }) => {
    visit.forgive();
    await visit.lookAs(PHONE);
    await visit.go(`${url}/planted/${encodeURIComponent(name)}`);
    await expect.poll(all).toContainEqual(expect.stringMatching(found));
  });

  it("is walked by the keyboard alone; a stop that cannot be seen and a goal that is not there are said", async () => {
    visit.forgive();
    await visit.go(`${url}/`);
    const stops = await tabTo(visit, ({ tag }) => tag === "button");
    expect(stops.map(({ text, isVisible }) => [text, isVisible])).toEqual([
      ["Values", true],
      ["press-1", true],
      ["Show all", false],
    ]);
    await visit.go(`${url}/`);
    await expect(tabTo(visit, ({ text }) => text === "press-2")).rejects.toThrow("Tab never comes to it:\ndiv Values\na press-1");
    await visit.go(`${url}/`);
    await tabTo(visit, ({ href }) => href === "/one");
    await visit.press("Enter");
    await visit.page.waitForURL(`${url}/one`);
    // The stream of events that was left is no complaint.
    expect(visit.complaints).toEqual([]);
  });

  it("is seen without scripts, and complaints come all the same", async () => {
    const without = await browser.open(`${url}/planted/${encodeURIComponent("a style inside the page")}`, {
      ...DESKTOP,
      javascript: false,
    });
    expect(await without.text("#live")).toBe("no scripts");
    expect(await overflowsOf(without)).toEqual([]);
    await expect.poll(() => without.complaints).toEqual([expect.stringContaining("style-src")]);
    await without.close();
  });

  it("gets the token with each request", async () => {
    const seen = new Set<string | undefined>();
    server.on("request", ({ headers }) => seen.add(headers.authorization));
    const asked = await browser.open(`${url}/one`, { ...DESKTOP, token: "t" });
    await asked.close();
    expect([...seen]).toEqual(["Bearer t"]);
  });

  it("ends with whoever started it, also by kill -9", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "killed-"));
    const node = path.resolve(import.meta.dirname, "../../../bin/collector-node");
    const start = `import { TestBrowser } from "${import.meta.dirname}/browser.ts"; await TestBrowser.start(); console.log("up");`;
    const starter = spawn(node, ["--input-type=module-typescript", "-e", start], { env: { ...process.env, TMPDIR: folder } });
    await once(starter.stdout, "data");
    expect(commandsWith(folder)).not.toEqual([]);
    starter.kill("SIGKILL");
    await expect.poll(() => commandsWith(folder), { timeout: 20_000 }).toEqual([]);
    rmSync(folder, { recursive: true, force: true });
  });
});

/** Command lines of running processes that name a folder. */
const commandsWith = (folder: string): readonly string[] =>
  readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, "utf8")];
      } catch {
        return [];
      }
    })
    .filter((line) => line.includes(`${folder}/`));
