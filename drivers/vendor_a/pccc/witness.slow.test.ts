import { afterEach, describe, expect, it } from "vitest";
import { openNodepccc } from "../../../test/support/nodepccc.ts";
import { openPlanned } from "../../../test/support/planned.ts";
import driver from "../driver.ts";
import { startCipDevice } from "../simulator.ts";
import { fileCpu, filledFiles, startFileDevice } from "../simulator-controllers.ts";
import { DataFiles } from "../simulator-files.ts";
import { CONTROLLER } from "../simulator-identity.ts";
import { FileCpu } from "../simulator-pccc.ts";

/*
 * Another implementation of PCCC, independent of ours: npm's nodepccc. It knows only protected typed logical reads (0F/A2), with which it reads
 * SLC, MicroLogix and mapped Logix files. It knows no PLC-5, no DH+, no A files, and no words of slots in inputs.
 */

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function theirs(port: number, addresses: readonly string[], slot?: number): Promise<Readonly<Record<string, unknown>>> {
  const client = await openNodepccc(port, addresses, slot);
  closing.push(() => client.close());
  return client.read();
}

async function ours(port: number, addresses: readonly string[], local: object = {}): Promise<readonly unknown[]> {
  const variables = addresses.map((address) => ({ address: address.replace(/,(\d+)$/, "{$1}") }));
  const planned = await openPlanned(driver, { type: "vendor_a", host: "127.0.0.1", port }, local, variables);
  closing.push(() => planned.session.close());
  return planned.values();
}

const ADDRESSES = [
  ["N7:0", "N7:2", "N7:255", "N7:0,5", "N7:4/1", "N7:4/0", "N300:2"],
  ["B3:2/15", "B3/37", "F8:0", "F8:0,2", "L10:3"],
  ["T4:2.PRE", "T4:2.ACC", "T4:2.DN", "T4:2.EN", "C5:0.ACC", "R6:1.LEN", "R6:1.POS"],
  ["ST9:0", "ST9:1", "S:1/5"],
].flat();

describe("nodepccc reads the same as the driver", () => {
  it.each(["slc", "micrologix"] as const)("from the data files of %s", async (family) => {
    const device = await startFileDevice({ cpu: fileCpu(family, filledFiles(family)) });
    closing.push(() => device.close());
    const found = await theirs(device.port, ADDRESSES);
    expect(found).toMatchObject({ "N7:0": -1, "N7:255": 2550, "B3/37": true, "F8:0": 21.5, "T4:2.ACC": 123, "ST9:0": "Recipe 7" });
    expect(await ours(device.port, ADDRESSES)).toEqual(ADDRESSES.map((address) => found[address]));
    expect(device.violations).toEqual([]);
  });

  it("from files that a Logix controller behind a bridge maps to its tags, which the driver asks for by typed reads", async () => {
    const device = await startCipDevice({ layout: "bridge" });
    closing.push(() => device.close());
    const files = new DataFiles();
    files.file(7, "N", 130);
    for (let element = 0; element < 130; element++) files.word(7, element, element * 257 - 16_000);
    files.file(8, "F", 10);
    files.float(8, 3, -0.125);
    files.file(10, "L", 4);
    files.long(10, 1, -70_000);
    device.cpu.mapped = new FileCpu({ files, identity: CONTROLLER, takes: "both" });
    device.cpu.mapped.maxBytes = 240;
    const addresses = ["N7:0", "N7:129", "N7:20,90", "N7:5/3", "F8:3", "L10:1"];
    const found = await theirs(device.port, addresses, 3);
    expect(found).toMatchObject({ "N7:0": -16_000, "F8:3": -0.125, "L10:1": -70_000 });
    const functions = () => new Set(device.cpu.mapped?.lastCommands.map(({ fnc }) => fnc));
    expect([...functions()]).toEqual([0xa2]);
    expect(await ours(device.port, addresses, { path: "1,3" })).toEqual(addresses.map((address) => found[address]));
    expect([...functions()]).toEqual([0xa2, 0x68]);
  });
});
