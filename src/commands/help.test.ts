import path from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "./program.ts";
import { commandIo } from "./testing.ts";

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/help.txt");
const COLUMNS = 80;

function helpOf(command: Command, words: readonly string[]): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => COLUMNS }).outputHelp();
  const inner = command.commands.map((one) => helpOf(one, [...words, one.name()]));
  return [`$ collector ${[...words, "--help"].join(" ")}\n${text}\n`, ...inner].join("");
}

test("the help of every verb is as documented", async () => {
  await expect(helpOf(createProgram(commandIo({})).command, [])).toMatchFileSnapshot(DOC);
});
