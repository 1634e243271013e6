import { spawnSync } from "node:child_process";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { bashCompletion, manPage } from "./documents.ts";

const program = (): Command => {
  const command = new Command("tool").description("Does things.");
  command
    .command("read")
    .description("Read -one thing.\n.not a request")
    .argument("<type>", "what type")
    .argument("[words...]", "which")
    .option("-c, --config <file>", "settings", "/etc/tool.yaml")
    .addHelpText("after", "\nExamples:\n  tool read 'a\\b' -c x\n.hidden");
  const key = command.command("key").description("Keys.");
  key.command("list").description("List them.").option("--json", "as JSON");
  return command;
};

describe("manPage", () => {
  const page = manPage(program(), "1.2.3", "2026-01-02");

  it("names every verb, argument, option and example once", () => {
    for (const text of [
      ".TH TOOL 1 2026-01-02",
      "tool \\- does things",
      '.SS "read <type> [words...] [options]"',
      '.SS "key list [options]"',
      "\\-\\-config <file>",
      "(default: /etc/tool.yaml)",
    ])
      expect(page.split(text)).toHaveLength(2);
    expect(page).toContain("tool read 'a\\eb' \\-c x");
  });

  it("lets no text become a request of man", () => {
    const requests = page.split("\n").filter((line) => line.startsWith(".") || line.startsWith("'"));
    for (const line of requests) expect(line).toMatch(/^\.(TH|SH|SS|TP|PP|nf|fi|br|B|I|BR)\b/);
  });
});

describe("bashCompletion", () => {
  const complete = (...words: string[]): string[] => {
    const script = `${bashCompletion(program())}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tool; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script, "bash", ...words], { encoding: "utf8" });
    expect(stderr).toBe("");
    return stdout.split("\n").filter((word) => word !== "");
  };

  it("offers verbs, then what the verb takes", () => {
    expect(complete("tool", "")).toEqual(expect.arrayContaining(["read", "key", "--help"]));
    expect(complete("tool", "re")).toEqual(["read"]);
    expect(complete("tool", "key", "")).toEqual(["list", "--help"]);
    expect(complete("tool", "key", "list", "--j")).toEqual(["--json"]);
    expect(complete("tool", "read", "modbus", "--c")).toEqual(["--config"]);
  });

  it("offers files after an option that takes one", () =>
    expect(complete("tool", "read", "--config", "/etc/host")).toContain("/etc/hosts"));
});
