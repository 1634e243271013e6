import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { ChangeGroup } from "./change-group.ts";
import { type Database, openDatabase } from "./database.ts";
import { temporaryFolder } from "./testing.ts";

let [db, other]: Database[] = [];

beforeEach(() => {
  const file = join(temporaryFolder(), "c.db");
  [db, other] = [openDatabase(file), openDatabase(file)];
  onTestFinished(() => {
    db?.close();
    other?.close();
  });
});

const opened = (): { readonly db: Database; readonly other: Database } => {
  if (!db || !other) throw new Error("no database");
  return { db, other };
};

/** Names of the sites that are durable, in creation order. */
const names = (): unknown[] => opened().other.prepare("SELECT name FROM sites ORDER BY id").pluck().all();

/** A change that adds a site, and answers its name. */
const add = (name: string) => (): string => {
  opened().db.prepare("INSERT INTO sites (uuid, name) VALUES (?, ?)").run(name, name);
  return name;
};

const failing = (name: string, fail: () => never) => (): never => {
  add(name)();
  return fail();
};

const refuse = (): never => {
  throw new Error("refused");
};

test("changes of one turn are committed together, in their order, before the first of them is answered", async () => {
  const group = new ChangeGroup(opened().db, 60_000);
  const seen: unknown[] = [];
  const during = (name: string) => () => {
    seen.push(names());
    return add(name)();
  };
  const answers = ["a", "b", "c"].map((name) => group.run(during(name)));
  expect(await answers[0]).toBe("a");
  expect(names()).toEqual(["a", "b", "c"]);
  expect(await Promise.all(answers)).toEqual(["a", "b", "c"]);
  // No other connection has seen one of them without the others.
  expect(seen).toEqual([[], [], []]);
});

test("what has taken its time is committed before the rest is made", async () => {
  const group = new ChangeGroup(opened().db, 0);
  const seen: unknown[] = [];
  const during = (name: string) => () => {
    seen.push(names());
    return add(name)();
  };
  expect(await Promise.all(["a", "b", "c"].map((name) => group.run(during(name))))).toEqual(["a", "b", "c"]);
  expect(seen).toEqual([[], ["a"], ["a", "b"]]);
});

test("fault: one that is refused leaves nothing, and takes no other with it", async () => {
  const { db } = opened();
  const group = new ChangeGroup(db, 60_000);
  const changes = [add("a"), failing("b", refuse), add("c"), add("a"), add("d")];
  const settled = await Promise.allSettled(changes.map((change) => group.run(change)));
  expect(settled.map((one) => (one.status === "fulfilled" ? one.value : (one.reason as Error).message))).toEqual([
    "a",
    "refused",
    "c",
    "UNIQUE constraint failed: sites.uuid",
    "d",
  ]);
  expect(names()).toEqual(["a", "c", "d"]);
  // Alone as among others.
  await expect(group.run(failing("e", refuse))).rejects.toThrow("refused");
  expect(await group.run(add("f"))).toBe("f");
  expect(names()).toEqual(["a", "c", "d", "f"]);
});

test("fault: where the whole transaction is lost, each is made alone, once", async () => {
  const { db } = opened();
  const group = new ChangeGroup(db, 60_000);
  // As SQLite does by itself on a full disk or an error of the device.
  const losing = (): never => {
    db.exec("ROLLBACK");
    return refuse();
  };
  const changes = [add("a"), failing("b", losing), add("c"), failing("d", losing), add("e")];
  const settled = await Promise.allSettled(changes.map((change) => group.run(change)));
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled"]);
  expect(names()).toEqual(["a", "c", "e"]);
});

test("fault: a full database refuses what does not fit, keeps what fits, and takes changes again once there is room", async () => {
  const { db } = opened();
  const group = new ChangeGroup(db, 60_000);
  const large = "x".repeat(1_000_000);
  const most = Number(db.pragma("max_page_count", { simple: true }));
  db.pragma(`max_page_count = ${Number(db.pragma("page_count", { simple: true })) + 20}`);
  const settled = await Promise.allSettled([add("a"), add(large), add("b")].map((change) => group.run(change)));
  expect(settled).toMatchObject([{ value: "a" }, { reason: { code: "SQLITE_FULL" } }, { value: "b" }]);
  expect(names()).toEqual(["a", "b"]);
  db.pragma(`max_page_count = ${most}`);
  expect(await group.run(add(large))).toBe(large);
});

test("fault: while another process writes, all are refused after one wait; then all goes on", async () => {
  const { db, other } = opened();
  db.pragma("busy_timeout = 10");
  const group = new ChangeGroup(db, 60_000);
  other.exec("BEGIN IMMEDIATE");
  const made: string[] = [];
  const settled = await Promise.allSettled(["a", "b", "c"].map((name) => group.run(() => made.push(name))));
  expect(settled.map((one) => one.status === "rejected" && (one.reason as { code?: string }).code)).toEqual(Array(3).fill("SQLITE_BUSY"));
  expect(made).toEqual([]);
  other.exec("COMMIT");
  expect(await Promise.all(["a", "b"].map((name) => group.run(add(name))))).toEqual(["a", "b"]);
  expect(names()).toEqual(["a", "b"]);
});

test("what waits when the server ends is made before the database is closed", async () => {
  const group = new ChangeGroup(opened().db);
  const answer = group.run(add("a"));
  group.flush();
  expect(names()).toEqual(["a"]);
  expect(await answer).toBe("a");
});
