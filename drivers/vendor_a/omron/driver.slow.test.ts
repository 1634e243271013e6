import { afterEach, describe, expect, it, vi } from "vitest";
import { FaultError } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import { codesOf } from "../../../src/model/testing/warnings.ts";
import { formatDataType } from "../../../src/model/value.ts";
import { deviceMemory, driverContext } from "../../../test/support/driver-context.ts";
import { openPlanned } from "../../../test/support/planned.ts";
import type { DriverContext, Point, Prepared } from "../../driver.ts";
import { typeOf } from "../../driver.ts";
import driver from "../driver.ts";
import { OmronProgram, startOmronDevice } from "../simulator-omron.ts";
import { NJ_VARIABLES } from "../simulator-plant.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function start(options: Parameters<typeof startOmronDevice>[0] = {}) {
  const started = await startOmronDevice(options);
  cleanUp.push(() => started.device.close());
  return started;
}

const details = (port: number) => ({ type: "vendor_a", host: "127.0.0.1", port });

async function planned(port: number, variables: readonly { readonly address: string; readonly type?: string }[], local: object = {}) {
  const opened = await openPlanned(driver, details(port), local, variables);
  cleanUp.push(() => opened.session.close());
  return opened;
}

async function open(port: number, ctx: DriverContext = driverContext(), local: object = {}) {
  const settings = driver.settings.parse(local);
  const session = await driver.connect({ details: driver.details.parse(details(port)), settings, secrets: {} }, ctx);
  cleanUp.push(() => session.close());
  const prepare = async (...texts: readonly string[]): Promise<readonly Prepared[]> => {
    const points = texts.map((text, index): Point => {
      const [address = "", word] = text.split("=");
      return { index, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
    });
    const found: Prepared[] = [];
    for await (const batch of session.prepare?.(points, ctx) ?? []) found.push(...batch);
    return found.toSorted((a, b) => a.point.index - b.point.index);
  };
  return { session, settings, prepare };
}

const refusal = (one: Prepared | undefined): string =>
  one && "refusal" in one ? `${one.refusal.fault}: ${one.refusal.message}` : "prepared";

const failureOf = (work: Promise<unknown>): Promise<ReasonError | FaultError> =>
  work.then(
    (value) => {
      throw new Error(`it gave ${JSON.stringify(value)}`);
    },
    (error: unknown) => {
      if (error instanceof ReasonError || error instanceof FaultError) return error;
      throw error;
    },
  );

describe("reading", () => {
  it.each([
    ["over a large connection", {}],
    ["over a small connection", { connection_size: 504 }],
    ["without a connection", { connected: false }],
  ])("every type and place: %s", async (_, local) => {
    const { device } = await start();
    const { session, values } = await planned(device.port, NJ_VARIABLES, local);
    expect(await values()).toEqual(NJ_VARIABLES.map(({ value }) => value));
    expect(session.warnings?.()).toEqual([]);
    expect(device.violations).toEqual([]);
    expect(device.counts.routed).toBe(0);
  });
});
