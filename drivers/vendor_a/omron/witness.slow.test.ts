import { afterAll, beforeAll, expect, it } from "vitest";
import { openStEthernetIp, type StEthernetIp } from "../../../test/support/st-ethernet-ip.ts";
import type { CipDevice } from "../simulator-device.ts";
import { startOmronDevice } from "../simulator-omron.ts";
import { NJ_VARIABLES } from "../simulator-plant.ts";

/*
 * npm's st-ethernet-ip speaks to Logix controllers: its one-byte type codes and little-endian numbers are the same here. It reads neither
 * BOOL, texts and structures of an NJ or NX, takes the pad byte of a single byte for an element, and lacks types.
 */
let device: CipDevice;
let client: StEthernetIp;
beforeAll(async () => {
  ({ device } = await startOmronDevice({ layout: "compact" }));
  client = await openStEthernetIp(device.port, { hasTagList: false });
});
afterAll(async () => {
  await client.close();
  await device.close();
});

it("st-ethernet-ip reads the same numbers by the same names", async () => {
  const known = NJ_VARIABLES.filter(({ address }) => /^(Count|Total|Pieces|Temperature|Temps\[[13]\])$/.test(address));
  expect(known).toHaveLength(6);
  for (const { address, value } of known) expect(await client.read(address), address).toEqual(value);
  await expect(client.read("Hidden")).rejects.toMatchObject({ generalStatusCode: 5 });
});
