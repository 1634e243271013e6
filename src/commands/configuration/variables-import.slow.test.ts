import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { COLLECTOR, temporaryFolder } from "../../api/server/testing.ts";
import { json, page, scripted, source as scriptedSource } from "../../api/server/testing-scripted.ts";
import { runCommand, settingsFile } from "../testing.ts";

const HEADER = "name;address;type;unit;factor;offset;comment;status";
const WHOLE = `${HEADER}\nkept;holding:0;;;;;;\nalso;holding:1;;;;;;ACTIVE\n`;

async function withVariables() {
  const { well, runWith, write } = await commandLine();
  await well("source", "add", "press-1", "modbus_tcp", "host=h");
  await well("variables", "import", "press-1", write("whole.csv", WHOLE));
  const names = async (): Promise<readonly string[]> =>
    JSON.parse(await well("variables", "list", "press-1", "--json")).map(({ name }: { readonly name: string }) => name);
  const take = (stdin: string, ...words: string[]) => runWith({ stdin }, "variables", "import", "press-1", "-", ...words);
  return { names, take, write, well };
}

test("an import whose last line is cut off is refused, and changes nothing", async () => {
  const { names, take } = await withVariables();
  const cases: readonly (readonly [text: string, line: number, said: string])[] = [
    [`${HEADER}\nnew;holding:2;;;;;;\nnext;holding:3;uint1`, 3, "has 3 of the 8 fields"],
    [`${HEADER}\r\nnew;holding:2;;;;;;\r\nnext`, 3, "has 1 of the 8 fields"],
    [`${HEADER}\nnew;holding:2;;;;;;\nnext;holding:3;;;;;"from the le`, 3, "closed"],
    [`${HEADER}\nnew;holding:2;;;;;;\n;;`, 3, "has 3 of the 8 fields"],
    [`\ufeff${HEADER}\nnew;holding:2;;;;;"two\nlines";\nnext;holding:3`, 4, "has 2 of the 8 fields"],
    [`sep=;\n${HEADER}\nnew;holding:2;;;;;;\nnext;`, 4, "has 2 of the 8 fields"],
    [`${HEADER}`, 1, "no variable follows"],
    [`${HEADER.slice(0, 12)}`, 1, "no variable follows"],
  ];
  for (const [text, line, said] of cases)
    for (const more of [[], ["--replace"]]) {
      const { code, out, err } = await take(text, ...more);
      expect([code, out], text).toEqual([2, ""]);
      expect(err, text).toMatch(new RegExp(`^collector: stdin:${line}: [^\\n]*\\n`));
      expect(err, text).toContain(said);
      expect(err, text).toContain("has no line end");
      expect(err, text).toContain("nothing was changed");
    }
  const json = await take(`${HEADER}\nnew;holding:2;;;;;;\nnext;holding`, "--replace", "--json");
  expect(json.code).toBe(2);
  expect(JSON.parse(json.out)).toMatchObject({
    counts: { created: 0, changed: 0, deleted: 0, same: 0 },
    problems: [{ line: 3, message: expect.stringContaining("has no line end") }],
  });
  expect(await names()).toEqual(["kept", "also"]);
});

test("an import whose last line is whole is taken, with its end or without", async () => {
  const { names, take } = await withVariables();
  const taken: readonly string[] = [
    `${HEADER}\na;holding:2;;;;;;`,
    `${HEADER}\r\nb;holding:3\r\n`,
    `${HEADER}\rc;holding:4\r`,
    "name;address;;;\nd;holding:5",
    `${HEADER}\ne;holding:6\n  \n  `,
    "name;address\nf;holding:7;;",
    `${HEADER}\ng;holding:8;;;;;"quoted";ACTIVE`,
  ];
  for (const text of taken) expect(await take(text), text).toMatchObject({ code: 0, err: "" });
  expect(await names()).toEqual(["kept", "also", ..."abcdefg"]);
});

