import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createAuthority } from "../../test/support/certificates.ts";
import { freePort } from "../../test/support/free-port.ts";
import { silentLog } from "../model/context.ts";
import { type Settings, settingsSchema } from "../model/settings.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { PageHost } from "../threads/page/host.ts";
import { glanceOf, HEAD, NO_DATA, reportOf } from "./page/testing.ts";
import { StatusPage } from "./status-page.ts";

const settingsOf = (page: object): Settings => settingsSchema.parse({ page });
const WITHIN = { timeout: 30_000 };
const statusOf = (url: string): Promise<number | string> =>
  fetch(url).then(
    async (answer) => {
      await answer.text();
      return answer.status;
    },
    () => "away",
  );

it("is served where settings and policy let it be, moves with them, and ends with the service", { timeout: 120_000 }, async () => {
  const [one, two] = [await freePort(), await freePort()];
  const urlOf = (port: number): string => `http://127.0.0.1:${port}/`;
  const refusal = "127.0.0.1 is not among the addresses that policy.yaml opens";
  let closed: string | undefined = refusal;
  let asked = 0;
  const said: string[] = [];
  const other = net.createServer().listen(two, "127.0.0.1");
  onTestFinished(() => void other.close());
  const page = new StatusPage({
    settings: settingsOf({ listen: `127.0.0.1:${one}` }),
    listenRefusal: () => closed,
    entry: new URL("../threads/page/worker.ts", import.meta.url),
    agent: {
      *glances() {
        yield glanceOf(reportOf(1));
      },
      inspect: () => undefined,
    },
    head: () => {
      asked++;
      return HEAD;
    },
    data: NO_DATA,
    log: { ...silentLog, info: (_, text) => said.push(text) },
    start: (options) => new PageHost(options),
  });
  onTestFinished(() => page.stop());
  // A start is no reload: what the policy closes ends the page, and nothing that is read.
  expect(codesOf(page.notes())).toContain("listening_forbidden");
  expect(textsOf(page.notes())).toEqual([`page.listen: ${refusal}; the page is not served`]);
  expect(await statusOf(urlOf(one))).toBe("away");
  closed = undefined;
  page.look();
  await expect.poll(() => said, WITHIN).toEqual(["the page is served"]);
  // The thread begins with the first viewer, who is answered.
  expect(asked).toBe(0);
  await expect.poll(() => statusOf(urlOf(one)), WITHIN).toBe(200);
  expect(await (await fetch(urlOf(one))).text()).toContain('data-source="press-1"');
  expect(textsOf(page.notes())).toEqual([]);

  closed = refusal;
  page.look();
  expect(textsOf(page.notes())).toEqual([`page.listen: ${closed}; the page is not served`]);
  await expect.poll(() => statusOf(urlOf(one)), WITHIN).toBe("away");

  closed = undefined;
  page.use(settingsOf({ listen: `127.0.0.1:${two}` }));
  await expect
    .poll(() => textsOf(page.notes()), WITHIN)
    .toEqual([expect.stringMatching(/^the page is not served: page\.listen: .* cannot be listened on/)]);

  page.use(settingsOf({ enabled: false }));
  await expect.poll(() => textsOf(page.notes()), WITHIN).toEqual([]);
  page.use(settingsOf({ listen: `127.0.0.1:${one}` }));
  await expect.poll(() => statusOf(urlOf(one)), WITHIN).toBe(200);
  await page.stop();
  expect(await statusOf(urlOf(one))).toBe("away");
});

it("beyond loopback asks for TLS, a token and the policy's word, all three", { timeout: 60_000 }, async () => {
  const listen = "192.168.10.5:8090";
  const tls = { cert_file: "/c", key_file: "/k" };
  for (const page of [{ listen }, { listen, tls }, { listen, token_file: "/t" }])
    expect(settingsSchema.safeParse({ page }).error?.issues[0]?.message).toMatch(/other machines would see the page without a token/);
  expect(settingsSchema.safeParse({ page: { listen, tls, token_file: "/t" } }).success).toBe(true);

  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-page-"));
  const authority = await createAuthority();
  const { cert, key } = await authority.issue("page", "IP:127.0.0.1");
  const token_file = path.join(folder, "token");
  writeFileSync(token_file, "0123456789abcdef0123\n");
  const port = await freePort();
  const page = new StatusPage({
    settings: settingsOf({ listen: `127.0.0.1:${port}`, token_file, tls: { cert_file: cert, key_file: key } }),
    listenRefusal: () => undefined,
    entry: new URL("../threads/page/worker.ts", import.meta.url),
    agent: { *glances() {}, inspect: () => undefined },
    head: () => HEAD,
    data: NO_DATA,
    log: silentLog,
    start: (options) => new PageHost(options),
  });
  onTestFinished(async () => {
    await page.stop();
    authority.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  await expect.poll(() => statusOf(`http://127.0.0.1:${port}/`), WITHIN).toBe(400);
});
