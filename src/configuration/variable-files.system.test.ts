import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { uuidV5 } from "./uuid-v5.ts";
import { type VariableFiles, VariableFolder } from "./variable-files.ts";

const PLAIN = { type: null, unit: null, scaling: null, comment: null, status: "ACTIVE" } as const;
const PRESS = { uuid: "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11", name: "press-1" };
const OVEN = { uuid: "1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22", name: "Ofen ü/2" };
const TWIN = { uuid: "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33", name: "press-1" };

let folder: string;
let nowMs: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "collector-variables-"));
  nowMs = 0;
});
afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true });
});
const write = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
/** What was written long before the looks began. */
const writeOld = (name: string, text: string) => {
  const file = write(name, text);
  utimesSync(file, 1, 1);
  return file;
};
const open = () => new VariableFolder(folder, { monotonicMs: () => nowMs, epochMs: () => Date.now() }, join(folder, "owners.json"));
/** As the service looks: every two seconds. */
const lookLater = async (files: VariableFolder, sources: readonly { uuid: string; name: string }[]) => {
  nowMs += 2000;
  return files.look(sources);
};
/** Of what stands still. */
const lookTwice = async (files: VariableFolder, sources: readonly { uuid: string; name: string }[]) => {
  await files.look(sources);
  return lookLater(files, sources);
};
const addresses = (found: VariableFiles, { uuid }: { uuid: string }) => found.bySource.get(uuid)?.variables.map(({ address }) => address);
const messages = (found: VariableFiles, { uuid }: { uuid: string }) =>
  found.problems.flatMap(({ source, message }) => (source === uuid ? [message] : []));

describe("what stands still", () => {
  test("gives each source its variables, with ids that stay", async () => {
    const file = write("press-1.csv", "name;address\ntemp;holding:0\n");
    write(`${OVEN.uuid.toUpperCase()}.YAML`, "- { name: temp, address: holding:0 }");
    write("README.txt", "not a variable file");
    write(".press-1.csv", "an editor's own");
    const first = await lookTwice(open(), [PRESS, OVEN]);
    expect(first.problems).toEqual([]);
    expect(first.bySource.get(PRESS.uuid)).toEqual({
      file,
      variables: [{ ...PLAIN, uuid: uuidV5(PRESS.uuid, "temp"), data_source: PRESS.uuid, name: "temp", address: "holding:0" }],
    });
    expect(first.bySource.get(OVEN.uuid)?.variables[0]?.uuid).toBe(uuidV5(OVEN.uuid, "temp"));
    expect(await lookTwice(open(), [PRESS, OVEN])).toEqual(first);
  });

  test("is the same object while nothing changes, and read again where a file has changed only", async () => {
    write("press-1.csv", "name;address\na;holding:0\n");
    write(`${OVEN.uuid}.csv`, "name;address\na;holding:0\n");
    const files = open();
    const first = await lookTwice(files, [PRESS, OVEN]);
    expect(await lookLater(files, [PRESS, OVEN])).toBe(first);
    write("press-1.csv", "name;address\nb;holding:1\n");
    const second = await lookTwice(files, [PRESS, OVEN]);
    expect(addresses(second, PRESS)).toEqual(["holding:1"]);
    expect(second.bySource.get(OVEN.uuid)?.variables).toBe(first.bySource.get(OVEN.uuid)?.variables);
  });

  test("at the start takes at once what has not changed for ten minutes, and not a copy that only carries an old time", async () => {
    writeOld("press-1.csv", "name;address\na;holding:0\n");
    const at = (epochMs: number) => new VariableFolder(folder, { monotonicMs: () => nowMs, epochMs: () => epochMs });
    const later = at(Date.now() + 601_000);
    expect(addresses(await later.look([PRESS]), PRESS)).toEqual(["holding:0"]);
    const soon = at(Date.now() + 590_000);
    expect(addresses(await soon.look([PRESS]), PRESS)).toEqual([]);
    expect([later.startWaitMs(), soon.startWaitMs()]).toEqual([0, 250]);
  });

  test("at the start takes a second look soon, and later for what was written just before", async () => {
    writeOld("press-1.csv", "name;address\na;holding:0\n");
    write(`${OVEN.uuid}.csv`, "name;address\na;holding:1\n");
    const files = open();
    await files.watch();
    expect(files.startWaitMs()).toBeGreaterThan(0);
    nowMs += files.startWaitMs();
    expect(files.startWaitMs()).toBe(0);
    expect(nowMs).toBeLessThan(500);
    const found = await files.look([PRESS, OVEN]);
    expect([addresses(found, PRESS), addresses(found, OVEN)]).toEqual([["holding:0"], []]);
    expect(messages(found, OVEN)).toEqual([expect.stringContaining("is being written")]);
    expect(addresses(await lookLater(files, [PRESS, OVEN]), OVEN)).toEqual(["holding:1"]);
    expect(new VariableFolder(join(folder, "absent"), { monotonicMs: () => 0, epochMs: () => 0 }).startWaitMs()).toBe(0);
  });

  test("an unusable file is a problem of its source alone, with file and line", async () => {
    mkdirSync(join(folder, "press-1.csv"));
    const bad = write(`${OVEN.uuid}.csv`, "name;address\n;x\n");
    const { bySource, problems } = await lookTwice(open(), [PRESS, OVEN]);
    expect([...bySource.keys()].sort()).toEqual([PRESS.uuid, OVEN.uuid].sort());
    expect(problems.toSorted((a, b) => Number(a.source === PRESS.uuid) - Number(b.source === PRESS.uuid))).toEqual([
      { file: bad, source: OVEN.uuid, line: 2, message: "name: is empty; each variable needs one" },
      { file: join(folder, "press-1.csv"), source: PRESS.uuid, message: "is a folder; a file is needed here" },
    ]);
  });

  test("may be absent, and is named where it is no folder", async () => {
    const at = (path: string) => new VariableFolder(path, { monotonicMs: () => 0, epochMs: () => 0 }).look([PRESS]);
    expect((await at(join(folder, "absent"))).problems).toEqual([]);
    const file = write("file", "");
    expect((await at(file)).problems).toEqual([{ file, message: expect.stringMatching(/cannot be read/) }]);
  });
});

