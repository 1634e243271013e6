import { expect, it } from "vitest";
import { commandsAt } from "./commands-at.ts";

const named = { config: "/srv/plant 1.yaml", verbs: ["probe", "source set"] };

it("names the settings in each command of ours, and in no other words", () => {
  expect(commandsAt("`collector probe a`, `sudo collector source set a slot=1`", named)).toBe(
    "`collector probe -c '/srv/plant 1.yaml' a`, `sudo collector source set -c '/srv/plant 1.yaml' a slot=1`",
  );
  for (const other of ["the collector probe reads", "collector probe a -c b.yaml", "journalctl -u collector", ""])
    expect(commandsAt(other, named)).toBe(other);
});

it("writes the path as the text around it needs it", () => {
  const inJson = (path: string) => JSON.stringify(path).slice(1, -1);
  const text = commandsAt(JSON.stringify({ step: "`collector probe a`" }), { ...named, config: 'a"b.yaml' }, inJson);
  expect(JSON.parse(text)).toEqual({ step: "`collector probe -c 'a\"b.yaml' a`" });
});
