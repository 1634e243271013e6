import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { rig, source, variable } from "../../test/support/agent.ts";
import odac from "../odac/driver.ts";

const BROKEN = path.resolve(import.meta.dirname, "../../test/support/plugin/broken.mjs");

// Time-outs for a machine with several times as much to do as it has processors.
test("a plugin that dies costs its own source, is started again no faster than the source's backoff, and heals", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "healing-"));
  const ill = path.join(folder, "ill");
  writeFileSync(`${ill}.broken`, "");
  const { agent, of, report } = rig({ drivers: { odac: { driver: async () => ({ default: odac }) } } });
  const by = (n: number, way: string, file: string) => {
    const plain = source(n, 2020 + n);
    const details = { type: "odac", host: "127.0.0.1", port: 2020 + n, protocol_override: null };
    const record = { ...plain.record, type: "odac", details } as typeof plain.record;
    const local = { connect_timeout: "10s", answer_timeout: "10s", plugin: { command: [process.execPath, BROKEN, way, file] } };
    return { ...plain, record, local, variables: [variable(n, 1, "a", { type: "uint16" })] };
  };
  try {
    agent.apply([by(1, "heals", ill), by(2, "good", path.join(folder, "well"))]);
    await expect.poll(() => report(1)?.status.state, { timeout: 20_000 }).toMatchObject({ type: "ERROR", reason: { type: "UNKNOWN" } });
    await expect.poll(() => of("machine-2").length, { timeout: 20_000 }).toBeGreaterThan(3);
    expect(readFileSync(path.join(folder, "well"), "utf8").trim().split("\n")).toHaveLength(1);
    const startsAtMost = 20;
    expect(readFileSync(ill, "utf8").trim().split("\n").length).toBeLessThan(startsAtMost);
    rmSync(`${ill}.broken`);
    await expect.poll(() => of("machine-1").at(-1)?.readout.readings, { timeout: 25_000 }).toMatchObject([{ quality: "good", value: 1 }]);
    await expect.poll(() => report(1)?.status.state.type, { timeout: 5000 }).not.toBe("ERROR");
  } finally {
    await agent.stop();
    rmSync(folder, { recursive: true });
  }
});
