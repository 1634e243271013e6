import { addAbortSignal } from "node:stream";
import { type CommandIo, StoppedError, UsageError } from "./io.ts";

/**
 * What comes through the pipe, to its end or, with `untilLine`, until a line has ended. Throws UsageError: more than `maxBytes` came, of what
 * the message names `what`; and StoppedError.
 */
export async function readStdin(
  { stdin, signal }: Pick<CommandIo, "stdin" | "signal">,
  maxBytes: number,
  { what, untilLine = false }: { readonly what: string; readonly untilLine?: boolean },
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of addAbortSignal(signal, stdin)) {
      const bytes = Buffer.from(chunk);
      length += bytes.length;
      if (length > maxBytes) throw new UsageError(`${what} is longer than ${maxBytes} bytes`);
      chunks.push(bytes);
      if (untilLine && bytes.includes(0x0a)) break;
    }
  } catch (error) {
    if (signal.aborted) throw new StoppedError();
    throw error;
  }
  return Buffer.concat(chunks);
}
