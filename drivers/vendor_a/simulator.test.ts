import { afterEach, describe, expect, it } from "vitest";
import { ByteClient } from "../../test/support/byte-client.ts";
import { type CipDevice, type CipDeviceOptions, LogixProgram, microProgram, startCipDevice, startSimulator } from "./simulator.ts";

// The byte layouts: ODVA volumes 1 and 2, and 1756-PM020 (Logix 5000 Data Access).

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const SOON = { interval: 3 };
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const plain = (text: string): string => text.replaceAll(" ", "");
const word = (value: number): string => Buffer.of(value & 0xff, value >> 8).toString("hex");
const doubleWord = (value: number): string => word(value & 0xffff) + word(value >>> 16);
const CONTEXT = "0102030405060708";

const frameLength = (bytes: Buffer): number | undefined => (bytes.length >= 24 ? 24 + bytes.readUInt16LE(2) : undefined);

/** Encapsulated frames, in a session of its own. */
class Wire extends ByteClient {
  session = 0;

  constructor(port: number) {
    super(port);
    cleanUp.push(() => this.socket.destroy());
  }

  async register(): Promise<this> {
    const reply = await this.ask("6500", "0100 0000");
    this.session = hex(reply).readUInt32LE(4);
    return this;
  }

  send(command: string, payload: string, session = this.session): void {
    const bytes = hex(payload);
    this.socket.write(hex(`${command} ${word(bytes.length)} ${doubleWord(session)} 00000000 ${CONTEXT} 00000000 ${bytes.toString("hex")}`));
  }

  /** The next frame in hex, or what is there when the connection ends. */
  async frame(): Promise<string> {
    let found: Buffer | undefined;
    await expect
      .poll(() => {
        found = this.take(frameLength) ?? (this.ended === undefined ? undefined : this.takeAll());
        return found !== undefined;
      }, SOON)
      .toBe(true);
    return found?.toString("hex") ?? "";
  }

  async ask(command: string, payload: string, session?: number): Promise<string> {
    this.send(command, payload, session);
    return this.frame();
  }

  /** A message without a connection, and its reply, without what both are wrapped in. */
  async unconnected(message: string): Promise<string> {
    this.sendUnconnected(message);
    return (await this.frame()).slice(2 * 40);
  }

  sendUnconnected(message: string): void {
    this.send("6f00", `00000000 0000 0200 0000 0000 b200 ${word(hex(message).length)} ${message}`);
  }

  /** A message over a connection; its reply begins with the id and the sequence that came. */
  async connected(id: number, sequence: number, message: string): Promise<string> {
    this.sendConnected(id, sequence, message);
    const reply = hex(await this.frame());
    expect(reply.toString("hex", 24, 36)).toBe(plain("00000000 0000 0200 a100 0400"));
    return `${reply.toString("hex", 36, 40)} ${reply.toString("hex", 44, 46)} ${reply.toString("hex", 46)}`;
  }

  sendConnected(id: number, sequence: number, message: string): void {
    this.send("7000", `00000000 0000 0200 a100 0400 ${doubleWord(id)} b100 ${word(hex(message).length + 2)} ${word(sequence)} ${message}`);
  }

  /** Opens a connection; the reply, and the id that its requests go with. */
  async open(message: string): Promise<{ readonly reply: string; readonly id: number }> {
    const reply = await this.unconnected(message);
    return { reply, id: hex(reply).length >= 8 ? hex(reply).readUInt32LE(4) : 0 };
  }
}

