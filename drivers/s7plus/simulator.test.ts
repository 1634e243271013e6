import { createCipheriv, createHash } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { CLIENT_TLS, hex, id4, S7PlusWire } from "../../test/support/s7plus-wire.ts";
import { filledProgram, type ProgramDeclaration, returnValueOf, type S7PlusPlc, startS7PlusPlc, startSimulator } from "./simulator.ts";
import { crcOf, elementCrc } from "./simulator-paths.ts";
import { S7PlusProgram } from "./simulator-program.ts";
import { elementaryOf } from "./simulator-values.ts";
import { Reader, Writer } from "./simulator-wire.ts";

// The bytes are those of the notes on S7CommPlus that the README of the driver names: captures of real CPUs, and own rows where it says so.

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const plain = (text: string): string => text.replaceAll(" ", "");
const DB1 = [0x8a0e0001, 2550] as const;
const M = [0x52, 3736] as const;

async function plcWith(program: ProgramDeclaration, change: (plc: S7PlusPlc) => void = () => {}): Promise<S7PlusPlc> {
  const plc = await startS7PlusPlc({ program });
  cleanUp.push(() => plc.close());
  change(plc);
  return plc;
}

function wireTo(plc: S7PlusPlc): S7PlusWire {
  const wire = new S7PlusWire(plc.port);
  cleanUp.push(() => wire.close());
  return wire;
}

async function opened(plc: S7PlusPlc): Promise<S7PlusWire> {
  const wire = wireTo(plc);
  await wire.open();
  return wire;
}

/** Of an answer: what is behind its return value, and before its integrity id and the end. */
const bodyOf = (answer: string): string => {
  const reader = new Reader(hex(answer));
  reader.take(10);
  reader.skipVlq();
  return answer.slice(reader.at * 2, -10);
};
const codeOf = (answer: string): number => {
  let value = 0n;
  const reader = new Reader(hex(answer));
  reader.take(10);
  for (let i = 0; i < 9; i++) {
    const byte = reader.u8();
    value = i === 8 ? (value << 8n) | BigInt(byte) : (value << 7n) | BigInt(byte & 0x7f);
    if (i < 8 && byte < 0x80) break;
  }
  return Number(BigInt.asIntN(16, value));
};

/** As section 12.4 of the notes has them. */
const TAGS: ProgramDeclaration = {
  tags: {
    M: [
      { name: "Tag Motor", type: "BOOL", value: true },
      { name: "MW10", type: "WORD", value: 0x1234 },
    ],
  },
};
const REALS: ProgramDeclaration = { blocks: [{ number: 1, name: "Data", fields: [{ name: "x", type: "REAL", value: 23.5 }] }] };

describe("numbers of variable length", () => {
  it.each([
    [0, "00"],
    [127, "7f"],
    [128, "8100"],
    [306, "8232"],
    [3736, "9d18"],
    [0x8a0e0001, "88d0b88001"],
    [0xffffffff, "8fffffff7f"],
  ])("put %d as %s", (value, bytes) => {
    expect(new Writer().vlq(value).done().toString("hex")).toBe(bytes);
    expect(new Reader(hex(bytes)).vlq()).toBe(value);
  });

  it.each([
    [63n, "3f"],
    [64n, "8040"],
    [-1n, "7f"],
    [-64n, "40"],
    [-65n, "ff3f"],
    [-255n, "fe01"],
    [-1_234_567n, "ffb4d279"],
    [2_147_483_647n, "87ffffff7f"],
    [-2_147_483_648n, "f880808000"],
    [2n ** 55n - 1n, "bfffffffffffff7f"],
    [2n ** 55n, "80a080808080808000"],
    [-(2n ** 55n), "c080808080808000"],
    [-(2n ** 55n) - 1n, "ffdfffffffffffffff"],
    [-(2n ** 63n), "c08080808080808000"],
  ])("put %d with its sign as %s", (value, bytes) => expect(new Writer().signed(value).done().toString("hex")).toBe(bytes));

  it.each([
    [2n ** 56n - 1n, "ffffffffffffff7f"],
    [2n ** 56n, "80c080808080808000"],
    [123_456_789_012_345_678n, "80edd3b4dd98e1f34e"],
    [2n ** 64n - 1n, "ffffffffffffffffff"],
  ])("put %d of 64 bits as %s", (value, bytes) => expect(new Writer().vlq64(value).done().toString("hex")).toBe(bytes));
});

