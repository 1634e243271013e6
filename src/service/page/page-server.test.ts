import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { reported } from "../../model/testing/warnings.ts";
import { failing, HEAD, reportOf, sinkOf, startTestPage, type TestPage, uuidOf } from "./testing.ts";
import { MAX_VIEWERS } from "./viewers.ts";

let page: TestPage;
beforeAll(async () => {
  page = await startTestPage();
});
afterAll(() => page.stop());

/** By node:http, which sends any Host. */
function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<{ status: number; text: string }> {
  return new Promise((done, fail) => {
    const sent = httpRequest(url, { headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => done({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", fail).end();
  });
}

/** The events of a viewer as they come. */
function watch(url: string, version = "0"): Promise<{ response: IncomingMessage; text: () => string; end: () => void }> {
  return new Promise((done, fail) => {
    const sent = httpRequest(`${url}/events?path=/&version=${version}`, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("error", () => undefined);
      done({ response, text: () => text, end: () => void sent.destroy() });
    });
    sent.on("error", fail).end();
  });
}

describe("answers of the page", () => {
  it("is the state of now, with no script or style in it and nothing from another host", async () => {
    const answer = await fetch(page.url);
    const text = await answer.text();
    expect(answer.status).toBe(200);
    expect(text).toContain("press-2: 10.0.0.5:502 refused the connection.");
    expect(text).toContain("<code>collector probe press-2</code>");
    expect(text.match(/<script(?! type="module" src="\/)|<style|\sstyle=|\son\w+=|(?:src|href|action)="(?!\/|#)/g)).toBeNull();
  });

  it.each(["/", "/assets/console.js", "/assets/console.css", "/sinks/broker", "/data/status", "/none", "/sources/none"])(
    "%s lets nothing foreign run, frame, guess types or keep it",
    async (at) => {
      const { headers } = await fetch(`${page.url}${at}`);
      expect(headers.get("content-security-policy")).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      );
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("no-store");
    },
  );

  it("is for reading alone", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const answer = await fetch(page.url, { method });
      expect([method, answer.status, answer.headers.get("allow")]).toEqual([method, 405, "GET, HEAD"]);
    }
    const head = await fetch(page.url, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  it("is given to who asks for this machine by an address or its own name, and to no other name (DNS rebinding)", async () => {
    const { port } = new URL(page.url);
    for (const host of [`127.0.0.1:${port}`, "localhost:9000", `[::1]:${port}`, os.hostname(), "10.1.2.3"])
      expect([host, (await ask(page.url, { host })).status]).toEqual([host, 200]);
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", "localhost.evil.example", "a b"])
      expect([host, (await ask(page.url, { host })).status]).toEqual([host, 421]);
  });

  it("has texts from outside as texts: nothing of them is markup, turns the line round or is a password", async () => {
    const { service } = page;
    const before = service.reports;
    onTestFinished(() => {
      service.reports = before;
      service.head = HEAD;
    });
    const evil = `<script>alert(1)</script>"'&\u202eexe`;
    service.reports = [
      reportOf(3, {
        name: evil,
        ...failing(`mqtt://user:canary-1@host ${evil}`),
        warnings: [reported(`\`${evil}\``)],
        faults: [{ variable: evil, fault: "not_found", detail: evil }],
      }),
    ];
    service.head = { ...HEAD, sinks: [sinkOf({ name: evil, endpoint: evil })], alarms: [reported(evil)] };
    await expect.poll(async () => (await fetch(page.url)).text(), { timeout: 9000 }).toContain("&lt;script&gt;");
    const viewer = await watch(page.url);
    onTestFinished(viewer.end);
    await expect.poll(viewer.text, { timeout: 9000 }).toContain("alert(1)");
    expect(viewer.text()).not.toMatch(/canary-1|\u202e/);
    const texts = [
      page.url,
      `${page.url}/sources/${encodeURIComponent(evil)}`,
      `${page.url}/sinks/${encodeURIComponent(evil)}`,
      `${page.url}/?filter=${encodeURIComponent(`"><script>`)}`,
    ].map(async (url) => (await fetch(url)).text());
    for (const text of await Promise.all(texts)) {
      expect(text).not.toMatch(/<script>|canary-1|\u202e/);
      expect(text).toContain("&lt;script&gt;");
    }
    const data = await (await fetch(`${page.url}/data/status`)).text();
    expect(data).not.toContain("canary-1");
  });

  it("says how old the configuration is and who changed it last, and no markup of theirs", async () => {
    const { service } = page;
    onTestFinished(() => {
      service.head = HEAD;
    });
    const at = "2026-11-20T08:00:00.000Z";
    const by = { role: "admin", key_name: "<b>laptop</b>", address: "10.0.0.3", os_user: null };
    service.head = {
      ...HEAD,
      config: { ...HEAD.config, taken_at: at, changed: { ...by, at, operation: "patchDataSource", name: "press-1" } },
    };
    await expect
      .poll(async () => (await fetch(page.url)).text(), { timeout: 9000 })
      .toMatch(/2026-11-20 08:00:00 UTC.* by admin key &lt;b&gt;laptop&lt;\/b&gt; from 10\.0\.0\.3: patchDataSource of press-1/);
  });

  it("says what there is not, and answers 404", async () => {
    for (const at of ["/sources/nothing", "/none", "/sources/%E0%A4%A", "/data/none"])
      expect((await fetch(`${page.url}${at}`)).status).toBe(404);
  });
});

describe("live", () => {
  it("sends what has changed and nothing else", async () => {
    const { service } = page;
    const viewer = await watch(page.url);
    onTestFinished(viewer.end);
    const partsOf = (): string[] =>
      viewer
        .text()
        .split("\n")
        .filter((line) => line.startsWith("data: "))
        .map((line) => Object.keys(JSON.parse(line.slice(6)).parts).join(" "));
    await expect.poll(() => partsOf().join(" "), { timeout: 9000 }).toContain(`s-${uuidOf(2)}`);
    const before = partsOf().length;
    service.reports = [reportOf(1, { warnings: [reported("the clock of the device is wrong")] }), ...service.reports.slice(1)];
    await expect.poll(viewer.text, { timeout: 9000 }).toContain("the clock of the device is wrong");
    const ids = partsOf().slice(before).join(" ");
    expect(ids).toContain(`s-${uuidOf(1)}`);
    expect(ids).not.toContain(`s-${uuidOf(2)}`);
    expect(ids).not.toContain("sources");
  });

  it("gives all of it to who saw another life of the page", async () => {
    const viewer = await watch(page.url, "other.7");
    onTestFinished(viewer.end);
    await expect.poll(viewer.text, { timeout: 9000 }).toContain('"head":');
  });

  it("answers HEAD at once, which takes no viewer's place", async () => {
    for (let n = 0; n <= MAX_VIEWERS; n++) expect((await fetch(`${page.url}/events?path=/`, { method: "HEAD" })).status).toBe(200);
  });

  it("takes a bounded number of viewers, and again as many when they are gone", { timeout: 20_000 }, async () => {
    const viewers = await Promise.all(Array.from({ length: MAX_VIEWERS }, () => watch(page.url)));
    const refused = await ask(`${page.url}/events?path=/`);
    expect([refused.status, refused.text]).toEqual([503, expect.stringContaining("Too many browsers")]);
    for (const { end } of viewers) end();
    await expect
      .poll(
        async () => {
          const { response, end } = await watch(page.url);
          end();
          return response.statusCode;
        },
        { timeout: 9000 },
      )
      .toBe(200);
  });
});

describe("the page's data", () => {
  it("comes from the service, for GET and HEAD only", async () => {
    page.service.questions.length = 0;
    page.service.replies = { events: { type: "events", events: [], more: 3 } };
    const answer = await fetch(`${page.url}/data/events?search=x`);
    expect([answer.status, await answer.json()]).toEqual([200, { events: [], more: 3 }]);
    expect(page.service.questions).toEqual([{ type: "events", after: 0, search: "x", limit: 100 }]);
    expect((await fetch(`${page.url}/data/events`, { method: "POST" })).status).toBe(405);
    expect((await fetch(`${page.url}/data/none`)).status).toBe(404);
  });
});

describe("a page with a token", () => {
  const TOKEN = "canary-token-0123456789abcdef";

  async function guarded() {
    const folder = mkdtempSync(path.join(os.tmpdir(), "collector-page-"));
    const tokenFile = path.join(folder, "token");
    writeFileSync(tokenFile, `${TOKEN}\n`);
    const one = await startTestPage({ tokenFile });
    onTestFinished(async () => {
      await one.stop();
      rmSync(folder, { recursive: true, force: true });
    });
    const logIn = (token: string, headers = {}) =>
      fetch(`${one.url}/login`, { method: "POST", redirect: "manual", body: new URLSearchParams({ token }), headers });
    return { ...one, tokenFile, logIn };
  }

  it("shows nothing but the form without it, and takes it as a bearer token and by the form", async () => {
    const { url, logIn, tokenFile, logged, service } = await guarded();
    for (const at of ["/", "/sources/press-1", "/data/status", "/data/events", "/data/capture?source=press-1", "/events?path=/"]) {
      const answer = await fetch(`${url}${at}`);
      const text = await answer.text();
      expect([at, answer.status, text.includes("press-")]).toEqual([at, 401, false]);
    }
    expect((await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(200);
    expect((await fetch(url, { headers: { authorization: "Bearer wrong" } })).status).toBe(401);
    const wrong = await logIn("wrong");
    expect([wrong.status, await wrong.text()]).toEqual([401, expect.stringContaining("That is not the token.")]);
    const right = await logIn(TOKEN);
    const cookie = right.headers.get("set-cookie") ?? "";
    expect(right.status).toBe(303);
    expect(cookie).toMatch(/^collector_page=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    const session = { cookie: cookie.split(";")[0] ?? "" };
    const inside = await fetch(url, { headers: session });
    const text = await inside.text();
    expect([inside.status, text.includes("press-1"), text.includes("Log out")]).toEqual([200, true, true]);
    expect(service.accesses.map(({ what }) => what)).toEqual(["refused", "refused", "login"]);
    expect(service.accesses[0]?.address).toMatch(/127\.0\.0\.1$/);
    expect(`${text}${cookie}${logged.join()}${JSON.stringify(service.accesses)}`).not.toContain("canary-token");
    // Another token ends the sessions of the one before.
    writeFileSync(tokenFile, "another-token-0123456789\n");
    expect((await fetch(url, { headers: session })).status).toBe(401);
    expect((await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(401);
  });

  it("leads an open page whose session has ended to the log-in: a browser tells a page nothing of a stream that is refused", async () => {
    const { url } = await guarded();
    const answer = await fetch(`${url}/events?path=/`, {
      headers: { accept: "text/event-stream", cookie: "collector_page=before-the-restart" },
    });
    expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([
      200,
      "text/event-stream",
      "event: login\ndata: {}\n\n",
    ]);
  });

  it("ends a session at the log-out, and takes no form of another site", async () => {
    const { url, logIn } = await guarded();
    expect((await logIn(TOKEN, { origin: "http://evil.example" })).status).toBe(403);
    expect((await logIn(TOKEN, { "sec-fetch-site": "cross-site" })).status).toBe(403);
    const session = { cookie: (await logIn(TOKEN)).headers.get("set-cookie")?.split(";")[0] ?? "" };
    expect((await fetch(url, { headers: session })).status).toBe(200);
    await fetch(`${url}/logout`, { method: "POST", redirect: "manual", headers: session });
    expect((await fetch(url, { headers: session })).status).toBe(401);
  });

  it("is not served with a token that is short or missing, and says why without it", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "collector-page-"));
    const tokenFile = path.join(folder, "token");
    writeFileSync(tokenFile, "canary\n");
    const started = startTestPage({ tokenFile });
    onTestFinished(async () => {
      await (await started).stop();
      rmSync(folder, { recursive: true, force: true });
    });
    setTimeout(() => writeFileSync(tokenFile, TOKEN), 100);
    const { troubles } = await started;
    expect(troubles[0]).toMatch(/^the page is not served: page\.token_file: the first line of .* has fewer than 16 characters/);
    expect(troubles.join()).not.toContain("canary");
    expect(troubles.at(-1)).toBeNull();
  });
});

describe("where it listens", () => {
  it("says that the port is taken, and takes it when it is free; after stop nothing listens", async () => {
    const other = net.createServer().listen(0, "127.0.0.1");
    await new Promise((done) => other.once("listening", done));
    const { port } = other.address() as net.AddressInfo;
    const started = startTestPage({ listen: `127.0.0.1:${port}` });
    setTimeout(() => other.close(), 150);
    const { troubles, url, stop } = await started;
    expect(troubles[0]).toMatch(/^the page is not served: page\.listen: 127\.0\.0\.1:\d+ cannot be listened on \(.*EADDRINUSE/);
    const viewer = await watch(url);
    await stop();
    await expect(fetch(url)).rejects.toThrow();
    viewer.end();
  });
});
