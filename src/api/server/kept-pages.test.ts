import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { createTextCache } from "./changes.ts";
import { type Database, openDatabase } from "./database.ts";
import { keptPageReader } from "./kept-pages.ts";
import { type PageRequest, pageReader } from "./pages.ts";
import { temporaryFolder } from "./testing.ts";

const REACH = ["s0"];
const CONDITIONS = { operation: "listMachines", reach: "coalesce(r.site, '')", filters: { site: "r.site" } };

/** Machines stand for any table: their pages as they are kept, and as they are read anew each time. */
function readers(db: Database, maxBytes?: number) {
  const byId = db.prepare<[number], { uuid: string; name: string | null; site: string | null }>(
    "SELECT uuid, name, site FROM machines WHERE id = ?",
  );
  const texts = createTextCache(2000);
  const table = { ...CONDITIONS, table: "machines", columns: ["site"], textOf };
  function textOf(id: number): string | undefined {
    const row = byId.get(id);
    return row && JSON.stringify(row);
  }
  const fresh = pageReader<{ id: number; uuid: string; name: string | null; site: string | null }, object>(db, {
    ...CONDITIONS,
    select: "SELECT * FROM machines r",
    toRecord: ({ uuid, name, site }) => ({ uuid, name, site }),
  });
  return { kept: keptPageReader(db, table, texts, maxBytes), fresh };
}

function database(): { readonly db: Database; readonly other: Database } {
  const file = join(temporaryFolder(), "c.db");
  const [db, other] = [openDatabase(file), openDatabase(file)];
  onTestFinished(() => {
    db.close();
    other.close();
  });
  return { db, other };
}

function seed(db: Database, count: number, letter = "ü"): void {
  for (const site of ["s0", "s1"]) db.prepare("INSERT INTO sites (uuid, name) VALUES (?, ?)").run(site, site);
  const insert = db.prepare("INSERT INTO machines (uuid, name, site) VALUES (?, ?, ?)");
  db.transaction(() => {
    for (let n = 0; n < count; n++) insert.run(`m${n}`, `name ${letter} ${n}`, n % 3 === 0 ? "s1" : "s0");
  })();
}

const step = fc.oneof(
  fc.record({ type: fc.constant("create" as const), site: fc.constantFrom("s0", "s1"), name: fc.string({ maxLength: 60 }) }),
  fc.record({ type: fc.constant("rename" as const), at: fc.nat(200), name: fc.string({ maxLength: 400 }) }),
  fc.record({ type: fc.constant("rename" as const), at: fc.nat(200), name: fc.string({ unit: "grapheme", maxLength: 40 }) }),
  fc.record({ type: fc.constant("move" as const), at: fc.nat(200), site: fc.constantFrom("s0", "s1") }),
  fc.record({ type: fc.constant("delete" as const), at: fc.nat(200) }),
  fc.record({ type: fc.constant("rolled back" as const), at: fc.nat(200) }),
);

test("a kept page is the page that is there, whatever changes, here, elsewhere or not after all", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, fc.boolean()), { maxLength: 25 }), fc.constantFrom("ü", "u"), async (steps, letter) => {
      const { db, other } = database();
      seed(db, 120, letter);
      const { kept, fresh } = readers(db);
      let count = 120;
      const apply = (on: Database, change: (typeof steps)[number][0]): void => {
        if (change.type === "create")
          on.prepare("INSERT INTO machines (uuid, name, site) VALUES (?, ?, ?)").run(`m${count++}`, change.name, change.site);
        else if (change.type === "rename") on.prepare("UPDATE machines SET name = ? WHERE uuid = ?").run(change.name, `m${change.at}`);
        else if (change.type === "move") on.prepare("UPDATE machines SET site = ? WHERE uuid = ?").run(change.site, `m${change.at}`);
        else if (change.type === "delete") on.prepare("DELETE FROM machines WHERE uuid = ?").run(`m${change.at}`);
        else {
          on.exec("BEGIN");
          on.prepare("UPDATE machines SET name = 'never', site = NULL WHERE uuid = ?").run(`m${change.at}`);
          on.exec("ROLLBACK");
        }
      };
      const same = (request: PageRequest): string | undefined => {
        const expected = fresh(request);
        const page = kept(request);
        expect(JSON.parse(page.json.toString())).toEqual(expected);
        page.giveBack();
        return expected.metadata.next_cursor ?? undefined;
      };
      const compare = (): void => {
        for (const given of [
          { filters: {}, reach: undefined },
          { filters: { site: ["s1"] }, reach: undefined },
          { filters: {}, reach: REACH },
        ])
          for (let cursor: string | undefined, n = 0; n === 0 || cursor !== undefined; n++) cursor = same({ ...given, cursor });
      };
      compare();
      for (const [change, elsewhere] of steps) {
        apply(elsewhere ? other : db, change);
        // The next request is another run.
        await Promise.resolve();
        compare();
      }
    }),
    { numRuns: 40 },
  );
}, 60_000);

