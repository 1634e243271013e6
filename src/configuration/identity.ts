import { readBoundedFile } from "../lib/bounded-file.ts";
import { isAbsent, replaceFile } from "../lib/files.ts";
import { messageOf } from "../model/failure.ts";
import { uuidSchema } from "../model/uuid.ts";

/** A uuid and its line end, with room for a careless editor. */
const MAX_BYTES = 200;

/**
 * The uuid by which this installation is known, from the file where it was kept at the first start; made and kept there if there is none. A file
 * that lost its content with the power has it again from `elsewhere`. Throws a sentence that names the file where it holds no uuid and nothing
 * else does: to make another one would orphan what the API keeps of this collector.
 */
export function installationUuid(file: string, make: () => string, elsewhere: () => string | undefined): string {
  let text: string;
  try {
    text = readBoundedFile(file, MAX_BYTES).toString("utf8").trim();
  } catch (error) {
    if (!isAbsent(error)) throw error;
    return keep(file, make());
  }
  const known = text.replaceAll("\0", "") === "" ? elsewhere() : undefined;
  if (known !== undefined) return keep(file, known);
  const parsed = uuidSchema.safeParse(text);
  if (!parsed.success)
    throw new Error(`${file} does not hold a uuid; put this collector's uuid there, or set \`collector\` in the settings`);
  return parsed.data;
}

function keep(file: string, uuid: string): string {
  try {
    replaceFile(file, `${uuid}\n`, { mode: 0o644 });
  } catch (error) {
    throw new Error(`${file} cannot be written: ${messageOf(error)}`, { cause: error });
  }
  return uuid;
}