test("a file that is cut off is named with its line", async () => {
  const { names, write, well } = await withVariables();
  const file = write("cut.csv", `${HEADER}\nnew;holding:2;;;;;;\nnext;hol`);
  await expect(well("variables", "import", "press-1", file)).rejects.toThrow();
  expect(await names()).toEqual(["kept", "also"]);
});

const many = (count: number, address = (n: number) => n) =>
  `${HEADER}\n${Array.from({ length: count }, (_, n) => `v${n};holding:${address(n)};uint16;;;;${"x".repeat(200)};`).join("\n")}\n`;

test("an import sends many variables at a time, in their order, and each request is taken as a whole", async () => {
  const { well, run, write, api } = await commandLine();
  const recorded = async () => JSON.parse(await well("api", "audit", "--json")) as { operation: string; resource: string | null }[];
  await well("source", "add", "press-1", "modbus_tcp", "host=h");
  expect(await well("variables", "import", "press-1", write("many.csv", many(1200)))).toContain("1200 created");
  const made = (await recorded()).find(({ operation }) => operation === "createDataSource")?.resource;
  expect((await recorded()).filter(({ operation }) => operation.endsWith("Variables"))).toEqual(
    Array(3).fill(expect.objectContaining({ operation: "changeVariables", resource: made })),
  );
  const listed = async () =>
    JSON.parse(await well("variables", "list", "press-1", "--json")) as { name: string; address: string; uuid: string }[];
  const first = await listed();
  expect(first.map(({ name }) => name)).toEqual(Array.from({ length: 1200 }, (_, n) => `v${n}`));
  expect(
    await well(
      "variables",
      "import",
      "press-1",
      write(
        "fewer.csv",
        many(1100, (n) => n + 1),
      ),
      "--replace",
    ),
  ).toContain("0 created, 1100 changed, 100 deleted");
  const second = await listed();
  expect(second.map(({ uuid, address }) => [uuid, address])).toEqual(first.slice(0, 1100).map(({ uuid }, n) => [uuid, `holding:${n + 1}`]));

  const source = String(((await api.send("GET", "/v2/data-sources")).body["data"] as unknown as { uuid: string }[])[0]?.uuid);
  const batch = (rest: object) => api.send("POST", "/ext/v1/variables/batch", { data_source: source, ...rest });
  const uuid = second[0]?.uuid;
  expect((await batch({ delete: [uuid], create: [{ name: "v1", address: "holding:0" }] })).status).toBe(409);
  expect((await batch({ delete: [uuid], change: [{ uuid: source, unit: "bar" }] })).status).toBe(404);
  expect(locsOf(await batch({ create: [{ name: "w" }] }))).toEqual(["body.create.0.address"]);
  expect((await batch({ delete: [uuid], create: [{ name: "v0", address: "holding:0" }] })).body).toEqual({
    deleted: 1,
    changed: 0,
    created: 1,
  });
  // What was refused has changed nothing.
  expect((await listed()).map(({ name }) => name).sort()).toEqual(second.map(({ name }) => name).sort());
  expect((await run("variables", "list", "press-1")).code).toBe(0);
});
const locsOf = ({ body }: { readonly body: Record<string, unknown> }) =>
  (body["detail"] as { loc: string[] }[]).map(({ loc }) => loc.join("."));

test("an API that takes one variable a request is sent them so", async () => {
  const { run, requests } = await withoutBatches();
  const file = join(temporaryFolder(), "in.csv");
  writeFileSync(file, `${HEADER}\na;holding:9;;;;;;\nb;holding:9;;;;;;\nnew-1;holding:1;;;;;;\nnew-2;holding:2;;;;;;\n`);
  const { code, out, err } = await run("variables", "import", "source 1", file, "--replace");
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("2 created, 2 changed, 1 deleted");
  const changes = requests.filter((request) => !request.startsWith("GET "));
  expect(changes.map((request) => request.replace(/[0-9a-f]{8}-\S+/, "UUID"))).toEqual([
    "POST /api/ext/v1/variables/batch",
    "PATCH /api/ext/v1/variables/UUID",
    "PATCH /api/ext/v1/variables/UUID",
    "POST /api/ext/v1/variables",
    "POST /api/ext/v1/variables",
    "DELETE /api/ext/v1/variables/UUID",
  ]);
});

