import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Layout } from "../../../model/layout.ts";
import type { Readout } from "../../../model/value.ts";
import type { SinkBatch } from "../../sink.ts";
import { batchOf, good, layoutOf, readoutOf, TIME, variableOf } from "../testing.ts";
import { deathMessage, EdgeNode, type NodeMemory, newNodeMemory, nextBdSeq, type SparkplugMessage } from "./edge-node.ts";
import { decoded, encoded } from "./testing.ts";
import { TestHost } from "./testing-host.ts";
import { deviceId, nodeTopic, type SparkplugTopics } from "./topics.ts";

const TOPICS: SparkplugTopics = { group: "plant", node: "line-3" };
const PLENTY = () => 100_000;
const backlogOf = (...args: Parameters<typeof batchOf>): SinkBatch => ({ ...batchOf(...args), backlog: true });

/** A node and a host that gets what the node says, in order. */
function session(memory: NodeMemory = newNodeMemory(), bdSeq = 0, host = new TestHost()) {
  const node = new EdgeNode(TOPICS, bdSeq, memory);
  const hand = ({ topic, payload }: SparkplugMessage): void => host.take(topic, payload);
  /** Sends as the sink does: a birth of the device goes before the data that need it. */
  const write = (batch: SinkBatch, maxBytes = PLENTY): number => {
    const device = node.device(deviceId(batch.layout.source.name));
    let tooLarge = 0;
    for (const part of node.dataOf(batch, device, maxBytes)) {
      if (!device.isBorn) hand(node.deviceBirth(device, TIME));
      if ("tooLarge" in part) tooLarge += part.tooLarge;
      else hand(node.deviceData(device, part.metrics, TIME));
    }
    return tooLarge;
  };
  return { node, host, hand, write, memory };
}

function born(...layouts: readonly Layout[]) {
  const all = session();
  all.hand(all.node.birth(TIME));
  for (const layout of layouts) {
    const device = all.node.device(deviceId(layout.source.name));
    device.isRead = true;
    device.adopt(layout);
    all.hand(all.node.deviceBirth(device, TIME));
  }
  return all;
}

const temp = variableOf("Zone 1/temp", "float32", { unit: "°C", comment: "left" });
const count = variableOf("count", "uint64");
const press = layoutOf(temp, count);

describe("births", () => {
  it("NBIRTH has sequence number 0, bdSeq as INT64 and Rebirth without an alias", () => {
    const { host } = born();
    expect(host.faults).toEqual([]);
    expect(host.messages[0]).toMatchObject({ verb: "NBIRTH", payload: { seq: 0, timestamp: TIME } });
    expect([...host.node.keys()]).toEqual(["bdSeq", "Node Control/Rebirth", "Collector/Refused Commands", "Collector/Loss"]);
  });

  it("DBIRTH has every variable but explored ones, with name, alias, type, unit and comment, and null where nothing was read", () => {
    const { host } = born(layoutOf(temp, variableOf("seen", "bool", { exploration: true }), variableOf("curve", "int16[2x3]")));
    expect(host.faults).toEqual([]);
    const birth = host.birthOf("press-1");
    expect(Object.keys(birth)).toEqual(["Zone 1/temp", "curve"]);
    expect(birth["Zone 1/temp"]).toMatchObject({
      alias: 3,
      datatype: 9,
      isNull: true,
      properties: { Quality: { value: 500 }, engUnit: { value: "°C" }, documentation: { value: "left" } },
    });
    expect(birth["curve"]).toMatchObject({ alias: 4, datatype: 23, properties: { dimensions: { value: "2x3" } } });
  });

  it("DBIRTH has the current values, with their own times, and keeps aliases over connections", () => {
    const { host, write, memory } = born(press);
    write(batchOf(press, readoutOf([good(21.5), good(2n ** 64n - 1n)], { time: TIME + 5 })));
    const aliases = Object.values(host.birthOf("press-1")).map(({ alias }) => alias);
    const next = session(memory, 1, host);
    next.hand(next.node.birth(TIME + 9));
    const device = next.node.device("press-1");
    next.hand(next.node.deviceBirth(device, TIME + 9));
    expect(host.faults).toEqual([]);
    const birth = host.birthOf("press-1");
    expect(birth["Zone 1/temp"]).toMatchObject({ is: 21.5, timestamp: TIME + 5, properties: { Quality: { value: 192 } } });
    expect(birth["count"]).toMatchObject({ is: 2n ** 64n - 1n });
    expect(Object.values(birth).map(({ alias }) => alias)).toEqual(aliases);
  });

  it("have the quality STALE where the device is not read", () => {
    const { host, node, hand, write } = born(press);
    write(batchOf(press, readoutOf([good(1), good(2n)])));
    const device = node.device("press-1");
    hand(node.deviceDeath(device, TIME));
    device.isRead = false;
    write(backlogOf(press, readoutOf([good(3), good(4n)], { time: TIME - 5 })));
    expect(host.faults).toEqual([]);
    expect(host.birthOf("press-1")["count"]).toMatchObject({ is: 2n, properties: { Quality: { value: 500 } } });
  });
});

