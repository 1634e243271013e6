import path from "node:path";
import { type AsideFile, asideFiles, markForRecovery } from "../../buffer/recover.ts";
import { DEFAULT_SETTINGS_FILE, stateDirIn } from "../../configuration/settings-file.ts";
import { hasCode } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import { answer } from "../answer.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "../io.ts";
import { formatTable } from "../table.ts";

export interface BufferOptions {
  readonly config?: string;
  readonly json?: boolean;
}

/** `collector buffer list`. Throws UsageError. */
export function bufferList(options: BufferOptions, io: CommandIo): ExitCode {
  const found = filesOf(bufferIn(options));
  const rows = found.map(({ name, state, bytes }) => [name, state, `${(bytes / 2 ** 20).toFixed(1)} MiB`]);
  const text = rows.length === 0 ? "Nothing was set aside.\n" : `${formatTable([["file", "state", "size"], ...rows]).join("\n")}\n`;
  answer(
    io,
    options,
    found.map(({ name, state, bytes }) => ({ name, state, bytes })),
    text,
  );
  return EXIT.good;
}

/** `collector buffer recover NAME`. Throws UsageError. */
export function bufferRecover(name: string, options: BufferOptions, io: CommandIo): ExitCode {
  const file = bufferIn(options);
  const found = filesOf(file);
  const aside = found.find((one) => one.name === path.basename(name));
  if (!aside) {
    const others = found.map((one) => one.name).join(", ");
    throw new UsageError(
      `${name} is not a file that was set aside next to ${file}; ${others === "" ? "no other is there" : `there are: ${others}`}`,
    );
  }
  if (aside.state === "newer")
    throw new UsageError(`${name} was written by a newer collector: install that one, which delivers it without a command`);
  const kept = aside.state === "waiting" ? aside.path : rename(file, aside);
  answer(
    io,
    options,
    { file: kept, state: "waiting", bytes: aside.bytes },
    `${kept}: the service delivers what can be read of it; collector tail tells how much that is\n`,
  );
  return EXIT.good;
}

function bufferIn({ config }: BufferOptions): string {
  return path.join(stateDirIn(config ?? DEFAULT_SETTINGS_FILE), "buffer.db");
}

function filesOf(file: string): readonly AsideFile[] {
  try {
    return asideFiles(file);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw new UsageError(`${path.dirname(file)} cannot be read: ${messageOf(error)}; use sudo`);
  }
}

function rename(file: string, aside: AsideFile): string {
  try {
    return markForRecovery(file, aside);
  } catch (error) {
    throw new UsageError(`${aside.path} cannot be renamed: ${messageOf(error)}; use sudo`);
  }
}
