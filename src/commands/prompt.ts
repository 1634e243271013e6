import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { type CommandIo, UsageError } from "./io.ts";

/**
 * Asks the person, without showing what is typed. `otherwise` is said where nobody can type: how to give it then.
 * Throws UsageError, and the signal's reason where the person stops it.
 */
export async function askHidden(what: string, otherwise: string, io: CommandIo): Promise<string> {
  if (!io.stdin.isTTY) throw new UsageError(`there is no terminal to type the ${what} on; ${otherwise}`);
  io.stderr.write(`${what.charAt(0).toUpperCase()}${what.slice(1)} (not shown): `);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: io.stdin, output: silent, terminal: true });
  try {
    return await terminal.question("", { signal: io.signal });
  } finally {
    terminal.close();
    io.stderr.write("\n");
  }
}
