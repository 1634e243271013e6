import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { openOmronFins } from "../../test/support/omron-fins.ts";
import { type Family, FinsMemory, startFinsPlc } from "./simulator.ts";

/*
 * Another implementation of the protocol, independent of ours: npm's omron-fins reads the simulator as it would read a controller. Not
 * asked for, since it is wrong there: EM banks from D on (their codes are one too low, and bank 10 has the word's code for its bits),
 * sub codes above 0F, relay errors (it takes the two bytes that tell where for data), refused handshakes, and commands of more than 58
 * addresses over TCP.
 */

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const AREA_WORDS = 64;
/** Its names of areas beside those of the simulator; T and C have no bits, and flags are theirs alone. */
const AREAS: Readonly<Record<"CS" | "CV", readonly (readonly [theirs: string, ours: string])[]>> = {
  CS: [
    ["CIO", "CIO"],
    ["W", "W"],
    ["H", "H"],
    ["A", "A"],
    ["D", "D"],
    ["T", "T"],
    ["C", "C"],
    ["E0_", "E0"],
    ["E9_", "E9"],
    ["EC_", "EC"],
  ],
  CV: [
    ["CIO", "CIO"],
    ["A", "A"],
    ["D", "D"],
    ["T", "T"],
    ["C", "C"],
    ["E0_", "E0"],
    ["E7_", "E7"],
  ],
};
const FAMILY = { CS: "cs", CV: "cv" } as const satisfies Readonly<Record<string, Family>>;
/** Areas whose words have bits that can be asked for. */
const WITH_BITS = { CS: /^(CIO|W|H|A|D|E)/, CV: /^(CIO|A)/ } as const;

function memoryOf(mode: "CS" | "CV"): FinsMemory {
  const memory = new FinsMemory(FAMILY[mode]);
  for (const [, name] of AREAS[mode]) {
    memory.create(name, AREA_WORDS);
    if (name === "T" || name === "C") memory.create(`${name} flag`, AREA_WORDS);
  }
  return memory;
}

const place = fc.nat({ max: AREA_WORDS - 1 });
const request = fc.record({
  area: fc.nat(),
  word: place,
  count: fc.integer({ min: 1, max: AREA_WORDS }),
  bit: fc.option(fc.nat({ max: 15 })),
});

describe.each(["CS", "CV"] as const)("omron-fins in its mode %s", (mode) => {
  it.each(["udp", "tcp"] as const)("reads what the simulator holds, over %s", async (protocol) => {
    const memory = memoryOf(mode);
    const plc = await startFinsPlc({ memory });
    cleanUp.push(() => plc.close());
    const client = await openOmronFins(plc.port, { protocol, mode });
    cleanUp.push(() => client.close());
    plc.identity.model = "CJ2M-CPU33";
    expect((await client.model()).replace(/\0.*/, "")).toBe("CJ2M-CPU33");
    const content = fc.uint8Array({ minLength: AREA_WORDS * 2, maxLength: AREA_WORDS * 2 });
    const areas = AREAS[mode];
    await fc.assert(
      fc.asyncProperty(
        fc.array(content, { minLength: 12, maxLength: 12 }),
        fc.array(request, { minLength: 1, maxLength: 50 }),
        async (bytes, asked) => {
          for (const [i, [name, words]] of [...memory.areas].entries())
            for (let at = 0; at < words.length; at++) {
              const word = Buffer.from(bytes[i % bytes.length] ?? []).readUInt16BE(2 * at);
              words[at] = name.endsWith("flag") ? word & 1 : word;
            }
          const places = asked.map(({ area, word, count, bit }) => {
            const [theirs, ours] = areas[area % areas.length] ?? ["", ""];
            const words = memory.areas.get(ours) ?? new Uint16Array();
            const flags = memory.areas.get(`${ours} flag`);
            if (bit !== null && flags) return { address: `${theirs}${word}.x`, values: [...flags.slice(word, word + count)] };
            if (bit === null || !WITH_BITS[mode].test(ours))
              return { address: `${theirs}${word}`, values: [...words.slice(word, word + count)] };
            const bits = [...words].flatMap((one) => Array.from({ length: 16 }, (_, at) => (one >> at) & 1));
            return { address: `${theirs}${word}.${bit}`, values: bits.slice(word * 16 + bit, word * 16 + bit + count) };
          });
          for (const { address, values } of places.slice(0, 5)) expect(await client.read(address, values.length), address).toEqual(values);
          const addresses = places.map(({ address }) => address);
          expect(await client.readMultiple(addresses), addresses.join()).toEqual(places.map(({ values }) => values[0]));
        },
      ),
      { numRuns: 15 },
    );
    expect(plc.violations).toEqual([]);
  });
});
