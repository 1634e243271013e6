import { readFile, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import path from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createAuthority } from "../../../test/support/certificates.ts";
import { freePort } from "../../../test/support/free-port.ts";
import {
  anyTime,
  batchOf,
  EXTENSION,
  failureOf,
  KEY,
  keyFolder,
  openPlatform,
  scriptedPlatform,
  stringLayout,
  taken,
} from "../../../test/support/scripted-platform.ts";
import { COLLECTOR, modbusSource, startTestServer } from "../../api/server/testing.ts";
import { json, scripted } from "../../api/server/testing-scripted.ts";
import type { ApiAccess } from "../../model/api-access.ts";
import type { Context } from "../../model/context.ts";
import type { Value } from "../../model/value.ts";
import type { Sink, SinkBatch } from "../sink.ts";

let folder: string;
let keyFile: string;
beforeEach(async () => {
  ({ folder, keyFile } = await keyFolder());
});

const open = (url: string, settings: object = {}, more: Partial<ApiAccess> = {}, ctx?: Context): Promise<Sink> =>
  openPlatform({ url, keyFile, ...more }, settings, ctx);

describe("the embedded API", () => {
  test("holds what was written, once, and gives it back as it was", async () => {
    const server = await startTestServer();
    await writeFile(keyFile, server.collectorKey);
    const source = String((await server.send("POST", "/v2/data-sources", modbusSource())).body["uuid"]);
    const layout = stringLayout(4, source);
    const values: Value[] = [2n ** 64n - 1n, "ü\n", [1n, -(2n ** 63n)], true];
    const batch: SinkBatch = { ...batchOf("e-1-1", values), layout };
    const sink = await open(server.server.url);
    expect(await sink.write(batch, anyTime())).toEqual({ refused: 0 });
    expect(await (await open(server.server.url)).write(batch, anyTime())).toEqual({ refused: 0 });
    const { text } = await server.send("POST", "/v2/timeseries", {
      variables: layout.variables.map(({ uuid }) => uuid),
      start: "2026-01-01T00:00:00Z",
      end: "2027-01-01T00:00:00Z",
    });
    const found = [...text.matchAll(/"value":(.*?),"quality":"(\w+)"/g)].map(([, value, quality]) => [value, quality]);
    expect(found).toEqual([
      ["18446744073709551615", "good"],
      ['"ü\\n"', "good"],
      ["[1,-9223372036854775808]", "good"],
      ["true", "good"],
    ]);
  });

  test("refuses what belongs to no data source of this collector: counted, with the API's words", async () => {
    const server = await startTestServer();
    await writeFile(keyFile, server.collectorKey);
    const sink = await open(server.server.url);
    const result = await sink.write(batchOf("e-1-1", ["a", "b"]), anyTime());
    expect(result).toEqual({ refused: 2, detail: expect.stringContaining("there is no such data source for this key") });
  });

  test("takes a body above its limit in pieces, and a single value above it not at all", async () => {
    const server = await startTestServer();
    await writeFile(keyFile, server.collectorKey);
    const source = String((await server.send("POST", "/v2/data-sources", modbusSource())).body["uuid"]);
    const sink = await open(server.server.url);
    const batch: SinkBatch = { ...batchOf("e-1-1", ["a", "x".repeat(9 * 2 ** 20), "b"]), layout: stringLayout(3, source) };
    const { refused, detail } = await sink.write(batch, anyTime());
    expect(refused).toBe(1);
    expect(detail).toMatch(/a value of press-1 in a request of 94\d{5} bytes: .*413.*raise the limit/);
  });

  test("refuses a wrong key: in words, and nothing is written", async () => {
    const server = await startTestServer();
    const error = await failureOf(open(server.server.url));
    expect(error.reason).toEqual({ type: "UNKNOWN" });
    expect(error.message).toMatch(/the API key is refused \(401\): api\.key_file/);
    expect(error.message).not.toContain(KEY);
    await writeFile(keyFile, server.collectorKey);
    await open(server.server.url);
  });

  test("is waited for while it starts, where the collector carries it itself", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const missing = path.join(folder, "later.key");
    const opening = open(url, {}, { embedded: true, keyFile: missing });
    await new Promise((done) => setTimeout(done, 300));
    const server = await startTestServer(path.join(folder, "state"), COLLECTOR, { listen: `127.0.0.1:${port}` });
    await writeFile(missing, server.collectorKey);
    expect((await opening).inFlight).toBe(4);
    expect((await failureOf(open(`http://127.0.0.1:${await freePort()}`))).reason).toEqual({ type: "CONNECTION_REFUSED" });
  });

  test("is reached on its socket, whatever its address says", async () => {
    const socketFile = path.join(folder, "api.sock");
    const server = await startTestServer(path.join(folder, "state"), COLLECTOR, { socketFile });
    await writeFile(keyFile, server.collectorKey);
    await open("https://api.invalid:8420", {}, { socketFile });
    const gone = await failureOf(open("https://api.invalid:8420", {}, { socketFile: path.join(folder, "no.sock") }));
    expect(gone.reason).toEqual({ type: "CONNECTION_REFUSED" });
  });
});

