import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { settingsSchema } from "./settings.ts";

it("has every setting with its default in the README", async () => {
  const readme = await readFile(new URL("./README.md", import.meta.url), "utf8");
  for (const [key, value] of Object.entries(settingsSchema.parse({})))
    expect(readme).toMatch(new RegExp(`\\| \`${key}\` +\\| \`?${value}\`? +\\|`));
});

it.each([
  { unit: 256 },
  { order: "ABDC" },
  { max_registers: 126 },
  { max_registers: 0 },
  { max_coils: 2001 },
  { max_gap: -1 },
  { in_flight: 17 },
  { surprise: true },
])("refuses %j", (settings) => expect(settingsSchema.safeParse(settings).success).toBe(false));
