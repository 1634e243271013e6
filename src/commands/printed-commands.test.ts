import { expect, it } from "vitest";
import { temporaryFolder } from "../api/server/testing.ts";
import { writeJson } from "./lines.ts";
import { AGAIN_WITH_SUDO, commandsAsTyped, settingsToName } from "./printed-commands.ts";
import { runCommandWith, settingsFile } from "./testing.ts";

const verbs = ["status", "probe", "source set", "read"];
const at = (config?: string) => ({ words: ["status", "press 1"], config, verbs });

it.each([
  ["`collector probe press-1` shows it.", "`collector probe -c plant.yaml press-1` shows it."],
  ["Type `sudo collector source set press-1 slot=1`.", "Type `sudo collector source set -c plant.yaml press-1 slot=1`."],
  ["see collector status, collector probe x", "see collector status -c plant.yaml, collector probe -c plant.yaml x"],
  ["the collector read 5 values; collector status-quo", "the collector read 5 values; collector status-quo"],
  ["collector probe x --config other.yaml", "collector probe x --config other.yaml"],
])("names the settings in %s", (text, printed) => {
  expect(commandsAsTyped(text, at("plant.yaml"))).toBe(printed);
  for (const usual of [undefined, "/etc/collector/collector.yaml"]) expect(commandsAsTyped(text, at(usual))).toBe(text);
});

it("names them in the sentences of JSON, and leaves what devices say as it is", () => {
  const out: string[] = [];
  const stdout = { write: (text: string) => out.push(text) } as never;
  const value = { next_step: "`collector probe a`", warnings: [{ text: "`collector read a`" }], value: "collector probe a" };
  writeJson({ stdout, typed: at("plant.yaml") }, value);
  expect(JSON.parse(out.join(""))).toEqual({
    next_step: "`collector probe -c plant.yaml a`",
    warnings: [{ text: "`collector read -c plant.yaml a`" }],
    value: "collector probe a",
  });
});

it("gives a service the whole path of its settings, where they are not at their usual place", () => {
  expect(settingsToName(at("/srv/plant.yaml"))).toEqual({ config: "/srv/plant.yaml", verbs });
  expect([at(), at("/etc/collector/collector.yaml"), undefined].map(settingsToName)).toEqual([undefined, undefined, undefined]);
});

it("prints the whole command again where it needs root", () => {
  expect(commandsAsTyped(`this may not be: ${AGAIN_WITH_SUDO}`, at())).toBe("this may not be: type `sudo collector status 'press 1'`");
});

it("is so for what a verb prints", async () => {
  const config = settingsFile(temporaryFolder(), {});
  const { err } = await runCommandWith({ keepsSettings: true }, "status", "--config", config);
  expect(err).toContain(`(systemctl start collector, or collector run -c ${config})`);
});
