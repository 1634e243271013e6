import { createHash } from "node:crypto";
import path from "node:path";
import { errorCode } from "../model/failure.ts";

/** What systemd makes for the unit, and where verbs look. */
export const RUN_FOLDER = "/run/collector";

/** The place where a service whose state folder cannot be written to is asked instead: in the run folder, by a name of the state folder's own. */
export function runSocketPath(stateDir: string, runFolder: string): string {
  const name = createHash("sha256").update(path.resolve(stateDir)).digest("hex").slice(0, 16);
  return path.join(runFolder, `${name}.sock`);
}

const UNWRITABLE = new Set(["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"]);

/** True: a socket could not be made because of its folder: a read-only or full file system, or rights. */
export const isUnwritable = (error: unknown): boolean => UNWRITABLE.has(codeOf(error));

/** True: it could not be made because there is no such folder. */
export const isAbsent = (error: unknown): boolean => codeOf(error) === "ENOENT";

const codeOf = (error: unknown): string => errorCode(error) || (error instanceof Error ? errorCode(error.cause) : "");
