import { expect, it } from "vitest";
import { Ring, recordIn, ringMemory } from "../lib/capture/ring.ts";
import { framesAnswer, unpackEvents } from "./frames-answer.ts";

const PEER = { transport: "tcp", address: "10.0.0.9", port: 502 } as const;

function ringed(bytes: number) {
  const memory = ringMemory(bytes);
  const trace = new Ring(memory).opening(PEER);
  const of = { uuid: "u", name: "press-1", type: "modbus_tcp", standardPort: 502, bytes, words: new Map<number, string>() };
  return {
    memory,
    trace,
    agent: { frames: (name: string) => (name === "press-1" ? { ...of, record: recordIn(memory) } : ("none" as const)) },
  };
}

it("answers with what came after a number, as it was", () => {
  const { memory, trace, agent } = ringed(65_536);
  trace.data("out", Buffer.from("question"));
  trace.data("out", Buffer.from("hunter2"), "log_in");
  trace.ended("reset_in");
  const all = framesAnswer(agent, { source: "press-1" });
  expect(all).toMatchObject({ name: "press-1", standardPort: 502, dropped: 0, restarted: false, peers: [[1, PEER]] });
  expect(unpackEvents(JSON.parse(JSON.stringify(all)))).toEqual(
    recordIn(memory).events.map((event) => ({ ...event, bytes: Buffer.from(event.bytes) })),
  );
  expect(framesAnswer(agent, { source: "press-1", after: 1 }).events.map(({ number }) => number)).toEqual([2, 3]);
  expect(framesAnswer(agent, { source: "press-1", after: 3 })).toMatchObject({ events: [], dropped: 0, restarted: false });
});

it("counts what had to give way since, and knows another instance of the source", () => {
  const { trace, agent } = ringed(4096);
  for (let i = 0; i < 200; i++) trace.data("in", Buffer.alloc(50, i));
  const late = framesAnswer(agent, { source: "press-1", after: 20 });
  expect(late.dropped).toBeGreaterThan(100);
  expect(late.dropped + late.events.length).toBe(200 - 20);
  const other = ringed(4096);
  const restarted = framesAnswer(other.agent, { source: "press-1", after: 200 });
  expect(restarted).toMatchObject({ restarted: true, dropped: 0 });
  expect(restarted.events.map(({ number }) => number)).toEqual([0]);
});

it.each([
  [{ source: "nobody" }, 'reads no data source "nobody"'],
  [{ source: "" }, "expected {source, after?}"],
  [{ source: "press-1", more: 1 }, "expected {source, after?}"],
])("refuses %j", (body, words) => {
  expect(() => framesAnswer(ringed(4096).agent, body)).toThrow(words);
});

it("says what turns it on where nothing is kept", () => {
  expect(() => framesAnswer({ frames: () => undefined }, { source: "press-1" })).toThrow("captures.source_bytes is 0B");
  const { agent } = ringed(4096);
  const found = agent.frames("press-1");
  expect(() => framesAnswer({ frames: () => (found === "none" ? found : { ...found, bytes: 0 }) }, { source: "press-1" })).toThrow(
    "captures.total_bytes is in use",
  );
});
