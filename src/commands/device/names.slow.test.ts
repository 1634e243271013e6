import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import driver from "../../../drivers/modbus_tcp/driver.ts";
import { startModbusPlant } from "../../../drivers/modbus_tcp/simulator.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { silentLog } from "../../model/context.ts";
import { runCommandWith } from "../testing.ts";
import { contextOf } from "./device.ts";

/** The system's look-up has no answer for it. */
const NAME = "press.invalid";
vi.mock("../../os/name-lookup.ts", () => ({
  createNameLookup: () => async (host: string) => (host === NAME ? [{ address: "127.0.0.1", family: 4 }] : []),
}));

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

// With the system's own, a name server that answers for IPv4 and not for IPv6 made each of these LOOKUP_ERROR.
test.each(["read", "probe"])("%s looks a name up as the service does, with and without a policy", async (verb) => {
  const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 7]]) }]]) });
  open.push(plant.close);
  const folder = temporaryFolder();
  for (const policy of [undefined, "sources: {networks: [127.0.0.0/8]}\n"]) {
    if (policy !== undefined) writeFileSync(join(folder, "policy.yaml"), policy);
    const words = [verb, "modbus_tcp", `host=${NAME}`, `port=${plant.port}`, "holding:0", "--json"];
    const { code, out } = await runCommandWith({ env: { HOME: folder } }, ...words, "--config", join(folder, "collector.yaml"));
    expect([code, out]).toEqual([0, expect.stringContaining('"ok":true')]);
  }
});

test("so does what browse and plan give a driver", async () => {
  const target = { driver, details: { host: NAME, port: 502 }, settings: {}, timeouts: { nameMs: 1, connectMs: 1, answerMs: 1 } };
  const { signal } = new AbortController();
  const { resolve } = contextOf(target, { signal, log: silentLog, permit: undefined, pki: undefined });
  expect(await resolve?.(NAME, signal)).toEqual([{ address: "127.0.0.1", family: 4 }]);
});
