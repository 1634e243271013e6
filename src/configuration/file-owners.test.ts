import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FileOwners, KEPT_AWAY_MS, nextOwners, type Owners, stemOf } from "./file-owners.ts";

const PRESS = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";
const TWIN = "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33";
const NONE: Owners = new Map();

const look = (before: Owners, nowMs: number, present: readonly (readonly [string, string | undefined])[], namesakes: string[] = []) =>
  nextOwners(before, { present: new Map(present), namesakes: new Map([[PRESS, namesakes]]), nowMs });

describe("after a look", () => {
  const owned = look(NONE, 0, [[PRESS, "press.csv"]]);

  test("a source owns the file that it uses, and the owners are the same object while nothing changes", () => {
    expect([...owned]).toEqual([[PRESS, { file: "press.csv", namesakes: [] }]]);
    expect(look(owned, 2000, [[PRESS, "press.csv"]])).toBe(owned);
    expect(look(NONE, 0, [[PRESS, undefined]])).toBe(NONE);
  });

  test("what is away stays its owner's for a day, from the first look that missed it", () => {
    const away = look(owned, 2000, []);
    expect(away.get(PRESS)).toEqual({ file: "press.csv", namesakes: [], awaySinceMs: 2000 });
    expect(look(away, 2000 + KEPT_AWAY_MS - 1, [])).toBe(away);
    expect(look(away, 2000 + KEPT_AWAY_MS, []).size).toBe(0);
    expect(look(away, 4000, [[PRESS, "press.csv"]])).toEqual(owned);
  });

  test("a file that is being written stays its owner's, as does one beside which a second lies", () => {
    expect(look(owned, 2000, [[PRESS, undefined]])).toBe(owned);
  });

  test("what is away is over when another source took the file, in whichever format", () => {
    const away = look(owned, 2000, []);
    expect([...look(away, 4000, [[TWIN, "press.yaml"]]).keys()]).toEqual([TWIN]);
  });

  test("the namesakes are kept while the name stays, and a bounded number of them", () => {
    const disputed = look(owned, 2000, [[PRESS, "press.csv"]], [TWIN]);
    expect(disputed.get(PRESS)?.namesakes).toEqual([TWIN]);
    expect(look(disputed, 4000, [[PRESS, "press.csv"]])).toBe(disputed);
    expect(look(disputed, 4000, [[PRESS, "press.YML"]]).get(PRESS)).toEqual({ file: "press.YML", namesakes: [TWIN] });
    expect(look(disputed, 4000, [[PRESS, `${PRESS}.csv`]]).get(PRESS)?.namesakes).toEqual([]);
    const many = Array.from({ length: 1000 }, (_, i) => String(i));
    expect(look(owned, 2000, [[PRESS, "press.csv"]], many).get(PRESS)?.namesakes).toHaveLength(100);
  });

  test("a name has no extension, and the letters of a uuid no case", () => {
    expect(stemOf("Press 1.2.CSV")).toBe("Press 1.2");
    expect(stemOf("Ofen u\u0308.csv")).toBe("Ofen ü");
    expect(stemOf(`${PRESS.toUpperCase()}.yaml`)).toBe(PRESS);
  });
});

describe("over a restart", () => {
  let folder: string;
  let file: string;
  let nowMs: number;
  let epochMs: number;
  const open = () => new FileOwners(file, { monotonicMs: () => nowMs, epochMs: () => epochMs });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "collector-owners-"));
    file = join(folder, "variable-files.json");
    nowMs = 50_000;
    epochMs = 1_800_000_000_000;
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test("the owners are as they were, and the day goes on", () => {
    const owners = look(look(NONE, nowMs, [[PRESS, "press.csv"]], [TWIN]), nowMs, []);
    open().keep(owners);
    // Another process, an hour later.
    nowMs = 7;
    epochMs += 3_600_000;
    expect(open().owners).toEqual(new Map([[PRESS, { file: "press.csv", namesakes: [TWIN], awaySinceMs: 7 - 3_600_000 }]]));
  });

  test("a clock that was set back gives a day again, no more", () => {
    open().keep(look(look(NONE, nowMs, [[PRESS, "press.csv"]]), nowMs, []));
    epochMs = 0;
    nowMs = 7;
    expect(open().owners.get(PRESS)?.awaySinceMs).toBe(7);
  });

  test("what has not changed is not written", () => {
    const owners = open();
    owners.keep(look(NONE, nowMs, [[PRESS, "press.csv"]]));
    const { ino } = statSync(file);
    owners.keep(look(owners.owners, nowMs, [[PRESS, "press.csv"]]));
    expect(statSync(file).ino).toBe(ino);
  });

  test("a file that cannot be read or written costs that alone, and one without a name is never written", () => {
    writeFileSync(file, '{"press.csv":');
    expect(open().owners.size).toBe(0);
    rmSync(file);
    const lost = new FileOwners(join(folder, "absent", "owners.json"), { monotonicMs: () => 0, epochMs: () => 0 });
    lost.keep(look(NONE, 0, [[PRESS, "press.csv"]]));
    expect(lost.owners.size).toBe(1);
    new FileOwners(undefined, { monotonicMs: () => 0, epochMs: () => 0 }).keep(lost.owners);
    expect(existsSync(file)).toBe(false);
  });

  test("a file that names the owner of each file is read too", () => {
    writeFileSync(file, JSON.stringify({ "press.csv": PRESS }));
    const owners = open();
    expect(owners.owners).toEqual(new Map([[PRESS, { file: "press.csv", namesakes: [] }]]));
    owners.keep(look(owners.owners, nowMs, [[PRESS, "press.csv"]], [TWIN]));
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ [PRESS]: { file: "press.csv", namesakes: [TWIN] } });
  });
});
