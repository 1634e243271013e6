import dgram from "node:dgram";
import { afterEach, describe, expect, it } from "vitest";
import { bytesOfHex, FinsDatagrams, spaceless } from "../../test/support/fins-bytes.ts";
import {
  controllerWith,
  END_CODES,
  type Family,
  FinsMemory,
  type FinsPlc,
  type FinsPlcOptions,
  LIMITS,
  startFinsPlc,
  startSimulator,
  wordsOf,
} from "./simulator.ts";

// The byte layouts: Omron W227 (commands, end codes, the C and CV layouts), W421 (FINS/TCP), and a public capture of a CP1L-EL20.

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

/** From node 0x32 to the local node 0x0a, with the SID 0x11. */
const TO_LOCAL = "80 00 02 00 0a 00 00 32 00 11";
const FROM_LOCAL = "c0 00 02 00 32 00 00 0a 00 11";

function datagramsTo(port: number): FinsDatagrams {
  const datagrams = new FinsDatagrams(port);
  cleanUp.push(() => datagrams.close());
  return datagrams;
}

async function start(change: (plc: FinsPlc) => void = () => {}, options: FinsPlcOptions = {}): Promise<FinsPlc> {
  const plc = await startFinsPlc(options);
  cleanUp.push(() => plc.close());
  change(plc);
  return plc;
}

/** Words 0x1000, 0x1001, ... in every area that is named. */
function counting(family: Family, areas: Readonly<Record<string, number>>): FinsMemory {
  const memory = new FinsMemory(family);
  for (const [name, words] of Object.entries(areas))
    memory.create(name, words).set(Array.from({ length: words }, (_, i) => (name.endsWith("flag") ? i % 2 : 0x1000 + i)));
  return memory;
}