describe("connecting", () => {
  it("confirms both called TSAPs as a CPU does, and agrees to TLS", async () => {
    const plc = await plcWith(TAGS);
    const hmi = wireTo(plc);
    expect(await hmi.connect()).toBe(
      plain(`03000024 1fd0 0001 0001 00 c0010a c1020600 c210 ${Buffer.from("SIMATIC-ROOT-HMI").toString("hex")}`),
    );
    expect(await hmi.initSsl()).toBe(plain("72010010 32 0000 05b3 0000 0001 70 00 0000000000 72010000"));
    expect(await wireTo(plc).connect("SIMATIC-ROOT-ES")).toMatch(/^030000231ed0/);
  });

  it.each([
    ["disconnect", plain("0300000b 06 80 0001 0001 03")],
    ["fin", "end"],
    ["rst", "ECONNRESET"],
  ] as const)("refuses a TSAP with %s", async (how, said) => {
    const plc = await plcWith(TAGS, (one) => Object.assign(one, { tsaps: new Set(["SIMATIC-ROOT-HMI"]), wrongTsap: how }));
    expect(await wireTo(plc).connect("SIMATIC-ROOT-ES")).toBe(said);
    expect(plc.counts.refused).toBe(1);
  });

  it.each([
    ["unknown-service", "32 0000 05a9 0000 0001 34 d180b3a08086b9ff89 00000000"],
    ["no-tls", "32 0000 05b3 0000 0001 70"],
  ] as const)("refuses TLS as a CPU without it does: %s", async (ssl, answer) => {
    const plc = await plcWith(TAGS, (one) => Object.assign(one, { ssl }));
    const wire = wireTo(plc);
    await wire.connect();
    expect(await wire.initSsl()).toContain(plain(answer));
  });

  it("knows no session in plain text", async () => {
    const plc = await plcWith(TAGS);
    const wire = wireTo(plc);
    await wire.connect();
    wire.data(hex("72010012 31 0000 04ca 0000 0001 00000120 36 0000011d 72010000"));
    expect(codeOf((await wire.packet()).slice(8))).toBe(-107);
    expect(plc.violations).toEqual(["function 4ca before TLS"]);
  });

  it.each([
    ["reset", CLIENT_TLS, /ECONNRESET/],
    ["alert", CLIENT_TLS, /SSL|ALERT|end/],
    ["old-tls", CLIENT_TLS, /SSL|ALERT|end/],
  ] as const)("lets TLS fail: %s", async (ssl, options, said) => {
    const plc = await plcWith(TAGS, (one) => Object.assign(one, { ssl }));
    const wire = wireTo(plc);
    await wire.connect();
    await wire.initSsl();
    expect(await wire.startTls(options)).toMatch(said);
    expect(plc.counts.handshakes).toBe(0);
  });

  it.each([
    ["without X25519", { ecdhCurve: "P-256" }, /without X25519/],
    ["with a post-quantum group", { ecdhCurve: "X25519MLKEM768:X25519" }, /a client hello/],
  ] as const)("resets a client hello %s", async (_, options, why) => {
    const plc = await plcWith(TAGS);
    const wire = wireTo(plc);
    await wire.connect();
    await wire.initSsl();
    expect(await wire.startTls({ ...CLIENT_TLS, ...options })).toBe("ECONNRESET");
    expect(plc.violations.join()).toMatch(why);
  });
});

