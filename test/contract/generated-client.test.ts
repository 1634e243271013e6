import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { generateSource } from "oazapfts";
import { expect, test } from "vitest";
import { COLLECTOR, MACHINE, startTestServer, temporaryFolder } from "../../src/api/server/testing.ts";

const ROOT = join(import.meta.dirname, "../..");

/** What a person writes against the generated client: every type by its name, unions told apart, no assertion of a type. */
const PROGRAM = `
import {
  createDataSink, createDataSource, createSite, createVariable, defaults, deleteDataSource, getDataSource, listDataSources, listSites,
  patchDataSource, patchSite, putReadoutStatuses,
  type DataSink, type DataSource, type DataSourceCreate, type DataSourceDetails, type DataSourcePage, type ModbusTcpDetails, type Problem,
  type ReadoutFailure, type ReadoutStatus, type Site, type ValidationProblem, type Variable,
} from "./client.ts";

const portOf = (details: DataSourceDetails | null): number | undefined => {
  if (details?.type !== "modbus_tcp") return undefined;
  const modbus: ModbusTcpDetails = details;
  return modbus.port;
};
const codeOf = (reason: ReadoutFailure): number | undefined => (reason.type === "OPC_UA_ERROR_RESPONSE" ? reason.code : undefined);
const failureOf = ({ state }: ReadoutStatus): ReadoutFailure | undefined => (state.type === "ERROR" ? state.reason : undefined);

export async function main(baseUrl: string, key: string, collector: string, machine: string) {
  defaults.baseUrl = baseUrl;
  defaults.headers = { authorization: key };
  const request = (n: number): DataSourceCreate => ({
    name: \`source \${n}\`,
    collector,
    machine,
    details: { type: "modbus_tcp", host: "127.0.0.1" },
  });
  const made: string[] = [];
  for (let n = 0; n < 60; n++) {
    const created = await createDataSource(request(n));
    if (created.status !== 201) throw new Error(String(created.status));
    const source: DataSource = created.data;
    made.push(source.uuid);
  }
  const listed: string[] = [];
  const pages: number[] = [];
  for (let cursor: string | undefined, at = 0; at < 5; at++) {
    const answer = await listDataSources({ collector: [collector], ...(cursor !== undefined && { cursor }) });
    if (answer.status !== 200) throw new Error(String(answer.status));
    const page: DataSourcePage = answer.data;
    listed.push(...page.data.map((one) => one.uuid));
    pages.push(page.data.length);
    if (page.metadata.next_cursor === null) break;
    cursor = page.metadata.next_cursor;
  }

  const uuid = made[0] ?? "";
  const patched = await patchDataSource(uuid, { name: "renamed", details: { port: 503 } });
  const wrong = await createDataSource({ ...request(1), machine: "the press" });
  const problem: ValidationProblem | undefined = wrong.status === 422 ? wrong.data : undefined;
  const reported = await putReadoutStatuses([
    {
      data_source: uuid,
      readout_status: {
        last_readout_at: null,
        configured_variables: 1,
        state: {
          type: "ERROR",
          reason: { type: "OPC_UA_ERROR_RESPONSE", code: 7, name: null, description: null, reason: null },
          error_at: "2026-11-20T09:00:00Z",
        },
      },
    },
  ]);
  const read = await getDataSource(uuid);
  if (read.status !== 200) throw new Error(String(read.status));
  const failure = failureOf(read.data.readout_status);

  const variable = await createVariable({ data_source: uuid, name: "pressure", address: "holding:2" });
  if (variable.status !== 201) throw new Error(String(variable.status));
  const pressure: Variable = variable.data;
  const deleted = await deleteDataSource(uuid);
  const gone = await getDataSource(uuid);
  const missing: Problem | undefined = gone.status === 404 ? gone.data : undefined;

  const sink = await createDataSink({ collector, details: { type: "opcua", users: [{ username: "u", password: "p" }] } });
  if (sink.status !== 201) throw new Error(String(sink.status));
  const server: DataSink = sink.data;
  const site = await createSite({ name: "Hall 1" });
  if (site.status !== 201) throw new Error(String(site.status));
  const renamed = await patchSite(site.data.uuid, { name: "Hall 2" });
  const sites = await listSites();
  const halls: Site[] = sites.status === 200 ? sites.data.data : [];

  return {
    made, listed, pages, halls, pressure,
    statuses: [patched.status, reported.status, deleted.status, renamed.status],
    after: { name: read.data.name, port: portOf(read.data.details), code: failure && codeOf(failure) },
    refused: problem?.detail.map(({ loc }) => loc.join(".")),
    missing: missing?.detail,
    users: server.details.type === "opcua" ? server.details.users : undefined,
  };
}
`;

type Main = (baseUrl: string, key: string, collector: string, machine: string) => Promise<Record<string, unknown>>;

/** The program beside a client that a generator, which knows nothing of us, made from the description that the server gives. */
async function programWith(url: string, key: string): Promise<{ readonly folder: string; readonly program: string }> {
  const folder = temporaryFolder();
  const description = await fetch(`${url}/api/openapi.json`, { headers: { authorization: key } });
  const specification = join(folder, "openapi.json");
  writeFileSync(specification, await description.text());
  writeFileSync(join(folder, "client.ts"), await generateSource(specification));
  const program = join(folder, "program.ts");
  writeFileSync(program, PROGRAM);
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const compilerOptions = {
    strict: true,
    noEmit: true,
    noUncheckedIndexedAccess: true,
    target: "es2023",
    module: "nodenext",
    lib: ["es2023", "dom", "dom.iterable"],
    types: [],
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  return { folder, program };
}

/** What the compiler has against it. */
function compilerSays(folder: string): string {
  try {
    execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    return "";
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout);
  }
}

test("a client generated from the description has our types by name, and creates, lists, pages, changes and deletes", async () => {
  const api = await startTestServer();
  const { folder, program } = await programWith(api.server.url, api.adminKey);
  expect(compilerSays(folder)).toBe("");
  writeFileSync(program, PROGRAM.replace('type !== "modbus_tcp"', 'type !== "modbus_udp"'));
  expect(compilerSays(folder), "the compiler knows which types of details there are").toMatch(/program\.ts.*modbus_udp/);

  writeFileSync(program, PROGRAM);
  const outfile = join(folder, "program.mjs");
  await build({ entryPoints: [program], outfile, bundle: true, format: "esm", platform: "node", logLevel: "error" });
  const { main } = (await import(pathToFileURL(outfile).href)) as { readonly main: Main };
  const ran = await main(`${api.server.url}/api`, api.adminKey, COLLECTOR, MACHINE);
  expect(ran["listed"]).toEqual(ran["made"]);
  expect(ran).toMatchObject({
    pages: [50, 10],
    statuses: [204, 200, 204, 204],
    after: { name: "renamed", port: 503, code: 7 },
    refused: ["body.machine"],
    missing: expect.stringContaining("data source"),
    users: [{ username: "u" }],
    pressure: { name: "pressure", status: "ACTIVE" },
    halls: [{ name: "Hall 2" }],
  });
});
