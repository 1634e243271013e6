import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { PartialRefusal } from "../../src/model/fault.ts";
import { openNodes7 } from "../../test/support/nodes7.ts";
import { typeOf } from "../driver.ts";
import driver from "./driver.ts";
import { bytesOf, S7Memory, type S7Plc, startS7Plc } from "./simulator.ts";

// Another implementation of the protocol, independent of ours: npm's nodes7.

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const BYTES = 256;

/** The same place for both: nodes7's address, and ours with its type. Of its LINT it gives no value. */
const SAME: readonly (readonly [theirs: string, ours: string])[] = [
  ...Array.from({ length: 8 }, (_, bit) => [`DB1,X0.${bit}`, `DB1.DBX0.${bit}`] as const),
  ["DB1,X2.3.12", "DB1.DBX2.3[12]"],
  ["DB1,BYTE5", "DB1.DBB5"],
  ["DB1,BYTE6.4", "DB1.DBB6[4]"],
  ["DB1,CHAR11", "DB1.DBB11:CHAR"],
  ["DB1,INT12", "DB1.DBW12:INT"],
  ["DB1,INT14.5", "DB1.DBW14:INT[5]"],
  ["DB1,WORD24", "DB1.DBW24"],
  ["DB1,DINT26", "DB1.DBD26:DINT"],
  ["DB1,DWORD30", "DB1.DBD30"],
  ["DB1,DINT34.3", "DB1.DBD34:DINT[3]"],
  ["DB1,REAL46", "DB1.DBD46:REAL"],
  ["DB1,REAL50.4", "DB1.DBD50:REAL[4]"],
  ["DB1,LREAL66", "DB1.DBB66:LREAL"],
  ["DB1,S82.20", "DB1.DBB82:STRING[20]"],
  ["DB1,DT104", "DB1.DBB104:DT"],
  ["DB1,DTL112", "DB1.DBB112:DTL"],
  ["DI1,INT130", "DI1.DIW130:INT"],
  ["MB3", "MB3"],
  ["MW10", "MW10"],
  ["MD20", "MD20"],
  ["M30.5", "M30.5"],
  ["MR40", "MD40:REAL"],
  ["IB1", "EB1"],
  ["II2", "IW2:INT"],
  ["I4.1", "E4.1"],
  ["QB1", "AB1"],
  ["QD4", "QD4"],
  ["Q8.7", "A8.7"],
];

/** nodes7 gives dates as local time. */
const localText = (date: Date): string => `${new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 23)}`;

async function openOurs(plc: S7Plc) {
  const settings = driver.settings.parse({});
  const ctx = { signal: new AbortController().signal, log: silentLog, timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 5000 } };
  const details = driver.details.parse({ type: "s7", host: "127.0.0.1", port: plc.port, slot: 1 });
  const session = await driver.connect({ details, settings, secrets: {} }, ctx);
  cleanUp.push(() => session.close());
  return async (texts: readonly string[]): Promise<readonly unknown[]> => {
    const points = texts.map((text, index) => {
      const [address = "", word] = text.split(":");
      return { index, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
    });
    const values: unknown[] = [];
    for (const request of driver.plan(points, session.limits)) {
      const readings = await session.read(request, ctx).catch((error: unknown) => {
        if (error instanceof PartialRefusal) return error.readings;
        throw error;
      });
      for (const [i, { index }] of request.points.entries()) {
        const reading = readings[i];
        values[index] = reading?.quality === "good" ? reading.value : undefined;
      }
    }
    return values;
  };
}

const twoDigits = (most: number, least = 0) => fc.integer({ min: least, max: most });
const content = fc.record({
  bytes: fc.noShrink(fc.uint8Array({ minLength: BYTES * 4, maxLength: BYTES * 4 })),
  text: fc.string({ maxLength: 20, unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) }),
  reals: fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 6, maxLength: 6 }),
  lreal: fc.double({ noNaN: true, noDefaultInfinity: true }),
  moment: fc.record({
    year: twoDigits(2089, 1990),
    month: twoDigits(12, 1),
    day: twoDigits(28, 1),
    hour: twoDigits(23),
    second: twoDigits(59),
    ms: twoDigits(999),
  }),
});

describe("nodes7", () => {
  it("reads the same values as the driver, whatever the controller holds", { timeout: 60_000 }, async () => {
    const memory = new S7Memory();
    for (const area of ["DB1", "M", "I", "Q"]) memory.create(area, BYTES);
    const plc = await startS7Plc({ memory });
    cleanUp.push(() => plc.close());
    plc.pduBytes = 240;
    const theirs = await openNodes7(
      plc.port,
      SAME.map(([address]) => address),
    );
    cleanUp.push(() => theirs.close());
    const ours = await openOurs(plc);
    await fc.assert(
      fc.asyncProperty(content, async ({ bytes, text, reals, lreal, moment }) => {
        for (const [i, area] of ["DB1", "M", "I", "Q"].entries()) memory.areas.get(area)?.set(bytes.subarray(i * BYTES, (i + 1) * BYTES));
        // nodes7 gives the bytes 80 to 9F of a CHAR as control characters, we as those of windows-1252.
        memory.areas.get("DB1")?.set([(bytes[11] ?? 0) & 0x7f], 11);
        const pad = (n: number, digits = 2) => String(n).padStart(digits, "0");
        const at = `${moment.year}-${pad(moment.month)}-${pad(moment.day)}T${pad(moment.hour)}:30:${pad(moment.second)}.${pad(moment.ms, 3)}`;
        memory.put("DB1", 46, "REAL", reals.slice(0, 5));
        memory.put("M", 40, "REAL", reals[5] ?? 0);
        memory.put("DB1", 66, "LREAL", lreal);
        memory.put("DB1", 82, "STRING[20]", text);
        memory.areas.get("DB1")?.set(bytesOf("DT", at), 104);
        memory.areas.get("DB1")?.set(bytesOf("DTL", `${at}000000`), 112);
        const [read, values] = [await theirs.read(), await ours(SAME.map(([, address]) => address))];
        for (const [i, [address, own]] of SAME.entries()) {
          const their = read[address];
          if (their instanceof Date) expect(String(values[i]).slice(0, 23), own).toBe(localText(their));
          else expect(values[i], own).toEqual(their);
        }
      }),
      { numRuns: 40 },
    );
    expect(plc.violations).toEqual([]);
  });
});
