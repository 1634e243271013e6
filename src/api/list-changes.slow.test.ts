import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { ApiClient, type PullResult } from "./client.ts";
import type { Desired } from "./desired.ts";
import { COLLECTOR, recordingLog } from "./server/testing.ts";
import { json, page, scripted, source } from "./server/testing-scripted.ts";

const OTHER = "9d9f0d7e-1111-4111-8111-111111111111";
const never = new AbortController().signal;

const sink = (n: number, rest: object = {}) => ({
  uuid: `${String(n).padStart(8, "0")}-0000-4000-8000-00000000000f`,
  name: `sink ${n}`,
  collector: COLLECTOR,
  type: "mqtt",
  details: { type: "mqtt", host: "127.0.0.1", topic: "t" },
  ...rest,
});
const variable = (n: number, rest: object = {}) => ({
  uuid: `${String(n).padStart(8, "0")}-0000-4000-8000-0000000000aa`,
  data_source: source(n).uuid,
  name: `v ${n}`,
  address: "x",
  ...rest,
});

type Rows = { readonly uuid: string; readonly collector?: string; readonly data_source?: string }[];

/** A platform whose pages count from the beginning of the list, so that a deletion moves the records behind it. */
class OffsetPlatform {
  readonly lists: Record<"data-sources" | "data-sinks" | "variables", Rows> = { "data-sources": [], "data-sinks": [], variables: [] };
  /** Called before each page of a whole list but the first. */
  beforeNextPage: (list: keyof OffsetPlatform["lists"]) => void = () => {};
  /** Records of a whole list that are given at most: it then ends early. */
  longest = Number.POSITIVE_INFINITY;
  /** How the filters answer. */
  filter: "works" | "fails" | "is ignored" | "takes its first value" | "is always empty" = "works";
  readonly asked: string[] = [];

  answer(response: ServerResponse, path: string): void {
    const url = new URL(path, "http://x");
    const found = /^\/api\/(?:v2|ext\/v1)\/(data-sources|data-sinks|variables)$/.exec(url.pathname)?.[1] as keyof typeof this.lists;
    const isExtended = url.pathname === "/api/ext/v1" && this.lists.variables.length > 0;
    if (isExtended) json(response, { extension: "collector", version: 1 });
    else if (!found) json(response, { detail: "no such path" }, 404);
    else this.#list(response, found, url.searchParams);
  }

  #list(response: ServerResponse, found: keyof typeof this.lists, query: URLSearchParams): void {
    const name = found === "variables" ? "data_source" : "uuid";
    const values = query.getAll(name);
    if (values.length > 0) {
      this.asked.push(`${found} ${values.length}`);
      this.#filtered(response, found, name, values);
      return;
    }
    const from = Number(query.get("cursor") ?? 0);
    if (from > 0) this.beforeNextPage(found);
    const list = this.lists[found].filter(({ collector = COLLECTOR }) => collector === COLLECTOR).slice(0, this.longest);
    json(response, page(list.slice(from, from + 5), from + 5 < list.length ? String(from + 5) : null));
  }

  #filtered(response: ServerResponse, found: keyof typeof this.lists, name: "uuid" | "data_source", values: readonly string[]): void {
    const list = this.lists[found];
    const counts = this.filter === "takes its first value" ? values.slice(0, 1) : values;
    const selected = list.filter((row) => counts.includes(row[name] ?? ""));
    if (this.filter === "fails") json(response, { detail: "oops" }, 500);
    else if (this.filter === "is always empty") json(response, page([]));
    else json(response, page(this.filter === "is ignored" ? list : selected));
  }
}

async function start(platform: OffsetPlatform) {
  const { url } = await scripted((_, response, path) => platform.answer(response, path));
  const client = new ApiClient({ url, collector: COLLECTOR, readKey: () => "key-51c7e2", log: recordingLog() });
  onTestFinished(() => client.close());
  let current: Desired | null = null;
  return {
    /** Names of one list after one more pull, and what the pull says. */
    async pull(list: "sources" | "sinks" | "variables" = "sources") {
      const result: PullResult = await client.pull(current, never);
      if (result.type === "failed") throw new Error(result.message);
      if (result.type === "configuration") current = result.configuration;
      const names = (current?.[list] ?? []).map(({ name }) => name).toSorted((a, b) => (a ?? "").localeCompare(b ?? ""));
      return {
        names,
        warnings: result.type === "configuration" ? textsOf(result.warnings).join("\n") : "",
        codes: result.type === "configuration" ? codesOf(result.warnings) : [],
        type: result.type,
      };
    },
  };
}

const many = (count: number): Rows => Array.from({ length: count }, (_, n) => source(n + 10));
const namesOf = (rows: Rows): string[] => rows.map((row) => ("name" in row ? String(row.name) : row.uuid)).toSorted();

/** Deletes a record of the first page once the next one is asked for. */
function deleteInMidPull(platform: OffsetPlatform, list: keyof OffsetPlatform["lists"]): void {
  platform.beforeNextPage = (asked) => {
    if (asked !== list) return;
    platform.beforeNextPage = () => {};
    platform.lists[list].splice(1, 1);
  };
}

test("a list that changes while it is read removes no source that nobody touched", async () => {
  const platform = new OffsetPlatform();
  platform.lists["data-sources"] = many(13);
  const { pull } = await start(platform);
  expect((await pull()).names).toHaveLength(13);
  for (let n = 0; n < 3; n++) {
    const before = namesOf(platform.lists["data-sources"]);
    deleteInMidPull(platform, "data-sources");
    const during = await pull();
    // The deleted one was read before it was deleted; nobody touched any other.
    expect(during.names).toEqual(before);
    expect(during.warnings).toContain("1 data source (");
    expect(during.codes).toEqual(["records_unlisted"]);
    expect((await pull()).names).toEqual(namesOf(platform.lists["data-sources"]));
  }
});

