import { spawnSync } from "node:child_process";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { EXIT } from "../src/commands/io.ts";
import { createProgram } from "../src/commands/program.ts";
import { commandIo } from "../src/commands/testing.ts";
import { bashCompletion, manPage } from "./documents.ts";
import { knownWords } from "./known-words.ts";

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
  const completion = bashCompletion(collector, knownWords());

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

  it("says what a person without a network looks up: exit codes, signals, environment, files, systems", () => {
    for (const section of ["EXIT STATUS", "SIGNALS", "ENVIRONMENT", "FILES", "NOTES"])
      expect(page.split(`\n.SH ${section}\n`)).toHaveLength(2);
    for (const code of Object.values(EXIT)) expect(page).toContain(`\n.B ${code}\n`);
    for (const text of [
      "SIGHUP",
      "HTTPS_PROXY",
      "CREDENTIALS_DIRECTORY",
      "NOTIFY_SOCKET",
      "last\\-good\\-settings.json",
      "Ubuntu 22.04",
      "systemd 249",
    ])
      expect(page, text).toContain(text);
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

  describe("of the collector", () => {
    const own = bashCompletion(createProgram(commandIo({})).command, knownWords());
    /** As bash asks it; the lists come from a collector that has two data sources and a sink. */
    const offered = (...words: string[]): string[] => {
      const lists = `collector() { case "$1 $2" in
        "source list") printf 'NAME       TYPE        ENDPOINT\\npress-1    modbus_tcp  h\\nhall 3     s7          h\\n' ;;
        "sink list") printf 'NAME    TYPE\\nbroker  mqtt\\n' ;;
        *) echo "No data sources." ;; esac; }`;
      const script = `${own}\n${lists}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _collector; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout, stderr } = spawnSync("bash", ["-c", script, "bash", ...words], { encoding: "utf8" });
      expect(stderr).toBe("");
      return stdout.split("\n").filter((word) => word !== "");
    };

    it("offers names, which may hold blanks", () => {
      expect(offered("collector", "variables", "list", "")).toEqual(["press-1", "hall\\ 3"]);
      expect(offered("collector", "variables", "list", "pr")).toEqual(["press-1"]);
      expect(offered("collector", "source", "set", "--json", "pr")).toEqual(["press-1"]);
      expect(offered("collector", "sink", "rm", "")).toEqual(["broker"]);
      expect(offered("collector", "sink", "rm", "broker", "b")).toEqual([]);
      expect(offered("collector", "secret", "set", "")).toEqual(["press-1", "hall\\ 3", "broker"]);
      expect(offered("collector", "browse", "p")).toEqual(["press-1", "plastcontrol"]);
    });

    it("offers types, and keys of the type that was typed", () => {
      expect(offered("collector", "read", "s7")).toEqual(["s7", "s7plus"]);
      expect(offered("collector", "source", "add", "new", "mod")).toEqual(["modbus_tcp"]);
      expect(offered("collector", "source", "add", "new", "modbus_tcp", "")).toEqual(["host=", "port=", "ephemeral_connections="]);
      expect(offered("collector", "read", "modbus_tcp", "host", "=", "h", "po")).toEqual(["port="]);
      expect(offered("collector", "read", "opcua", "sec")).toEqual(["security_mode="]);
      expect(offered("collector", "read", "opcua", "pass")).toEqual([]);
      expect(offered("collector", "sink", "add", "new", "")).toEqual(["mqtt", "opcua", "platform"]);
      expect(offered("collector", "sink", "add", "new", "mqtt", "to")).toEqual(["topic="]);
    });

    it("offers topics and verbs to help, and options everywhere", () => {
      expect(offered("collector", "help", "mod")).toEqual(["modbus_tcp"]);
      expect(offered("collector", "help", "so")).toEqual(["source"]);
      expect(offered("collector", "read", "modbus_tcp", "--js")).toEqual(["--json"]);
    });
  });

  it("offers files after an option that takes one", () =>
    expect(complete("tool", "read", "--config", "/etc/host")).toContain("/etc/hosts"));
});
