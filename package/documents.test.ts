import { spawnSync } from "node:child_process";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { createProgram } from "../src/commands/program.ts";
import { commandIo } from "../src/commands/testing.ts";
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

describe("the collector's own manual", () => {
  const collector = createProgram(commandIo({})).command;
  const page = manPage(collector, "1.2.3", "2026-01-02");
  const completion = bashCompletion(collector);

  /** Everything that ends a way down the verbs, as the help of each level lists them. */
  const verbsIn = (words: readonly string[]): readonly string[] => {
    const help = words.reduce<Command | undefined>((at, word) => at?.commands.find((inner) => inner.name() === word), collector);
    const listed = (help?.helpInformation().split("\nCommands:\n")[1] ?? "").matchAll(/^ {2}([a-z]\S*)/gm);
    const inner = [...listed].map(([, name = ""]) => name).filter((name) => name !== "help");
    return inner.length === 0 ? [words.join(" ")] : inner.flatMap((name) => verbsIn([...words, name]));
  };
  const verbs = verbsIn([]);

  it("is made of more than a few verbs", () =>
    expect(verbs).toEqual(expect.arrayContaining(["run", "api import", "api export", "pki list"])));

  it.each(verbs)("has %s in its synopsis and with what its help says", (verb) => {
    const lines = page.split("\n");
    const typed = verb.replaceAll("-", "\\-");
    expect(lines).toContain(`.B collector ${typed}`);
    const start = lines.findIndex((line) => line === `.SS "${typed}"` || line.startsWith(`.SS "${typed} `));
    expect(start).toBeGreaterThan(0);
    const length = lines.slice(start + 1).findIndex((line) => line.startsWith(".SS") || line.startsWith(".SH"));
    const section = lines.slice(start, start + 1 + length).join("\n");
    const help = verb.split(" ").reduce<Command | undefined>((at, word) => at?.commands.find((inner) => inner.name() === word), collector);
    const options = [...(help?.helpInformation() ?? "").matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, flag = ""]) => flag);
    for (const flag of options.filter((one) => one !== "--help")) expect(section).toContain(flag.replaceAll("-", "\\-"));
    expect(section).toContain("Examples:");
    expect(completion).toContain(`'${verb}')`);
  });

  const groff = spawnSync("groff", ["-man", "-Tutf8", "-ww", "-z"], { input: page, encoding: "utf8" });
  it.skipIf(groff.error !== undefined && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")("is typeset without a warning", () =>
    expect([groff.status, groff.stderr]).toEqual([0, ""]),
  );
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