/** DINT `Count` 7, INT[4] `Row` 1 to 4, structure `Pump` with a REAL and two BOOLs, DINT[200] `Long`, and a program with a tag. */
async function start(options: CipDeviceOptions = {}, change: (device: CipDevice) => void = () => {}): Promise<CipDevice> {
  const program = new LogixProgram();
  program.structure("Pump", [
    ["Speed", "REAL"],
    ["On", "BOOL"],
    ["Dry", "BOOL"],
  ]);
  program.tag("Count", "DINT", 7);
  program.tag("Row", "INT[4]", [1, 2, 3, 4]);
  program.tag("Pump1", "Pump", { Speed: 1.5, Dry: true });
  program.tag("Long", "DINT[200]", [0x11223344]);
  program.tag("Secret", "DINT", 1, { access: "none" });
  program.program("Main");
  program.tag("Cycle", "DINT", 9, { program: "Main" });
  const device = await startCipDevice({ program, ...options });
  cleanUp.push(() => device.close());
  change(device);
  return device;
}

const symbol = (name: string): string => {
  const bytes = Buffer.from(name, "latin1");
  return `91${bytes.length.toString(16).padStart(2, "0")}${bytes.toString("hex")}${bytes.length % 2 ? "00" : ""}`;
};
const request = (service: string, path: string, data = ""): string =>
  `${service}${(hex(path).length / 2).toString(16).padStart(2, "0")}${path}${data}`;
const readTag = (name: string, count = 1): string => request("4c", symbol(name), word(count));
const READ_COUNT = readTag("Count");
/** Unconnected Send of a message along a route. */
function routed(message: string, route = "0100"): string {
  const bytes = hex(message);
  const pad = bytes.length % 2 ? "00" : "";
  return request("52", "20062401", `0a0e ${word(bytes.length)} ${bytes.toString("hex")}${pad} 0${hex(route).length / 2}00 ${route}`);
}
const TRIPLE = "3412 0100 78563412";
interface OpenOptions {
  readonly triple?: string;
  readonly path?: string;
  readonly transport?: string;
}
const openOf = (service: string, parameters: string, { triple = TRIPLE, path = "0100 2002 2401", transport = "a3" }: OpenOptions) =>
  request(
    service,
    "20062401",
    `0a0e 00000000 44332211 ${triple} 03000000 80841e00 ${parameters} 80841e00 ${parameters} ${transport} 0${hex(path).length / 2} ${path}`,
  );
const largeOpen = (size: number, options: OpenOptions = {}): string => openOf("5b", doubleWord(0x4200_0000 + size), options);
const smallOpen = (size: number, options: OpenOptions = {}): string => openOf("54", word(0x4200 + size), options);
const CLOSE = request("4e", "20062401", `0a0e ${TRIPLE} 0300 0100 2002 2401`);

describe("a session", () => {
  it("is registered, and everything else wants it", async () => {
    const device = await start();
    const wire = new Wire(device.port);
    expect(await wire.ask("6500", "0100 0000")).toBe(plain(`6500 0400 01000015 00000000 ${CONTEXT} 00000000 0100 0000`));
    expect(await wire.ask("6f00", "", 0x99)).toBe(plain(`6f00 0000 99000000 64000000 ${CONTEXT} 00000000`));
    wire.session = 0x1500_0001;
    expect(await wire.unconnected(READ_COUNT)).toBe(plain("cc00 0000 c400 07000000"));
    device.loseSessions();
    wire.sendUnconnected(READ_COUNT);
    expect((await wire.frame()).slice(16, 24)).toBe("64000000");
    wire.send("6600", "");
    await expect.poll(() => wire.ended, SOON).toBe("fin");
  });

  it("is refused for a wrong version, where there are none left, and as a test says", async () => {
    const device = await start({}, (one) => {
      one.maxSessions = 1;
    });
    await new Wire(device.port).register();
    const wire = new Wire(device.port);
    expect((await wire.ask("6500", "0200 0000")).slice(16, 24)).toBe("69000000");
    expect((await wire.ask("6500", "0100 0000")).slice(16, 24)).toBe("02000000");
    device.registerStatus = 3;
    expect((await wire.ask("6500", "0100 0000")).slice(16, 24)).toBe("03000000");
  });

  it("is not needed for who it is, and unknown commands are refused and noted", async () => {
    const device = await start({ layout: "bridge" });
    const wire = new Wire(device.port);
    const port = Buffer.alloc(2);
    port.writeUInt16BE(device.port);
    const address = `0002 ${port.toString("hex")} 7f000001 0000000000000000`;
    const name = Buffer.from("1756-EN2T/D").toString("hex");
    const item = `0100 ${address} 0100 0c00 a600 0b02 6000 006e1d0b 0b ${name} 03`;
    expect((await wire.ask("6300", "")).slice(48)).toBe(plain(`0100 0c00 ${word(hex(item).length)} ${item}`));
    expect((await wire.ask("0400", "")).slice(48)).toContain(Buffer.from("Communications").toString("hex"));
    expect((await wire.ask("7200", "")).slice(16, 24)).toBe("01000000");
    expect(device.violations).toEqual(["the command 0x72"]);
  });
});

