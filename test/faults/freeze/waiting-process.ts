import { bounded } from "../../../drivers/lib/abort.ts";
import { Exchange } from "../../../drivers/lib/exchange.ts";
import { IdPool } from "../../../drivers/lib/ids.ts";
import { resolveHost } from "../../../drivers/lib/resolve.ts";
import { openTcp } from "../../../drivers/lib/tcp.ts";
import { openUdp } from "../../../drivers/lib/udp.ts";
import { createResolver } from "../../../src/lib/resolver.ts";
import { silentLog } from "../../../src/model/context.ts";
import { createNameLookup } from "../../../src/os/name-lookup.ts";

/**
 * Waits for one thing from the port that is its first argument, with the time-out (ms) of its third; the second says which: `answer` to a
 * frame of one byte over a new connection, `bounded` work that a byte ends, the answer to a `datagram`, or the address of a `name`, from a
 * name server. Prints what came of it.
 */
const [port = "", what = "", timeout = ""] = process.argv.slice(2);
const timeoutMs = Number(timeout);
const ctx = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: timeoutMs, connectMs: timeoutMs, answerMs: timeoutMs },
};
const endpoint = { host: "127.0.0.1", port: Number(port) };

async function answer(): Promise<string> {
  const connection = await openTcp({ ...endpoint, transport: "tcp" }, ctx);
  let settle: (value: string) => void = () => {};
  const exchange = new Exchange(connection, undefined, {
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

async function boundedWork(): Promise<string> {
  const connection = await openTcp({ ...endpoint, transport: "tcp" }, ctx);
  const work = new Promise<string>((done) => connection.onBytes(() => done("answered")));
  connection.write(Buffer.of(1));
  return bounded(work, { signal: ctx.signal, timeoutMs, onTimeout: () => new Error("TIMEOUT"), onAbort: () => new Error("stopped") });
}

const pool = new IdPool(8, 1000);

async function datagram(): Promise<string> {
  const datagrams = await openUdp({ ...endpoint, transport: "udp" }, ctx, {
    fence: () => true,
    idOf: (bytes) => bytes[0],
    ids: () => pool,
    maxInFlight: 1,
    retransmissions: 1,
  });
  return datagrams.request(ctx, { frame: (id) => Buffer.of(id), take: () => "answered", describe: () => "the byte" });
}

async function name(): Promise<string> {
  const lookUp = createNameLookup({ servers: [`127.0.0.1:${port}`], hostsFile: "/dev/null", resolvConf: "/dev/null" });
  const resolver = createResolver({ lookUp, now: () => performance.now() });
  const found = await resolveHost("plc.lab", { ...ctx, resolve: (host, signal) => resolver.resolve({ host, port: Number(port) }, signal) });
  return found[0].address === "10.0.0.1" ? "answered" : "wrong";
}

try {
  const waits: Readonly<Record<string, () => Promise<string>>> = { answer, bounded: boundedWork, datagram, name };
  console.log(await waits[what]?.());
} catch (error) {
  console.log(error instanceof Error ? error.message : "thrown");
}
process.exit(0);
