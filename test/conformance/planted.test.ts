import net from "node:net";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { AnyDriver, AnySession } from "../../drivers/driver.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { CHECKS } from "./checks.ts";
import { SECRET, startRig } from "./rig.ts";

/** The driver with another session. */
const withSession =
  (change: (session: AnySession) => Partial<AnySession>) =>
  (driver: AnyDriver): AnyDriver => ({
    ...driver,
    async connect(input, ctx) {
      const session = await driver.connect(input, ctx);
      return { ...session, ...change(session) };
    },
  });

const kept: Buffer[] = [];
const forever = new AbortController().signal;

/** Mistakes that drivers have made, and the check that has to find each. */
const PLANTED: readonly (readonly [mistake: string, check: RegExp, plant: (driver: AnyDriver) => AnyDriver])[] = [
  ["does not close its socket", /lets go of every socket/, withSession(() => ({ close: async () => {} }))],
  ["says that it is alive for ever", /notices between readouts/, withSession(() => ({ alive: () => true }))],
  [
    "gives the readings of a request in another order",
    /reads what the device holds/,
    withSession((session) => ({ read: async (request, ctx) => (await session.read(request, ctx)).toReversed() })),
  ],
  [
    "loses the last reading of a request",
    /reads what the device holds/,
    withSession((session) => ({ read: async (request, ctx) => (await session.read(request, ctx)).slice(0, -1) })),
  ],
  [
    "makes a lost connection a fault of the variables",
    /goes reset/,
    withSession((session) => ({
      read: (request, ctx) =>
        session.read(request, ctx).catch((error: unknown) => {
          throw error instanceof ReasonError ? new FaultError("no_answer", error.message) : error;
        }),
    })),
  ],
  [
    "makes a refused variable a failure of the source",
    /reads what the device holds/,
    withSession((session) => ({
      read: (request, ctx) =>
        session.read(request, ctx).catch((error: unknown) => {
          throw error instanceof FaultError ? new ReasonError("UNKNOWN", error.message) : error;
        }),
    })),
  ],
  [
    "calls every failure UNKNOWN",
    /names a refused connection/,
    (driver) => ({
      ...driver,
      connect: (input, ctx) =>
        driver.connect(input, ctx).catch((error: unknown) => {
          throw new ReasonError("UNKNOWN", String(error));
        }),
    }),
  ],
  [
    "does not listen to the signal",
    /stops a read at once/,
    withSession((session) => ({ read: (request, ctx) => session.read(request, { ...ctx, signal: forever }) })),
  ],
  [
    "does not keep to the time for an answer",
    /goes silent/,
    withSession((session) => ({
      read: (request, ctx) => session.read(request, { ...ctx, timeouts: { ...ctx.timeouts, answerMs: 4000 } }),
    })),
  ],
  [
    "writes to the device",
    /nothing but requests that read/,
    (driver) => ({
      ...driver,
      async connect(input, ctx) {
        const { host, port } = driver.endpoint(input.details, input.settings);
        // MODBUS Application Protocol V1.1b3, 6.6: write single register.
        const socket = net.connect(port, host, () => socket.end(Buffer.from([0, 1, 0, 0, 0, 6, 1, 6, 0, 0, 0, 1])));
        socket.on("error", () => {});
        await new Promise((done) => socket.once("close", done).resume());
        return driver.connect(input, ctx);
      },
    }),
  ],
  [
    "hides its frames from the tap",
    /every frame to the tap/,
    (driver) => ({ ...driver, connect: (input, { tap: _, ...ctx }) => driver.connect(input, ctx) }),
  ],
  [
    "puts its password into an error",
    /shows no secret/,
    (driver) => ({
      ...driver,
      connect: (input, ctx) =>
        driver.connect(input, ctx).catch((error: unknown) => {
          throw new ReasonError("UNKNOWN", `connecting with ${input.secrets["password"]} failed`, { cause: error });
        }),
    }),
  ],
  [
    "keeps something of each connection",
    /keeps nothing of/,
    (driver) => ({
      ...driver,
      connect(input, ctx) {
        kept.push(Buffer.alloc(64 * 1024));
        return driver.connect(input, ctx);
      },
    }),
  ],
  [
    "fails on an address instead of refusing it",
    /refuses malformed addresses/,
    (driver) => ({
      ...driver,
      parseAddress(text, type, settings) {
        if (text === "") throw new TypeError("cannot read properties of undefined");
        return driver.parseAddress(text, type, settings);
      },
    }),
  ],
  [
    "plans a point twice",
    /plans every point exactly once/,
    (driver) => ({
      ...driver,
      plan: (points, limits) => [...driver.plan(points, limits), ...driver.plan(points.slice(0, 1), limits)],
    }),
  ],
  [
    "plans by the order that it is given",
    /plans every point exactly once/,
    (driver) => ({ ...driver, plan: (points) => points.map((point) => ({ points: [point] })) }),
  ],
  ["promises to say what the device has, and cannot", /says of its type/, (driver) => ({ ...driver, canDiscover: true })],
  ["takes any setting", /refuses unknown ones/, (driver) => ({ ...driver, settings: driver.settings.catch(driver.settings.parse({})) })],
];

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/planted-faults.md");
const ABOUT =
  "Written by `test/conformance/planted.test.ts` from its run: the Modbus driver with one fault put into it at a time, and the check that fails on it.";
/** By fault: the check that found it. */
const caught = new Map<string, string>();

describe("the suite finds a driver that", () => {
  it.each(PLANTED)(
    "%s",
    async (fault, name, plant) => {
      const check = CHECKS.find((candidate) => name.test(candidate.name));
      if (!check) throw new Error(`no check is called ${name}`);
      const rig = await startRig("modbus_tcp", plant);
      const found = await check.run(rig).then(
        () => "nothing",
        (error: unknown) => `found: ${error}`,
      );
      await rig.close();
      kept.length = 0;
      expect(found).toMatch(/^found/);
      expect(found).not.toContain("no check is called");
      caught.set(fault, check.name);
    },
    60_000,
  );

  it("is what the generated table says", async () => {
    console.log(`conformance: ${caught.size} of ${PLANTED.length} planted faults found`);
    const rows = PLANTED.map(([fault]) => `| ${fault} | ${caught.get(fault) ?? "**nothing**"} |`);
    const lines = [
      "# Faults that the conformance suite finds",
      "",
      ABOUT,
      "",
      "| a driver that | is found by the check that a driver |",
      "| --- | --- |",
    ];
    await expect(`${[...lines, ...rows].join("\n")}\n`).toMatchFileSnapshot(DOC);
  });

  it("has a secret that nothing else looks like", () => expect(SECRET.length).toBeGreaterThan(12));
});