describe("a route", () => {
  it.each([
    ["to the CPU", "0103", "cc00 0000 c400 07000000"],
    ["to an I/O module", "0104", "cc00 0501 0000"],
    ["to a slot without a module", "0109", "d200 0101 1203 01"],
    ["to another port", "0203", "d200 0101 1103 01"],
    ["to a slot that is silent", "0105", "d200 0101 0402 01"],
  ])("%s", async (_, route, reply) => {
    const device = await start({ layout: "bridge" }, (one) => {
      one.silentSlotMs = 5;
    });
    const wire = await new Wire(device.port).register();
    const answer = await wire.unconnected(routed(READ_COUNT, route));
    expect(answer.startsWith(plain(reply)), answer).toBe(true);
  });

  it("tells which module is where", async () => {
    const device = await start({ layout: "bridge" });
    const wire = await new Wire(device.port).register();
    const typeAt = async (route: string) => (await wire.unconnected(routed("0102 2001 2401", route))).slice(8, 16);
    expect([await typeAt("0102"), await typeAt("0103"), await typeAt("0104")]).toEqual(["01000c00", "01000e00", "01000700"]);
    expect((await wire.unconnected(READ_COUNT)).slice(0, 6)).toBe("cc0005");
    expect(await wire.unconnected(routed("0102 2064 2401", "0103"))).toBe(plain(`8100 0000 0600 ${Buffer.from("Line_7").toString("hex")}`));
  });
});