describe("what cannot be used any more", () => {
  test.each([
    ["emptied", ""],
    ["without its first line", "a;holding:0\nb;holding:1\n"],
    ["cut in its first line", "name;addr"],
    ["cut in its first row", "name;address\na;"],
  ])("a file that was %s leaves its source the last good variables and says so, until it is whole", async (_, text) => {
    write("press-1.csv", "name;address\na;holding:0\nb;holding:1\n");
    const files = open();
    await lookTwice(files, [PRESS]);
    write("press-1.csv", text);
    const found = await lookTwice(files, [PRESS]);
    expect(addresses(found, PRESS)).toEqual(["holding:0", "holding:1"]);
    expect(messages(found, PRESS)).toContain("the last good variables stay in use (2)");
    expect(await lookLater(files, [PRESS])).toBe(found);
    write("press-1.csv", "name;address\nc;holding:2\n");
    const healed = await lookTwice(files, [PRESS]);
    expect([addresses(healed, PRESS), healed.problems]).toEqual([["holding:2"], []]);
  });

  test("a file with its first line alone, and an empty list, have no variables: that may be meant", async () => {
    write("press-1.csv", "name;address\na;holding:0\n");
    write(`${OVEN.uuid}.yaml`, "- { name: a, address: holding:0 }");
    const files = open();
    await lookTwice(files, [PRESS, OVEN]);
    write("press-1.csv", "name;address\n");
    write(`${OVEN.uuid}.yaml`, "[]");
    const found = await lookTwice(files, [PRESS, OVEN]);
    expect([addresses(found, PRESS), addresses(found, OVEN), found.problems]).toEqual([[], [], []]);
  });

  test("a file that is removed is gone when it stays away, and the API's variables are at work", async () => {
    const file = write("press-1.csv", "name;address\na;holding:0\n");
    const files = open();
    await lookTwice(files, [PRESS]);
    rmSync(file);
    expect(addresses(await files.look([PRESS]), PRESS)).toEqual(["holding:0"]);
    expect((await lookLater(files, [PRESS])).bySource.size).toBe(0);
  });

  test("a file that comes to a source which runs on the API's variables leaves it these until it stands still", async () => {
    const files = open();
    await lookTwice(files, [PRESS]);
    write("press-1.csv", "name;address\na;holding:0\n");
    expect((await files.look([PRESS])).bySource.size).toBe(0);
    expect(addresses(await lookLater(files, [PRESS]), PRESS)).toEqual(["holding:0"]);
  });

  test("a folder that cannot be read for a while costs no source its variables", async () => {
    write("press-1.csv", "name;address\na;holding:0\n");
    const files = open();
    await lookTwice(files, [PRESS]);
    const away = `${folder}-away`;
    renameSync(folder, away);
    writeFileSync(folder, "");
    const found = await lookTwice(files, [PRESS]);
    expect(addresses(found, PRESS)).toEqual(["holding:0"]);
    expect(found.problems).toEqual([
      { file: folder, message: expect.stringMatching(/cannot be read: .*; what was read of it stays in use/) },
    ]);
    rmSync(folder);
    renameSync(away, folder);
    expect((await lookTwice(files, [PRESS])).problems).toEqual([]);
  });
});

