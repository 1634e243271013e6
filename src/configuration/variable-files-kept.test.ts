import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addressesOf, FolderRig, messagesOf } from "../../test/support/variable-folder.ts";
import { KEPT_AWAY_MS } from "./file-owners.ts";

const PRESS = { uuid: "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11", name: "press-1" };
const OVEN = { uuid: "1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22", name: "oven" };
const TWIN = { uuid: "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33", name: "press-2" };
const GOOD = "name;address\na;holding:0\nb;holding:1\n";

let rig: FolderRig;
beforeEach(() => {
  rig = new FolderRig();
});
afterEach(() => rig.close());

const again: readonly (readonly [string, () => Promise<unknown> | undefined])[] = [
  [
    "a restart",
    () => {
      rig.restart();
      return undefined;
    },
  ],
  ["a list without the source", () => rig.look([OVEN])],
  ["an empty list", () => rig.look([])],
  [
    "a list without the source and a restart",
    async () => {
      await rig.look([OVEN]);
      rig.restart();
    },
  ],
];

describe.each(again)("after %s", (_, happen) => {
  test("a file that was emptied leaves its source the last good variables and says so, until it is whole", async () => {
    rig.write("press-1.csv", GOOD);
    const first = await rig.look([PRESS]);
    rig.write("press-1.csv", "");
    await rig.look([PRESS]);
    await happen();
    const found = await rig.look([PRESS]);
    expect(found.bySource.get(PRESS.uuid)).toEqual(first.bySource.get(PRESS.uuid));
    expect(messagesOf(found, PRESS)).toEqual([expect.stringContaining("is empty"), "the last good variables stay in use (2)"]);
    rig.write("press-1.csv", "name;address\nc;holding:2\n");
    const healed = await rig.look([PRESS]);
    expect([addressesOf(healed, PRESS), healed.problems]).toEqual([["holding:2"], []]);
  });

  test("a file that lost its first line while nobody looked does, too", async () => {
    rig.write("press-1.csv", GOOD);
    await rig.look([PRESS]);
    await happen();
    rig.write("press-1.csv", "a;holding:0\nb;holding:1\n");
    const found = await rig.look([PRESS]);
    expect(addressesOf(found, PRESS)).toEqual(["holding:0", "holding:1"]);
    expect(messagesOf(found, PRESS)).toContain("the last good variables stay in use (2)");
  });

  test("of two files for one source the one that was in use stays in use", async () => {
    rig.write("press-1.csv", GOOD);
    await rig.look([PRESS]);
    rig.write(`${PRESS.uuid}.csv`, "name;address\nx;holding:9\n");
    await rig.look([PRESS]);
    await happen();
    const found = await rig.look([PRESS]);
    expect(addressesOf(found, PRESS)).toEqual(["holding:0", "holding:1"]);
    expect(messagesOf(found, PRESS)).toEqual([expect.stringMatching(/are for the same data source; .*press-1\.csv stays in use/)]);
  });
});

test("while a file is being written at a restart, its source has the last good variables", async () => {
  rig.write("press-1.csv", GOOD);
  await rig.look([PRESS]);
  rig.restart();
  rig.write("press-1.csv", "name;address\nc;hold");
  expect(addressesOf(await rig.files.look([PRESS]), PRESS)).toEqual(["holding:0", "holding:1"]);
});

test("a folder that cannot be read at a restart costs no source its variables", async () => {
  rig.write("press-1.csv", GOOD);
  await rig.look([PRESS]);
  const away = `${rig.folder}-away`;
  renameSync(rig.folder, away);
  writeFileSync(rig.folder, "");
  rig.restart();
  const found = await rig.look([PRESS]);
  rmSync(rig.folder);
  renameSync(away, rig.folder);
  expect(addressesOf(found, PRESS)).toEqual(["holding:0", "holding:1"]);
  expect(found.problems).toEqual([{ file: rig.folder, message: expect.stringContaining("what was read of it stays in use") }]);
});

test("a source that took the name of another keeps what it had over a restart", async () => {
  rig.write("press-1.csv", GOOD);
  rig.write("press-2.csv", "name;address\na;holding:2\n");
  await rig.look([PRESS, TWIN]);
  const renamed = { ...TWIN, name: "press-1" };
  await rig.look([PRESS, renamed]);
  rig.restart();
  const found = await rig.look([PRESS, renamed]);
  expect([addressesOf(found, PRESS), addressesOf(found, renamed)]).toEqual([["holding:0", "holding:1"], ["holding:2"]]);
});

test("a source whose file is removed has what the API says, also when another file comes and is not whole yet", async () => {
  rig.write("press-1.csv", GOOD);
  await rig.look([PRESS]);
  rig.remove("press-1.csv");
  expect((await rig.look([PRESS])).bySource.size).toBe(0);
  rig.write("press-1.csv", "name;addr");
  expect((await rig.files.look([PRESS])).bySource.size).toBe(0);
});

test("what is kept is over a day after its source was removed, and stays no longer", async () => {
  const kept = join(rig.state, "variable-files-last-good");
  rig.write("press-1.csv", GOOD);
  await rig.look([PRESS, OVEN]);
  expect(readdirSync(kept)).toEqual([`${PRESS.uuid}.csv`]);
  await rig.look([OVEN]);
  rig.nowMs += KEPT_AWAY_MS;
  await rig.look([OVEN]);
  expect(readdirSync(kept)).toEqual([]);
});

test("a look that finds nothing new writes nothing", async () => {
  rig.write("press-1.csv", GOOD);
  await rig.look([PRESS]);
  const stamps = () =>
    ["variable-files.json", `variable-files-last-good/${PRESS.uuid}.csv`].map((name) => statSync(join(rig.state, name)).ino);
  const before = stamps();
  await rig.look([PRESS]);
  rig.restart();
  await rig.look([PRESS]);
  expect(stamps()).toEqual(before);
});

test("a state folder that takes nothing is said by the source, whose variables run", async () => {
  mkdirSync(join(rig.state, "variable-files.json"));
  writeFileSync(join(rig.state, "variable-files-last-good"), "");
  rig.write("press-1.csv", GOOD);
  const found = await rig.look([PRESS]);
  expect(addressesOf(found, PRESS)).toEqual(["holding:0", "holding:1"]);
  expect(messagesOf(found, PRESS)).toEqual([expect.stringContaining("cannot be kept for the next start")]);
  expect(await rig.look([PRESS])).toBe(found);
});