describe("a connection", () => {
  it("is opened large, used, and closed", async () => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    const { reply, id } = await wire.open(largeOpen(4002));
    expect(reply).toBe(plain(`db00 0000 ${doubleWord(id)} 44332211 ${TRIPLE} 80841e00 80841e00 0000`));
    expect(await wire.connected(id, 1, READ_COUNT)).toBe("44332211 0100 cc000000c40007000000");
    expect(await wire.connected(id, 2, readTag("Row", 4))).toBe("44332211 0200 cc000000c3000100020003000400");
    // The same sequence count again is not executed.
    wire.sendConnected(id, 2, READ_COUNT);
    expect(await wire.unconnected(CLOSE)).toBe(plain(`ce00 0000 ${TRIPLE} 0000`));
    wire.sendConnected(id, 3, READ_COUNT);
    expect(await wire.unconnected(CLOSE)).toBe(plain(`ce00 0101 0701 ${TRIPLE} 0000`));
    expect(wire.unread).toBe(0);
    expect(device.counts).toMatchObject({ duplicates: 1, unknownConnection: 1, connected: 2 });
    expect(device.manager.counts).toMatchObject({ opens: 1, largeOpens: 1, closes: 1 });
  });

  it.each([
    ["0109", 600, "0101 0901"],
    ["0109 with size", 600, "0102 0901 5802"],
    ["0127", 600, "0101 2701"],
    ["0128", 600, "0101 2801"],
    ["08", 600, "0800"],
  ] as const)("that is too large is refused with %s", async (sizeRefusal, largeBytes, refusal) => {
    const device = await start({}, ({ manager }) => void Object.assign(manager.grants, { sizeRefusal, largeBytes }));
    const wire = await new Wire(device.port).register();
    expect((await wire.unconnected(largeOpen(4002))).slice(4)).toMatch(new RegExp(`^${plain(refusal)}`));
    expect(await wire.unconnected(largeOpen(600))).toMatch(/^db000000/);
  });

  it.each([
    ["of a slot without a module", "compact", smallOpen(504, { path: "0107 2002 2401" }), "0101 1203"],
    ["of a silent slot", "bridge", smallOpen(504, { path: "0105 2002 2401" }), "0101 0402"],
    ["of a port that there is not", "bridge", smallOpen(504, { path: "0305 2002 2401" }), "0101 1103"],
    ["to another object", "compact", smallOpen(504, { path: "0100 2004 2401" }), "0101 1503"],
    ["of another class", "compact", smallOpen(504, { transport: "01" }), "0101 0301"],
    ["of a Micro800 with a route", "micro", smallOpen(504), "0101 1103"],
    ["of a Micro800 in the large form", "micro", largeOpen(504, { path: "2002 2401" }), "0800"],
  ] as const)("%s is refused", async (_, layout, message, refusal) => {
    const device = await start({ layout });
    const wire = await new Wire(device.port).register();
    expect((await wire.unconnected(message)).slice(4)).toMatch(new RegExp(`^${plain(refusal)}`));
    expect(device.manager.size).toBe(0);
  });

  it("is refused where none is left, or its triple is open; it ends with its session and after its time", async () => {
    const device = await start({}, ({ manager }) => {
      manager.grants.maxConnections = 1;
    });
    const first = await new Wire(device.port).register();
    await first.open(smallOpen(504));
    const second = await new Wire(device.port).register();
    const other = { triple: "9999 0100 78563412" };
    expect(await second.unconnected(smallOpen(504))).toMatch(/^d4000101 ?0001/);
    expect(await second.unconnected(smallOpen(504, other))).toMatch(/^d40001011301/);
    first.socket.end();
    await expect.poll(() => device.manager.size, SOON).toBe(0);
    expect(device.leftOpen).toBe(1);
    const { id } = await second.open(smallOpen(504, other));
    device.manager.grants.idleMs = 1;
    await new Promise((done) => setTimeout(done, 5));
    second.sendConnected(id, 1, READ_COUNT);
    expect(await second.unconnected(READ_COUNT)).toMatch(/^cc/);
    expect(device.manager.counts).toMatchObject({ timedOut: 1, refusedOpens: 2 });
  });

  it("takes and sends no more than was agreed", async () => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    const { id } = await wire.open(smallOpen(40));
    wire.sendConnected(id, 1, readTag("A".repeat(40)));
    expect(await wire.connected(id, 2, readTag("Long", 200))).toMatch(/^44332211 0200 cc000600c400443322110{56}$/);
    expect(device.violations).toEqual(["a message of 48 bytes where 40 are agreed"]);
  });
});

