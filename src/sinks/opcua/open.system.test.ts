import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import type { Pki } from "../../model/pki.ts";
import { SINK_DETAILS } from "../../model/sink-details.ts";
import { openServer } from "./open.ts";
import { settingsSchema } from "./settings.ts";
import { createRig, type Rig } from "./testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
});
afterAll(() => rig.end());

async function open(pki: Pki | undefined, renewalEveryMs?: number) {
  const details = SINK_DETAILS.opcua.read.parse({ type: "opcua", port: await freePort() });
  const input = { uuid: randomUUID(), name: null, details, settings: settingsSchema.parse({}), secrets: {} };
  const { pki: _, ...ctx } = rig.ctx();
  return await openServer(input, { ...ctx, ...(pki && { pki }) }, "127.0.0.1", [], renewalEveryMs);
}

test("a renewed certificate starts the server again", async () => {
  let current = rig.server.own;
  const sink = await open({ ...rig.server.pki, own: async () => current }, 0);
  current = rig.client.own;
  expect((await sink.lost).message).toContain("certificate was renewed");
  await sink.close();
});

test("without a folder for certificates it does not open, and says so", async () => {
  await expect(open(undefined)).rejects.toMatchObject({ reason: { type: "UNKNOWN" }, condition: "configuration_invalid" });
});

test("a certificate that cannot be had is told in the words of who keeps it", async () => {
  const pki: Pki = { ...rig.server.pki, own: () => Promise.reject(new Error("own/key.pem: permission denied")) };
  await expect(open(pki)).rejects.toMatchObject({
    condition: "collector_host_trouble",
    message: expect.stringContaining("permission denied"),
  });
});

test("20 openings leave no listener and no timer behind", async () => {
  const resources = () => process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap" || name === "Timeout").length;
  const warm = await open(rig.server.pki);
  await warm.close();
  const before = resources();
  for (let i = 0; i < 20; i++) {
    const sink = await open(rig.server.pki);
    await sink.close();
  }
  expect(resources()).toBeLessThanOrEqual(before + 1);
}, 60_000);
