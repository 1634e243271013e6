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

const FIVE = `name;address;type\n${[0, 1, 2, 3, 4].map((i) => `v${i};holding:345${i};uint16\n`).join("")}`;
const IN_USE = [0, 1, 2, 3, 4].map((i) => `holding:345${i}`);
const MEANT = "the last good variables stay in use (5); if the file is meant as it is, end its last line";

describe("a copy that broke off", () => {
  test.each([
    ["within an address", "name;address;type\nv0;holding:34"],
    ["within the last line", FIVE.slice(0, -9)],
    ["behind its first line", "name;address;type"],
    ["within its first line, at a column that is known", "name;address"],
    ["of another content", "name;address;type\nx;holding:1;uint16\ny;hol"],
  ])("%s leaves its source the last good variables and says so, also after a restart, until it is whole", async (_, text) => {
    rig.write("press-1.csv", FIVE);
    await rig.look([PRESS]);
    rig.write("press-1.csv", text);
    for (const restart of [() => {}, () => rig.restart()]) {
      restart();
      const found = await rig.look([PRESS]);
      expect(addressesOf(found, PRESS)).toEqual(IN_USE);
      expect(messagesOf(found, PRESS)).toEqual([expect.stringContaining("the rest seems to be missing"), MEANT]);
    }
    rig.write("press-1.csv", `${text}\n`);
    expect(addressesOf(await rig.look([PRESS]), PRESS)).not.toEqual(IN_USE);
  });

  test("within an address where all fields are there does too, as in YAML", async () => {
    rig.write("press-1.csv", GOOD);
    rig.write("oven.yaml", "- name: a\n  address: holding:10\n- name: b\n  address: holding:20\n");
    await rig.look([PRESS, OVEN]);
    rig.write("press-1.csv", GOOD.slice(0, -2));
    rig.write("oven.yaml", "- name: a\n  address: hold");
    const found = await rig.look([PRESS, OVEN]);
    expect([addressesOf(found, PRESS), addressesOf(found, OVEN)]).toEqual([
      ["holding:0", "holding:1"],
      ["holding:10", "holding:20"],
    ]);
    for (const source of [PRESS, OVEN])
      expect(messagesOf(found, source)).toEqual([
        expect.stringContaining("ends within a line that was longer before"),
        expect.stringContaining("the last good variables stay in use (2)"),
      ]);
  });

  test("of the first file that there is runs, and is said", async () => {
    rig.write("press-1.csv", "name;address;type\nv0;holding:34");
    for (const restart of [() => {}, () => rig.restart()]) {
      restart();
      const found = await rig.look([PRESS]);
      expect(addressesOf(found, PRESS)).toEqual(["holding:34"]);
      expect(messagesOf(found, PRESS)).toEqual([expect.stringMatching(/^the last line has no line end and has 2 of the 3 fields/)]);
    }
  });
});

describe("an editor that does not end the last line", () => {
  test.each([
    ["says nothing of it where the line is whole", FIVE.slice(0, -1), 5],
    ["may remove lines", "name;address;type\nv0;holding:3450;uint16\nv1;holding:3451;uint16", 2],
    ["may change lines", FIVE.replaceAll("345", "12").slice(0, -1), 5],
  ])("%s", async (_, text, count) => {
    rig.write("press-1.csv", FIVE);
    await rig.look([PRESS]);
    rig.write("press-1.csv", text);
    const found = await rig.look([PRESS]);
    expect([addressesOf(found, PRESS)?.length, found.problems]).toEqual([count, []]);
  });

  test("may add a line with fewer fields, which runs and is said", async () => {
    rig.write("press-1.csv", FIVE);
    await rig.look([PRESS]);
    rig.write("press-1.csv", `${FIVE}v5;holding:9`);
    const found = await rig.look([PRESS]);
    expect(addressesOf(found, PRESS)).toEqual([...IN_USE, "holding:9"]);
    expect(found.problems).toEqual([
      { file: join(rig.folder, "press-1.csv"), source: PRESS.uuid, line: 7, message: expect.stringContaining("has no line end") },
    ]);
  });
});