test("what another connection commits is on the page of the next request", async () => {
  const { db, other } = database();
  seed(db, 3);
  const { kept } = readers(db);
  const request: PageRequest = { cursor: undefined, filters: {}, reach: undefined };
  expect(kept(request).json.toString()).toContain("name ü 1");
  await Promise.resolve();
  other.prepare("UPDATE machines SET name = 'elsewhere' WHERE uuid = 'm1'").run();
  expect(kept(request).json.toString()).toContain("elsewhere");
  await Promise.resolve();
  other.prepare("DELETE FROM machines WHERE uuid = 'm1'").run();
  expect(kept(request).json.toString()).not.toContain("m1");
});

test("a few changed records are put in their places, longer, shorter, first, last, several, and of other letters", () => {
  const { db } = database();
  seed(db, 60, "u");
  const { kept, fresh } = readers(db);
  const request: PageRequest = { cursor: undefined, filters: {}, reach: undefined };
  const rename = db.prepare<[string, string]>("UPDATE machines SET name = ? WHERE uuid = ?");
  const places = new Set<unknown>();
  for (const changes of [
    [],
    [["m0", "longer than it was before"]],
    [["m49", "s"]],
    [["m7", "name u 7"]],
    [
      ["m1", "a"],
      ["m2", "bb"],
      ["m30", "c".repeat(300)],
    ],
    [["m3", "größer"]],
    [["m3", "ascii again"]],
    [["m3", "and again"]],
  ]) {
    for (const [uuid = "", name = ""] of changes) rename.run(name, uuid);
    const page = kept(request);
    expect(JSON.parse(page.json.toString())).toEqual(fresh(request));
    places.add(page.json.buffer);
    page.giveBack();
  }
  expect(places.size).toBe(1);
});

test("an answer under way keeps its bytes; what was given back is used again", () => {
  const { db } = database();
  seed(db, 60);
  const { kept } = readers(db);
  const request: PageRequest = { cursor: undefined, filters: {}, reach: undefined };
  const rename = db.prepare<[string]>("UPDATE machines SET name = ? WHERE uuid = 'm7'");
  const first = kept(request);
  const again = kept(request);
  expect(again.json).toBe(first.json);
  const sent = first.json.toString();
  again.giveBack();
  rename.run("second");
  const second = kept(request);
  expect(second.json.buffer).not.toBe(first.json.buffer);
  expect([first.json.toString(), second.json.toString().includes('"second"')]).toEqual([sent, true]);
  first.giveBack();
  second.giveBack();
  rename.run("third");
  const third = kept(request);
  expect(third.json.buffer).toBe(second.json.buffer);
  expect(third.json.toString()).toContain('"third"');
  third.giveBack();
  rename.run("long ".repeat(5000));
  const longer = kept(request);
  expect(JSON.parse(longer.json.toString()).data).toHaveLength(50);
});

test("pages are kept within their bound, the oldest go first, whatever was asked for", () => {
  const { db } = database();
  seed(db, 60);
  const { kept } = readers(db, 40_000);
  const bytesOf = (site: string): unknown => {
    const page = kept({ cursor: undefined, filters: { site: [site] }, reach: undefined });
    page.giveBack();
    return page.json.buffer;
  };
  const first = bytesOf("s1");
  expect(bytesOf("s1")).toBe(first);
  // Pages without a record, each asked for in many words.
  for (let n = 0; n < 20; n++) bytesOf(`nowhere ${n} ${"x".repeat(1000)}`);
  expect(bytesOf("s1")).not.toBe(first);
});