describe("memory area read and multiple memory area read", () => {
  const cs = () =>
    counting("cs", {
      CIO: 6144,
      W: 512,
      H: 512,
      A: 960,
      D: 32_768,
      E0: 100,
      EC: 100,
      ED: 100,
      E10: 100,
      T: 4096,
      C: 4096,
      "T flag": 8,
      "C flag": 8,
      IR: 32,
      DR: 16,
    });
  const c = () => counting("c", { CIO: 256, LR: 64, HR: 100, AR: 28, T: 512, D: 6656, "T flag": 512 });
  const cv = () => counting("cv", { CIO: 2556, G: 256, A: 512, T: 1024, C: 1024, "C flag": 1024, D: 8192, E1: 100, IR: 3, DR: 3 });

  it.each<[words: string, memory: () => FinsMemory, command: string, answer: string]>([
    ["two words of D", cs, "0101 82 0064 00 0002", "0000 1064 1065"],
    ["nothing", cs, "0101 82 0064 00 0000", "0000"],
    ["bits of W that run on into the next word", cs, "0101 31 0004 0e 0004", "0000 00 00 01 00"],
    ["CIO, H and A", cs, "0101 b0 17ff 00 0001", "0000 27ff"],
    ["H", cs, "0101 b2 0003 00 0001", "0000 1003"],
    ["A", cs, "0101 b3 03bf 00 0001", "0000 13bf"],
    ["banks with a code of their own each", cs, "0104 a0000100 ac000200 ad000300 60000400", "0000 a0 1001 ac 1002 ad 1003 60 1004"],
    ["a word and a bit of it", cs, "0104 82000500 02000502", "0000 82 1005 02 01"],
    ["the current bank, and which it is", cs, "0104 98000100 bc0f0000", "0000 98 1001 bc 0000"],
    ["timers and counters", cs, "0104 89000300 89800200", "0000 89 1003 89 1002"],
    ["flags of timers, over their numbers", cs, "0101 09 0000 00 0003", "0000 00 01 00"],
    ["flags of counters", cs, "0101 09 8001 00 0002", "0000 01 00"],
    ["an index register of four bytes among words", cs, "0104 dc010100 82000000", "0000 dc 10021003 82 1000"],
    ["a data register", cs, "0101 bc 0203 00 0001", "0000 1003"],
    ["an area that it lacks", cs, "0101 a1 0000 00 0001", "1101"],
    ["a code that is none", cs, "0101 55 0000 00 0001", "1101"],
    ["a start behind the end", cs, "0101 b1 0200 00 0001", "1103"],
    ["an end behind the end", cs, "0101 b1 01ff 00 0002", "1104"],
    ["bit 16", cs, "0101 31 0000 10 0001", "1103"],
    ["one bad address of many", cs, "0104 82000000 b1020000 82000100", "1103"],
    ["999 words", cs, "0101 82 0000 00 03e8", "110b"],
    ["an address that is cut", cs, "0104 820000", "1003"],
    ["a command that is too short", cs, "0101 82 0000 00", "1002"],
    ["a command that is too long", cs, "0101 82 0000 00 0001 00", "1001"],

    ["C series: IR", c, "0101 80 0007 00 0001", "0000 1007"],
    ["C series: LR", c, "0101 80 03e8 00 0002", "0000 1000 1001"],
    ["C series: HR", c, "0101 80 0428 00 0001", "0000 1000"],
    ["C series: AR", c, "0101 80 048c 00 0001", "0000 1000"],
    ["C series: timers and counters share their numbers", c, "0101 81 01ff 00 0001", "0000 11ff"],
    ["C series: flags", c, "0101 01 0000 00 0002", "0000 00 01"],
    ["C series: data memory", c, "0101 82 19ff 00 0001", "0000 29ff"],
    ["C series: no codes of CS", c, "0101 b0 0000 00 0001", "1101"],
    ["C series: no bit of its own", c, "0101 00 0007 01 0001", "1101"],
    ["C series: a bit among addresses", c, "0104 00000702 80000700", "0000 00 01 80 1007"],
    ["C series: 257 words", c, "0101 82 0000 00 0101", "110b"],
    ["C series: between its areas", c, "0101 80 0200 00 0001", "1103"],

    ["CV: CIO", cv, "0101 80 09fb 00 0001", "0000 19fb"],
    ["CV: G", cv, "0101 80 0a00 00 0001", "0000 1000"],
    ["CV: A", cv, "0101 80 0b01 00 0001", "0000 1001"],
    ["CV: timer", cv, "0101 81 0003 00 0001", "0000 1003"],
    ["CV: counter", cv, "0101 81 0803 00 0001", "0000 1003"],
    ["CV: flag of a counter", cv, "0101 01 0803 00 0001", "0000 01"],
    ["CV: bank 1", cv, "0101 91 0003 00 0001", "0000 1003"],
    ["CV: index and data registers, of one word each", cv, "0104 9c000200 9c000300", "0000 9c 1002 9c 1000"],
    ["CV: number of the current bank", cv, "0101 9c 0006 00 0001", "0000 0000"],
  ])("%s", async (_, memory, command, answer) => {
    const plc = await start(undefined, { memory: memory() });
    expect(await datagramsTo(plc.port).ask(`${TO_LOCAL} ${command}`)).toBe(spaceless(`${FROM_LOCAL} ${command.slice(0, 4)} ${answer}`));
  });

  it("refuses what a test says: whole areas, holes and items", async () => {
    const { port, memory } = await start(undefined, { memory: cs() });
    const wire = datagramsTo(port);
    const read = async (item: string) => (await wire.ask(`${TO_LOCAL} 0101 ${item}`)).slice(24, 28);
    memory.refused.set("W", END_CODES.isProtected);
    memory.holes.set("D", new Set([5]));
    memory.refuse = ({ area, start }) => (area === "H" && start === 1 ? END_CODES.busy : undefined);
    expect(await read("b1 0000 00 0001")).toBe("2002");
    expect(await read("82 0004 00 0001")).toBe("0000");
    expect(await read("82 0004 00 0002")).toBe("1104");
    expect(await read("82 0005 00 0002")).toBe("1103");
    expect(await read("b2 0001 00 0001")).toBe("0204");
    expect(await read("b2 0000 00 0002")).toBe("0000");
  });

  it("has its limits: elements, bytes and addresses, with end codes of their own", async () => {
    const { port, limits } = await start((plc) => Object.assign(plc.limits, LIMITS.sysmacLink), { memory: cs() });
    const wire = datagramsTo(port);
    const codeOf = async (command: string) => (await wire.ask(`${TO_LOCAL} ${command}`)).slice(24, 28);
    expect(await codeOf("0101 82 0000 00 010d")).toBe("0000");
    expect(await codeOf("0101 82 0000 00 010e")).toBe("110b");
    expect(await codeOf(`0104 ${"82000000".repeat(89)}`)).toBe("0000");
    expect(await codeOf(`0104 ${"82000000".repeat(90)}`)).toBe("1001");
    limits.overAddresses = END_CODES.itemCount;
    expect(await codeOf(`0104 ${"82000000".repeat(90)}`)).toBe("1003");
  });
});

