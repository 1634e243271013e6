import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { settingsSchema, sourceSettingsSchema } from "../model/settings.ts";
import { parseSettings } from "./settings-file.ts";

const example = readFileSync(fileURLToPath(new URL("../../config/collector.example.yaml", import.meta.url)), "utf8");
/** Text has a space after its #, a setting has none, or several where it is indented. */
const uncommented = example.replace(/^#(?! \S)/gm, "");

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: string;
}

function* keysOf(schema: JsonSchema, path: readonly string[] = []): Generator<{ path: readonly string[]; schema: JsonSchema }> {
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    yield { path: [...path, key], schema: inner };
    yield* keysOf(inner, [...path, key]);
  }
}
const json = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;

describe("the example settings", () => {
  test("validate as they are, and are then the defaults", () => {
    expect(parseSettings(Buffer.from(example))).toEqual({ settings: settingsSchema.parse({}) });
  });

  test("validate with every key in use", () => {
    expect(parseSettings(Buffer.from(uncommented))).toHaveProperty("settings");
    expect(sourceSettingsSchema.safeParse(parse(uncommented).sources["press-1"]).success).toBe(true);
  });

  test.each([...keysOf(json(settingsSchema)), ...keysOf(json(sourceSettingsSchema), ["sources", "press-1"])])(
    "name $path with its description and its default",
    ({ path, schema }) => {
      const value = path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], parse(uncommented));
      expect(value).toBeDefined();
      const lines = uncommented.split("\n").map((line) => line.trim());
      expect(lines.some((line, i) => line.startsWith(`${path.at(-1)}:`) && lines[i - 1] === `# ${schema.description}`)).toBe(true);
      if (schema.default !== undefined && schema.type !== "object") expect(value).toEqual(schema.default);
    },
  );
});
