import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { generateSource } from "oazapfts";
import { expect, test } from "vitest";
import { COLLECTOR, MACHINE, startTestServer, temporaryFolder } from "../../src/api/server/testing.ts";

interface Answer {
  readonly status: number;
  readonly data: {
    readonly uuid: string;
    readonly name: string;
    readonly data: readonly { readonly uuid: string; readonly name: string }[];
    readonly metadata: { readonly next_cursor: string | null };
    readonly detail: unknown;
  };
}
type Call = (...args: readonly unknown[]) => Promise<Answer>;
interface Client {
  readonly defaults: { baseUrl: string; headers: Record<string, string> };
  readonly [operation: string]: Call | Client["defaults"];
}

/** Calls of a client that a generator, which knows nothing of us, made from the description that the server gives. */
async function generatedClient(url: string, key: string): Promise<(operation: string, ...args: readonly unknown[]) => Promise<Answer>> {
  const folder = temporaryFolder();
  const description = await fetch(`${url}/api/openapi.json`, { headers: { authorization: key } });
  const specification = join(folder, "openapi.json");
  writeFileSync(specification, await description.text());
  const source = join(folder, "client.ts");
  writeFileSync(source, await generateSource(specification));
  const outfile = join(folder, "client.mjs");
  await build({
    entryPoints: [source],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    nodePaths: [join(import.meta.dirname, "../../node_modules")],
    logLevel: "error",
  });
  const client = (await import(pathToFileURL(outfile).href)) as Client;
  client.defaults.baseUrl = `${url}/api`;
  client.defaults.headers = { authorization: key };
  return (operation, ...args) => {
    const call = client[operation];
    if (typeof call !== "function") throw new Error(`the generated client has no ${operation}`);
    return call(...args);
  };
}

test("a client generated from the description creates, lists, pages, changes and deletes", async () => {
  const api = await startTestServer();
  const call = await generatedClient(api.server.url, api.adminKey);
  const request = (n: number) => ({
    name: `source ${n}`,
    collector: COLLECTOR,
    machine: MACHINE,
    details: { type: "modbus_tcp", host: "127.0.0.1" },
  });
  const made: string[] = [];
  for (let n = 0; n < 60; n++) {
    const created = await call("createDataSource", request(n));
    expect(created.status).toBe(201);
    made.push(created.data.uuid);
  }
  const first = await call("listDataSources", { collector: [COLLECTOR] });
  expect([first.status, first.data.data.length]).toEqual([200, 50]);
  const second = await call("listDataSources", { collector: [COLLECTOR], cursor: first.data.metadata.next_cursor });
  expect([...first.data.data, ...second.data.data].map(({ uuid }) => uuid)).toEqual(made);
  expect(second.data.metadata.next_cursor).toBeNull();

  const uuid = made[0] ?? "";
  const patched = await call("patchDataSource", uuid, { name: "renamed", details: { port: 503 } });
  expect(patched.status).toBe(204);
  expect(await call("getDataSource", uuid)).toMatchObject({ status: 200, data: { name: "renamed", details: { port: 503 } } });
  const wrong = await call("createDataSource", { ...request(1), name: 7 });
  expect([wrong.status, wrong.data.detail]).toMatchObject([422, [{ loc: ["body", "name"] }]]);
  expect((await call("deleteDataSource", uuid)).status).toBe(204);
  expect((await call("getDataSource", uuid)).status).toBe(404);

  const sink = await call("createDataSink", {
    collector: COLLECTOR,
    details: { type: "opcua", users: [{ username: "u", password: "p" }] },
  });
  expect(sink).toMatchObject({ status: 201, data: { details: { type: "opcua", users: [{ username: "u" }] } } });
  const site = await call("createSite", { name: "Hall 1" });
  expect((await call("patchSite", site.data.uuid, { name: "Hall 2" })).status).toBe(204);
  expect((await call("listSites")).data.data).toEqual([{ uuid: site.data.uuid, name: "Hall 2" }]);
});
