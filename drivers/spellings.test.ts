import path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultError } from "../src/model/fault.ts";
import { SUBJECTS, type Subject } from "../test/support/spellings.ts";
import { typeOf } from "./driver.ts";
import { type Spelling, splitTyped } from "./lib/spellings.ts";

const DOC = path.resolve(import.meta.dirname, "../docs/generated/spellings.md");

const refusal = (parse: () => unknown): FaultError => {
  try {
    parse();
  } catch (error) {
    if (error instanceof FaultError) return error;
    throw error;
  }
  throw new Error("it was taken");
};

describe.each(Object.entries(SUBJECTS))("addresses of other tools for %s", (_, { driver, forms, tools, place, own }) => {
  const placeOf = (write: string): string => {
    const { address, type } = splitTyped(write);
    const wanted = type === undefined ? undefined : typeOf(driver, type);
    if (type !== undefined && !wanted) throw new Error(`${type} is not a type`);
    return place(address, wanted);
  };
  const rows = tools.flatMap(({ tool, source, spellings }) => spellings.map((row) => ({ tool, source, ...row })));

  it.each(rows)("$tool: $text", ({ text, ours = [], none, isOther, source }) => {
    expect(source).toMatch(/\S/);
    for (const [write, where] of ours) expect(placeOf(write)).toBe(where);
    if (ours.length === 1 && ours[0]?.[0] === text) return;
    if (isOther) return expect(place(text, undefined)).not.toBe(ours[0]?.[1]);
    const { fault, message } = refusal(() => place(text, undefined));
    expect(fault).toBe("address_invalid");
    // Each of ours stands in the answer as a whole, and nothing else to write does.
    const written = message.split("; write ")[1] ?? "";
    const listed = ours.length === 1 ? [written.split("; ")[0] ?? ""] : ours.map(([write]) => written.includes(`${write} `) && write);
    expect(listed).toEqual(ours.length === 0 ? [] : ours.map(([write]) => write));
    expect(message).toContain(ours.length > 1 ? " meanings; write " : (none ?? "; write "));
  });

  it("leaves the type to the person who has given one", () => {
    const given = rows.find(
      ({ text, ours, isOther }) => !isOther && ours?.length === 1 && ours[0]?.[0] !== text && / with the type /.test(ours[0]?.[0] ?? ""),
    );
    if (!given) return;
    expect(() => place(given.text, { scalar: "uint16" })).toThrow(FaultError);
    expect(refusal(() => place(given.text, { scalar: "uint16" })).message).not.toContain(" with the type ");
  });

  it("has forty spellings that our parser refuses, each of them once", () => {
    const refused = rows.filter(({ text, ours, isOther }) => !isOther && ours?.[0]?.[0] !== text);
    expect(refused.length).toBeGreaterThanOrEqual(40);
    expect(new Set(rows.map(({ text }) => text)).size).toBe(rows.length);
  });

  it("has an example of each form", () => {
    const unused = forms.filter(
      (form) =>
        !rows.some(
          ({ text }) =>
            forms.find(({ pattern, answer }) => {
              const match = pattern.exec(text);
              return match && answer(match.groups ?? {});
            }) === form,
        ),
    );
    expect(unused.map(({ tool, pattern }) => `${tool} ${pattern}`)).toEqual([]);
  });

  it("has no form that fits an address of ours", () => {
    fc.assert(
      fc.property(own, (text) => {
        place(text, undefined);
        for (const { tool, pattern, answer } of forms) {
          const match = pattern.exec(text);
          const fits = match && answer(match.groups ?? {});
          if (fits) throw new Error(`${text} fits ${tool} ${pattern}`);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("answers near texts with addresses that our parser takes", () => {
    const near = fc
      .tuple(fc.constantFrom(...rows.map(({ text }) => text)), fc.nat(40), fc.constantFrom("", "0", "9", ".", "1", "[2]", "-", "X"))
      .map(([text, at, inserted]) => text.slice(0, at) + inserted + text.slice(at + 1));
    fc.assert(
      fc.property(near, (text) => {
        try {
          place(text, undefined);
        } catch (error) {
          if (!(error instanceof FaultError)) throw error;
          const [, write = ""] = / is an address of [^;]+; write (.+?)(?:; |$)/.exec(error.message) ?? [];
          if (write !== "" && !/ meanings; /.test(error.message)) placeOf(write);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

it("stand in the documents, with their sources", async () => {
  const code = (text: string): string => `\`${text.replaceAll("|", "\\|")}\``;
  const here = (write: string): string => {
    const { address, type } = splitTyped(write);
    return type === undefined ? code(address) : `${code(address)}, type ${code(type)}`;
  };
  const cell = ({ text, ours = [], none: why, isOther }: Spelling): string => {
    if (why !== undefined) return `not read: ${why}`;
    if (ours[0]?.[0] === text) return "the same";
    return `${isOther ? "**another place here**; write " : ""}${ours.map(([write]) => here(write)).join(" or ")}`;
  };
  const section = ([type, { tools }]: readonly [string, Subject]): string => {
    const names = [...new Set(tools.map(({ tool }) => tool))];
    const rows = names.flatMap((name) =>
      tools
        .filter(({ tool }) => tool === name)
        .flatMap(({ spellings }) => spellings.map((row) => `| ${name} | ${code(row.text)} | ${cell(row)} |`)),
    );
    const sources = tools.map(({ tool, source }) => `- ${tool}: ${source}`);
    return `## ${type}\n\n| tool | there | here |\n| --- | --- | --- |\n${rows.join("\n")}\n\nSources:\n\n${sources.join("\n")}\n`;
  };
  const text = `# Addresses of other tools

Made by \`drivers/spellings.test.ts\` from \`drivers/*/spellings-table.ts\`. The collector does not take an address of another tool silently: it refuses the text and says what to write. Two places with *or* between them are two meanings of one text. *The same* is an address here too, of the same place. What tools write is taken from their public documents; it was not tried in them.

There is no table for \`vendor_gateway\`, whose items have the names of their server, and none for \`odac\`, \`vendor_b\` and \`plastcontrol\`, whose variables a profile or a plugin names.

${Object.entries(SUBJECTS).map(section).join("\n")}`;
  await expect(text).toMatchFileSnapshot(DOC);
});