describe("files and sources that fit each other several times", () => {
  test("a second source of the same name takes no variables from the first, and both say it", async () => {
    const file = write("press-1.csv", "name;address\na;holding:0\n");
    const files = open();
    await lookTwice(files, [PRESS]);
    const found = await lookLater(files, [PRESS, TWIN]);
    expect([addresses(found, PRESS), addresses(found, TWIN)]).toEqual([["holding:0"], undefined]);
    const said = expect.stringMatching(new RegExp(`fits several .*${PRESS.uuid}.* and .*${TWIN.uuid}.*; it stays with ${PRESS.uuid}`));
    expect([messages(found, PRESS), messages(found, TWIN)]).toEqual([[said], [said]]);
    write("press-1.csv", "name;address\na;holding:1\n");
    expect(addresses(await lookTwice(files, [PRESS, TWIN]), PRESS)).toEqual(["holding:1"]);
    const restarted = await lookTwice(open(), [PRESS, TWIN]);
    expect([addresses(restarted, PRESS), addresses(restarted, TWIN)]).toEqual([["holding:1"], undefined]);
    expect([messages(restarted, PRESS), messages(restarted, TWIN)]).toEqual([[said], [said]]);
    renameSync(file, join(folder, `${TWIN.uuid}.csv`));
    const told = await lookTwice(files, [PRESS, TWIN]);
    expect([addresses(told, PRESS), addresses(told, TWIN), told.problems]).toEqual([undefined, ["holding:1"], []]);
  });

  test("a source that takes the name of another keeps what it had, as the other does", async () => {
    write("press-1.csv", "name;address\na;holding:0\n");
    write("press-2.csv", "name;address\na;holding:2\n");
    const files = open();
    const second = { ...TWIN, name: "press-2" };
    await lookTwice(files, [PRESS, second]);
    const found = await lookLater(files, [PRESS, TWIN]);
    expect([addresses(found, PRESS), addresses(found, TWIN)]).toEqual([["holding:0"], ["holding:2"]]);
    expect([messages(found, PRESS).length, messages(found, TWIN).length]).toEqual([1, 1]);
    const healed = await lookLater(files, [PRESS, second]);
    expect([addresses(healed, PRESS), addresses(healed, second), healed.problems]).toEqual([["holding:0"], ["holding:2"], []]);
  });

  test("a file that fits two sources from the start is used by none, and both say it; one that fits none is named", async () => {
    write("press-1.csv", "name;address\na;holding:0\n");
    const lost = write("pres-1.csv", "name;address\n");
    const { bySource, problems } = await lookTwice(open(), [PRESS, TWIN]);
    expect(bySource.size).toBe(0);
    expect(problems.map(({ source }) => source)).toEqual([undefined, PRESS.uuid, TWIN.uuid]);
    expect(problems[0]).toEqual({ file: lost, message: "fits no data source; its name must be the uuid or the name of one, exactly" });
    expect(problems[1]?.message).toContain("it is not used");
  });

  test("of two files for one source none is used, but for one that was in use", async () => {
    write("press-1.csv", "name;address\na;holding:0\n");
    const files = open();
    await lookTwice(files, [PRESS]);
    write("press-1.yaml", "- { name: a, address: holding:1 }");
    const found = await lookTwice(files, [PRESS]);
    expect(addresses(found, PRESS)).toEqual(["holding:0"]);
    expect(messages(found, PRESS)).toEqual([expect.stringMatching(/are for the same data source.*press-1\.csv stays in use/)]);
    const fresh = await lookTwice(new VariableFolder(folder, { monotonicMs: () => nowMs, epochMs: () => Date.now() }), [PRESS]);
    expect([addresses(fresh, PRESS), messages(fresh, PRESS)]).toEqual([[], [expect.stringContaining("None of them is used")]]);
    rmSync(join(folder, "press-1.csv"));
    const other = await lookTwice(files, [PRESS]);
    expect([addresses(other, PRESS), other.problems]).toEqual([["holding:1"], []]);
  });
});

