import { expect, it } from "vitest";
import type { AnySession } from "../../drivers/driver.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { source } from "../../test/support/agent.ts";
import { createResolver } from "../lib/resolver.ts";
import { silentLog } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import { ConnectionPool, type Granted, type Turn } from "./connection-pool.ts";
import { DeviceAccess } from "./device-access.ts";
import { DeviceMemories } from "./device-memory.ts";
import { specOf } from "./source-spec.ts";

const forever = new AbortController().signal;

/** Sources at one place: `press` has two addresses. */
function place() {
  const lookUp = async () => ["10.0.0.1", "10.0.0.2"].map((address) => ({ address, family: 4 as const }));
  const deps = {
    pool: new ConnectionPool(() => 0),
    memories: new DeviceMemories(),
    resolver: createResolver({ lookUp, now: () => 0 }),
    log: silentLog,
    otherIsBack() {},
  };
  return async (host: string): Promise<DeviceAccess> => {
    const made = await specOf(source(1, 502, {}, { host }), modbus);
    if ("problem" in made) throw new Error(made.problem.detail);
    return new DeviceAccess(made.spec, deps, () => {});
  };
}

/** What it got by now; undefined: it waits. */
async function granted(asked: Granted | Promise<Granted>): Promise<Turn | undefined> {
  const soon = await Promise.race([asked, new Promise<undefined>((done) => setTimeout(done, 20, undefined))]);
  return soon instanceof ReasonError ? undefined : soon;
}

async function begin(access: DeviceAccess): Promise<Granted> {
  await access.lookUp(forever);
  return access.acquire(false, forever);
}

const session: AnySession = {
  limits: { maxPoints: 1, maxBytes: 2, inFlight: 1 },
  read: async () => [],
  alive: () => true,
  close: async () => {},
};

it("a source that waits for its turn takes it where the device has answered meanwhile", async () => {
  const at = place();
  const [first, second, other] = [await at("press"), await at("press"), await at("10.0.0.2")];
  const turn = await granted(begin(first));
  const waiting = begin(second);
  expect(await granted(waiting)).toBeUndefined();
  await first.context.resolve?.("press", forever);
  first.context.connected?.("press", "10.0.0.2");
  // Its own connection is not for those that come to the first address.
  expect(first.hasMoved).toBe(true);
  first.wasAnswered();
  turn?.release(undefined);
  const taken = await granted(waiting);
  expect(taken?.session).toBeUndefined();
  const others = begin(other);
  expect(await granted(others)).toBeUndefined();
  expect(second.hasMoved).toBe(false);
  taken?.release(session);
  // Both are at one device by now, and the connection is shared.
  expect((await granted(others))?.session).toBe(session);
});

it("a connection to the address that the turn is for has not moved, nor has a kept one", async () => {
  const access = await place()("press");
  expect(await granted(begin(access))).toBeDefined();
  expect(access.hasMoved).toBe(false);
  await access.context.resolve?.("press", forever);
  access.context.connected?.("press", "10.0.0.1");
  expect(access.hasMoved).toBe(false);
  // Not one of the addresses that it was given.
  access.context.connected?.("press", "10.9.9.9");
  expect(access.hasMoved).toBe(false);
});
