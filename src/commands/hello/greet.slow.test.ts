import net, { type AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { startSimulator as startFins } from "../../../drivers/fins/simulator.ts";
import { startSimulator as startModbus } from "../../../drivers/modbus_tcp/simulator.ts";
import { startOpcuaSimulator } from "../../../drivers/opcua/simulator.ts";
import { startSimulator as startS7 } from "../../../drivers/s7/simulator.ts";
import { startSimulator as startS7Plus } from "../../../drivers/s7plus/simulator.ts";
import { startSimulator as startVendorA } from "../../../drivers/vendor_a/simulator.ts";
import { silentLog } from "../../model/context.ts";
import { greetPort } from "./greet.ts";
import { HELLOS } from "./hellos.ts";
import { recognisedWords } from "./recognised.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

/** Every hello at this port, with so long for each answer. */
async function found(port: number, hellos = HELLOS, pace = async (): Promise<unknown> => undefined) {
  const timeouts = { nameMs: 1000, connectMs: 1000, answerMs: 250 };
  const ctx = { signal: new AbortController().signal, log: silentLog, timeouts };
  const result = await greetPort({ host: "127.0.0.1", port, transport: "tcp" }, hellos, ctx, pace);
  return { ...result, words: result.found && recognisedWords(result.found) };
}

/** A server that does this with each connection. `free`: settles where no connection is open, throws where one stays. */
async function serverThat(work: (socket: net.Socket) => void) {
  const seen = { accepted: 0, open: 0 };
  const server = net.createServer((socket) => {
    seen.accepted++;
    seen.open++;
    socket
      .on("error", () => {})
      .on("close", () => seen.open--)
      .resume();
    work(socket);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  cleanUp.push(() => server.close());
  const free = () => expect.poll(() => seen.open, { interval: 5 }).toBe(0);
  return { seen, free, port: (server.address() as AddressInfo).port };
}

describe("a port is recognised", () => {
  it.each([
    ["an EtherNet/IP controller", startVendorA, "vendor_a", /^EtherNet\/IP \(Rockwell Automation 1756-.*, firmware \d+\.\d+\)$/],
    ["a Modbus device", startModbus, "modbus_tcp", /^Modbus TCP$/],
    ["a FINS controller", startFins, "fins", /^FINS\/TCP \(Omron CP1L.*\)$/],
    ["an S7 controller", startS7, "s7", /^S7$/],
    ["an S7comm-plus controller", startS7Plus, "s7plus", /^S7comm-plus \(Siemens\)$/],
    ["an OPC UA server", () => startOpcuaSimulator({ bulk: 1 }), "opcua", /^OPC UA$/],
  ] as const)("as %s", async (_, start, type, words) => {
    const simulator = await start();
    cleanUp.push(() => simulator.close());
    const all = await found(simulator.port);
    expect([all.found?.type, all.words]).toEqual([type, expect.stringMatching(words)]);
    const own = await found(
      simulator.port,
      HELLOS.filter((hello) => hello.type === type),
    );
    expect(own.words).toBe(all.words);
  });

  it("names HTTP and SSH, and sees a broker close each connection, with one connection at a time", async () => {
    const web = await serverThat((socket) => socket.once("data", () => socket.end("HTTP/1.0 400 Bad Request\r\nServer: Boa\r\n\r\n")));
    expect((await found(web.port)).words).toBe("HTTP (Boa)");
    const shell = await serverThat((socket) => socket.write("SSH-2.0-dropbear\r\n"));
    expect((await found(shell.port)).words).toBe("SSH (SSH-2.0-dropbear)");
    const broker = await serverThat((socket) => socket.once("data", () => socket.end()));
    expect(await found(broker.port, HELLOS, broker.free)).toEqual({ isOpen: true, isClosedEachTime: true, words: undefined });
    expect(broker.seen.accepted).toBe(HELLOS.length);
  });

  it("stays unknown where it is silent or closed", async () => {
    const mute = await serverThat(() => {});
    expect(await found(mute.port, HELLOS.slice(0, 2), mute.free)).toEqual({ isOpen: true, isClosedEachTime: false, words: undefined });
    expect(mute.seen.accepted).toBe(2);
    const { failure } = await found(1);
    expect(failure?.reason.type).toBe("CONNECTION_REFUSED");
  });

  it("is heard up to a bound", async () => {
    const flood = await serverThat((socket) => socket.write(Buffer.alloc(1 << 20, 0x2e)));
    expect(await found(flood.port, HELLOS.slice(-1))).toEqual({ isOpen: true, isClosedEachTime: false, words: undefined });
  });
});
