import { afterEach, beforeEach, expect, it } from "vitest";
import { textsOf } from "../../../src/model/testing/warnings.ts";
import type { Reading } from "../../../src/model/value.ts";
import { dataValue, i64, ticks, variant } from "../../support/opcua-wire/bytes.ts";
import { WireServer } from "../../support/opcua-wire/server.ts";
import { doubleValue, WireSubscriptions } from "../../support/opcua-wire/subscriptions.ts";
import { watchSource } from "./watched-source.ts";

const COUNT = 10;
const keyOf = (i: number): string => `ns=2;s=v${i}`;
const VARIABLES = Array.from({ length: COUNT }, (_, i) => ({ name: `v${i}`, address: keyOf(i) }));
const LOCAL = { read_mode: "subscribe", publishing_interval: 50, sampling_interval: 0, audit_interval: 500, deadband: 0 };
const BEGAN = 1_795_000_000_000;

const endings: (() => unknown)[] = [];
let server: WireServer;
let far: WireSubscriptions;
const device = new Map<number, number>();
beforeEach(async () => {
  ({ server, far } = await startServer());
  for (let i = 0; i < COUNT; i++) set(i, i, BEGAN + i);
});
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function startServer(): Promise<{ readonly server: WireServer; readonly far: WireSubscriptions }> {
  const server = await new WireServer().start();
  const far = new WireSubscriptions(server);
  endings.push(
    () => server.close(),
    () => far.stop(),
  );
  return { server, far };
}

function set(i: number, value: number, time?: number): void {
  device.set(i, value);
  if (server.nodes.has(keyOf(i))) far.set(keyOf(i), value, time);
  else server.nodes.set(keyOf(i), doubleValue(value, time));
}

type Watched = Awaited<ReturnType<typeof watchSource>>;
const last = ({ readouts }: Watched): readonly (Reading | undefined)[] => readouts.at(-1)?.readout.readings ?? [];
/** Values and faults of the last readout. */
const areThere = (watched: Watched) => () =>
  last(watched).map((reading) => reading && (reading.quality === "bad" ? reading.fault : reading.value));
const expected = () => Array.from({ length: COUNT }, (_, i) => (server.nodes.has(keyOf(i)) ? device.get(i) : "not_found"));

it.each([false, true])(
  "has what a Read gives through all troubles at once, and is as a fresh start when all is well (in a thread: %s)",
  async (isRemote) => {
    far.room = 7;
    far.maxPublish = 1;
    far.refused.set(keyOf(3), 0x8044_0000);
    far.tellsDeletion = false;
    const watched = await watchSource({ port: server.port, local: LOCAL, variables: VARIABLES, isRemote, endings });
    const isRight = (timeout = 10_000) => expect.poll(areThere(watched), { timeout, interval: 20 }).toEqual(expected());
    await isRight();
    const warned = () => textsOf(watched.report()?.warnings);
    await expect.poll(warned).toContainEqual(expect.stringMatching(/^7 of 10 variables come by subscription, 3 are read plainly/));
    for (let i = 0; i < COUNT; i++) set(i, 100 + i);
    await isRight();
    // A download: two nodes go without a word, one comes back with another value, and the server forgets the subscription meanwhile.
    far.remove(keyOf(0));
    far.remove(keyOf(1));
    server.nodes.delete(keyOf(9));
    far.remove(keyOf(9));
    set(1, 201);
    far.lose();
    set(2, 202);
    await isRight();
    far.skipped = 2;
    for (let i = 4; i < 8; i++) set(i, 300 + i);
    await isRight();
    far.stuck.add(keyOf(5));
    set(5, 505);
    await isRight(15_000);
    set(0, 400);
    await isRight();
    // Started again in the middle of it, with all of its troubles.
    const { port } = server;
    await server.close();
    for (let i = 0; i < COUNT; i++) device.set(i, 1000 + i);
    for (let i = 0; i < COUNT; i++) server.nodes.set(keyOf(i), doubleValue(1000 + i));
    await server.start(port);
    await isRight(15_000);
    // All is well from here on.
    await server.close();
    far.room = Number.POSITIVE_INFINITY;
    far.maxPublish = 10;
    far.tellsDeletion = true;
    far.refused.clear();
    far.stuck.clear();
    await server.start(port);
    server.nodes.set("i=2257", dataValue({ value: variant(13, i64(ticks(BEGAN + 60_000))) }));
    await isRight(15_000);
    await expect.poll(() => far.items, { timeout: 10_000 }).toBe(COUNT);
    // The subscriptions of a WireServer are those of one session.
    const twin = await startServer();
    for (const [key, value] of server.nodes) twin.server.nodes.set(key, value);
    const fresh = await watchSource({ port: twin.server.port, local: LOCAL, variables: VARIABLES, isRemote, endings });
    await expect.poll(areThere(fresh), { timeout: 10_000 }).toEqual(expected());
    const areSent = (watched: Watched) => () => last(watched).every((reading) => reading && "isSent" in reading);
    await expect.poll(areSent(fresh), { timeout: 10_000 }).toBe(true);
    await expect.poll(() => last(watched)).toEqual(last(fresh));
    // Only one of them has seen that the server was started again.
    const others = (): readonly string[] => warned().filter((words) => !words.startsWith("the server has started again"));
    await expect.poll(others, { timeout: 10_000 }).toEqual(textsOf(fresh.report()?.warnings));
    expect(watched.report()?.status.state.type).toBe("OK");
  },
  60_000,
);
