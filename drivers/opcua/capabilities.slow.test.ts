import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { deviceMemory } from "../../test/support/driver-context.ts";
import { connect, context, detailsOf, readTexts } from "../../test/support/opcua.ts";
import { Cursor, dataValue, double } from "../../test/support/opcua-wire/bytes.ts";
import { BAD_SERVICE_UNSUPPORTED, readsOf, type WireAnswer, WireServer } from "../../test/support/opcua-wire/server.ts";
import type { AnySession, DeviceMemory } from "../driver.ts";

const ANSWER_MS = 200;
const [NAMESPACES, LIMIT, STATE] = ["i=2255", "i=11705", "i=2259"] as const;
const silence = (): Promise<WireAnswer> => new Promise(() => {});

let server: WireServer;
const sessions: AnySession[] = [];
beforeEach(async () => {
  server = await new WireServer().start();
  server.nodes.set("ns=2;s=good", dataValue({ value: double(1.5) }));
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const session of sessions.splice(0)) await session.close();
  await server.close();
});

/** The nodes of each Read that was not answered well, and what the server does with a Read of one of these. */
function misbehave(nodes: readonly string[], instead: () => WireAnswer | Promise<WireAnswer>): string[][] {
  const asked: string[][] = [];
  server.answers.set("Read", (request) => {
    const reads = readsOf(new Cursor(request.body.bytes.subarray(request.body.at)));
    if (!reads.some((node) => nodes.includes(node))) return server.usual("Read")(request);
    asked.push(reads);
    return instead();
  });
  return asked;
}

async function open(device: DeviceMemory): Promise<{ session: AnySession; values: readonly unknown[] }> {
  const ctx = { ...context({ answerMs: ANSWER_MS }), device };
  const session = await connect(detailsOf(server.port), ctx);
  sessions.push(session);
  const readings = await readTexts(session, ["ns=2;s=good", "nsu=urn:wire:plant;s=good"], ctx);
  return { session, values: readings.map((reading) => (reading.quality === "bad" ? reading.fault : reading.value)) };
}

const aboutOf = (session: AnySession) =>
  (session.warnings?.() ?? []).filter(({ code }) => code === "help_silent").map(({ about }) => about);

it("reads a server that gives no answer to the question for its limits, and asks seldom", async () => {
  const asked = misbehave([LIMIT], silence);
  const device = deviceMemory();
  const { session, values } = await open(device);
  expect(values).toEqual([1.5, 1.5]);
  expect(aboutOf(session)).toEqual(["server"]);
  expect((await open(device)).values).toEqual([1.5, 1.5]);
  expect(asked).toHaveLength(1);
});

it("reads by numbers of namespaces where the server does not list them", async () => {
  misbehave([NAMESPACES], silence);
  const { session, values } = await open(deviceMemory());
  expect(values).toEqual([1.5, "no_answer"]);
  expect(aboutOf(session)).toEqual(["server", "namespaces"]);
  expect(session.alive()).toBe(true);
});

it("asks a server that does not list its namespaces again in a new session, a minute later", async () => {
  misbehave([NAMESPACES], silence);
  const device = deviceMemory();
  const { session } = await open(device);
  server.answers.delete("Read");
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + 61_000);
  expect(session.alive()).toBe(false);
  expect((await open(device)).values).toEqual([1.5, 1.5]);
});

it("fails where a server gives no answer that told its namespaces before, and reads as soon as it answers", async () => {
  const device = deviceMemory();
  expect((await open(device)).values).toEqual([1.5, 1.5]);
  misbehave([NAMESPACES], silence);
  for (let i = 0; i < 2; i++) await expect(open(device)).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  server.answers.delete("Read");
  expect((await open(device)).values).toEqual([1.5, 1.5]);
});

it("fails where the server refuses to be read, with the server's words", async () => {
  misbehave([LIMIT, NAMESPACES], () => ({ fault: BAD_SERVICE_UNSUPPORTED }));
  await expect(open(deviceMemory())).rejects.toMatchObject({ reason: { name: "BadServiceUnsupported" } });
});

it("fails where the server answers nothing, and remembers nothing of it", async () => {
  misbehave([NAMESPACES, LIMIT, STATE], silence);
  const device = deviceMemory();
  await expect(open(device)).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  server.answers.delete("Read");
  const { session, values } = await open(device);
  expect([values, aboutOf(session)]).toEqual([[1.5, 1.5], []]);
});