describe("a read", () => {
  it.each([
    ["an element", request("4c", `${symbol("row")}2802`, word(2)), "c300 0300 0400"],
    ["a member", request("4c", symbol("Pump1") + symbol("Speed"), word(1)), "ca00 0000c03f"],
    ["a packed BOOL", request("4c", symbol("Pump1") + symbol("Dry"), word(1)), "c100 01"],
    ["a program's tag", request("4c", symbol("Program:Main") + symbol("Cycle"), word(1)), "c400 09000000"],
    ["by the instance of its symbol", request("4c", "206b25000300", word(1)), "c400 07000000"],
  ])("of %s", async (_, message, data) => {
    const wire = await new Wire((await start()).port).register();
    expect(await wire.unconnected(message)).toBe(plain(`cc00 0000 ${data}`));
  });

  it("of a structure has its handle", async () => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    const { handle } = device.program.templates.byName.get("PUMP") ?? {};
    expect(await wire.unconnected(readTag("Pump1"))).toBe(plain(`cc00 0000 a002 ${word(handle ?? 0)} 0000c03f 02000000`));
  });

  it.each([
    ["a tag that there is not", readTag("Nope"), "0401 0000"],
    ["a member that there is not", request("4c", symbol("Pump1") + symbol("Nope"), word(1)), "0501 0000"],
    ["an index behind the end", request("4c", `${symbol("Row")}2804`, word(1)), "ff01 0521"],
    ["more than there is", readTag("Row", 5), "ff01 0521"],
    ["what may not be seen", readTag("Secret"), "0f00"],
    ["an offset behind the end", request("52", symbol("Row"), `${word(4)}${doubleWord(8)}`), "ff01 0421"],
    ["a write, which is noted", request("4d", symbol("Count"), "c400 0100 01000000"), "0800"],
  ])("of %s is refused", async (_, message, refusal) => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    expect((await wire.unconnected(message)).slice(4)).toBe(plain(refusal));
    expect(device.violations).toEqual(message.startsWith("4d") ? ["service 0x4d, which does not read"] : []);
    expect(await wire.unconnected(READ_COUNT)).toBe(plain("cc00 0000 c400 07000000"));
  });

  it("comes in fragments", async () => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    const first = await wire.unconnected(request("52", symbol("Long"), `${word(200)}${doubleWord(0)}`));
    expect(first).toMatch(/^d2000600c40044332211/);
    expect(hex(first)).toHaveLength(6 + 496);
    expect(hex(await wire.unconnected(request("52", symbol("Long"), `${word(200)}${doubleWord(496)}`)))).toHaveLength(6 + 304);
    expect(await wire.unconnected(readTag("Long", 200))).toMatch(/^cc000600/);
    expect(device.cpu.counts).toMatchObject({ fragments: 2, cut: 2 });
  });

  it("of several has a status for each, and what does not fit is cut or refused", async () => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    const nope = readTag("Nope");
    const packet = request(
      "0a",
      "20022401",
      `0300 0800 ${word(8 + hex(READ_COUNT).length)} ${word(8 + hex(READ_COUNT).length + hex(nope).length)} ${READ_COUNT} ${nope} ${READ_COUNT}`,
    );
    const inner = "cc000000c40007000000";
    expect(await wire.unconnected(packet)).toBe(plain(`8a00 1e00 0300 0800 1200 1800 ${inner} cc0004010000 ${inner}`));
    const [long, length] = [readTag("Long", 200), hex(readTag("Long", 200)).length];
    const cut = request("0a", "20022401", `0300 0800 ${word(8 + length)} ${word(8 + 2 * length)} ${long} ${long} ${long}`);
    const reply = await wire.unconnected(cut);
    expect(hex(reply).length).toBeLessThanOrEqual(504);
    expect(reply).toMatch(/^8a001e00030008/);
    expect(reply).toMatch(/cc001100cc001100$/);
    expect(device.lastMessages.at(-1)).toMatchObject({ items: 3, reads: [{ path: "Long", count: 200 }, {}, {}] });
  });

  it("is answered late, in part, otherwise or not at all", async () => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    const good = plain("cc00 0000 c400 07000000");
    device.misbehave = () => ({ silent: true });
    wire.sendUnconnected(READ_COUNT);
    await expect.poll(() => device.counts.messages, SOON).toBe(1);
    device.misbehave = () => ({ delayMs: 10 });
    expect(await wire.unconnected(READ_COUNT)).toBe(good);
    device.misbehave = () => ({ status: { general: 0xff, extended: [0x2108] } });
    expect(await wire.unconnected(READ_COUNT)).toBe(plain("cc00 ff01 0821"));
    device.misbehave = () => ({ change: (reply) => reply.subarray(0, 7) });
    expect(await wire.unconnected(READ_COUNT)).toBe(plain("cc00 0000 c400 07"));
    device.misbehave = () => ({ encapsulation: 3 });
    wire.sendUnconnected(READ_COUNT);
    expect((await wire.frame()).slice(16, 24)).toBe("03000000");
    device.misbehave = undefined;
    device.cpu.isDownloading = true;
    expect(await wire.unconnected(READ_COUNT)).toBe(plain("cc00 ff01 0821"));
    device.cpu.isDownloading = false;
    device.cpu.refuse = ({ path }) => (path === "Row" ? { general: 2 } : undefined);
    expect([await wire.unconnected(readTag("Row")), await wire.unconnected(READ_COUNT)]).toEqual([plain("cc00 0200"), good]);
    device.misbehave = () => ({ cutAfter: 30 });
    wire.sendUnconnected(READ_COUNT);
    expect(hex(await wire.frame())).toHaveLength(30);
    expect(wire.ended).toBe("fin");
  });
});

