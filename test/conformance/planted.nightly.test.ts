import net from "node:net";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { AnyDriver, AnySession, Prepared } from "../../drivers/driver.ts";
import { FaultError, PartialRefusal, type RefusedItem } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Reading } from "../../src/model/value.ts";
import { whyUnasked } from "./check.ts";
import { CHECKS } from "./checks.ts";
import { SECRET, startRig } from "./rig.ts";

/** The driver with another session. */
const withSession =
  (change: (session: AnySession) => Partial<AnySession>): Plant =>
  (driver) => ({
    ...driver,
    async connect(input, ctx) {
      const session = await driver.connect(input, ctx);
      return { ...session, ...change(session) };
    },
  });

const kept: Buffer[] = [];
const forever = new AbortController().signal;

/** The driver with another outcome where a read fails. */
const withError = (change: (error: unknown) => unknown): Plant =>
  withSession((session) => ({
    read: (request, ctx) =>
      session.read(request, ctx).catch((error: unknown) => {
        throw change(error);
      }),
  }));

/** The driver with other partial refusals. */
const withPartial = (change: (refusal: PartialRefusal) => Pick<PartialRefusal, "readings" | "items">): Plant =>
  withError((error) => {
    if (!(error instanceof PartialRefusal)) return error;
    const { readings, items } = change(error);
    return new PartialRefusal(readings, items);
  });

/** The driver with other batches of what it has looked up. */
const withBatches = (change: (batch: readonly Prepared[]) => readonly Prepared[]): Plant =>
  withSession((session) => ({
    async *prepare(points, ctx) {
      for await (const batch of session.prepare?.(points, ctx) ?? []) yield change(batch);
    },
  }));

const withPlaces = (
  [first, ...others]: PartialRefusal["items"],
  change: (item: RefusedItem) => readonly number[],
): PartialRefusal["items"] => [{ ...first, places: change(first) }, ...others];

const withScope = (scope: FaultError["scope"]): Plant =>
  withError((error) =>
    error instanceof FaultError && error.scope === scope ? new FaultError(error.fault, error.message, { scope: "points" }) : error,
  );

const isOwn = (error: unknown): error is FaultError => error instanceof FaultError && error.fault === "collector_error";

type Plant = (driver: AnyDriver) => AnyDriver;
/** Absent: in the Modbus driver. */
type Planted = readonly [mistake: string, check: RegExp, plant: Plant, type?: string];

/** Mistakes that drivers have made, and the check that has to find each. */
const PLANTED: readonly Planted[] = [
  ["does not close its socket", /releases every socket/, withSession(() => ({ close: async () => {} }))],
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
  [
    "plans something else in steps than at once",
    /plans every point exactly once/,
    (driver) => ({
      ...driver,
      // biome-ignore lint/correctness/useYield: the step of a plan that has one.
      *planSteps(points, limits) {
        return driver.plan(points.slice(1), limits);
      },
    }),
  ],
  ["promises to say what the device has, and cannot", /says of its type/, (driver) => ({ ...driver, canDiscover: true })],
  ["takes any setting", /refuses unknown ones/, (driver) => ({ ...driver, settings: driver.settings.catch(driver.settings.parse({})) })],
  [
    "joins what stands apart, in one request",
    /lets nothing that is refused/,
    (driver) => ({ ...driver, plan: (points, limits) => driver.plan(points, limits) }),
  ],
  [
    "makes its own mistake over one variable a failure of the source",
    /its own mistake in decoding/,
    withError((error) => (isOwn(error) ? new ReasonError("UNKNOWN", error.message, { condition: "internal_error" }) : error)),
  ],
  [
    "ends its connection over a mistake in taking an answer apart",
    /its own mistake in decoding/,
    withSession((session) => ({
      read: (request, ctx) =>
        session.read(request, ctx).catch(async (error: unknown) => {
          if (isOwn(error)) await session.close();
          throw error;
        }),
    })),
  ],
  [
    "calls its own mistake over one variable the device's",
    /its own mistake in decoding/,
    withError((error) => (isOwn(error) ? new FaultError("device_error", error.message) : error)),
  ],
  ...ofRack(),
];

