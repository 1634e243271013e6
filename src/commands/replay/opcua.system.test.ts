import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { pcapng } from "../../../test/support/capture-file.ts";
import { dataValue, f64, str, ticks, u32, variant, variantArray } from "../../../test/support/opcua-wire/bytes.ts";
import { WireServer } from "../../../test/support/opcua-wire/server.ts";
import { recordTcp } from "../../../test/support/recording-proxy.ts";
import { runCommand, runCommandWith, settingsFile } from "../testing.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "replay-opcua-"));
  settingsFile(folder, {});
});
afterAll(() => rmSync(folder, { recursive: true }));

const DOUBLE = 11;
const [INT32, STRING] = [6, 12];

it("a recording of OPC UA without security is a memory: its values are read in other requests, and other nodes are not there", async () => {
  const server = await new WireServer().start();
  const nodes = Array.from({ length: 5 }, (_, i) => `ns=2;s=Press.${i}`);
  for (const [i, node] of nodes.entries())
    server.nodes.set(node, dataValue({ value: variant(DOUBLE, f64(i + 0.5)), sourceTime: ticks(1_795_000_000_000) }));
  server.nodes.set("ns=2;i=7", dataValue({ value: variantArray(STRING, ["a", "bc"].map(str)) }));
  server.nodes.set("ns=2;i=8", dataValue({ value: variant(INT32, u32(3)), status: 0x4000_0000 }));
  const proxy = await recordTcp(server.port, 4840);
  const config = ["--json", "--config", path.join(folder, "collector.yaml")];
  const read = async (port: number, ...words: readonly string[]) => {
    const { out, err } = await runCommand(
      "read",
      "opcua",
      `endpoint_url=opc.tcp://127.0.0.1:${port}`,
      "security_mode=None",
      ...words,
      ...config,
    );
    expect(out, err).toContain("values");
    return (JSON.parse(out).values as { address: string; value: unknown; quality: string; fault?: string }[]).map(
      ({ address, value, quality, fault }) => [address, value, quality, fault],
    );
  };
  const asked = [...nodes, "ns=2;i=7", "ns=2;i=8", "ns=2;s=Gone"];
  const real = await read(proxy.port, ...asked);
  await proxy.close();
  await server.close();
  expect(real.slice(0, 2)).toEqual([
    ["ns=2;s=Press.0", 0.5, "good", undefined],
    ["ns=2;s=Press.1", 1.5, "good", undefined],
  ]);

  const file = path.join(folder, "press.pcapng");
  writeFileSync(file, pcapng(proxy.packets));
  const stop = new AbortController();
  let out = "";
  const ended = runCommandWith(
    { signal: stop.signal, onOut: (text) => (out += text) },
    "replay",
    file,
    "--listen",
    "127.0.0.1:0",
    ...config,
  );
  await vi.waitFor(() => expect(out).toContain("memory"), { timeout: 10_000 });
  const { port } = JSON.parse(out.split("\n")[0] ?? "").listening;
  const other = await read(port, "max_nodes=2", ...asked.toReversed(), "ns=2;s=Other");
  stop.abort();
  await ended;
  expect(other.slice(0, -1)).toEqual(real.toReversed());
  expect(other.at(-1)).toEqual(["ns=2;s=Other", null, "bad", "not_found"]);
  expect(JSON.parse(out.trim().split("\n").at(-1) ?? "").summary.answered_from_memory).toBeGreaterThan(4);
});
