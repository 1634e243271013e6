import { afterEach, describe, expect, it } from "vitest";
import { ByteClient } from "../../test/support/byte-client.ts";
import { openNodes7 } from "../../test/support/nodes7.ts";
import { bytesOf, ITEM_CODES, JOB_ERRORS, S7Memory, type S7Plc, s5TimeWord, startS7Plc, startSimulator } from "./simulator.ts";

// The byte layouts: RFC 1006 (TPKT), ISO 8073 (COTP), and the notes on S7 in the README of the driver.

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const CONNECT = "0300 0016 11 e0 0000 0001 00 c0010a c1020100 c2020201";
const SETUP = "0300 0019 02f080 3201 0000 0001 0008 0000 f000 0008 0008 03c0";

const SOON = { interval: 5 };

const packetLength = (bytes: Buffer): number | undefined => (bytes.length >= 4 ? bytes.readUInt16BE(2) : undefined);

/** TPKT packets. */
class Wire extends ByteClient {
  constructor(port: number) {
    super(port);
    cleanUp.push(() => this.socket.destroy());
  }

  send(text: string): void {
    this.socket.write(hex(text));
  }

  /** The next `count` packets in hex, or what is there when the connection ends. */
  async packets(count: number): Promise<readonly string[]> {
    const found: string[] = [];
    await expect
      .poll(() => {
        for (let packet = this.take(packetLength); packet; packet = found.length < count ? this.take(packetLength) : undefined)
          found.push(packet.toString("hex"));
        return found.length === count || this.ended !== undefined;
      }, SOON)
      .toBe(true);
    return found;
  }

  async ask(text: string): Promise<string> {
    this.send(text);
    return (await this.packets(1))[0] ?? "nothing";
  }
}

/** 16 bytes 0x10 to 0x1f in DB1. */
async function plcWith(change: (plc: S7Plc) => void = () => {}): Promise<S7Plc> {
  const memory = new S7Memory();
  memory.create("DB1", 16).set(Array.from({ length: 16 }, (_, i) => 0x10 + i));
  const plc = await startS7Plc({ memory });
  cleanUp.push(() => plc.close());
  change(plc);
  return plc;
}

async function open(plc: S7Plc): Promise<Wire> {
  const wire = new Wire(plc.port);
  await wire.ask(CONNECT);
  await wire.ask(SETUP);
  return wire;
}

/** A read job over `[block, byte, count]`, as bytes. */
function job(reference: number, items: readonly (readonly [block: number, byte: number, count: number])[]): string {
  const pdu = Buffer.alloc(12 + items.length * 12);
  pdu.set([0x32, 1]);
  pdu.writeUInt16BE(reference, 4);
  pdu.writeUInt16BE(2 + items.length * 12, 6);
  pdu.set([4, items.length], 10);
  for (const [i, [block, byte, count]] of items.entries()) {
    const at = 12 + i * 12;
    pdu.set([0x12, 0x0a, 0x10, 2], at);
    pdu.writeUInt16BE(count, at + 4);
    pdu.writeUInt16BE(block, at + 6);
    pdu.writeUInt32BE(0x84000000 + byte * 8, at + 8);
  }
  const head = Buffer.from([3, 0, 0, 0, 2, 0xf0, 0x80]);
  head.writeUInt16BE(7 + pdu.length, 2);
  return Buffer.concat([head, pdu]).toString("hex");
}

const plain = (text: string): string => text.replaceAll(" ", "");

