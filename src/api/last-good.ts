import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "../model/failure.ts";
import { type Desired, type StoredDesired, storedDesiredSchema } from "./desired.ts";

/** A file above this is not ours; it would only cost memory. */
const MAX_FILE_BYTES = 256 * 2 ** 20;

/** Names the form of the file. */
const FORMAT = 1;

export type LoadedConfiguration =
  | { readonly type: "loaded"; readonly configuration: Desired }
  | { readonly type: "missing"; readonly message: string }
  | { readonly type: "damaged"; readonly message: string };

/**
 * Writes the configuration, without its secrets, whole or not at all: a temporary file in the same folder (0600), fsync, rename,
 * fsync of the folder. Throws the system's error; the file that was there then stays.
 */
export async function saveLastGood(file: string, configuration: Desired): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(JSON.stringify({ format: FORMAT, configuration: withoutSecrets(configuration) }));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Reads what saveLastGood wrote. Its secrets are empty and its revision null, so that the next pull fetches everything. Never throws and
 * deletes nothing: a file that is damaged, of another form or of another collector is named in the message.
 */
export async function loadLastGood(file: string, collector: string): Promise<LoadedConfiguration> {
  let text: string;
  try {
    const found = await stat(file);
    if (!found.isFile()) return damaged(file, "it is not a file");
    if (found.size > MAX_FILE_BYTES) return damaged(file, `it has ${found.size} bytes, more than ${MAX_FILE_BYTES}`);
    text = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT")
      return { type: "missing", message: `${file}: no configuration was kept yet` };
    return damaged(file, messageOf(error));
  }
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return damaged(file, text.trim() === "" ? "it is empty" : "it is not JSON");
  }
  if (
    typeof content !== "object" ||
    content === null ||
    !("format" in content) ||
    content.format !== FORMAT ||
    !("configuration" in content)
  )
    return damaged(file, `it is not a configuration of form ${FORMAT}`);
  const parsed = storedDesiredSchema.safeParse(content.configuration);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return damaged(file, `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "not valid"}`);
  }
  if (parsed.data.collector !== collector.toLowerCase())
    return { type: "missing", message: `${file} is of collector ${parsed.data.collector}, this is ${collector}: it is not used` };
  return { type: "loaded", configuration: { ...parsed.data, secrets: {}, revision: null } };
}

function damaged(file: string, why: string): LoadedConfiguration {
  return { type: "damaged", message: `the kept configuration ${file} cannot be used: ${why}; the next answer of the API replaces it` };
}

function withoutSecrets({ collector, sources, sinks, variables, fetchedAt }: Desired): StoredDesired {
  return { collector, sources, sinks, variables, fetchedAt };
}