describe("an API that cannot be sent values", () => {
  test.each<[string, (response: ServerResponse) => void, RegExp, object]>([
    [
      "without the extension",
      (r) => json(r, { detail: "no such path" }, 404),
      /does not offer to take values .*404: no such path/,
      { isLasting: true },
    ],
    ["that forbids what it does not know", (r) => json(r, {}, 403), /does not offer/, { isLasting: true }],
    ["with another extension", (r) => json(r, { extension: "other", version: 1 }), /does not offer/, { isLasting: true }],
    ["with a later version", (r) => json(r, { extension: "collector", version: 2 }), /does not offer/, { isLasting: true }],
    ["behind a page", (r) => r.end("<html>"), /a page/, { retryAfterMs: undefined, condition: "protocol_violation" }],
    ["that is overloaded", (r) => r.writeHead(429, { "retry-after": "3" }).end(), /429/, { retryAfterMs: 3000 }],
    ["in trouble", (r) => json(r, {}, 502), /502/, { retryAfterMs: undefined }],
  ])("%s is said at the opening", async (_what, probe, words, more) => {
    const far = await scriptedPlatform(taken, probe);
    const error = await failureOf(open(far.url));
    expect(error).toMatchObject({ reason: { type: "UNKNOWN" }, ...more });
    expect(error.message).toMatch(words);
    expect(far.posted).toEqual([]);
  });

  test.each([400, 401, 410, 418])("that answers %s for what it does not have, and reads its lists with the same key", async (status) => {
    const far = await scripted((_request, response, at) =>
      at.startsWith("/api/v2/") ? json(response, { data: [], metadata: { next_cursor: null } }) : json(response, {}, status),
    );
    const error = await failureOf(open(far.url));
    expect(error).toMatchObject({ message: expect.stringMatching(/does not offer to take values/), isLasting: true });
  });

  test("for want of a key: its file is named", async () => {
    const far = await scriptedPlatform(taken);
    const error = await failureOf(open(far.url, {}, { keyFile: path.join(folder, "none") }));
    expect(error).toMatchObject({
      condition: "secret_missing",
      message: expect.stringMatching(/the API key cannot be read: .*none does not exist/),
    });
    expect(far.requests).toEqual([]);
  });

  test("over plain http to another machine: no key travels", async () => {
    const error = await failureOf(open("http://platform.invalid"));
    expect(error).toMatchObject({ condition: "configuration_invalid", message: expect.stringMatching(/in the clear/) });
  });

  test("at a name that does not exist", async () => {
    expect((await failureOf(open("https://platform.invalid"))).reason).toEqual({ type: "LOOKUP_ERROR" });
  });

  test("that does not answer in time", async () => {
    const far = await scriptedPlatform(taken, () => {});
    expect((await failureOf(open(far.url, { request_timeout: "200ms" }))).reason).toEqual({ type: "TIMEOUT" });
  });

  test("under a certificate that nobody vouches for; and with its authority it is", async () => {
    const authority = await createAuthority();
    onTestFinished(() => authority.remove());
    const files = await authority.issue("platform", "IP:127.0.0.1");
    const tls = { key: await readFile(files.key, "utf8"), cert: await readFile(files.cert, "utf8") };
    const far = await scripted((_request, response) => json(response, EXTENSION), tls);
    expect(await failureOf(open(far.url))).toMatchObject({
      condition: "certificate_refused",
      message: expect.stringContaining("api.tls.ca_file"),
    });
    await open(far.url, {}, { caFile: authority.ca });
    const noFile = await failureOf(open(far.url, {}, { caFile: path.join(folder, "no.pem") }));
    expect(noFile).toMatchObject({ condition: "configuration_invalid", message: expect.stringContaining("api.tls.ca_file: ") });
  });
});
