import { afterEach, describe, expect, it } from "vitest";
import { bytesOfHex, FinsDatagrams, FinsStream, spaceless } from "../../test/support/fins-bytes.ts";
import { freePort } from "../../test/support/free-port.ts";
import { FinsMemory, type FinsPlc, startFinsPlc, TCP_ERRORS } from "./simulator.ts";

// The byte layouts: Omron W227 (commands, end codes, the C and CV layouts), W421 (FINS/TCP), and a public capture of a CP1L-EL20.

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const ASK_NODE = "46494e53 0000000c 00000000 00000000";
const overTcp = (frame: string): string => {
  const { length } = bytesOfHex(frame);
  return `46494e53 ${(8 + length).toString(16).padStart(8, "0")} 00000002 00000000 ${frame}`;
};
const READ = "0101 82 0000 00 0001";

async function start(change: (plc: FinsPlc) => void = () => {}): Promise<FinsPlc> {
  const memory = new FinsMemory();
  memory.create("D", 16).fill(0x1000);
  const plc = await startFinsPlc({ memory, port: await freePort() });
  cleanUp.push(() => plc.close());
  change(plc);
  return plc;
}

function streamTo(port: number): FinsStream {
  const stream = new FinsStream(port);
  cleanUp.push(() => stream.close());
  return stream;
}