describe("a session", () => {
  it("is created as a 1500 creates it, set up, and deleted", async () => {
    const plc = await plcWith(TAGS);
    const wire = wireTo(plc);
    const created = await wire.open();
    expect(created).toMatch(/^32000004ca0000000136a0809080808080801102878080990a878080990ba1/);
    expect(created).toContain(plain("a100000120 821f 01 00 a3 8169 0015 13"));
    expect(created).toContain(plain(`823f 0015 1a ${Buffer.from("1;6ES7 511-1AK02-0AB0;V2.9").toString("hex")}`));
    expect([plc.sessions(), plc.counts.created]).toEqual([1, 1]);
    expect(codeOf(await wire.remove())).toBe(22);
    expect([plc.sessions(), plc.counts.deleted, plc.violations]).toEqual([0, 1, []]);
  });

  it("is refused where all are taken, as long as an orphan has its place", async () => {
    const plc = await plcWith(TAGS, (one) => Object.assign(one, { maxSessions: 1, orphanMs: 1000 }));
    const first = await opened(plc);
    first.close();
    await first.until(() => plc.orphans() === 1, "orphan");
    const second = wireTo(plc);
    await second.connect();
    await second.initSsl();
    await second.startTls();
    expect(codeOf(await second.create())).toBe(-113);
    await second.until(() => plc.orphans() === 0, "end of the orphan");
    await opened(plc);
    expect(plc.sessions()).toBe(1);
  });

  it.each([
    [
      "reads with an integrity id that jumps",
      "054c",
      `00000000 00 00 000004e88969001200000000896a001300896b00040000 05 00000000`,
      /-351|integrity id 5/,
    ],
    ["writes several variables", "0542", "70000c8a 00", /setMultiVariables of 70000c8a/],
    ["is another's", "0586", "00000001 200401 8e32", /another object than the session/],
  ])("ends with an event where the client %s", async (_, functionId, body, why) => {
    const plc = await plcWith(TAGS);
    const wire = await opened(plc);
    expect(await wire.ask(functionId, body)).toMatch(/^event 0{8}.{8}0{16}00ff001700009d7000009d7100ff0009/);
    expect(plc.violations.join()).toMatch(why);
    await wire.until(() => wire.ended !== undefined, "end");
  });

  it.each(["0506", "056b", "059a"])("has no function %s", async (functionId) => {
    const plc = await plcWith(TAGS);
    const wire = await opened(plc);
    expect(codeOf(await wire.ask(functionId, "00000000"))).toBe(-107);
    expect(plc.violations).toEqual([`function ${Number.parseInt(functionId, 16).toString(16)}, which no reader needs`]);
  });

  it("drops a frame that is too long", async () => {
    const plc = await plcWith(TAGS);
    const wire = await opened(plc);
    wire.send("054c", "00".repeat(1000));
    await wire.until(() => wire.ended !== undefined, "end");
    expect(plc.violations).toEqual(["a frame of 1022 bytes"]);
  });
});

