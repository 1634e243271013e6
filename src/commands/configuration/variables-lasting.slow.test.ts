import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { keptOfSourcesFile } from "../../configuration/kept-of-sources.ts";

test("variables nsu rewrites addresses by the namespaces that the server had first, and names what it cannot", async () => {
  const { run, well, folder } = await commandLine();
  const url = "opc.tcp://h:4840";
  const added = await run("source", "add", "press-1", "opcua", `endpoint_url=${url}`, "--json");
  const { uuid } = JSON.parse(added.out) as { uuid: string };
  await well("variables", "add", "press-1", "speed", "ns=2;s=speed");
  await well("variables", "add", "press-1", "path", "/Objects/2:Plant/2:Temp");
  await well("variables", "add", "press-1", "time", "i=2258");
  const addresses = async (): Promise<readonly string[]> =>
    JSON.parse(await well("variables", "list", "press-1", "--json")).map(({ address }: { address: string }) => address);

  const early = await run("variables", "nsu", "press-1");
  expect([early.code, early.err]).toEqual([1, expect.stringContaining("has not read this source yet")]);
  expect(await addresses()).toEqual(["ns=2;s=speed", "/Objects/2:Plant/2:Temp", "i=2258"]);

  const list = ["http://opcfoundation.org/UA/", "urn:server", "urn:plant"];
  const sources = { [uuid]: { namespaces: { endpoint_url: url, list } } };
  writeFileSync(keptOfSourcesFile(folder), JSON.stringify({ version: 1, sources }));
  const shown = await well("variables", "nsu", "press-1", "-");
  expect(shown).toContain("nsu=urn:plant;s=speed");
  expect(await addresses()).toContain("ns=2;s=speed");
  expect(await well("variables", "nsu", "press-1")).toBe("press-1: 2 variables rewritten, 1 as before\n");
  const lasting = ["nsu=urn:plant;s=speed", "/Objects/nsu=urn:plant;Plant/nsu=urn:plant;Temp", "i=2258"];
  expect(await addresses()).toEqual(lasting);
  expect(await well("variables", "nsu", "press-1")).toBe("press-1: 0 variables rewritten, 3 as before\n");

  await well("variables", "add", "press-1", "late", "ns=7;s=x");
  const late = await run("variables", "nsu", "press-1");
  expect([late.code, late.err]).toEqual([1, expect.stringMatching(/late: .*no namespace 7/)]);

  // A file of this machine that wins is not changed: what it should hold is written elsewhere.
  mkdirSync(join(folder, "variables"), { recursive: true });
  writeFileSync(join(folder, "variables", "press-1.csv"), "name,address\nown,ns=2;s=own\n");
  const shadowed = await run("variables", "nsu", "press-1");
  expect([shadowed.code, shadowed.err]).toEqual([2, expect.stringContaining("collector variables nsu press-1 FILE")]);
  expect((await run("variables", "nsu", "press-1", "-")).out).toContain("nsu=urn:plant;s=own");
});

test("variables nsu refuses a source whose addresses are not renumbered", async () => {
  const { run, well } = await commandLine();
  await well("source", "add", "pump", "modbus_tcp", "host=h");
  expect(await run("variables", "nsu", "pump")).toMatchObject({ code: 2, err: expect.stringContaining("not renumbered") });
});
