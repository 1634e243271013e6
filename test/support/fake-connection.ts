import type { Connection } from "../../drivers/lib/connection.ts";
import type { ReasonError } from "../../src/model/reason.ts";

export interface FakeConnection {
  readonly connection: Connection;
  /** Copies of all that was written. */
  readonly written: readonly Buffer[];
  /** Ways in which it was declared lost. */
  readonly how: readonly ("destroy" | "close")[];
  /** Gives the connection bytes of its peer. */
  receive(bytes: Uint8Array): void;
}

/** A connection without a socket. `onWrite` gets a copy of what is written, and sends what the peer answers. */
export function fakeConnection(
  where: string,
  onWrite: (bytes: Buffer, receive: FakeConnection["receive"]) => void = () => {},
): FakeConnection {
  let failure: ReasonError | undefined;
  let receiver: (chunk: Buffer) => void = () => {};
  const listeners: ((failure: ReasonError) => void)[] = [];
  const [written, how]: [Buffer[], ("destroy" | "close")[]] = [[], []];
  const receive = (bytes: Uint8Array): void => receiver(Buffer.from(bytes));
  const connection: Connection = {
    where,
    failure: () => failure,
    alive: () => failure === undefined,
    write(bytes) {
      const copy = Buffer.from(bytes);
      written.push(copy);
      onWrite(copy, receive);
      return true;
    },
    withhold: () => {},
    gather: () => {},
    drained: async () => {},
    onBytes(next) {
      receiver = next ?? (() => {});
    },
    pause: () => {},
    resume: () => {},
    onLost: (listener) => void listeners.push(listener),
    fail(reason, way) {
      if (failure) return;
      failure = reason;
      how.push(way);
      for (const listener of listeners) listener(reason);
    },
    close: async () => {},
  };
  return { connection, written, how, receive };
}
