import type { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "./program.ts";
import { commandIo, runCommand } from "./testing.ts";

interface Verb {
  readonly words: readonly string[];
  readonly command: Command;
}

const verbsOf = (command: Command, words: readonly string[]): readonly Verb[] =>
  command.commands.length === 0 ? [{ words, command }] : command.commands.flatMap((inner) => verbsOf(inner, [...words, inner.name()]));
const verbs = verbsOf(createProgram(commandIo({})).command, []).map((verb) => [verb.words.join(" "), verb] as const);

test.each(verbs)("%s is explained by its own --help, with an example that calls it", async (name, { words, command }) => {
  const { code, out, err } = await runCommand(...words, "--help");
  expect([code, err]).toEqual([0, ""]);
  expect(command.description()).toMatch(/^[A-Z].*\.$/s);
  const examples = out.split("\nExamples:\n")[1] ?? "";
  expect(examples).toMatch(new RegExp(`^ {2}.*\\bcollector ${name}\\b`, "m"));
  for (const argument of command.registeredArguments) expect(argument.description, argument.name()).not.toBe("");
  for (const option of command.options) expect(option.description, option.flags).not.toBe("");
});

/** Verbs without --json, and why. */
const WITHOUT_JSON: ReadonlyMap<string, string> = new Map([
  ["run", "what it prints is its log, whose format the settings have (log.format)"],
  ["help", "what it prints is text for people"],
]);

test.each(verbs.filter(([name]) => !WITHOUT_JSON.has(name)))("%s has --json", (_, { command }) => {
  expect(command.options.filter(({ long }) => long === "--json")).toMatchObject([
    { description: expect.stringMatching(/^print one JSON /) },
  ]);
});

test.each([...WITHOUT_JSON])("%s has no --json: %s", async (name) => {
  expect(verbs.map(([verb]) => verb)).toContain(name);
  expect(await runCommand(name, "--json")).toMatchObject({ code: 2, out: "", err: expect.stringContaining("unknown option '--json'") });
});

test("help at every level leads to every verb", async () => {
  const found: string[] = [];
  const follow = async (words: readonly string[]): Promise<void> => {
    const { out } = await runCommand(...words, "--help");
    const names = [...((out.split("\nCommands:\n")[1] ?? "").split("\n\n")[0]?.matchAll(/^ {2}([a-z]\S*)/gm) ?? [])].map(
      ([, name = ""]) => name,
    );
    if (names.length === 0) found.push(words.join(" "));
    for (const name of names) if (name !== "help" || words.length === 0) await follow([...words, name]);
  };
  await follow([]);
  expect(found.sort()).toEqual(verbs.map(([name]) => name).sort());
});

test("what is mistyped is answered with what was meant, and how to go on", async () => {
  expect(await runCommand("stauts")).toMatchObject({ code: 2, err: expect.stringMatching(/Did you mean status\?[\s\S]*collector --help/) });
  expect(await runCommand("status", "--jsn")).toMatchObject({ code: 2, err: expect.stringContaining("--json") });
  const half = await runCommand("variables", "add", "press-1");
  expect(half).toMatchObject({
    code: 2,
    err: expect.stringMatching(/argument 'name'[\s\S]*\(collector variables add --help explains it\)/),
  });
  expect(await runCommand("secret", "list", "more")).toMatchObject({ code: 2, err: expect.stringContaining("too many arguments") });
});