/** What only the driver of the tests can get wrong. */
function ofRack(): readonly Planted[] {
  const planted: readonly Planted[] = [
    [
      "joins what stands apart, in one item",
      /lets nothing that is refused/,
      (driver) => ({ ...driver, plan: (points, limits) => driver.plan(points, limits) }),
    ],
    [
      "names places beside those that were refused",
      /names in a partial refusal/,
      withPartial(({ readings, items }) => ({ readings, items: withPlaces(items, ({ places }) => places.map((place) => place + 1)) })),
    ],
    [
      "names a place beyond the request",
      /names in a partial refusal/,
      withPartial(({ readings, items }) => ({ readings, items: withPlaces(items, ({ places }) => [...places, readings.length]) })),
    ],
    [
      "calls what was answered refused too",
      /names in a partial refusal/,
      withPartial(({ readings, items }) => {
        const answered = readings.findIndex((reading) => reading !== undefined);
        return { readings: readings.with(answered, undefined), items: withPlaces(items, ({ places }) => [...places, answered]) };
      }),
    ],
    [
      "gives a reading of what was refused",
      /names in a partial refusal/,
      withPartial(({ readings, items }) => ({ readings: readings.map((reading) => reading ?? { quality: "good", value: 0 }), items })),
    ],
    ["prepares a point twice", /prepares each point exactly once/, withBatches((batch) => [...batch, ...batch.slice(0, 1)])],
    [
      "gives all points up over a mistake in looking one up",
      /its own mistake in preparing/,
      withSession((session) => ({
        async *prepare(points, ctx) {
          try {
            yield* session.prepare?.(points, ctx) ?? none();
          } catch (error) {
            throw isOwn(error) ? new ReasonError("UNKNOWN", error.message, { condition: "internal_error" }) : error;
          }
        },
      })),
    ],
    ["leaves a point unprepared", /prepares each point exactly once/, withBatches((batch) => batch.slice(1))],
    [
      "gives copies of the points that it prepares",
      /prepares each point exactly once/,
      withBatches((batch) => batch.map((one) => ({ ...one, point: { ...one.point } }))),
    ],
    [
      "does not listen to the signal while it prepares",
      /stops preparing at once/,
      withSession((session) => ({ prepare: (points, ctx) => session.prepare?.(points, { ...ctx, signal: forever }) ?? none() })),
    ],
    [
      "keeps the epoch of the program that it began with",
      /addresses in sessions of an equal epoch/,
      withSession(({ epoch }) => ({ epoch })),
    ],
    ["takes another program for refused points", /addresses in sessions of an equal epoch/, withScope("program")],
    ["takes a locked device for refused points", /a refusal of everything/, withScope("everything")],
    ["takes a busy device for refused points", /a refusal of everything/, withScope("busy")],
    ["describes all requests alike", /describes a request/, (driver) => ({ ...driver, describe: () => "some words" })],
    [
      "describes a request in lines",
      /describes a request/,
      (driver) => ({ ...driver, describe: (request) => (driver.describe?.(request) ?? "").replaceAll(" ", "\n") }),
    ],
    [
      "fails over a word for a type",
      /its own words for types/,
      (driver) => ({ ...driver, parseType: (text) => (text.endsWith("[") ? mistake() : driver.parseType?.(text)) }),
    ],
    ["takes any word for a type", /its own words for types/, (driver) => ({ ...driver, parseType: () => ({ scalar: "int16" }) })],
    ["forgets its own words for types", /its own words for types/, (driver) => ({ ...driver, parseType: () => undefined })],
    [
      "sends nothing twice",
      /are lost once/,
      (driver) => ({
        ...driver,
        connect: ({ settings, ...rest }, ctx) =>
          driver.connect({ ...rest, settings: Object.assign({}, settings, { retransmissions: 0 }) }, ctx),
      }),
    ],
    [
      "gives answers in the order in which they come",
      /its own answer, in whatever order/,
      withSession((session) => {
        const waiting: ((readings: readonly Reading[]) => void)[] = [];
        return {
          read: (request, ctx) =>
            new Promise((resolve, reject) => {
              waiting.push(resolve);
              session.read(request, ctx).then((readings) => waiting.shift()?.(readings), reject);
            }),
        };
      }),
    ],
    [
      "closes its socket over a time-out",
      /over the same socket after a time-out/,
      withSession((session) => ({
        read: (request, ctx) =>
          session.read(request, ctx).catch(async (error: unknown) => {
            await session.close();
            throw error;
          }),
      })),
    ],
  ];
  return planted.map(([fault, check, plant]) => [fault, check, plant, "rack"]);
}

const mistake = (): never => {
  throw new TypeError("cannot read properties of undefined");
};
async function* none(): AsyncGenerator<readonly Prepared[]> {}

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/planted-faults.md");
const ABOUT =
  "Written by `test/conformance/planted.nightly.test.ts` from its run: the Modbus driver, and for what that does not have the driver of the tests (`test/support/rack`), with one fault put into it at a time, and the check that fails on it.";
/** By fault: the check that found it. */
const caught = new Map<string, string>();

describe("the suite finds a driver that", () => {
  it.each(PLANTED.map(([fault, check, plant, type = "modbus_tcp"]) => [fault, check, plant, type] as const))(
    "%s",
    async (fault, name, plant, type) => {
      const check = CHECKS.find((candidate) => name.test(candidate.name));
      if (!check) throw new Error(`no check is called ${name}`);
      const rig = await startRig(type, plant);
      expect(await whyUnasked(check, rig)).toBeUndefined();
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