describe("deaths", () => {
  it("NDEATH has bdSeq alone and no sequence number", () => {
    const { topic, payload } = deathMessage(TOPICS, 255, TIME);
    expect(topic).toBe("spBv1.0/plant/NDEATH/line-3");
    const { seq, metrics } = decoded(payload);
    expect(seq).toBeUndefined();
    expect(metrics).toEqual([{ name: "bdSeq", timestamp: TIME, datatype: 4, field: "longValue", value: 255n }]);
  });

  it("bdSeq begins at 0, rises by one with each CONNECT and is 0 again after 255", () => {
    expect([nextBdSeq(undefined), nextBdSeq(0), nextBdSeq(254), nextBdSeq(255)]).toEqual([0, 1, 255, 0]);
  });

  it("DDEATH has a time, a sequence number and nothing else", () => {
    const { host, node, hand } = born(press);
    hand(node.deviceDeath(node.device("press-1"), TIME + 1));
    expect(host.messages.at(-1)).toEqual({ verb: "DDEATH", device: "press-1", payload: { timestamp: TIME + 1, seq: 2, metrics: [] } });
    expect(host.faults).toEqual([]);
  });
});

describe("data", () => {
  it("has an alias, a time and a value for each reading, and neither name nor type", () => {
    const { host, write } = born(press);
    write(batchOf(press, readoutOf([good(21.5), undefined]), readoutOf([good(22), good(7n)], { time: TIME + 1000 })));
    expect(host.faults).toEqual([]);
    expect(host.values.map(({ name, time, value, isHistorical }) => [name, time - TIME, value, isHistorical])).toEqual([
      ["Zone 1/temp", 0, 21.5, false],
      ["Zone 1/temp", 1000, 22, false],
      ["count", 1000, 7n, false],
    ]);
    expect(host.messages.filter(({ verb }) => verb === "DDATA")).toHaveLength(1);
  });

  it("a fault is null with Quality 0 and its reason; the first good value after it says Quality 192, and the next one nothing", () => {
    const { host, write } = born(layoutOf(temp));
    const bad = { quality: "bad" as const, fault: "not_found" as const, detail: "exception 2 at holding:12" };
    for (const [i, reading] of [good(1), bad, { quality: "bad" as const, fault: "no_answer" as const }, good(2), good(3)].entries())
      write(batchOf(layoutOf(temp), readoutOf([reading], { time: TIME + i })));
    expect(host.faults).toEqual([]);
    expect(host.values.map(({ value, properties }) => [value, properties])).toEqual([
      // Its birth said STALE.
      [1, { Quality: 192 }],
      [null, { Quality: 0, Fault: "not_found", Detail: "exception 2 at holding:12" }],
      [null, { Quality: 0, Fault: "no_answer" }],
      [2, { Quality: 192 }],
      [3, {}],
    ]);
  });

  it("a value that the device doubts keeps its value and is not good; NaN is a fault, and an element of an array stays NaN", () => {
    const layout = layoutOf(temp, variableOf("curve", "float64[2]"));
    const { host, write } = born(layout);
    const doubt = { fault: "not_a_number" as const, detail: "element 1 is NaN" };
    write(
      batchOf(
        layout,
        readoutOf([
          { quality: "uncertain", value: 4 },
          { quality: "uncertain", value: [1, Number.NaN], doubt },
        ]),
      ),
    );
    write(batchOf(layout, readoutOf([good(Number.NaN), undefined], { time: TIME + 1 })));
    expect(host.faults).toEqual([]);
    expect(host.values.map(({ value, properties }) => [value, properties])).toEqual([
      [4, { Quality: 0, Uncertain: true }],
      [[1, Number.NaN], { Quality: 0, Uncertain: true, Fault: "not_a_number", Detail: "element 1 is NaN" }],
      [null, { Quality: 0, Fault: "not_a_number" }],
    ]);
  });

  it("marks the backlog and overtaken readouts as historical, which then are not the current value", () => {
    const { host, write, node } = born(press);
    write(batchOf(press, readoutOf([good(10), undefined], { time: TIME + 5000 })));
    write(backlogOf(press, readoutOf([good(1), undefined], { time: TIME })));
    write(batchOf(press, readoutOf([good(2), undefined], { time: TIME + 1000 })));
    expect(host.faults).toEqual([]);
    expect(host.values.map(({ value, isHistorical }) => [value, isHistorical])).toEqual([
      [10, false],
      [1, true],
      [2, true],
    ]);
    expect([...node.device("press-1").metrics][0]?.last).toMatchObject({ value: 10 });
  });

  it("is current again at once where the clock was set back", () => {
    const { host, write } = born(press);
    write(batchOf(press, readoutOf([good(1), undefined], { time: TIME + 9e11 })));
    write(batchOf(press, readoutOf([good(2), undefined], { time: TIME })));
    expect(host.faults).toEqual([]);
    expect(host.values.map(({ isHistorical }) => isHistorical)).toEqual([false, false]);
  });

  it("splits between values what is too large, and counts a value that alone is too large", () => {
    const layout = layoutOf(variableOf("a", "string(500)"), variableOf("b", "string(500)"));
    const { host, write } = born(layout);
    const tooLarge = write(
      batchOf(
        layout,
        readoutOf([good("x".repeat(60)), good("y".repeat(400))]),
        readoutOf([good("1"), good("z".repeat(400))], { time: TIME + 1 }),
      ),
      () => 120,
    );
    expect(host.faults).toEqual([]);
    expect(tooLarge).toBe(2);
    expect(host.values.map(({ value }) => value)).toEqual(["x".repeat(60), "1"]);
  });

  it("has sequence numbers up to 255, and 0 behind it", () => {
    const { host, write } = born(press);
    for (let i = 0; i < 600; i++) write(batchOf(press, readoutOf([good(i), undefined], { time: TIME + i })));
    expect(host.faults).toEqual([]);
    expect(host.messages.map(({ payload }) => payload.seq)).toEqual(Array.from({ length: 602 }, (_, i) => i % 256));
  });

  it("brings a birth before it where the layout is another one, and keeps the aliases of what stays", () => {
    const { host, write } = born(press);
    const before = host.birthOf("press-1")["count"]?.alias;
    const next = layoutOf(variableOf("Zone 1/temp", "float64"), count, variableOf("more", "bool"));
    write(batchOf(next, readoutOf([good(1.5), good(1n), good(true)])));
    expect(host.faults).toEqual([]);
    expect(host.birthOf("press-1")["count"]?.alias).toBe(before);
    expect(host.birthOf("press-1")["Zone 1/temp"]).toMatchObject({ datatype: 10, alias: 5 });
    expect(host.values.at(-1)).toMatchObject({ name: "more", value: true });
  });

  it("brings back removed variables of an older layout, under their name, or under name@type where the type is another one now", () => {
    const now = layoutOf(variableOf("temp", "float64"));
    const older = layoutOf(variableOf("temp", "int16"), variableOf("gone", "bool"));
    const { host, write } = born(now);
    write(batchOf(now, readoutOf([good(1.5)], { time: TIME + 9 })));
    write(backlogOf(older, readoutOf([good(3), good(true)])));
    write(batchOf(now, readoutOf([good(2.5)], { time: TIME + 10 })));
    expect(host.faults).toEqual([]);
    expect(host.values.map(({ name, value }) => [name, value])).toEqual([
      ["temp", 1.5],
      ["temp@int16", 3],
      ["gone", true],
      ["temp", 2.5],
    ]);
    expect(host.messages.filter(({ verb }) => verb === "DBIRTH")).toHaveLength(2);
  });

  it("keeps sequence number, aliases and births right over any course, and every value to the digit", () => {
    const layouts = [press, layoutOf(count, variableOf("x", "int8[2]")), layoutOf(variableOf("count", "string(9)"))];
    const values: readonly (readonly (() => unknown)[])[] = [[() => 1.5, () => 2n ** 63n], [() => 5n, () => [-128, 127]], [() => "ü"]];
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ layout: fc.nat(2), source: fc.constantFrom("a", "b/c"), back: fc.boolean(), at: fc.nat(3000) }) },
      { weight: 1, arbitrary: fc.constantFrom("rebirth" as const, "reconnect" as const, "death" as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let now = session();
        now.hand(now.node.birth(TIME));
        const sent: unknown[] = [];
        for (const s of steps) {
          if (s === "reconnect") now = session(now.memory, nextBdSeq(now.node.bdSeq), now.host);
          if (s === "reconnect" || s === "rebirth") now.hand(now.node.birth(TIME));
          else if (s === "death") {
            for (const device of now.node.devices) if (device.isBorn) now.hand(now.node.deviceDeath(device, TIME));
          } else {
            const shape = layouts[s.layout] ?? press;
            const layout = { ...shape, source: { uuid: s.source, name: s.source } };
            const readings = (values[s.layout] ?? []).map((one) => good(one()));
            const batch = { ...batchOf(layout, readoutOf(readings, { time: TIME + s.at } as Partial<Readout>)), backlog: s.back };
            now.write(batch, () => 60);
            sent.push(...readings.map((reading) => ("value" in reading ? reading.value : null)));
          }
        }
        expect(now.host.faults).toEqual([]);
        expect(now.host.values.map(({ value }) => value)).toEqual(sent);
      }),
      { numRuns: 200 },
    );
  });
});