test("an import that fails half-way leaves the source as it was, or says that it could not", async () => {
  const uuid = (n: number) => `${String(n).padStart(8, "0")}-0000-4000-8000-000000000000`;
  const api = async (isUndone: boolean) => {
    const held = new Map([
      ["v0", { uuid: uuid(2), data_source: uuid(1), name: "v0", address: "holding:700" }],
      ["old", { uuid: uuid(3), data_source: uuid(1), name: "old", address: "holding:0" }],
    ]);
    let batches = 0;
    const { url } = await scripted(async (request, response, at) => {
      if (at !== "/api/ext/v1/variables/batch")
        return json(response, page(at.includes("/ext/") ? [...held.values()] : [scriptedSource(1)]));
      let body = "";
      for await (const chunk of request) body += chunk;
      const sent = JSON.parse(body);
      batches++;
      if (batches === 2 || (batches > 2 && !isUndone)) return json(response, { detail: "the disk is full" }, 507);
      const named = (one: string) => [...held.values()].find((known) => known.uuid === one)?.name ?? "";
      for (const one of sent.delete) held.delete(named(one));
      for (const { uuid: one, ...fields } of sent.change) held.set(named(one), { ...(held.get(named(one)) ?? {}), ...fields });
      for (const fields of sent.create) held.set(fields.name, { ...fields, uuid: uuid(held.size + 10), data_source: uuid(1) });
      json(response, { deleted: 0, changed: 0, created: 0 });
    });
    const folder = temporaryFolder();
    writeFileSync(join(folder, "key"), "key");
    writeFileSync(join(folder, "in.csv"), many(700));
    const config = settingsFile(folder, { collector: COLLECTOR, api: { url, key_file: join(folder, "key") } });
    const done = await runCommand("variables", "import", "source 1", join(folder, "in.csv"), "--replace", "--config", config);
    return { ...done, held: [...held.values()].map(({ name, address }) => `${name} ${address}`).sort() };
  };
  const undone = await api(true);
  expect([undone.code === 0, undone.held]).toEqual([false, ["old holding:0", "v0 holding:700"]]);
  expect(undone.err).toMatch(/the disk is full.*; what was changed until then was taken back\n$/);
  const stuck = await api(false);
  expect([stuck.code === 0, stuck.held.length > 2]).toEqual([false, true]);
  expect(stuck.err).toMatch(/; at least \d+ of 701 changes were made and could not be taken back: import the file again\n$/);
});

async function withoutBatches() {
  const uuid = (n: number) => `${String(n).padStart(8, "0")}-0000-4000-8000-000000000000`;
  const variable = (n: number, name: string) => ({ uuid: uuid(n), data_source: uuid(1), name, address: "holding:0" });
  const { url, requests } = await scripted((request, response, at) => {
    if (at === "/api/ext/v1/variables/batch") return json(response, { detail: "not allowed" }, 405);
    if (request.method === "POST") return json(response, variable(9, "new"), 201);
    if (request.method !== "GET") return void response.writeHead(204).end();
    json(response, page(at.includes("/ext/") ? [variable(2, "a"), variable(3, "b"), variable(4, "c")] : [scriptedSource(1)]));
  });
  const folder = temporaryFolder();
  writeFileSync(join(folder, "key"), "key");
  const config = settingsFile(folder, { collector: COLLECTOR, api: { url, key_file: join(folder, "key") } });
  return { run: (...words: string[]) => runCommand(...words, "--config", config), requests };
}
