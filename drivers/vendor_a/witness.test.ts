import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shortFloat32 } from "../../src/base/number.ts";
import { openPlanned } from "../../test/support/planned.ts";
import { openStEthernetIp, type StEthernetIp } from "../../test/support/st-ethernet-ip.ts";
import driver from "./driver.ts";
import { type CipValue, LogixProgram, startCipDevice, startSimulator, type VendorASimulator } from "./simulator.ts";

/*
 * Another implementation of the protocol, independent of ours: npm's st-ethernet-ip. It is not asked for what it gets wrong: it knows no
 * UDINT, ULINT and LREAL, takes text for UTF-8, gives a SINT of a structure no sign, and asks for elements of BOOL arrays with a path that it
 * cannot write.
 */

let simulator: VendorASimulator;
let client: StEthernetIp;
beforeAll(async () => {
  simulator = await startSimulator();
  client = await openStEthernetIp(simulator.port);
});
afterAll(async () => {
  await client.close();
  await simulator.close();
});

const UNKNOWN_TO_IT = /^(Produced|Energy|Pressure|Mask|Product|Alarms|Recipe1\.Flags)\b/i;
const HOST_OF_BITS = /^(ZZZZZZZZZZ|CTL$)/;

/** A structure as text, without the hosts of bits that it shows; its fractions are REALs. */
function textOf(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return JSON.stringify(Number.isInteger(value) ? value : shortFloat32(value));
  if (Array.isArray(value)) return `[${value.map(textOf)}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([name]) => !HOST_OF_BITS.test(name));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`)}}`;
}

describe("st-ethernet-ip reads from the simulator", () => {
  it("every type and place that it knows", async () => {
    // It has no type for decimal digits either.
    const known = simulator.variables.filter(({ address, type }) => !UNKNOWN_TO_IT.test(address) && !type.includes("BCD"));
    expect(known.length).toBeGreaterThan(35);
    for (const { address, value } of known) {
      const read = await client.read(address, Array.isArray(value) ? value.length : undefined);
      const flat = Array.isArray(read) && Array.isArray(value) ? read.slice(0, value.length) : read;
      expect(typeof flat === "object" && !Array.isArray(flat) ? textOf(flat) : flat, address).toEqual(value);
    }
  });

  it("an array in fragments, and several tags in a packet", async () => {
    const { fragments } = simulator.device.cpu.counts;
    const log = simulator.variables.find(({ address }) => address === "Log");
    expect(await client.read("Log", 1500)).toEqual(log?.value);
    expect(simulator.device.cpu.counts.fragments - fragments).toBeGreaterThan(10);
    const group = client.prepare(["Count", "Total", "NoSuchTag", "Temperature"]);
    await group.read();
    expect(group.values()).toEqual([-300, -2_000_000_000, null, 21.5]);
    expect(simulator.device.lastMessages.at(-1)).toMatchObject({ service: 0x0a, items: 4 });
  });

  it("who it is, every symbol, and why it may not read", async () => {
    expect(client.controller).toBe("1756-L83E/B");
    for (const { address } of simulator.variables) {
      const [name = ""] = address.replace(/^program:/i, "Program:").match(/^(Program:\w+\.)?\w+/) ?? [];
      expect(client.symbols.map((symbol) => symbol.toLowerCase())).toContain(name.toLowerCase());
    }
    await expect(client.read("NoSuchTag")).rejects.toMatchObject({ generalStatusCode: 4 });
    await expect(client.read("Hidden")).rejects.toMatchObject({ generalStatusCode: 15 });
    expect(simulator.device.violations).toEqual([]);
  });

  it("the same without a connection", async () => {
    const routed = await openStEthernetIp(simulator.port, { isConnected: false });
    const { connected } = simulator.device.counts;
    expect(await routed.read("Recipes[1].Steps[3]")).toBe(203);
    await routed.close();
    expect(simulator.device.counts.connected).toBe(connected);
  });
});

/** Whole ones are below those whose digits are shortened; zero has no sign in JSON. */
const real = fc.float({ min: -(2 ** 23), max: 2 ** 23, noNaN: true }).map((value) => value + 0);
const character = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
type Types = Readonly<Record<string, fc.Arbitrary<CipValue>>>;
/** What it knows in structures. */
const MEMBERS: Types = {
  INT: fc.integer({ min: -0x8000, max: 0x7fff }),
  DINT: fc.integer({ min: -0x8000_0000, max: 0x7fff_ffff }),
  LINT: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  BOOL: fc.boolean(),
  REAL: real,
  STRING: fc.string({ maxLength: 82, unit: character }),
};
const TAGS: Types = {
  ...MEMBERS,
  SINT: fc.integer({ min: -0x80, max: 0x7f }),
  USINT: fc.integer({ min: 0, max: 0xff }),
  UINT: fc.integer({ min: 0, max: 0xffff }),
};
const ELEMENTS = 5;

/** A type with a value: scalars, and arrays of numbers. */
const someOf = (types: Types) =>
  fc.constantFrom(...Object.keys(types)).chain((word) => {
    const one = types[word] ?? real;
    const many = fc.array(one, { minLength: ELEMENTS, maxLength: ELEMENTS });
    const isArray = word === "BOOL" || word === "STRING" ? fc.constant(false) : fc.boolean();
    return isArray.chain((is) => fc.record({ type: fc.constant(is ? `${word}[${ELEMENTS}]` : word), value: is ? many : one }));
  });
type Some = readonly { readonly type: string; readonly value: CipValue }[];
const membersOf = (some: Some) => some.map(({ type }, i) => [`M${i}`, type] as const);
const contentOf = (some: Some) => Object.fromEntries(some.map(({ value }, i) => [`M${i}`, value]));

describe("st-ethernet-ip reads the same as the driver", () => {
  it("whatever structures and tags a controller has, and whatever they hold", { timeout: 60_000 }, async () => {
    const [structure, tags] = [MEMBERS, TAGS].map((types) => fc.array(someOf(types), { minLength: 1, maxLength: 24 }));
    if (!structure || !tags) throw new Error("nothing is made");
    const isSame = async (inner: Some, outer: Some, own: Some) => {
      const program = new LogixProgram();
      program.structure("Inner", membersOf(inner));
      program.structure("Outer", [["First", "INT"], ["In", "Inner"], ...membersOf(outer)]);
      program.tag("One", "Outer", { First: -1, In: contentOf(inner), ...contentOf(outer) });
      for (const [i, { type, value }] of own.entries()) program.tag(`T${i}`, type, value);
      const device = await startCipDevice({ program });
      const theirs = await openStEthernetIp(device.port);
      const variables = [{ address: "One", type: "string" }, ...own.map(({ type }, i) => ({ address: `T${i}`, type }))];
      const ours = await openPlanned(driver, { type: "vendor_a", host: "127.0.0.1", port: device.port }, {}, variables);
      try {
        const [whole, ...values] = await ours.values();
        expect(whole).toBe(textOf(await theirs.read("One")));
        expect(values).toEqual(own.map(({ value }) => value));
        for (const [i, value] of values.entries())
          expect(await theirs.read(`T${i}`, Array.isArray(value) ? value.length : undefined), own[i]?.type).toEqual(value);
        expect(device.violations).toEqual([]);
      } finally {
        await ours.session.close();
        await theirs.close();
        await device.close();
      }
    };
    await fc.assert(fc.asyncProperty(structure, structure, tags, isSame), { numRuns: 25 });
  });
});