/** Entries of Get Instance Attribute List with name, type and access. */
function symbolsOf(reply: string): readonly (readonly [instance: number, name: string, type: number, access: number])[] {
  const bytes = hex(reply);
  const found: [number, string, number, number][] = [];
  for (let at = 4; at < bytes.length; ) {
    const length = bytes.readUInt16LE(at + 4);
    const end = at + 6 + length;
    found.push([bytes.readUInt32LE(at), bytes.toString("latin1", at + 6, end), bytes.readUInt16LE(end), bytes[end + 2] ?? -1]);
    at = end + 3;
  }
  return found;
}
const NAME_TYPE_ACCESS = "0300 0100 0200 0a00";

describe("browsing", () => {
  it("lists symbols with their types and accesses, and those of a program", async () => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    const { instance = 0 } = device.program.templates.byName.get("PUMP") ?? {};
    const reply = await wire.unconnected(request("55", "206b25000000", NAME_TYPE_ACCESS));
    expect(reply).toMatch(/^d5000000/);
    const found = symbolsOf(reply);
    expect(found.map(([, ...rest]) => rest)).toEqual([
      ["Count", 0x00c4, 0],
      ["Row", 0x20c3, 0],
      ["Pump1", 0x8000 + instance, 0],
      ["Long", 0x20c4, 0],
      ["Secret", 0x00c4, 3],
      ["Program:Main", 0x1068, 0],
    ]);
    expect(found.map(([id]) => id)).toEqual(found.map(([id]) => id).toSorted((a, b) => a - b));
    const ofProgram = await wire.unconnected(request("55", `${symbol("Program:Main")}206b25000000`, NAME_TYPE_ACCESS));
    expect(symbolsOf(ofProgram).map(([, name]) => name)).toEqual(["Routine:MainRoutine", "Cycle"]);
    device.cpu.lacks.add(10);
    expect(await wire.unconnected(request("55", "206b25000000", NAME_TYPE_ACCESS))).toBe("d5001400");
  });

  it("goes by pages, and what a download moves has another instance and another mark", async () => {
    const program = new LogixProgram();
    for (let i = 0; i < 300; i++) program.tag(`Tag_${i}`, "DINT", i);
    const device = await start({ program });
    const wire = await new Wire(device.port).register();
    const names: string[] = [];
    let next = 0;
    let pages = 0;
    for (let status = "06"; status === "06"; pages++) {
      const reply = await wire.unconnected(request("55", `206b2500${word(next)}`, NAME_TYPE_ACCESS));
      status = reply.slice(4, 6);
      const found = symbolsOf(reply);
      names.push(...found.map(([, name]) => name));
      next = (found.at(-1)?.[0] ?? 0) + 1;
    }
    expect([names.length, new Set(names).size, pages]).toEqual([300, 300, 10]);
    const mark = () => wire.unconnected(request("03", "20ac2401", "0500 0100 0200 0300 0400 0a00"));
    const before = await mark();
    expect(await mark()).toBe(before);
    device.download((one) => one.remove("Tag_7"));
    expect(await mark()).not.toBe(before);
    const [first] = symbolsOf(await wire.unconnected(request("55", "206b25000000", NAME_TYPE_ACCESS)));
    expect(first).toEqual([11, "Tag_1", 0xc4, 0]);
    expect(await wire.unconnected(readTag("Tag_7"))).toBe("cc0004010000");
  });

  it("has templates with their members", async () => {
    const device = await start();
    const wire = await new Wire(device.port).register();
    const { instance = 0, handle = 0 } = device.program.templates.byName.get("PUMP") ?? {};
    const path = `206c2500${word(instance)}`;
    const members = "0000 ca00 00000000  0000 c200 04000000  0000 c100 04000000  0100 c100 04000000";
    const names = Buffer.from("Pump;nECECECEC\0Speed\0ZZZZZZZZZZPump1\0On\0Dry\0").toString("hex");
    const definition = plain(members) + names;
    const words = Math.ceil((hex(definition).length + 23) / 4);
    expect(await wire.unconnected(request("03", path, "0400 0400 0500 0200 0100"))).toBe(
      plain(`8300 0000 0400 0400 0000 ${doubleWord(words)} 0500 0000 08000000 0200 0000 0400 0100 0000 ${word(handle)}`),
    );
    expect(await wire.unconnected(request("03", path, "0200 0100 0900"))).toBe(plain(`8300 0a00 0200 0100 0000 ${word(handle)} 0900 1400`));
    expect(await wire.unconnected(request("4c", path, `${doubleWord(0)}${word(words * 4 - 23)}`))).toBe(`cc000000${definition}`);
    expect(await wire.unconnected(request("4c", path, `${doubleWord(8)}${word(8)}`))).toBe(plain("cc00 0000 0000 c200 04000000"));
    expect(await wire.unconnected(request("4c", "206c25000900", `${doubleWord(0)}${word(8)}`))).toBe("cc0005010000");
  });
});

