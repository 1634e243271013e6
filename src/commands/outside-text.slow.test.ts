import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";

/** What steers a terminal, hides or reorders; line feeds are what an output is made of. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;
/** One of each kind: escape sequence, C1 control, bidi, zero width, separator, tag, line end. */
const EVIL = "=e\u001b[2J\u0085\u202e\u2066\u200b\u200d\u2028\ufeff\u{e0041}\r\nforged\\u202e";

const printed = (text: string): string => text.replaceAll("\n", "");

test("no verb's output carries what steers a terminal; JSON, CSV and YAML bring it back as it was", async () => {
  const { run, folder, write, well } = await commandLine();
  const outputs: string[] = [];
  const any = async (...words: string[]) => {
    const ran = await run(...words);
    outputs.push(ran.out, ran.err);
    expect(printed(ran.out), words.join(" ")).not.toMatch(UNSAFE);
    expect(printed(ran.err), words.join(" ")).not.toMatch(UNSAFE);
    return ran;
  };
  const both = async (...words: string[]) => {
    await any(...words);
    return JSON.parse((await any(...words, "--json")).out) as never;
  };
  const evil = (what: string): string => `${what}${EVIL}`;

  await any("source", "add", evil("src"), "modbus_tcp", "host=10.0.0.5", "--note", EVIL, "--model", EVIL);
  await any("sink", "add", evil("sink"), "mqtt", "host=h", "topic=t");
  await any("variables", "add", evil("src"), evil("var"), "holding:0:uint16", "--unit", EVIL, "--comment", EVIL);
  await any("variables", "add", evil("src"), evil("var"), "holding:0:uint16");
  const [source] = (await both("source", "list")) as { name: string; note: string }[];
  expect([source?.name, source?.note]).toEqual([evil("src"), EVIL]);
  expect(((await both("sink", "list")) as { name: string }[])[0]?.name).toBe(evil("sink"));
  const variables = (await both("variables", "list", evil("src"))) as { name: string; unit: string; comment: string }[];
  expect(variables.map(({ name, unit, comment }) => [name, unit, comment])).toEqual([[evil("var"), EVIL, EVIL]]);

  const csv = await run("variables", "export", evil("src"));
  expect(csv.out.startsWith("\ufeff")).toBe(true);
  expect(csv.out.slice(1).replaceAll(/\r?\n/g, "")).not.toMatch(UNSAFE);
  expect(csv.out).not.toMatch(/(^|[;"\n])[=+@]/);
  expect(await well("variables", "import", evil("src"), write("same.csv", csv.out), "--replace")).toMatch(
    /: 0 created, 0 changed, 0 deleted, 1 unchanged\n$/,
  );
  for (const kind of ["source", "sink"]) {
    const yaml = await any(kind, "export");
    const again = await any(kind, "import", write(`${kind}.yaml`, yaml.out), "--json");
    expect([again.code, JSON.parse(again.out).counts]).toEqual([0, { created: 0, changed: 1 }]);
    await both(kind, "export");
  }
  await any("source", "import", write("bad.yaml", `- name: "a\\u202e"\n  details: {type: "\\u001b"}\n`));
  await any("variables", "import", evil("src"), write("bad.csv", `name;address\n\u202ex;\u001b[2J\n${EVIL};a\n`));
  await any("read", "modbus_tcp", "host=127.0.0.1", evil("x"));
  await any("read", evil("x"), "host=h");
  await any("secret", "set", evil("x"));
  await any("secret", "list");
  await any("pki", "trust", evil("x"));
  const trail = JSON.parse((await any("api", "audit", "--json")).out) as { operation: string; name: string; os_user: string }[];
  expect(trail.find(({ operation }) => operation === "createVariable")).toMatchObject({
    name: evil("var"),
    os_user: expect.stringMatching(/./),
  });
  await any("api", "key", "create", "--role", "admin", "--name", EVIL);
  await any("api", "key", "list", "--json");
  expect(printed((await run(evil("no-verb"))).err)).not.toMatch(UNSAFE);
  await any("source", "set", evil("src"), `${EVIL}=1`);
  await any("variables", "rm", evil("src"), evil("var"));
  await any("sink", "rm", evil("sink"));
  await any("source", "rm", evil("src"));
  // A name forges no line either.
  expect(
    outputs
      .join("\n")
      .split("\n")
      .filter((line) => line.startsWith("forged")),
  ).toEqual([]);
  expect(readFileSync(join(folder, "same.csv"), "utf8")).toContain("\\u202e");
});