describe("reading", () => {
  it("answers the example of the notes", async () => {
    const plc = await plcWith({ ...TAGS, ...REALS });
    const wire = await opened(plc);
    const answer = await wire.read([
      [...DB1, 9],
      [...DB1, 0x11],
      [...M, 10],
    ]);
    expect(codeOf(answer)).toBe(19);
    const invalid = new Writer().vlq64(returnValueOf(-255)).done().toString("hex");
    expect(bodyOf(answer)).toBe(plain(`01 000e41bc0000 03 000b1234 00 02 ${invalid} 00`));
    expect(plc.lastRequests.at(-1)).toMatchObject({ name: "getMultiVariables", sequence: 3, integrity: 1, frameBytes: 82 });
  });

  it("has limits that can be read, and refuses more with -4", async () => {
    const plc = await plcWith(REALS, (one) => Object.assign(one, { maxReadItems: 2 }));
    const wire = await opened(plc);
    expect(bodyOf(await wire.read([[201, 1037, 1000]]))).toBe(plain("01 0008 02 00 00"));
    expect(
      codeOf(
        await wire.read([
          [...DB1, 9],
          [...DB1, 9],
          [...DB1, 9],
        ]),
      ),
    ).toBe(-4);
    plc.toldReadItems = 300;
    expect(bodyOf(await wire.read([[201, 1037, 1000]]))).toBe(plain("01 0008 822c 00 00"));
    plc.hidesLimits = true;
    expect(codeOf(await wire.read([[201, 1037, 1000]]))).toBe(19);
  });

  it("sums symbols as the notes say, and refuses another sum with -17", async () => {
    const member = (name: string, type: string) => ({ lid: 9, field: { name, type }, elementary: elementaryOf(type), rid: undefined });
    // Every single-level sum is one over the element's own sum.
    expect(crcOf({ members: [member("Test2", "DINT")], isIndexed: false })).toBe(0x4ca70840);
    expect(crcOf({ members: [member("flag", "BBOOL")], isIndexed: false })).toBe(0xfc8ba389);
    const plc = await plcWith({ blocks: [{ number: 1, name: "Data", fields: [{ name: "Test2", type: "DINT", value: 5 }] }] });
    const wire = await opened(plc);
    expect(bodyOf(await wire.read([[...DB1, 9]], [0x4ca70840]))).toBe(plain("01 000805 00 00"));
    const refused = new Writer().vlq64(0x8009890012cbffefn).done().toString("hex");
    expect(bodyOf(await wire.read([[...DB1, 9]], [1]))).toBe(plain(`00 01 ${refused} 00`));
  });

  it("tells the RID of a block's type, and nothing of a block in load memory", async () => {
    const plc = await plcWith(filledProgram().program);
    const wire = await opened(plc);
    const answer = await wire.read([
      [0x8a0e0001, 2550, 1],
      [0x8a0e0005, 2550, 1],
      [0x8a0e0006, 2550, 1],
    ]);
    expect(bodyOf(answer)).toMatch(/^0100128a0e000102001292000001000[3]/);
  });

  it("keeps bits of matrices in rows of bytes, and reads no structures as one", async () => {
    const plc = await plcWith(filledProgram().program);
    const at = (name: string) => {
      const [area = "", ...ids] = plc.program.accessOf(name).split(".");
      return { area, ids, all: [Number.parseInt(area, 16), 2550, ...ids.map((id) => Number.parseInt(id, 16))] };
    };
    expect(at('"Arrays".bits[1,0]').ids.at(-1)).toBe("10");
    expect(at('"Arrays".octets[1,1]').ids.at(-1)).toBe("8");
    expect(at('"Motor_DB".spare[2].speed').ids).toEqual(["A", "1", "1", "9"]);
    const wire = await opened(plc);
    expect(bodyOf(await wire.read([at('"Arrays".bits[1,0]').all]))).toBe(plain("01 000101 00 00"));
    const main = [0x8a0e0003, 2550, 9];
    expect(bodyOf(await wire.read([main]))).toBe(plain(`00 01 ${new Writer().vlq64(returnValueOf(-85)).done().toString("hex")} 00`));
  });
});