test("a list of sinks or variables that changes while it is read removes none that nobody touched", async () => {
  const platform = new OffsetPlatform();
  platform.lists["data-sources"] = many(4);
  platform.lists["data-sinks"] = Array.from({ length: 8 }, (_, n) => sink(n + 10));
  platform.lists.variables = Array.from({ length: 8 }, (_, n) => variable(n + 10, { data_source: source(10 + (n % 4)).uuid }));
  const { pull } = await start(platform);
  await pull();
  for (const [list, part] of [
    ["data-sinks", "sinks"],
    ["variables", "variables"],
  ] as const) {
    const before = namesOf(platform.lists[list]);
    deleteInMidPull(platform, list);
    expect((await pull(part)).names).toEqual(before);
    expect((await pull(part)).names).toEqual(namesOf(platform.lists[list]));
  }
});

test("a list that ends early is not believed: what it leaves out is asked for, fifty at once", async () => {
  const platform = new OffsetPlatform();
  platform.lists["data-sources"] = many(130);
  const { pull } = await start(platform);
  await pull();
  platform.longest = 20;
  const { names } = await pull();
  expect(names).toHaveLength(130);
  expect(platform.asked).toEqual(["data-sources 50", "data-sources 50", "data-sources 10"]);
  // The same again is no change.
  expect((await pull()).type).toBe("unchanged");
});

test("what somebody removes, or gives to another collector, goes with the next pull", async () => {
  const platform = new OffsetPlatform();
  platform.lists["data-sources"] = many(12);
  platform.lists["data-sinks"] = [sink(1), sink(2)];
  const { pull } = await start(platform);
  await pull();
  platform.lists["data-sources"].splice(3, 1);
  platform.lists["data-sources"][0] = source(10, { collector: OTHER });
  platform.lists["data-sinks"].splice(0, 1);
  const after = await pull();
  expect([after.names.length, after.names.includes("source 10"), after.warnings]).toEqual([10, false, ""]);
  expect((await pull("sinks")).names).toEqual(["sink 2"]);
  platform.lists["data-sources"] = [];
  expect((await pull()).names).toEqual([]);
});

test.each(["fails", "is ignored", "takes its first value", "is always empty"] as const)(
  "where the filter %s, a missing source stays until two pulls in a row miss it, and status says so",
  async (filter) => {
    const platform = new OffsetPlatform();
    const all = many(12);
    platform.lists["data-sources"] = all;
    const { pull } = await start(platform);
    await pull();
    platform.filter = filter;
    platform.lists["data-sources"] = all.toSpliced(4, 2);
    const first = await pull();
    expect(first.names).toHaveLength(12);
    expect(first.warnings).toMatch(/2 data sources \("source 14", "source 15"\).*stay until 2 pulls in a row miss them/);
    // One that is there again counts from the beginning.
    platform.lists["data-sources"] = all.toSpliced(4, 1);
    expect((await pull()).names).toHaveLength(11);
    platform.lists["data-sources"] = all.toSpliced(4, 2);
    expect((await pull()).names).toHaveLength(11);
    const last = await pull();
    expect([last.names.length, last.warnings]).toEqual([10, ""]);
  },
);

test("where the filter fails, a pull that would remove more than a fifth waits for a third", async () => {
  const platform = new OffsetPlatform();
  const all = many(12);
  platform.lists["data-sources"] = all;
  platform.filter = "fails";
  const { pull } = await start(platform);
  await pull();
  platform.lists["data-sources"] = all.slice(0, 7);
  expect((await pull()).names).toHaveLength(12);
  const second = await pull();
  expect(second.names).toHaveLength(12);
  expect(second.warnings).toContain("stay until 3 pulls in a row miss them");
  expect((await pull()).names).toHaveLength(7);
});

test.each([null, OTHER])(
  "a source whose record does not say whose it is goes with the next pull once it is the collector's no more (%s)",
  async (owner) => {
    const owners = new Map<string, string | null>(many(6).map(({ uuid }) => [uuid, COLLECTOR]));
    let isLate = false;
    const { url } = await scripted((_, response, path) => {
      const { pathname, searchParams: query } = new URL(path, "http://x");
      if (pathname !== "/api/v2/data-sources") return json(response, { detail: "no such path" }, 404);
      const [uuids, collector] = [query.getAll("uuid"), query.get("collector")];
      const list = many(6).filter(
        ({ uuid }) => (uuids.length === 0 || uuids.includes(uuid)) && (collector === null || owners.get(uuid) === collector),
      );
      // A whole list that changes while it is read: it leaves out one that it has.
      const given = isLate && uuids.length === 0 ? list.slice(0, -1) : list;
      return json(response, page(given.map(({ collector: _owner, ...rest }) => rest)));
    });
    const client = new ApiClient({ url, collector: COLLECTOR, readKey: () => "key-51c7e2", log: recordingLog() });
    onTestFinished(() => client.close());
    const first = await client.pull(null, never);
    if (first.type !== "configuration") throw new Error(first.type);
    expect(first.configuration.sources).toHaveLength(6);
    owners.set(source(11).uuid, owner);
    isLate = true;
    const second = await client.pull(first.configuration, never);
    if (second.type !== "configuration") throw new Error(second.type);
    expect(second.configuration.sources.map(({ name }) => name).toSorted()).toEqual([10, 12, 13, 14, 15].map((n) => `source ${n}`));
  },
);
