import type { EventEmitter } from "node:events";
import { createRequire } from "node:module";

/** What is used of npm's omron-fins, which brings no types. */
interface Client extends EventEmitter {
  readonly socket?: EventEmitter;
  readonly sequenceManager: { close(): void };
  connect(): void;
  disconnect(): void;
  read(address: string, count: number, done: Done): void;
  readMultiple(addresses: readonly string[], done: Done): void;
  cpuUnitDataRead(done: Done): void;
}
interface Reply {
  readonly response?: {
    readonly endCode: string;
    readonly values?: readonly number[];
    readonly result?: { readonly CPUUnitModel: string };
  };
}
type Done = (error: unknown, reply?: Reply) => void;

const { FinsClient } = createRequire(import.meta.url)("omron-fins") as {
  readonly FinsClient: new (port: number, host: string, options: object, connects: boolean) => Client;
};

export interface OmronFinsOptions {
  readonly protocol: "tcp" | "udp";
  /** Its names for the layouts of CS and CV. */
  readonly mode?: "CS" | "CV";
  readonly node?: number;
}

/** Words without a sign, and bits as 0 and 1, of its own addresses: `D100`, `CIO50.1`, `E0_100`, `T5.x`. */
export interface OmronFins {
  read(address: string, count: number): Promise<readonly number[]>;
  readMultiple(addresses: readonly string[]): Promise<readonly number[]>;
  /** As it stands in the controller data. */
  model(): Promise<string>;
  close(): void;
}

/** Over TCP it sends at most 58 addresses in a command: the length of what is longer has one byte. */
export async function openOmronFins(port: number, { protocol, mode = "CS", node = 10 }: OmronFinsOptions): Promise<OmronFins> {
  const client = new FinsClient(port, "127.0.0.1", { protocol, MODE: mode, DA1: node, SA1: 1, timeout: 3000 }, false);
  client.on("error", () => {});
  await new Promise<void>((ready, failed) => {
    client.once("error", failed);
    if (protocol === "tcp") client.once("open", ready);
    client.connect();
    if (protocol === "udp") client.socket?.once("connect", ready);
  });
  client.removeAllListeners("error");
  client.on("error", () => {});
  const replyTo = (ask: (done: Done) => void): Promise<NonNullable<Reply["response"]>> =>
    new Promise((done, failed) =>
      ask((error, reply) => {
        if (error || !reply?.response) failed(error instanceof Error ? error : new Error(`omron-fins: ${error}`));
        else if (reply.response.endCode === "0000") done(reply.response);
        else failed(new Error(`omron-fins: end code ${reply.response.endCode}`));
      }),
    );
  const valuesOf = async (ask: (done: Done) => void) => ((await replyTo(ask)).values ?? []).map((word) => word & 0xffff);
  return {
    read: (address, count) => valuesOf((done) => client.read(address, count, done)),
    readMultiple: (addresses) => valuesOf((done) => client.readMultiple(addresses, done)),
    model: async () => (await replyTo((done) => client.cpuUnitDataRead(done))).result?.CPUUnitModel ?? "",
    close() {
      client.disconnect();
      client.sequenceManager.close();
    },
  };
}
