import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { type OmronFins, openOmronFins } from "../../test/support/omron-fins.ts";
import { openPlanned } from "../../test/support/planned.ts";
import driver from "./driver.ts";
import { FinsMemory, type FinsPlc, startFinsPlc } from "./simulator.ts";

/*
 * Another implementation of the protocol, independent of ours: npm's omron-fins. It reads words and bits; what words mean is worked out
 * here from its words. Not asked for, since it is wrong there: EM banks from D on, sub codes above 0F, and relay errors, of which it takes
 * the two bytes that tell where for data. Nor has it a C series, a G area, or values of more than one word.
 */

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const AREA_WORDS = 48;
const AREAS = {
  CS: ["CIO", "W", "H", "A", "D", "E0_", "E7_", "EC_", "T", "C"],
  CV: ["CIO", "A", "D", "E0_", "E7_", "T", "C"],
} as const;
type Mode = keyof typeof AREAS;
const isCounted = (area: string) => area === "T" || area === "C";

/** What words of the witness mean, without a line of ours: the lowest word is the first. */
const MEANING: Readonly<Record<string, readonly [words: number, of: (bytes: DataView) => unknown]>> = {
  UINT: [1, (bytes) => bytes.getUint16(0)],
  INT: [1, (bytes) => bytes.getInt16(0)],
  UDINT: [2, (bytes) => bytes.getUint32(0)],
  DINT: [2, (bytes) => bytes.getInt32(0)],
  REAL: [2, (bytes) => bytes.getFloat32(0)],
};

const variable = fc.record({
  area: fc.nat(),
  word: fc.nat({ max: AREA_WORDS - 2 }),
  type: fc.constantFrom("UINT", "INT", "UDINT", "DINT", "REAL", "BOOL"),
  bit: fc.nat({ max: 15 }),
});
const content = fc.uint8Array({ minLength: AREA_WORDS * 2, maxLength: AREA_WORDS * 2 });

interface Asked {
  readonly address: string;
  readonly type: string;
  readonly value: (client: OmronFins) => Promise<unknown>;
}

function askedOf(mode: Mode, { area: at, word, type, bit }: typeof variable extends fc.Arbitrary<infer T> ? T : never): Asked {
  const areas = AREAS[mode];
  const area = areas[at % areas.length] ?? "D";
  const place = `${area}${word}`;
  if (type === "BOOL" && isCounted(area))
    return { address: place, type, value: async (client) => (await client.read(`${place}.x`, 1))[0] === 1 };
  if (type === "BOOL")
    return { address: `${place}.${bit}`, type, value: async (client) => ((((await client.read(place, 1))[0] ?? 0) >> bit) & 1) === 1 };
  const own = isCounted(area) ? "UINT" : type;
  const [words, of] = MEANING[own] ?? [1, () => undefined];
  return {
    address: place,
    type: own,
    async value(client) {
      const bytes = new DataView(new ArrayBuffer(words * 2));
      for (const [i, one] of (await client.read(place, words)).entries()) bytes.setUint16(2 * (words - 1 - i), one);
      return of(bytes);
    },
  };
}

/** In a session of its own; undefined: it is not good. */
async function readOurs(plc: FinsPlc, transport: string, mode: Mode, asked: readonly Asked[]): Promise<readonly unknown[]> {
  const target_plc = mode === "CS" ? "Cs1OrNewer" : "Classic";
  const nodes = { local_address: "0.0.0", remote_address: "0.10.0" };
  const details = { type: "fins", host: "127.0.0.1", port: plc.port, target_plc, ...nodes };
  const { session, values } = await openPlanned(driver, details, { transport }, asked);
  const read = await values();
  await session.close();
  return read;
}

describe.each(["CS", "CV"] as const)("omron-fins in its mode %s", (mode) => {
  it.each(["udp", "tcp"] as const)("reads the same values as the driver over %s, whatever the controller holds", async (transport) => {
    const memory = new FinsMemory(mode === "CS" ? "cs" : "cv");
    for (const area of AREAS[mode]) {
      memory.create(area.replace("_", ""), AREA_WORDS);
      if (isCounted(area)) memory.create(`${area} flag`, AREA_WORDS);
    }
    const plc = await startFinsPlc({ memory });
    cleanUp.push(() => plc.close());
    if (mode === "CV") plc.identity.model = "CVM1-CPU21";
    const theirs = await openOmronFins(plc.port, { protocol: transport, mode });
    cleanUp.push(() => theirs.close());
    await fc.assert(
      fc.asyncProperty(
        fc.array(content, { minLength: 12, maxLength: 12 }),
        fc.array(variable, { minLength: 1, maxLength: 20 }),
        async (bytes, written) => {
          for (const [i, [name, words]] of [...memory.areas].entries()) {
            const view = Buffer.from(bytes[i % bytes.length] ?? []);
            for (let at = 0; at < words.length; at++)
              words[at] = name.endsWith("flag") ? view.readUInt16BE(2 * at) & 1 : view.readUInt16BE(2 * at);
          }
          const asked = written.map((one) => askedOf(mode, one));
          const values = await readOurs(plc, transport, mode, asked);
          for (const [i, { address, type, value }] of asked.entries()) {
            const their = await value(theirs);
            // What is no number is none of the values that a source may have.
            expect(values[i], `${address} ${type}`).toEqual(typeof their === "number" && !Number.isFinite(their) ? undefined : their);
          }
        },
      ),
      { numRuns: 25 },
    );
    expect(plc.violations).toEqual([]);
  });
});