describe("TCP", () => {
  it("gives nodes as a CP1L does, fills them in, and answers frames", async () => {
    const plc = await start((one) => {
      one.node = 200;
      one.tcp.automatic = [251];
    });
    const wire = streamTo(plc.port);
    expect(await wire.ask(`${ASK_NODE} 00000000`, 24)).toBe("46494e530000001000000001" + "00000000000000fb000000c8");
    const answer = spaceless("46494e53 00000018 00000002 00000000 c0 00 02 00 fb 00 00 c8 00 07 0101 0000 1000");
    expect(await wire.ask(overTcp(`80 00 02 00 c8 00 00 00 00 07 ${READ}`), 32)).toBe(answer);
    // Two in one piece, and one in two.
    const two = overTcp(`80 00 02 00 00 00 00 fb 00 07 ${READ}`);
    expect(await wire.ask(two + two, 64)).toBe(answer + answer);
    wire.send(bytesOfHex(two).toString("hex", 0, 21));
    await new Promise((done) => setImmediate(done));
    expect(await wire.ask(bytesOfHex(two).toString("hex", 21), 32)).toBe(answer);
    expect(plc.violations).toEqual([]);
    expect([...plc.nodes()]).toEqual([251]);
    expect(plc.connections()).toBe(1);
  });

  const CODES: readonly (readonly [words: string, asked: string, code: number, change: (plc: FinsPlc) => void])[] = [
    ["all of its connections are in use", "00", TCP_ERRORS.allTaken, ({ tcp }) => void Object.assign(tcp, { maxConnections: 0 })],
    ["the node is connected", "32", TCP_ERRORS.nodeConnected, ({ tcp }) => tcp.taken.add(0x32)],
    ["the address is not allowed", "00", TCP_ERRORS.addressRefused, ({ tcp }) => void Object.assign(tcp, { allowed: () => false })],
    ["the node is out of range", "ff", TCP_ERRORS.nodeOutOfRange, () => {}],
    ["the node is its own", "0a", TCP_ERRORS.sameNode, () => {}],
    ["no node is free", "00", TCP_ERRORS.noFreeNode, ({ tcp }) => void Object.assign(tcp, { automatic: [] })],
    ["a test says so", "00", 0x21, ({ tcp }) => void Object.assign(tcp, { handshakeError: 0x21 })],
  ];
  it.each(CODES)("refuses a handshake because %s, in every form, and ends", async (_, asked, code, change) => {
    const plc = await start(change);
    const error = code.toString(16).padStart(8, "0");
    const forms = [
      ["nodes", `46494e53 00000010 00000001 ${error} 000000${asked} 0000000a`],
      ["bare", `46494e53 00000008 00000001 ${error}`],
      ["notification", `46494e53 00000008 00000003 ${error}`],
    ] as const;
    for (const [form, answer] of forms) {
      plc.tcp.refusalForm = form;
      const wire = streamTo(plc.port);
      expect(await wire.ask(`${ASK_NODE} 000000${asked}`, bytesOfHex(spaceless(answer)).length)).toBe(spaceless(answer));
      await wire.ended();
    }
    expect(plc.counts).toMatchObject({ accepted: 3, handshakes: 3, refused: 3 });
  });

  it("has 16 connections, each with a node of its own, and a free one when one ends", async () => {
    const plc = await start();
    const wires = Array.from({ length: 16 }, () => streamTo(plc.port));
    const answers = await Promise.all(wires.map((wire) => wire.ask(`${ASK_NODE} 00000000`, 24)));
    expect(new Set(answers.map((answer) => answer.slice(38, 40))).size).toBe(16);
    expect(await streamTo(plc.port).ask(`${ASK_NODE} 00000000`, 16)).toContain("0000000100000020");
    wires[3]?.close();
    await expect.poll(() => plc.nodes().size, { interval: 2 }).toBe(15);
    expect(await streamTo(plc.port).ask(`${ASK_NODE} 00000000`, 24)).toBe(answers[3]);
  });

  it.each([
    ["bytes that are not FINS", "00".repeat(16), "01"],
    ["a length above the longest frame", "46494e53 000007e5 00000002 00000000", "02"],
    ["a length below the header's", "46494e53 00000007 00000002 00000000", "02"],
    ["an unknown command", "46494e53 00000008 00000009 00000000", "03"],
    ["a second handshake", `${ASK_NODE} 00000000`, "03"],
  ])("tells of an error and ends: %s", async (_, bytes, code) => {
    const plc = await start();
    const wire = streamTo(plc.port);
    await wire.ask(`${ASK_NODE} 00000000`, 24);
    expect(await wire.ask(bytes, 16)).toBe(spaceless(`46494e53 00000008 00000003 000000${code}`));
    await wire.ended();
    expect(plc.violations).toHaveLength(1);
  });

  it("takes no frame before the handshake", async () => {
    const plc = await start();
    expect(await streamTo(plc.port).ask(overTcp(`80 00 02 00 0a 00 00 32 00 11 ${READ}`), 16)).toContain("0000000300000003");
    expect(plc.violations).toEqual(["a frame before the handshake"]);
  });

  it("confirms that it is there, tells of an error in the place of an answer, or hangs up", async () => {
    const plc = await start(({ tcp }) => void Object.assign(tcp, { confirms: true, pieceBytes: 5 }));
    const wire = streamTo(plc.port);
    await wire.ask(`${ASK_NODE} 00000000`, 24);
    const read = overTcp(`80 00 02 00 0a 00 00 ef 00 07 ${READ}`);
    const answer = "46494e53 00000008 00000006 00000000 46494e53 00000018 00000002 00000000 c0 00 02 00 ef 00 00 0a 00 07 0101 0000 1000";
    expect(await wire.ask(read, 48)).toBe(spaceless(answer));
    plc.misbehave = () => ({ notification: 2 });
    expect(await wire.ask(read, 16)).toBe(spaceless("46494e53 00000008 00000003 00000002"));
    await wire.ended();
    plc.misbehave = () => ({ hangUp: "rst" });
    const other = streamTo(plc.port);
    await other.ask(`${ASK_NODE} 00000000`, 24);
    expect(await other.ask(read, 16)).toBe("");
    expect(other.hasEnded).toBe(true);
  });

  it("opens and closes either transport on its port", async () => {
    const plc = await start();
    const wire = streamTo(plc.port);
    await wire.ask(`${ASK_NODE} 00000000`, 24);
    await plc.serve({ tcp: false, udp: true });
    await wire.ended();
    expect(await streamTo(plc.port).ask("", 1)).toBe("");
    const datagrams = new FinsDatagrams(plc.port);
    cleanUp.push(() => datagrams.close());
    expect(await datagrams.ask(`80 00 02 00 0a 00 00 32 00 11 ${READ}`)).toContain("010100001000");
    await plc.serve({ tcp: true, udp: false });
    expect(await streamTo(plc.port).ask(`${ASK_NODE} 00000000`, 24)).toHaveLength(48);
  });
});
