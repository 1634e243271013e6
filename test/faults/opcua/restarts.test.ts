import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { textsOf } from "../../../src/model/testing/warnings.ts";
import { dataValue, double, expandedNode, i64, str, ticks, variant, variantArray } from "../../support/opcua-wire/bytes.ts";
import { NOW } from "../../support/opcua-wire/reader.ts";
import { WireServer } from "../../support/opcua-wire/server.ts";
import { watchSource } from "./watched-source.ts";

const UA = "http://opcfoundation.org/UA/";
const endings: (() => unknown)[] = [];
let server: WireServer;
beforeEach(async () => {
  server = await new WireServer().start();
});
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
  await server.close();
});

/** Machine 1 has the value 100, machine 2 has 200; `uris`: the namespaces from 2 on, in their order. */
async function start(...uris: readonly ("urn:machine:1" | "urn:machine:2")[]): Promise<void> {
  const { port } = server;
  await server.close();
  server.nodes.clear();
  await server.start(port);
  server.nodes.set("i=2255", dataValue({ value: variantArray(12, [UA, "urn:wire:server", ...uris].map(str)) }));
  server.nodes.set("i=2257", dataValue({ value: variant(13, i64(ticks(NOW + Math.round(performance.now())))) }));
  for (const [i, uri] of uris.entries()) {
    server.nodes.set(`ns=${2 + i};s=speed`, dataValue({ value: double(uri === "urn:machine:1" ? 100 : 200) }));
    server.paths.set("speed", expandedNode("s=speed", { uri: "urn:machine:1" }));
  }
}

/** As the collector keeps it on disk: what crosses a restart is its JSON. */
function disk() {
  const files = new Map<string, string>();
  return (uuid: string) => {
    const values: Record<string, unknown> = JSON.parse(files.get(uuid) ?? "{}");
    const set = (key: string, value: unknown): void => {
      values[key] = value;
      files.set(uuid, JSON.stringify(values));
    };
    return { values, set };
  };
}

/** What one run of the collector reads, and what it warns of. */
async function run(address: string, keptOf: ReturnType<typeof disk>, isRemote = false) {
  const ends: (() => unknown)[] = [];
  const { readouts, report } = await watchSource({
    port: server.port,
    variables: [{ name: "speed", address }],
    keptOf,
    isRemote,
    endings: ends,
  });
  // The worker tells of warnings every 250 ms.
  await expect.poll(() => readouts.length, { timeout: 20_000 }).toBeGreaterThan(isRemote ? 6 : 1);
  const [reading] = readouts.at(-1)?.readout.readings ?? [];
  const warnings = textsOf(report()?.warnings);
  for (const end of ends.reverse()) await end();
  return { value: reading?.quality === "bad" ? reading.fault : reading?.value, warnings };
}

describe("ns= addresses where the namespaces were swapped while the collector was off", () => {
  it.each([
    ["a node", "ns=2;s=speed", false],
    ["a node, over the session worker", "ns=2;s=speed", true],
  ])("read the machine that they meant (%s)", async (_, address, isRemote) => {
    const keptOf = disk();
    await start("urn:machine:1", "urn:machine:2");
    expect((await run(address, keptOf, isRemote)).value).toBe(100);
    await start("urn:machine:2", "urn:machine:1");
    const { value, warnings } = await run(address, keptOf, isRemote);
    expect(value).toBe(100);
    expect(warnings).toContainEqual(expect.stringContaining("renumbered its namespaces"));
  });

  it("read nothing where the namespace is gone", async () => {
    const keptOf = disk();
    await start("urn:machine:1", "urn:machine:2");
    expect((await run("ns=2;s=speed", keptOf)).value).toBe(100);
    await start("urn:machine:2");
    expect((await run("ns=2;s=speed", keptOf)).value).toBe("not_found");
  });

  it("are a warning from the beginning, with the command that rewrites them", async () => {
    await start("urn:machine:1", "urn:machine:2");
    const { warnings } = await run("/Objects/2:speed", disk());
    expect(warnings).toContainEqual(expect.stringMatching(/1 of its addresses .*`sudo collector variables nsu press` rewrites them/));
    expect((await run("nsu=urn:machine:1;s=speed", disk())).warnings).not.toContainEqual(expect.stringContaining("variables nsu"));
  });
});

it("browse paths with nsu= are read where the namespace is", async () => {
  const keptOf = disk();
  for (const uris of [["urn:machine:1", "urn:machine:2"] as const, ["urn:machine:2", "urn:machine:1"] as const]) {
    await start(...uris);
    expect((await run("/Objects/nsu=urn:machine:1;speed", keptOf)).value).toBe(100);
  }
});
