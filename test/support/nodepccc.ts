import { createRequire } from "node:module";

/** The part of npm's nodepccc that is used; it brings no types. Its values: numbers, booleans, text, arrays of them, or `BAD 255`. */
interface Client {
  initiateConnection(options: object, done: (error?: unknown) => void): void;
  dropConnection(done: () => void): void;
  readonly dropConnectionTimer: NodeJS.Timeout;
  setTranslationCB(translate: (tag: string) => string): void;
  addItems(items: readonly string[]): void;
  readAllItems(done: (isBad: boolean, values: Readonly<Record<string, unknown>>) => void): void;
}

const NodePccc = createRequire(import.meta.url)("nodepccc") as new (options: { readonly silent: boolean }) => Client;

/** The values of its own addresses (`N7:0,20` are twenty elements), in one read. Throws what connecting fails with. */
export interface Nodepccc {
  read(): Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

/** `slot`: of the controller behind the module that owns the socket; absent: no route. */
export async function openNodepccc(port: number, addresses: readonly string[], slot?: number): Promise<Nodepccc> {
  const client = new NodePccc({ silent: true });
  // Words of the route, a pad byte, the backplane and the slot.
  const routing = slot === undefined ? {} : { routing: [1, 0, 1, slot] };
  await new Promise<void>((ready, failed) =>
    client.initiateConnection({ host: "127.0.0.1", port, ...routing }, (error) =>
      error ? failed(new Error(`nodepccc cannot connect: ${error}`)) : ready(),
    ),
  );
  client.setTranslationCB((tag) => tag);
  client.addItems(addresses);
  return {
    read: () => new Promise((done) => client.readAllItems((_, values) => done(values))),
    // Its callback comes after a timer of 2.5 s only, because it stops listening before its socket closes.
    async close() {
      client.dropConnection(() => {});
      clearTimeout(client.dropConnectionTimer);
    },
  };
}
