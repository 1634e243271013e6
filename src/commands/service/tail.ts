import { sleep } from "../../base/timer.ts";
import { stateDirIn } from "../../configuration/settings-file.ts";
import { formatLogLine, type LogRecord } from "../../lib/log-text.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import type { LogLines } from "../../service/recent-log.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { withService } from "./known.ts";
import { tellService } from "./local-client.ts";

/** The command line's options, as typed. */
export interface TailOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly lines: string;
  readonly follow?: boolean;
}

const LOOK_EVERY_MS = 500;
const MAX_LINES = 500;

/** `collector tail [SOURCE]`: the last lines of the running service's log, and with --follow those that come. Throws UsageError. */
export function tail(
  source: string | undefined,
  { config, json = false, lines, follow = false }: TailOptions,
  io: CommandIo,
): Promise<ExitCode> {
  if (!/^\d{1,4}$/.test(lines) || Number(lines) > MAX_LINES)
    throw new UsageError(`--lines ${lines}: expected a whole number from 0 to ${MAX_LINES}`);
  const colour = io.stdout.isTTY === true && (io.env["NO_COLOR"] ?? "") === "";
  return withService(io, async () => {
    let after: number | undefined;
    do {
      const question = { ...(source !== undefined && { source }), ...(after === undefined ? { lines: Number(lines) } : { after }) };
      const found = (await tellService(localSocketPath(stateDirIn(config)), "/log", question, io.signal)) as LogLines;
      if (found.lost > 0) complain(io, `${found.lost} lines are kept no more; journalctl -u collector has them`);
      for (const line of found.lines) {
        if (json) io.stdout.write(`${line}\n`);
        // It escapes each text of its own accord, and may have colours.
        else io.stdout.verbatim(`${formatLogLine(JSON.parse(line) as LogRecord, { colour, journald: false })}\n`);
      }
      after = found.next;
      await io.stdout.room(io.signal);
    } while (follow && (await sleep(LOOK_EVERY_MS, io.signal)));
    return EXIT.good;
  });
}
