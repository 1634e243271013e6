import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";

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