describe("the set-up", () => {
  it.each([
    ["whole", "0300 0016 11 d0 0001 0001 00 c0010a c1020100 c2020201"],
    ["size", "0300 000e 09 d0 0001 0001 00 c0010a"],
    ["bare", "0300 000b 06 d0 0001 0001 00"],
  ] as const)("is confirmed in the form %s", async (form, confirm) => {
    const plc = await plcWith((one) => {
      one.confirm = form;
    });
    const wire = new Wire(plc.port);
    expect(await wire.ask(CONNECT)).toBe(plain(confirm));
    expect(await wire.ask(SETUP)).toBe(plain("0300 001b 02f080 3203 0000 0001 0008 0000 0000 f000 0008 0008 01e0"));
    expect([plc.confirmed(), plc.confirmed("op"), plc.confirmed("pg")]).toEqual([1, 1, 0]);
  });

  it("grants no more than was asked for, and no more than it has", async () => {
    const plc = await plcWith((one) => {
      one.pduBytes = 240;
      one.jobs = 3;
      one.packetBytes = 512;
    });
    const wire = new Wire(plc.port);
    expect(await wire.ask(CONNECT)).toContain("c00109");
    expect(await wire.ask(SETUP)).toMatch(/f0000003000300f0$/);
    expect(await wire.ask(SETUP.replace("03c0", "0080"))).toMatch(/f000000300030080$/);
  });

  it.each([
    ["disconnect", "fin", plain("0300 000b 06 80 0001 0000 03")],
    ["fin", "fin", "nothing"],
    ["rst", "rst", "nothing"],
  ] as const)("refuses a slot that it does not have with %s", async (how, ended, packet) => {
    const plc = await plcWith((one) => {
      one.positions = new Set([2]);
      one.wrongTsap = how;
    });
    const wire = new Wire(plc.port);
    expect(await wire.ask(CONNECT)).toBe(packet);
    await expect.poll(() => wire.ended, SOON).toBe(ended);
    const right = new Wire(plc.port);
    expect(await right.ask(CONNECT.replace("c2020201", "c2020202"))).toMatch(/^0300001611d0/);
    expect(plc.counts).toMatchObject({ accepted: 2, refused: 1 });
  });

  it("has slots by the type of the connection, and may be silent about it", async () => {
    const plc = await plcWith((one) => {
      one.slots.op = 1;
      one.slotsTaken = "silent";
    });
    const first = await open(plc);
    const second = new Wire(plc.port);
    second.send(CONNECT);
    const basic = new Wire(plc.port);
    expect(await basic.ask(CONNECT.replace("c2020201", "c2020301"))).toMatch(/^0300001611d0/);
    expect([second.unread, second.ended, plc.confirmed(), plc.connections()]).toEqual([0, undefined, 2, 3]);
    first.socket.end();
    await expect.poll(() => plc.confirmed("op"), SOON).toBe(0);
    expect(await new Wire(plc.port).ask(CONNECT)).toMatch(/^0300001611d0/);
  });

  it("ends the connection over a job before it, and over bytes that are not TPKT", async () => {
    const plc = await plcWith();
    const early = new Wire(plc.port);
    await early.ask(CONNECT);
    early.send(job(1, [[1, 0, 1]]));
    await expect.poll(() => early.ended, SOON).toBe("rst");
    const noise = new Wire(plc.port);
    noise.send("4745 5420 2f20");
    await expect.poll(() => noise.ended, SOON).toBe("rst");
    expect(plc.violations).toEqual(["function 4 before the communication was set up", "bytes that are not TPKT"]);
  });
});

