import { stringify } from "yaml";
import { DRIVERS } from "../../../drivers/index.ts";
import { DEFAULT_SETTINGS_FILE } from "../../configuration/settings-file.ts";
import type { DetailsType } from "../../model/details.ts";
import { sourceSettingsSchema } from "../../model/settings.ts";
import { UsageError } from "../io.ts";
import { coerce, fullKey, keyIn, keysOf, toJsonSchema } from "./fields.ts";
import { keysOfSource } from "./source-details.ts";
import { SOURCE_FIELDS } from "./source-fields.ts";

/** Keys that people type as they stand in an export or in the API, and the option that takes them. */
const OPTIONS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(SOURCE_FIELDS.flatMap(({ field, option }) => [field, option].map((key) => [key, `--${option}`]))),
  name: "--name",
};

/**
 * Throws UsageError where words are right in another place than a data source's details: an option of the verb, or an option of this machine,
 * of every source or of the driver, with the line for the settings file. Other words are left to the details.
 */
export async function refuseElsewhere(
  type: DetailsType,
  name: string,
  words: readonly string[],
  settingsFile: string | undefined,
): Promise<void> {
  const keys = keysOfSource(type);
  const strange = words.filter((word) => {
    const key = keyIn(word);
    return key !== undefined && !keys.has(fullKey(key, keys));
  });
  if (strange.length === 0) return;
  const entry = Object.hasOwn(DRIVERS, type) ? DRIVERS[type] : undefined;
  const driver = entry && (await entry.driver()).default;
  const local = new Map([...keysOf(toJsonSchema(sourceSettingsSchema)), ...(driver ? keysOf(toJsonSchema(driver.settings)) : [])]);
  const lines: string[] = [];
  const own: Record<string, unknown> = {};
  for (const word of strange) {
    const key = keyIn(word) ?? "";
    const text = word.slice(key.length + 1);
    const option = OPTIONS[key];
    const schema = local.get(key);
    if (option !== undefined) lines.push(`${key}: is an option of this verb: ${option} ${text === "" ? "…" : text}`);
    else if (schema) {
      const value = coerce(text, schema);
      own[key] = value instanceof UsageError ? text : value;
    }
  }
  if (Object.keys(own).length > 0) {
    const line = stringify({ [name]: own }, { collectionStyle: "flow", lineWidth: 0 }).trim();
    lines.push(
      `${Object.keys(own).join(", ")}: the API has no such field; it is set on the collector's machine, in ${settingsFile ?? DEFAULT_SETTINGS_FILE}, and taken within seconds:`,
      `sources: ${line}`,
    );
  }
  if (lines.length > 0) throw new UsageError(lines.join("\n"));
}