/** Writes in pieces, from a process of its own, with pauses shorter than a look. */
const SLOW_WRITER = `
  const { openSync, writeSync, closeSync, renameSync, unlinkSync } = require("node:fs");
  const [file, how, text, pieceBytes, pauseMs] = JSON.parse(process.argv[1]);
  const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  const target = how === "rename" ? file + ".tmp" : file;
  if (how === "unlink") { try { unlinkSync(file); } catch {} wait(pauseMs); }
  const fd = openSync(target, "w");
  for (let at = 0; at < text.length; at += pieceBytes) { writeSync(fd, text.slice(at, at + pieceBytes)); wait(pauseMs); }
  closeSync(fd);
  if (how === "rename") renameSync(target, file);
`;

describe("writers in a process of their own", () => {
  const SOURCES = [PRESS, OVEN, { ...TWIN, name: "mill" }];
  const HOW = ["truncate", "rename", "unlink"];
  const textOf = (first: number): string =>
    `name;address\n${Array.from({ length: 12 }, (_, i) => `v${i};holding:${first + i}`).join("\n")}`;
  const expected = (first: number): string[] => Array.from({ length: 12 }, (_, i) => `holding:${first + i}`);

  /** Looks are more frequent than the service has them: what a look may find of a file is found sooner. */
  async function writing(first: number, files: VariableFolder, seen: Set<string>): Promise<void> {
    const writers = SOURCES.map(({ uuid }, i) =>
      spawn(process.execPath, ["-e", SLOW_WRITER, JSON.stringify([join(folder, `${uuid}.csv`), HOW[i], textOf(first), 40, 100])], {
        stdio: "inherit",
      }),
    );
    let isOver = false;
    const over = Promise.all(writers.map(async (writer) => once(writer, "exit"))).then((codes) => {
      isOver = true;
      expect(codes.flat()).toEqual([0, null, 0, null, 0, null]);
    });
    while (!isOver) {
      await note(files, seen);
      await delay(20);
    }
    await over;
    const end = performance.now() + 20_000;
    const areAllThere = async () => {
      const now = await note(files, seen);
      return SOURCES.every((one) => now.get(one.uuid) === expected(first).join());
    };
    while (performance.now() < end && !(await areAllThere())) await delay(20);
  }
  const note = async (files: VariableFolder, seen: Set<string>): Promise<Map<string, string>> => {
    const found = await files.look(SOURCES);
    const now = new Map(SOURCES.map((one) => [one.uuid, addresses(found, one)?.join() ?? "none"]));
    for (const text of now.values()) seen.add(text);
    return now;
  };

  test("a file in the middle of being written is never taken as it stands, on several sources at once", async () => {
    const files = new VariableFolder(folder, { monotonicMs: () => performance.now(), epochMs: () => Date.now() });
    const seen = new Set<string>();
    for (const first of [3400, 5600, 7800]) await writing(first, files, seen);
    // Before the first file was whole there were none, or nothing but the word that one is being written.
    seen.delete("none");
    seen.delete("");
    expect([...seen].sort()).toEqual([3400, 5600, 7800].map((first) => expected(first).join()));
    truncateSync(join(folder, `${PRESS.uuid}.csv`));
    const end = performance.now() + 20_000;
    while (performance.now() < end && messages(await files.look(SOURCES), PRESS).length === 0) await delay(20);
    expect(messages(await files.look(SOURCES), PRESS).at(-1)).toContain("the last good variables stay in use (12)");
    expect(addresses(await files.look(SOURCES), PRESS)).toEqual(expected(7800));

    await writing(100, files, seen);
    const healed = await files.look(SOURCES);
    expect(healed.problems).toEqual([]);
    expect(Object.fromEntries(healed.bySource)).toEqual(Object.fromEntries((await lookTwice(open(), SOURCES)).bySource));
  }, 120_000);
});