describe("a read", () => {
  it("answers each item: bytes, a fill byte after an odd item that is not the last, a code for what is refused", async () => {
    const plc = await plcWith();
    const wire = await open(plc);
    const asked = job(0x0102, [
      [1, 1, 1],
      [99, 0, 2],
      [1, 14, 4],
      [1, 2, 3],
    ]);
    const items = "ff 04 0008 11 00  0a 00 0000  05 00 0000  ff 04 0018 12 13 14";
    expect(await wire.ask(asked)).toBe(plain(`0300 002a 02f080 3203 0000 0102 0002 0015 0000 04 04 ${items}`));
    expect(plc.counts).toMatchObject({ jobs: 1, items: 4, payloadBytes: 4 });
    expect(plc.lastJobs[0]?.items[2]).toEqual({ area: "DB1", start: 14, bit: 0, count: 4, transport: 2 });
  });

  it("refuses a protected block, an optimised one, a hole, and whatever a test says", async () => {
    const plc = await plcWith(({ memory }) => {
      for (const name of ["DB2", "DB3", "DB4"]) memory.create(name, 16);
      memory.refused.set("DB2", ITEM_CODES.accessDenied).set("DB3", ITEM_CODES.missing);
      memory.holes.set("DB4", new Set([7]));
      memory.form.refusedLength = 4;
    });
    const wire = await open(plc);
    const asked: readonly (readonly [number, number, number])[] = [
      [2, 0, 2],
      [3, 0, 2],
      [4, 4, 4],
      [4, 8, 2],
    ];
    expect(await wire.ask(job(1, asked))).toContain(plain("04 04 03 00 0004 0a 00 0004 05 00 0004 ff 04 0010 0000"));
    plc.memory.refuse = ({ start }) => (start === 8 ? ITEM_CODES.hardwareError : undefined);
    expect(await wire.ask(job(2, asked))).toMatch(/01000004$/);
  });

  it.each([
    ["ack", "0300 0013 02f080 3202 0000 0007 0000 0000 8104"],
    ["ack-data", "0300 0015 02f080 3203 0000 0007 0002 0000 8104 04 00"],
  ] as const)("is refused as a whole in the form %s, until it is not", async (form, refusal) => {
    const plc = await plcWith((one) => {
      one.readError = JOB_ERRORS.serviceForbidden;
      one.errorForm = form;
    });
    const wire = await open(plc);
    expect(await wire.ask(job(7, [[1, 0, 1]]))).toBe(plain(refusal));
    plc.readError = undefined;
    expect(await wire.ask(job(8, [[1, 0, 1]]))).toMatch(/ff04000810$/);
  });

  it.each([
    ["refuse", /85000400$/],
    ["cut", /0414(ff0400081000){19}ff04000810$/],
  ] as const)("of 21 items where 20 are taken: %s", async (over, answer) => {
    const plc = await plcWith((one) => {
      one.overItems = over;
    });
    const wire = await open(plc);
    expect(await wire.ask(job(1, new Array(21).fill([1, 0, 1])))).toMatch(answer);
    expect(plc.violations).toEqual([]);
  });

  it("is refused where job or answer are longer than agreed, and that is noted", async () => {
    const plc = await plcWith((one) => {
      one.pduBytes = 112;
      one.memory.create("DB2", 500);
    });
    const wire = await open(plc);
    expect(await wire.ask(job(1, new Array(9).fill([1, 0, 1])))).toMatch(/85000400$/);
    expect(await wire.ask(job(2, [[2, 0, 95]]))).toMatch(/85000400$/);
    expect(await wire.ask(job(3, [[2, 0, 94]]))).toMatch(/ff0402f0(00){94}$/);
    expect(plc.violations).toEqual(["a job of 120 bytes where 112 are agreed", "a job whose answer of 113 bytes is above 112"]);
  });

  it("comes in fragments behind a fast acknowledge", async () => {
    const plc = await plcWith((one) => {
      one.fragmentBytes = 8;
      one.acknowledgesFast = true;
    });
    const wire = new Wire(plc.port);
    await wire.ask(CONNECT);
    wire.send(SETUP);
    await wire.packets(4);
    wire.send(job(1, [[1, 0, 4]]));
    expect(await wire.packets(4)).toEqual([
      plain("0300 0007 02f000"),
      plain("0300 000f 02f000 3203 0000 0001 0002"),
      plain("0300 000f 02f000 0008 0000 0401 ff04"),
      plain("0300 000d 02f080 0020 10111213"),
    ]);
  });

  it("is answered backwards, late, or not at all", async () => {
    const plc = await plcWith((one) => {
      one.answersBackwards = true;
    });
    const wire = await open(plc);
    wire.send(job(1, [[1, 0, 1]]) + job(2, [[1, 1, 1]]));
    expect((await wire.packets(2)).map((packet) => packet.slice(22, 26))).toEqual(["0002", "0001"]);
    expect(plc.mostInFlight).toBe(2);
    plc.answersBackwards = false;
    plc.misbehave = ({ reference }) => (reference === 3 ? { silent: true } : { delayMs: 30 });
    const began = performance.now();
    wire.send(job(3, [[1, 0, 1]]) + job(4, [[1, 0, 1]]));
    expect((await wire.packets(1)).map((packet) => packet.slice(22, 26))).toEqual(["0004"]);
    expect(performance.now() - began).toBeGreaterThan(20);
    plc.misbehave = () => ({ hangUp: "fin" });
    wire.send(job(5, [[1, 0, 1]]));
    await expect.poll(() => wire.ended, SOON).toBe("fin");
  });

  it("refuses what does not read, and notes it", async () => {
    const plc = await plcWith();
    const wire = await open(plc);
    // Write var of one byte to DB1: function 5.
    const write = "0300 0024 02f080 3201 0000 0001 000e 0005 0501 120a1002 0001 0001 84000000 0004 0008 ff";
    expect(await wire.ask(write)).toMatch(/81040500$/);
    expect(plc.violations).toEqual(["function 5, which does not read"]);
    expect(plc.memory.areas.get("DB1")?.[0]).toBe(0x10);
  });

  it("sees what a download has brought, and ends with its connections dropped", async () => {
    const plc = await plcWith();
    const wire = await open(plc);
    plc.download({ DB2: Buffer.from([1, 2, 3, 4]) });
    expect(
      await wire.ask(
        job(1, [
          [1, 0, 1],
          [2, 1, 2],
        ]),
      ),
    ).toMatch(/04020a000000ff0400100203$/);
    plc.drop("rst");
    await expect.poll(() => wire.ended, SOON).toBe("rst");
    expect(plc.connections()).toBe(0);
  });
});

