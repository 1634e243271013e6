import { afterEach, beforeEach, expect, test } from "vitest";
import { addressesOf, FolderRig, messagesOf } from "../../test/support/variable-folder.ts";
import { KEPT_AWAY_MS } from "./file-owners.ts";

const PRESS = { uuid: "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11", name: "press-1" };
const OVEN = { uuid: "1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22", name: "oven" };
const TWIN = { uuid: "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33", name: "press-1" };
const ALL = [PRESS, TWIN, OVEN];

let rig: FolderRig;
/** Press has its file, and a second source of its name has come. */
beforeEach(async () => {
  rig = new FolderRig();
  rig.write("press-1.csv", "name;address\nspeed;holding:1\n");
  await rig.look([PRESS, OVEN]);
  await rig.look(ALL);
});
afterEach(() => rig.close());

/** Press alone has variables, before and after a restart. */
async function expectAsBefore(): Promise<void> {
  for (const restart of [() => {}, () => rig.restart()]) {
    restart();
    const found = await rig.look(ALL);
    expect([addressesOf(found, PRESS), addressesOf(found, TWIN)]).toEqual([["holding:1"], undefined]);
    expect([messagesOf(found, PRESS), messagesOf(found, TWIN)]).toEqual([
      [expect.stringContaining(`it stays with ${PRESS.uuid}`)],
      [expect.stringContaining(`it stays with ${PRESS.uuid}`)],
    ]);
  }
}

test.each([
  ["none", []],
  ["neither of the two", [OVEN]],
])("a list with %s of the sources costs the owner nothing when they are back", async (_, sources) => {
  await rig.look(sources);
  await rig.look(sources);
  await expectAsBefore();
});

test("a source does not read the file of its namesake while that is not configured, also after a restart, and says so", async () => {
  for (const restart of [() => {}, () => rig.restart()]) {
    restart();
    const found = await rig.look([TWIN, OVEN]);
    expect(found.bySource.size).toBe(0);
    expect(messagesOf(found, TWIN)).toEqual([expect.stringContaining(`it is kept for ${PRESS.uuid}`)]);
  }
  await expectAsBefore();
});

test("a source with a file of its own keeps that while its namesake is away", async () => {
  rig.write(`${TWIN.uuid}.csv`, "name;address\nx;holding:9\n");
  await rig.look(ALL);
  const without = await rig.look([TWIN, OVEN]);
  expect(addressesOf(without, TWIN)).toEqual(["holding:9"]);
  const found = await rig.look(ALL);
  expect([addressesOf(found, PRESS), addressesOf(found, TWIN)]).toEqual([["holding:1"], ["holding:9"]]);
});

test("a file that is away for some seconds is its owner's when it is back", async () => {
  rig.remove("press-1.csv");
  expect((await rig.look(ALL)).bySource.size).toBe(0);
  rig.restart();
  await rig.look(ALL);
  rig.write("press-1.csv", "name;address\nspeed;holding:1\n");
  await expectAsBefore();
});

test.each(["press-1.CSV", "press-1.yml"])("a file that is renamed to %s stays its owner's", async (name) => {
  if (name.endsWith(".yml")) {
    rig.remove("press-1.csv");
    rig.write(name, "- { name: speed, address: holding:1 }\n");
  } else rig.rename("press-1.csv", name);
  await expectAsBefore();
});

test("after a day without its owner the file is the namesake's", async () => {
  await rig.look([TWIN, OVEN]);
  rig.nowMs += KEPT_AWAY_MS;
  const found = await rig.look([TWIN, OVEN]);
  expect([addressesOf(found, TWIN), found.problems]).toEqual([["holding:1"], []]);
});

test("a source that is removed and created again under its name has the file at once", async () => {
  await rig.look([PRESS]);
  rig.remove("press-1.csv");
  rig.write("oven.csv", "name;address\nheat;holding:7\n");
  await rig.look([PRESS, OVEN]);
  const again = { ...OVEN, uuid: "3e8f4ac0-9d85-4cab-8d76-4a3f5a4a7d44" };
  const found = await rig.look([PRESS, again]);
  expect([addressesOf(found, again), messagesOf(found, again)]).toEqual([["holding:7"], []]);
});