describe("browsing", () => {
  it("shows the type object of the notes", async () => {
    const plc = await plcWith(TAGS, (one) => Object.assign(one, { tellsStamps: false, listBytes: 36 }));
    const wire = await opened(plc);
    const answer = await wire.explore("90030000");
    const sums = ["Tag Motor", "MW10"].map((name, i) => {
      const elementary = elementaryOf(i === 0 ? "BOOL" : "WORD");
      const sum = Buffer.alloc(4);
      sum.writeUInt32LE(elementCrc({ lid: 9, field: { name, type: "BOOL" }, elementary, rid: undefined }));
      return sum.toString("hex");
    });
    expect(bodyOf(`${answer}0000`)).toContain(
      plain(`a1 90030000 837f 00 00
        a3 8169 00 15 05 4d41726561 a3 8b5e 00 04 08
        ab 0024 09000000 09000000 ${sums[0]} 01 8a80 00 00000000 0a000000 ${sums[1]} 04 8a80 00 08000800 0000
        ac 0011 09 ${Buffer.from("Tag Motor").toString("hex")} 00 04 ${Buffer.from("MW10").toString("hex")} 00 0000 a2`).replaceAll(
        "\n",
        "",
      ),
    );
  });

  it("shows blocks under the program, and at the top with a filter", async () => {
    const plc = await plcWith(REALS);
    const wire = await opened(plc);
    const attributes = "03 8169 9359 a140";
    const block = plain("a1 8a0e0001 940e 00 00 a3 8169 0015 04 44617461 a3 9359 0004 01 a2");
    expect(await wire.explore("00000003", attributes)).toContain(`a100000003`);
    expect(await wire.explore("00000003", attributes)).toContain(block);
    const filter = `01 0017 000004de 895f 0008 08 8961 0004 00 8962 1004 20 ${"00".repeat(32)} 8963 0012 00000a0e 00 00`;
    const filtered = await wire.explore("00000003", attributes, filter);
    expect(filtered).toContain(block);
    expect(filtered).not.toContain("a100000003");
  });

  it("tells other stamps and other ids after a download, which takes values over", async () => {
    const plc = await plcWith(REALS);
    const wire = await opened(plc);
    const stamp = async () => /84110005(([89a-f].)*..)/.exec(await wire.explore("8a0e0001"))?.[1];
    const before = await stamp();
    plc.program.put('"Data".x', 2);
    plc.download();
    expect(await stamp()).toBe(before);
    plc.download(undefined, { ids: "shifted" });
    expect(await stamp()).not.toBe(before);
    expect(plc.program.accessOf('"Data".x')).toBe("8A0E0001.29");
    expect(bodyOf(await wire.read([[...DB1, 0x29]]))).toBe(plain("01 000e40000000 00 00"));
  });

  it("sends fifty thousand symbols in fragments, and holds little of them", async () => {
    const { largeProgram } = await import("./simulator.ts");
    const plc = await plcWith(largeProgram(50_000));
    const wire = await opened(plc);
    const answer = await wire.explore("00000219");
    expect(answer.split(Buffer.from("value_999").toString("hex"))).toHaveLength(51);
    expect(answer.length / 2).toBeGreaterThan(1_000_000);
  });

  it("pauses between pieces", async () => {
    const plc = await plcWith(filledProgram().program, (one) => Object.assign(one, { explorePause: { bytes: 2000, ms: 10 } }));
    const wire = await opened(plc);
    const began = performance.now();
    const { length } = await wire.explore("00000219");
    expect(performance.now() - began).toBeGreaterThan((Math.floor(length / 2 / 2961) - 1) * 10);
  });
});

describe("logging in", () => {
  const sha1 = (text: string) => createHash("sha1").update(text).digest();

  it("takes the right answer to a legacy challenge, once", async () => {
    const plc = await plcWith(REALS, (one) => Object.assign(one, { level: 4, password: "geheim" }));
    const wire = await opened(plc);
    expect(bodyOf(await wire.attribute("8e32"))).toBe("00000404");
    expect(codeOf(await wire.explore("00000003"))).toBe(-100);
    const challenge = hex(bodyOf(await wire.attribute("822f")).slice(8));
    const answer = (password: string) => Buffer.from(sha1(password).map((byte, i) => byte ^ (challenge[i] ?? 0))).toString("hex");
    expect(codeOf(await wire.setAttribute("8230", `100214 ${answer("geheim")}`))).toBe(33);
    expect(bodyOf(await wire.attribute("8e32"))).toBe("00000401");
    expect(codeOf(await wire.setAttribute("8230", `100214 ${answer("geheim")}`))).toBe(22);
    expect([plc.counts.logins, plc.counts.wrongPasswords, plc.violations]).toEqual([1, 1, []]);
    plc.delegitimate();
    expect(codeOf(await wire.read([[...DB1, 9]]))).toBe(-118);
  });

  it("takes a password, or a user with one, in what TLS's keys encrypt", async () => {
    const plc = await plcWith(REALS, (one) => Object.assign(one, { level: 4, password: "geheim", legitimation: "new" }));
    plc.users.set("otto", "geheim");
    const wire = await opened(plc);
    let key = wire.tls?.exportKeyingMaterial(32, "EXPERIMENTAL_OMS", Buffer.alloc(0)) ?? Buffer.alloc(0);
    const login = async (text: string) => {
      key = createHash("sha256").update(key).digest();
      const challenge = hex(bodyOf(await wire.attribute("822f")).slice(8));
      const cipher = createCipheriv("aes-256-cbc", key, challenge.subarray(0, 16));
      const bytes = Buffer.concat([cipher.update(hex(text)), cipher.final()]);
      return codeOf(await wire.setAttribute("8e36", `0014 00 ${bytes.length.toString(16).padStart(2, "0")} ${bytes.toString("hex")}`));
    };
    expect(await login("001700009dd082bb5100040182bb520014000082bb5300140014906072001efddf3e11e6d2b5782f4777fe03873900")).toBe(33);
    expect(await login("001700009dd082bb5100040282bb52001400046f74746f82bb530014000667656865696d00")).toBe(33);
    expect(await login("001700009dd082bb5100040282bb52001400046f74746f82bb530014000667656865696e00")).toBe(22);
    plc.password = undefined;
    expect(await login("001700009dd082bb5100040182bb520014000082bb5300140014906072001efddf3e11e6d2b5782f4777fe03873900")).toBe(22);
  });
});