describe("values", () => {
  // S7-1200 System Manual: DTL#2008-12-16-20:30:20.250; STEP 7: S5TIME to 2H46M30S, DATE from 1990-01-01 to 2168-12-31.
  it.each([
    ["DT", "1993-12-25T08:01:01.1", "93 12 25 08 01 01 10 07"],
    ["DTL", "2008-12-16T20:30:20.250", "07d8 0c 10 03 14 1e 14 0ee6b280"],
    ["S5TIME", 2 * 3_600_000 + 46 * 60_000 + 30_000, "3999"],
    ["S5TIME", 10, "0001"],
    ["DATE", "1990-01-01", "0000"],
    ["DATE", "2168-12-31", "ff62"],
    ["TOD", 86_399_999, "05265bff"],
    ["TIME", -1, "ffffffff"],
    ["LTIME", 1_000_000_000n, "000000003b9aca00"],
    ["STRING[4]", "ab", "04 02 61 62 00 00"],
    ["WSTRING[2]", "Ω", "0002 0001 03a9 0000"],
    ["COUNTER", 321, "0321"],
  ] as const)("%s %s", (type, value, bytes) => expect(bytesOf(type, value).toString("hex")).toBe(plain(bytes)));
});

describe("nodes7", () => {
  it("reads every area and every type that it knows", async () => {
    const simulator = await startSimulator();
    cleanUp.push(() => simulator.close());
    simulator.plc.pduBytes = 240;
    // It asks for a timer or counter by its number times eight.
    for (const words of [simulator.plc.memory.timers, simulator.plc.memory.counters])
      for (const [number, word] of [...words]) words.set(number * 8, word);
    const held = new Map(simulator.variables.map(({ address, type, value }) => [`${address} ${type}`, value]));
    const heldAt = (variable: string) => {
      expect([...held.keys()]).toContain(variable);
      return held.get(variable);
    };
    const local = new Date(2026, 10, 22, 16, 30, 0, 123);
    const expected: Readonly<Record<string, unknown>> = {
      "DB1,X0.0": heldAt("DB1.DBX0.0 BOOL"),
      "DB1,X0.1": heldAt("DB1.DBX0.1 bool"),
      "DB1,BYTE1": heldAt("DB1.DBB1 BYTE"),
      "DB1,CHAR26": heldAt("DB1.DBB26 CHAR"),
      "DB1,REAL4": heldAt("DB1.DBD4 REAL"),
      "DB1,INT8": heldAt("DB1.DBW8 INT"),
      "DB1,WORD10": heldAt("DB1.DBW10 WORD"),
      "DB1,DINT14": heldAt("DB1.DBD14 DINT"),
      "DB1,DWORD22": heldAt("DB1.DBD22 DWORD"),
      "DB1,LREAL30": heldAt("DB1.DBB30 LREAL"),
      "DB2,S0.20": heldAt("DB2.DBB0 STRING[20]"),
      "DB2,S128.4": heldAt("DB2.DBB128 STRING[4]"),
      "DB2,DT72": local,
      "DB2,DTL88": local,
      "DB3,INT0.4": heldAt("DB3.DBW0 INT[4]"),
      "DB3,REAL8.3": heldAt("DB3.DBD8 REAL[3]"),
      "DB3,DINT100.150": heldAt("DB3.DBD100 DINT[150]"),
      "DB3,X700.0.10": heldAt("DB3.DBX700.0 BOOL[10]"),
      "DB4,INT40000": 77,
      "DI5,INT2": 42,
      "M10.3": heldAt("M10.3 BOOL"),
      MB11: heldAt("MB11 BYTE"),
      MW20: heldAt("MW20 WORD"),
      MR24: heldAt("MD24 REAL"),
      II2: heldAt("IW2 INT"),
      "E0.0": heldAt("E0.0 BOOL"),
      QB1: heldAt("QB1 BYTE"),
      AW2: heldAt("QW2 WORD"),
      // The raw words.
      T5: s5TimeWord(12_300),
      C3: 0x321,
    };
    const client = await openNodes7(simulator.port, Object.keys(expected));
    cleanUp.push(() => client.close());
    expect(await client.read()).toEqual(expected);
    expect(simulator.plc.violations).toEqual([]);
    expect(simulator.plc.mostInFlight).toBeGreaterThan(0);
  });
});
