import { bounded } from "../../../drivers/lib/abort.ts";
import { createExchange } from "../../../drivers/lib/exchange.ts";
import { openTcp } from "../../../drivers/lib/tcp.ts";
import { silentLog } from "../../../src/model/context.ts";

/**
 * Waits for one thing from the port that is its first argument, with the time-out (ms) of its third; the second says which: `answer` to a
 * frame of one byte over a new connection, or `bounded` work that a byte ends. Prints `asked`, then what came of it.
 */
const [port = "", what = "", timeout = ""] = process.argv.slice(2);
const timeoutMs = Number(timeout);
const ctx = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: timeoutMs, connectMs: timeoutMs, answerMs: timeoutMs },
};
const connection = await openTcp({ host: "127.0.0.1", port: Number(port), transport: "tcp" }, ctx);

async function answer(): Promise<string> {
  let settle: (value: string) => void = () => {};
  const exchange = createExchange(connection, undefined, {
    fence: () => true,
    frameLength: () => 1,
    maxFrameBytes: 1,
    maxInFlight: 1,
    onFrame() {
      settle("answered");
      return undefined;
    },
  });
  return exchange.request<string>(
    ctx,
    () => "the byte",
    (done) => {
      settle = done;
      exchange.send(Buffer.of(1));
    },
  );
}

function boundedWork(): Promise<string> {
  const work = new Promise<string>((done) => connection.onBytes(() => done("answered")));
  connection.write(Buffer.of(1));
  return bounded(work, { signal: ctx.signal, timeoutMs, onTimeout: () => new Error("TIMEOUT"), onAbort: () => new Error("stopped") });
}

try {
  console.log(await (what === "answer" ? answer() : boundedWork()));
} catch (error) {
  console.log(error instanceof Error ? error.message : "thrown");
}
process.exit(0);