describe("the other commands that read", () => {
  const ask = async (command: string, change: (plc: FinsPlc) => void = () => {}, memory = new FinsMemory()) => {
    const plc = await start(change, { memory });
    const answer = await datagramsTo(plc.port).ask(`${TO_LOCAL} ${command}`);
    return { answer: bytesOfHex(answer.slice(24)), plc };
  };

  it("controller data as a CP1L gives it: a model with NULs, then spaces; the area data at 80", async () => {
    const { answer } = await ask("0501 00");
    expect(answer.length).toBe(2 + 92);
    expect(answer.toString("latin1", 2, 22)).toBe(`CP1L-EL20\0${" ".repeat(10)}`);
    expect(answer.toString("latin1", 22, 42).trim()).toBe("01.06");
    expect(answer.toString("hex", 82, 88)).toBe("000a172a1008");
  });

  it.each([
    ["cs", 158, 66],
    ["cv", 159, 67],
  ] as const)("controller data of %s with all parts has %d bytes, the units alone %d", async (family, all, units) => {
    expect((await ask("0501", undefined, new FinsMemory(family))).answer.length).toBe(2 + all);
    expect((await ask("0501 01", undefined, new FinsMemory(family))).answer.length).toBe(2 + units);
  });

  it("status and clock", async () => {
    const { answer } = await ask("0601", ({ status }) => Object.assign(status, { mode: 2, nonFatal: 0x0400 }));
    expect(answer.toString("hex")).toBe(`00000102000004${"00".repeat(21)}`);
    const clock = await ask("0701", (plc) => {
      plc.now = () => new Date(2026, 10, 22, 16, 30, 59);
    });
    expect(clock.answer.toString("hex")).toBe("000026112216305900");
    const none = await ask("0701", (plc) => {
      plc.now = undefined;
    });
    expect(none.answer.toString("hex")).toBe("2303");
  });

  it("does not know what it is told not to know, and does nothing that does not read", async () => {
    const unknown = await ask("0501 00", ({ unknownCommands }) => unknownCommands.add(0x0501));
    expect(unknown.answer.toString("hex")).toBe("0401");
    expect(unknown.plc.violations).toEqual([]);
    const write = await ask("0102 82 0000 00 0001 0007");
    expect(write.answer.toString("hex")).toBe("0402");
    expect(write.plc.violations).toEqual(["the command 0102, which does not read"]);
    expect(write.plc.memory.areas.size).toBe(0);
  });
});

describe("end codes, relays and routes", () => {
  const READ = "0101 82 0000 00 0001";
  const memory = () => counting("cs", { D: 16 });
  const answerTo = async (header: string, change: (plc: FinsPlc) => void) =>
    datagramsTo((await start(change, { memory: memory() })).port).ask(`${header} ${READ}`);

  it("gives data with the bits of a battery that is low, and with an error that stops the program", async () => {
    expect(await answerTo(TO_LOCAL, (plc) => void Object.assign(plc, { statusBits: 0x40 }))).toBe(
      spaceless(`${FROM_LOCAL} 0101 0040 1000`),
    );
    expect(await answerTo(TO_LOCAL, (plc) => void Object.assign(plc, { statusBits: 0x80 }))).toBe(
      spaceless(`${FROM_LOCAL} 0101 0080 1000`),
    );
    const busy = (plc: FinsPlc) => void Object.assign(plc, { statusBits: 0xc0, readError: END_CODES.busy });
    expect(await answerTo(TO_LOCAL, busy)).toBe(spaceless(`${FROM_LOCAL} 0101 02c4`));
  });

  it("answers for a relay with two bytes more, or without them", async () => {
    const relay = { endCode: END_CODES.nodeNotInNetwork, network: 2, node: 10 };
    expect(await answerTo(TO_LOCAL, (plc) => void Object.assign(plc, { relay }))).toBe(spaceless(`${FROM_LOCAL} 0101 8201 02 0a`));
    expect(await answerTo(TO_LOCAL, (plc) => void Object.assign(plc, { relay, statusBits: 0x40 }))).toBe(
      spaceless(`${FROM_LOCAL} 0101 8241 02 0a`),
    );
    expect(await answerTo(TO_LOCAL, (plc) => void Object.assign(plc, { relay: { ...relay, isCut: true } }))).toBe(
      spaceless(`${FROM_LOCAL} 0101 8201`),
    );
  });

  it("passes commands on to nodes of other networks, whose limits count", async () => {
    const behind = controllerWith(counting("cs", { D: 1000 }), { ...LIMITS.sysmacLink });
    const route = (plc: FinsPlc) => void plc.networks.set(5, { gateway: { network: 2, node: 10 }, nodes: new Map([[7, behind]]) });
    expect(await answerTo("80 00 02 05 07 00 00 32 00 11", route)).toBe(spaceless("c0 00 01 00 32 00 05 07 00 11 0101 0000 1000"));
    expect(await answerTo("80 00 02 05 08 00 00 32 00 11", route)).toBe(spaceless("c0 00 01 00 32 00 05 0a 00 11 0101 8201 02 0a"));
    expect(await answerTo("80 00 02 06 07 00 00 32 00 11", route)).toBe(spaceless("c0 00 01 00 32 00 06 0a 00 11 0101 0501"));
    const wire = datagramsTo((await start(route)).port);
    expect((await wire.ask("80 00 02 05 07 00 00 32 00 11 0101 82 0000 00 010e")).slice(24)).toBe("110b");
  });

  it("knows its own nodes and units: 0 and its number, and the CPU alone", async () => {
    expect(await answerTo("80 00 02 00 00 00 00 32 00 11", () => {})).toBe(spaceless(`${FROM_LOCAL} 0101 0000 1000`));
    expect(await answerTo("80 00 02 00 0b 00 00 32 00 11", () => {})).toContain("01010201");
    expect(await answerTo("80 00 02 00 0a 10 00 32 00 11", () => {})).toContain("01010202");
    const named = (plc: FinsPlc) => void Object.assign(plc, { network: 3 });
    expect(await answerTo("80 00 02 03 0a 00 00 32 00 11", named)).toContain("010100001000");
  });
});