describe("a Micro800", () => {
  it("takes messages without a route, knows no packets, and has strings of its own", async () => {
    const { program } = microProgram();
    const device = await start({ layout: "micro", program });
    const wire = await new Wire(device.port).register();
    expect(await wire.ask("6300", "")).toContain(Buffer.from("2080-LC50-24QWB").toString("hex"));
    expect(await wire.unconnected(routed(readTag("Count")))).toBe("d2000800");
    expect(await wire.unconnected(readTag("Product"))).toBe(plain(`cc00 0000 da00 07 ${Buffer.from("Mühle 1", "latin1").toString("hex")}`));
    expect(await wire.unconnected(request("0a", "20022401", `0100 0400 ${readTag("Count")}`))).toBe("8a000800");
    const { id } = await wire.open(smallOpen(504, { path: "2002 2401" }));
    expect(await wire.connected(id, 1, readTag("Operators", 2))).toBe(
      `44332211 0100 cc000000da0004${Buffer.from("Anna").toString("hex")}05${Buffer.from("Berta").toString("hex")}`,
    );
  });
});

describe("the simulator of the conformance suite", () => {
  it("is locked and busy when it is told to", async () => {
    const simulator = await startSimulator();
    cleanUp.push(() => simulator.close());
    const wire = await new Wire(simulator.port).register();
    expect(await wire.unconnected(readTag("Total"))).toBe(plain("cc00 0000 c400 006cca88"));
    simulator.isLocked = true;
    expect(await wire.unconnected(readTag("Total"))).toBe("cc000f00");
    simulator.isLocked = false;
    simulator.isBusy = true;
    expect(await wire.unconnected(readTag("Total"))).toBe(plain("cc00 ff01 0821"));
    simulator.isBusy = false;
    expect(simulator.variables.length).toBeGreaterThan(50);
    expect(new Set(simulator.malformed).size).toBe(simulator.malformed.length);
  });
});
