import { createRequire } from "node:module";

/** What is used of npm's nodes7, which brings no types. Its values: numbers, booleans, text, Date, arrays of them, or `BAD 255`. */
interface Client {
  requestMaxPDU: number;
  initiateConnection(options: object, done: (error?: unknown) => void): void;
  dropConnection(done: () => void): void;
  setTranslationCB(translate: (tag: string) => string): void;
  addItems(items: string | readonly string[]): void;
  readAllItems(done: (isBad: boolean, values: Readonly<Record<string, unknown>>) => void): void;
}

const NodeS7 = createRequire(import.meta.url)("nodes7") as new (options: { readonly silent: boolean }) => Client;

/** The values of its own addresses (`DB1,REAL4`), in one read. Throws what connecting fails with. */
export interface Nodes7 {
  read(): Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

/** Above a PDU of 240 bytes it packs more than 20 items into a job, and ends the process over an answer that is cut there. */
export async function openNodes7(port: number, addresses: readonly string[], pduBytes = 240): Promise<Nodes7> {
  const client = new NodeS7({ silent: true });
  client.requestMaxPDU = pduBytes;
  await new Promise<void>((ready, failed) =>
    client.initiateConnection({ host: "127.0.0.1", port, rack: 0, slot: 1, timeout: 5000 }, (error) =>
      error ? failed(new Error(`nodes7 cannot connect: ${error}`)) : ready(),
    ),
  );
  client.setTranslationCB((tag) => tag);
  client.addItems(addresses);
  return {
    read: () => new Promise((done) => client.readAllItems((_, values) => done(values))),
    close: () => new Promise((done) => client.dropConnection(done)),
  };
}