describe("UDP", () => {
  const READ = "0101 82 0000 00 0001";
  const ONE = `${FROM_LOCAL} 0101 0000 1000`;
  const memory = () => counting("cs", { D: 16 });

  it("takes no frame that is not a command, and answers none that wants no answer", async () => {
    const plc = await start(undefined, { memory: memory() });
    const wire = datagramsTo(plc.port);
    wire.send("80 00 02 00 0a 00 00 32 00 11 01");
    wire.send(`c0 00 02 00 0a 00 00 32 00 11 ${READ}`);
    wire.send(`81 00 02 00 0a 00 00 32 00 12 ${READ}`);
    expect(await wire.ask(`${TO_LOCAL} ${READ}`)).toBe(spaceless(ONE));
    expect(plc.violations).toHaveLength(2);
    expect(plc.counts).toMatchObject({ frames: 4, requests: 2, items: 2, repeats: 0 });
  });

  it("counts what comes again, says it again, and lets strangers speak first", async () => {
    const plc = await start(undefined, { memory: memory() });
    const wire = datagramsTo(plc.port);
    await wire.ask(`${TO_LOCAL} ${READ}`);
    plc.misbehave = ({ isRepeated }) => ({ againAfterMs: isRepeated ? 1 : 0, strangerFirst: true });
    const answers = [await wire.ask(`${TO_LOCAL} ${READ}`), await wire.next(), await wire.next()];
    expect(answers.toSorted()).toEqual([spaceless(ONE), spaceless(ONE), spaceless(`${FROM_LOCAL} 0101 0000 efff`)]);
    expect(plc.counts).toMatchObject({ requests: 1, repeats: 1 });
    expect(plc.lastRequests.map(({ isRepeated }) => isRepeated)).toEqual([false, true]);
  });

  it("answers late, backwards, with another frame, or not at all", async () => {
    const plc = await start(undefined, { memory: memory() });
    const wire = datagramsTo(plc.port);
    const sids = (frames: readonly string[]) => frames.map((frame) => frame.slice(18, 20));
    const send = (sid: string) => wire.send(`80 00 02 00 0a 00 00 32 00 ${sid} ${READ}`);
    plc.answersBackwards = true;
    for (const sid of ["21", "22", "23"]) send(sid);
    expect(sids([await wire.next(), await wire.next(), await wire.next()])).toEqual(["23", "22", "21"]);
    expect(plc.mostInFlight).toBe(3);
    plc.answersBackwards = false;
    plc.misbehave = ({ sid }) =>
      sid === 0x31 ? { delayMs: 20 } : sid === 0x32 ? { isSilent: true } : { change: (frame) => frame.subarray(0, 14) };
    for (const sid of ["31", "32", "33"]) send(sid);
    const answers = [await wire.next(), await wire.next()];
    expect(sids(answers)).toEqual(["33", "31"]);
    expect(answers[0]).toHaveLength(28);
  });

  it("takes no more than fits its queue", async () => {
    const plc = await start((one) => void Object.assign(one, { queue: 1, answerDelayMs: 10 }), { memory: memory() });
    const wire = datagramsTo(plc.port);
    const send = (sid: string) => wire.send(`80 00 02 00 0a 00 00 32 00 ${sid} ${READ}`);
    for (const sid of ["41", "42"]) send(sid);
    const codes = [await wire.next(), await wire.next()].map((frame) => frame.slice(18, 20) + frame.slice(24, 28));
    expect(codes.toSorted()).toEqual(["410000", "420204"]);
  });

  it("answers to the node's address and its own port where the unit is set so", async () => {
    const plc = await start(undefined, { memory: memory() });
    const socket = dgram.createSocket("udp4");
    cleanUp.push(() => socket.close());
    await new Promise<void>((ready) => socket.bind(0, "127.0.0.50", ready));
    plc.udpAnswers = { host: (node) => `127.0.0.${node}`, port: socket.address().port };
    const answer = new Promise<Buffer>((got) => socket.once("message", got));
    datagramsTo(plc.port).send(`${TO_LOCAL} ${READ}`);
    expect((await answer).toString("hex")).toBe(spaceless(ONE));
  });
});

