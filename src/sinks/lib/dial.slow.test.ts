import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { createResolver } from "../../lib/resolver.ts";
import type { Address } from "../../model/address.ts";
import { silentLog } from "../../model/context.ts";
import { dial } from "./dial.ts";

const HERE: Address = { address: "127.0.0.1", family: 4 };
/** This machine too: nothing listens there. */
const CLOSED: Address = { address: "127.0.0.2", family: 4 };

async function startServer() {
  const server = net.createServer((socket) => socket.on("error", () => {}).resume());
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** `found`: the next answers of the name server. */
function rig(port: number, found: (readonly Address[] | Error)[]) {
  let nowMs = 0;
  const stale: string[] = [];
  const asked: string[] = [];
  const names = createResolver({
    lookUp: async (host) => {
      asked.push(host);
      const next = found.shift() ?? new Error("asked too often");
      if (next instanceof Error) throw next;
      return next;
    },
    now: () => nowMs,
    onStale: (host, address) => void stale.push(`${host} ${address}`),
  });
  const ctx = { signal: new AbortController().signal, log: silentLog, names };
  const connect = async (): Promise<string | undefined> => {
    const socket = await dial({ host: "broker.plant", port, nameMs: 2000, connectMs: 2000 }, ctx);
    const { remoteAddress } = socket;
    socket.destroy();
    return remoteAddress;
  };
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { connect, stale, asked, pass };
}

const away = (): Error => Object.assign(new Error("no name server"), { code: "EAI_AGAIN", syscall: "getaddrinfo" });

it("reaches a server by its name while no name server answers, and says that the address is old", async () => {
  const { connect, stale, asked, pass } = rig(await startServer(), [[HERE], away(), [HERE]]);
  expect(await connect()).toBe("127.0.0.1");
  pass(60_000);
  expect(await connect()).toBe("127.0.0.1");
  expect([stale, asked.length]).toEqual([["broker.plant 127.0.0.1"], 2]);
  expect(await connect()).toBe("127.0.0.1");
  expect([stale.length, asked.length]).toEqual([1, 3]);
});

it("takes the address that answers, and tries it first the next time", async () => {
  const port = await startServer();
  const { connect, asked } = rig(port, [[CLOSED, HERE]]);
  expect([await connect(), await connect(), asked.length]).toEqual(["127.0.0.1", "127.0.0.1", 1]);
});

it("fails with the look-up's reason where the name was never known, and refuses port 0 before it asks", async () => {
  const { connect, asked } = rig(await startServer(), [away()]);
  await expect(connect()).rejects.toMatchObject({ reason: { type: "LOOKUP_ERROR" } });
  const none = rig(0, []);
  await expect(none.connect()).rejects.toMatchObject({ condition: "configuration_invalid" });
  expect([asked.length, none.asked]).toEqual([1, []]);
});