describe("faults", () => {
  it("refuses, answers late, changes, loses and ends as it is told", async () => {
    const plc = await plcWith(REALS);
    const wire = await opened(plc);
    const readX = () => wire.read([[...DB1, 9]]);
    const well = bodyOf(await readX());
    plc.misbehave = () => ({ code: -135, error2: true });
    expect(await readX()).toMatch(/^32000005a9/);
    plc.misbehave = () => ({ stale: true });
    expect(codeOf(await readX())).toBe(0);
    expect(bodyOf(await wire.message())).toBe(well);
    plc.misbehave = () => ({ event: "plain" });
    expect(await readX()).toMatch(/^event/);
    await wire.message();
    plc.misbehave = () => ({ change: (answer) => answer.subarray(0, 12) });
    expect(await readX()).toHaveLength(24);
    plc.misbehave = undefined;
    plc.refuse = () => "lost";
    expect(bodyOf(await readX())).toBe("0000");
    plc.refuse = () => -100;
    expect(bodyOf(await readX())).toMatch(/^0001/);
    plc.refuse = undefined;
    expect(bodyOf(await readX())).toBe(well);
    plc.misbehave = () => ({ endSession: true });
    expect(await readX()).toBe(`event ${plain("00000000 00001234 00000000 00000000")}${Buffer.from("LOGOUT").toString("hex")}`);
    await wire.until(() => wire.ended !== undefined, "end");
    expect([wire.ended, plc.violations]).toEqual(["end", []]);
  });

  it("is away for a while after a restart, and forgets sessions", async () => {
    const plc = await plcWith(REALS);
    const wire = await opened(plc);
    plc.restart(50);
    await wire.until(() => wire.ended !== undefined, "end");
    expect(await wireTo(plc).connect()).toBe("ECONNRESET");
    await new Promise((done) => setTimeout(done, 60));
    await opened(plc);
    expect([plc.sessions(), plc.orphans()]).toEqual([1, 0]);
  });
});

describe("the simulator", () => {
  it("holds every variable that it says it holds", async () => {
    const simulator = await startSimulator();
    cleanUp.push(() => simulator.close());
    const program = simulator.plc.program;
    const names = new Set([...program.symbols()].map(({ name }) => name));
    for (const { address } of simulator.variables.filter(({ address: one }) => /\[[^[]*\]$|^"[^"]*"\.[^.[]*$/.test(one)))
      expect(names.has(address) || address.startsWith('"Arrays"'), address).toBe(true);
    expect(new Set(simulator.variables.map(({ address }) => address)).size).toBe(simulator.variables.length);
    expect(simulator.details("h", 1)).toMatchObject({ type: "s7plus" });
  });

  it("gives every symbol an access path of its own", () => {
    const program = new S7PlusProgram(filledProgram().program);
    const all = [...program.symbols()];
    expect(new Set(all.map(({ access }) => access)).size).toBe(all.length);
    expect(all.find(({ name }) => name === '"Far".x')?.access).toBe(`${id4(0x8a0e0000 + 40_000).toUpperCase()}.9`);
  });
});