describe("what it holds", () => {
  it.each<[type: string, value: number | bigint | string, words: readonly number[]]>([
    ["INT", -2, [0xfffe]],
    ["UDINT", 0x12345678, [0x5678, 0x1234]],
    ["DINT", -2, [0xfffe, 0xffff]],
    ["REAL", 1.5, [0x0000, 0x3fc0]],
    ["LWORD", 0x0102030405060708n, [0x0708, 0x0506, 0x0304, 0x0102]],
    ["LREAL", 1.5, [0, 0, 0, 0x3ff8]],
    ["BCD", 1998, [0x1998]],
    ["UDINT_BCD", 12_345_678, [0x5678, 0x1234]],
    ["ULINT_BCD", 1_234_567_890_123_456n, [0x3456, 0x9012, 0x5678, 0x1234]],
    ["STRING[5]", "Berta", [0x4265, 0x7274, 0x6100]],
    ["STRING[4]", "A", [0x4100, 0]],
  ])("%s %s", (type, value, words) => expect(wordsOf(type, value)).toEqual(words));

  it("refuses types that it does not know", () => expect(() => wordsOf("S5TIME", 1)).toThrow(RangeError));

  it("has each of its variables where its address says, none twice at one place", async () => {
    const { plc, variables, close } = await startSimulator();
    cleanUp.push(close);
    const { memory } = plc;
    for (const { address, type, value } of variables) {
      const [, area = "", word = "", bit] = /^([A-Z]+|E[0-9A-F]+_)(\d+)(?:\.(\d+))?$/i.exec(address) ?? [];
      const name = area.replace("_", "").toUpperCase();
      const isFlag = type === "BOOL" && bit === undefined;
      const words = memory.areas.get(isFlag ? `${name} flag` : name);
      const bits = [value].flat().map((_, i) => Number(bit ?? 0) + i);
      if (isFlag) expect(words?.[Number(word)], address).toBe(value ? 1 : 0);
      else if (bit !== undefined)
        expect(
          bits.map((at) => (((words?.[Number(word) + (at >> 4)] ?? 0) >> (at & 15)) & 1) === 1),
          address,
        ).toEqual([value].flat());
      else if (!/[a-z]/.test(type)) {
        // A register is two words with the high one first, and begins at twice its number.
        if (name === "IR") {
          const halves = [...(words?.slice(2 * Number(word), 2 * Number(word) + 2 * [value].flat().length) ?? [])];
          const numbers = halves.flatMap((half, i) => (i % 2 === 0 ? [half * 0x1_0000 + (halves[i + 1] ?? 0)] : []));
          expect(numbers, address).toEqual([value].flat());
          continue;
        }
        const expected = [value].flat().flatMap((one) => [...wordsOf(type.replace(/(?<!STRING)\[\d+\]$/, ""), one as number)]);
        expect([...(words?.slice(Number(word), Number(word) + expected.length) ?? [])], address).toEqual(expected);
      }
    }
  });
});
