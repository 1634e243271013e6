import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { type CommandIo, StoppedError, UsageError } from "./io.ts";

/**
 * Asks the person, without showing what is typed. `otherwise` is said where nobody can type, or nothing was typed: how to give it then.
 * `json`: a program runs the verb, and nothing is asked. Throws UsageError: nothing may be asked, there is no terminal, or nothing was
 * typed; and StoppedError.
 */
export async function askHidden(what: string, otherwise: string, io: CommandIo, { json = false } = {}): Promise<string> {
  if (json) throw new UsageError(`the ${what} is not given, and nothing is asked with --json; ${otherwise}`);
  if (!io.stdin.isTTY) throw new UsageError(`there is no terminal to type the ${what} on; ${otherwise}`);
  io.stderr.write(`${what.charAt(0).toUpperCase()}${what.slice(1)} (not shown): `);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: io.stdin, output: silent, terminal: true });
  let typed: string;
  try {
    // Ctrl-C and Ctrl-D come as keys here, not as a signal, and end the question; a terminal that goes away ends nothing but the stream.
    const gone = once(terminal, "close").then(() => Promise.reject(new StoppedError()));
    typed = await Promise.race([terminal.question("", { signal: io.signal }), gone]);
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") throw new StoppedError();
    throw error;
  } finally {
    terminal.close();
    io.stderr.write("\n");
  }
  if (typed === "") throw new UsageError(`the ${what} is empty; type it, or ${otherwise}`);
  return typed;
}