describe("commands", () => {
  const ncmd = nodeTopic(TOPICS, "NCMD");
  const dcmd = "spBv1.0/plant/DCMD/line-3/press-1";
  const rebirth = { name: "Node Control/Rebirth", booleanValue: true };

  it.each([
    ["Rebirth", ncmd, { metrics: [rebirth] }, { isRebirth: true, refused: 0, names: [] }],
    [
      "Rebirth with another metric",
      ncmd,
      { metrics: [{ name: "a", intValue: 1 }, rebirth] },
      { isRebirth: true, refused: 1, names: ["a"] },
    ],
    ["Rebirth that is false", ncmd, { metrics: [{ ...rebirth, booleanValue: false }] }, { isRebirth: false, refused: 1 }],
    ["Rebirth without a value", ncmd, { metrics: [{ name: "Node Control/Rebirth", isNull: true }] }, { isRebirth: false, refused: 1 }],
    ["Rebirth for a device", dcmd, { metrics: [rebirth] }, { isRebirth: false, refused: 1 }],
    [
      "a write to a device by alias",
      dcmd,
      { metrics: [{ alias: 3, doubleValue: 1 }] },
      { isRebirth: false, refused: 1, names: ["alias 3"] },
    ],
    ["Reboot", ncmd, { metrics: [{ name: "Node Control/Reboot", booleanValue: true }] }, { isRebirth: false, refused: 1 }],
    ["nothing", ncmd, { metrics: [] }, { isRebirth: false, refused: 1, names: [] }],
  ])("%s", (_, topic, payload, outcome) => {
    const { node } = born();
    expect(node.command(topic, encoded(payload))).toMatchObject(outcome);
    expect(node.refusedCommands).toBe(outcome.refused);
  });

  it("counts bytes that are not a payload as one refused command", () => {
    const { node, host, hand } = born();
    expect(node.command(ncmd, Buffer.from("{}"))).toEqual({ isRebirth: false, refused: 1, names: [] });
    hand(node.refusedData(TIME));
    expect(host.messages.at(-1)?.payload.metrics).toEqual([{ alias: 1, timestamp: TIME, field: "longValue", value: 1n }]);
    expect(host.faults).toEqual([]);
  });

  it("a loss is a metric of the node, in NDATA and in the next NBIRTH", () => {
    const { node, host, hand } = born();
    hand(node.lossData('{"count":5}', TIME));
    hand(node.birth(TIME));
    expect(host.messages.at(-2)).toMatchObject({ verb: "NDATA", payload: { metrics: [{ alias: 2, value: '{"count":5}' }] } });
    expect(host.node.get("Collector/Loss")).toMatchObject({ value: '{"count":5}' });
    expect(host.faults).toEqual([]);
  });
});
