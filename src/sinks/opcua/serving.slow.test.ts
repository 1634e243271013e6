import { EventEmitter } from "node:events";
import { DataValue } from "node-opcua-client";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { silentLog } from "../../model/context.ts";
import type { Layout } from "../../model/layout.ts";
import { codesOf, textsOf } from "../../model/testing/warnings.ts";
import type { Nodes, UaObject } from "./nodes.ts";
import { createPoint, type ServedVariable } from "./points.ts";
import { Serving } from "./serving.ts";
import { batchOf, failing, good, layoutOf, reportOf, variableOf } from "./testing/rig.ts";

/** Stands for node-opcua: names by id, as a client would browse them. */
function fakeMaker(): { readonly maker: Nodes; readonly names: Map<string, string>; readonly nodes: Map<string, ServedVariable> } {
  const names = new Map<string, string>();
  const nodes = new Map<string, ServedVariable>();
  const idOf = (node: unknown): string => (node as { id: string }).id;
  const add = (id: string, name: string): UaObject => {
    if (names.has(id)) throw new Error(`${id} is taken`);
    names.set(id, name);
    return { id } as unknown as UaObject;
  };
  const served = (id: string): ServedVariable => {
    const node = Object.assign(new EventEmitter(), { id, $dataValue: new DataValue(null) }) as unknown as ServedVariable;
    nodes.set(id, node);
    return node;
  };
  const maker: Nodes = {
    topFolder: add,
    folder: (_parent, id, name) => add(id, name),
    statusVariable(_parent, id, name) {
      add(id, name);
      return createPoint(served(id)).node;
    },
    variable(_parent, variable) {
      add(variable.uuid, variable.name);
      const point = createPoint(served(variable.uuid));
      return { variable, node: point.node as never, point, unit: undefined };
    },
    change(_parent, known, variable) {
      known.variable = variable;
      names.set(variable.uuid, variable.name);
    },
    openLength: () => {},
    rename: (_parent, node, name) => void names.set(idOf(node), name),
    remove(node) {
      for (const id of [...names.keys()]) if (id === idOf(node) || id.startsWith(`${idOf(node)}/`)) names.delete(id);
    },
  };
  return { maker, names, nodes };
}

let nowMs: number;
let serving: Serving;
let fake: ReturnType<typeof fakeMaker>;
let intervals: Map<string, number>;
beforeEach(() => {
  nowMs = 0;
  fake = fakeMaker();
  intervals = new Map();
  serving = new Serving(fake.maker, intervals, { log: silentLog, nowMs: () => nowMs });
});

const LAYOUT = layoutOf("press", variableOf("a", { scalar: "int16" }), variableOf("b", { scalar: "int16" }));
const shown = (id: string): readonly [string, unknown] => {
  const { statusCode, value } = fake.nodes.get(id)?.$dataValue ?? new DataValue(null);
  return [statusCode.name, value.value];
};

describe("quality", () => {
  test("waits for the first value, is good, the last usable one, and then nothing", async () => {
    await serving.describe([reportOf(LAYOUT)]);
    expect(shown("v-a")).toEqual(["BadWaitingForInitialData", null]);
    // Ahead of the wall clock: the time that this test takes is no age.
    await serving.write(batchOf(LAYOUT, [good(1), { quality: "uncertain", value: 2 }], Date.now() + 10_000));
    expect([shown("v-a"), shown("v-b")]).toEqual([
      ["Good", 1],
      ["Uncertain", 2],
    ]);
    await serving.describe([failing(LAYOUT)]);
    expect([shown("v-a"), shown("v-b")]).toEqual([
      ["UncertainLastUsableValue", 1],
      ["UncertainLastUsableValue", 2],
    ]);
    nowMs = 2999;
    await serving.sweep();
    expect(shown("v-a")).toEqual(["UncertainLastUsableValue", 1]);
    nowMs = 3000;
    await serving.sweep();
    expect(shown("v-a")).toEqual(["BadNoCommunication", null]);
    await serving.write(batchOf(LAYOUT, [good(3), undefined]));
    await serving.describe([reportOf(LAYOUT)]);
    expect([shown("v-a"), shown("v-b")]).toEqual([
      ["Good", 3],
      ["BadNoCommunication", null],
    ]);
  });

  test("a failure before the first value leaves it waiting", async () => {
    await serving.describe([failing(LAYOUT)]);
    nowMs = 100_000;
    await serving.sweep();
    expect(shown("v-a")).toEqual(["BadWaitingForInitialData", null]);
  });

  test("a wrong address stays a wrong address while its source fails", async () => {
    await serving.describe([reportOf(LAYOUT)]);
    await serving.write(batchOf(LAYOUT, [{ quality: "bad", fault: "not_found" }, good(1)]));
    await serving.describe([failing(LAYOUT)]);
    nowMs = 100_000;
    await serving.sweep();
    expect([shown("v-a"), shown("v-b")]).toEqual([
      ["BadConfigurationError", null],
      ["BadNoCommunication", null],
    ]);
  });

  test("a source that falls silent without a word is not believed for ever", async () => {
    await serving.describe([reportOf(LAYOUT)]);
    await serving.write(batchOf(LAYOUT, [good(1), good(2)]));
    nowMs = 14_000;
    await serving.sweep();
    expect(shown("v-a")).toEqual(["Good", 1]);
    nowMs = 15_000;
    await serving.sweep();
    expect(shown("v-a")).toEqual(["BadNoCommunication", null]);
  });

  test("time stamps: the device's, else the readout's; the server's is now", async () => {
    await serving.describe([reportOf(LAYOUT)]);
    const at = Date.now() - 2000;
    await serving.write(batchOf(LAYOUT, [good(1, { sourceTime: at - 1000 }), good(2)], at));
    expect([fake.nodes.get("v-a"), fake.nodes.get("v-b")].map((node) => node?.$dataValue.sourceTimestamp?.getTime())).toEqual([
      at - 1000,
      at,
    ]);
    const server = fake.nodes.get("v-a")?.$dataValue.serverTimestamp?.getTime() ?? 0;
    expect(Math.abs(server - Date.now())).toBeLessThan(5000);
    await serving.describe([failing(LAYOUT)]);
    expect(fake.nodes.get("v-a")?.$dataValue.sourceTimestamp?.getTime()).toBe(at - 1000);
  });

  test("a value from long before the server opened is not shown as good; later ones are, whatever the wall clock says", async () => {
    await serving.describe([reportOf(LAYOUT)]);
    await serving.write(batchOf(LAYOUT, [good(1), { quality: "bad", fault: "not_found" }], Date.now() - 3_600_000));
    expect([shown("v-a"), shown("v-b")]).toEqual([
      ["BadNoCommunication", null],
      ["BadConfigurationError", null],
    ]);
    await serving.write(batchOf(LAYOUT, [good(2), good(2)], Date.now() - 3_600_000));
    expect(shown("v-a")).toEqual(["Good", 2]);
    const slow = layoutOf("tank", variableOf("level", { scalar: "int16" }));
    await serving.describe([reportOf(slow, { interval_ms: 3_600_000 })]);
    await serving.write(batchOf(slow, [good(3)], Date.now() - 1_800_000));
    expect(shown("v-level")).toEqual(["Good", 3]);
  });

  test("a value that is not of its type is said so, and hurts no other", async () => {
    await serving.describe([reportOf(LAYOUT)]);
    await serving.write(batchOf(LAYOUT, [good("text"), good(2)]));
    expect([shown("v-a"), shown("v-b")]).toEqual([
      ["BadTypeMismatch", null],
      ["Good", 2],
    ]);
  });
});

describe("describe", () => {
  test("follows what is added, renamed, moved and removed", async () => {
    const other = layoutOf("oven", variableOf("c", { scalar: "bool" }));
    await serving.describe([reportOf(LAYOUT), reportOf(other)]);
    expect(serving).toMatchObject({ sources: 2, variables: 3 });
    const renamed: Layout = {
      source: { uuid: "s-press", name: "Press 1" },
      variables: [variableOf("a", { scalar: "int16" }, { name: "A" })],
    };
    const grown: Layout = { ...other, variables: [...other.variables, variableOf("b", { scalar: "int16" })] };
    await serving.describe([reportOf(renamed), reportOf(grown)]);
    expect(fake.names.get("s-press")).toBe("Press 1");
    expect(fake.names.get("v-a")).toBe("A");
    expect(fake.names.get("v-b")).toBe("b");
    await serving.describe([reportOf(grown)]);
    expect(serving).toMatchObject({ sources: 1, variables: 2 });
    expect([...fake.names.keys()].filter((id) => id.startsWith("s-press") || id === "v-a")).toEqual([]);
    expect([...intervals.keys()].sort()).toEqual(["v-b", "v-c"]);
    await serving.describe([]);
    expect(serving).toMatchObject({ sources: 0, variables: 0 });
  });

  test("keeps EXPLORATION variables to itself", async () => {
    const layout = layoutOf("press", variableOf("a", { scalar: "int16" }, { exploration: true }), variableOf("b", { scalar: "int16" }));
    await serving.describe([reportOf(layout)]);
    await serving.write(batchOf(layout, [good(1), good(2)]));
    expect(fake.names.has("v-a")).toBe(false);
    expect(shown("v-b")).toEqual(["Good", 2]);
  });

  test("two variables with one id are one, and the rest is served", async () => {
    const layout = layoutOf("press", variableOf("a", { scalar: "int16" }));
    const twin = layoutOf("oven", variableOf("a", { scalar: "int16" }), variableOf("b", { scalar: "int16" }));
    await serving.describe([reportOf(layout), reportOf(twin)]);
    await serving.write(batchOf(twin, [good(1), good(2)]));
    expect(shown("v-b")).toEqual(["Good", 2]);
    expect(shown("v-a")).toEqual(["BadWaitingForInitialData", null]);
    expect(codesOf(serving.warnings())).toContain("values_not_shown");
    expect(textsOf(serving.warnings())).toEqual(["1 variable of oven cannot be served, the first of them a: v-a is taken"]);
    await serving.describe([reportOf(twin)]);
    expect(serving.variables).toBe(2);
    expect(textsOf(serving.warnings())).toEqual([]);
  });

  test("stops in the middle of its work when it is ended", async () => {
    const layout = layoutOf("big", ...Array.from({ length: 20_000 }, (_, i) => variableOf(`${i}`, { scalar: "int16" })));
    const describing = serving.describe([reportOf(layout)]);
    serving.end();
    await describing;
    expect(fake.names.size).toBeLessThan(20_000);
  });

  test("values that came first are shown once their variables are there, and never over newer ones", async () => {
    await serving.write(batchOf(LAYOUT, [good(1), good(1)]));
    const half: Layout = { ...LAYOUT, variables: LAYOUT.variables.slice(0, 1) };
    await serving.describe([reportOf(half)]);
    expect(shown("v-a")).toEqual(["Good", 1]);
    await serving.write(batchOf(half, [good(5)]));
    await serving.write(batchOf(LAYOUT, [good(6), good(6)]));
    await serving.describe([reportOf(LAYOUT)]);
    expect([shown("v-a"), shown("v-b")]).toEqual([
      ["Good", 6],
      ["Good", 6],
    ]);
  });

  test("how far the time stamps can be relied on, by source and of the collector, also of values that came before they were described", async () => {
    const clocks = () => ["s-press", "s-oven", "Collector"].map((id) => fake.nodes.get(`${id}/Status/Clock`)?.$dataValue.value.value);
    const oven = layoutOf("oven", variableOf("o", { scalar: "int16" }));
    const stamped = (layout: Layout, clockSynced: boolean, clockCorrectionMs?: number) => {
      const batch = batchOf(layout, [good(1)]);
      const clock = { clockSynced, ...(clockCorrectionMs !== undefined && { clockCorrectionMs }) };
      return { ...batch, readouts: [...batch.readouts].map((readout) => ({ ...readout, ...clock })) };
    };
    await serving.write(stamped(oven, false));
    await serving.describe([reportOf(LAYOUT), reportOf(oven)]);
    await serving.write(stamped(LAYOUT, true));
    expect(clocks()).toEqual(["synchronised", "unsynchronised", "synchronised"]);
    await serving.write(stamped(oven, false, 5000));
    expect(clocks()).toEqual(["synchronised", "corrected", "corrected"]);
    await serving.write(stamped(LAYOUT, false, 0));
    expect(clocks()).toEqual(["synchronised", "corrected", "synchronised"]);
  });

  test("the status of a source and of the collector", async () => {
    await serving.describe([failing(LAYOUT), reportOf(layoutOf("oven"))]);
    const text = (id: string) => fake.nodes.get(id)?.$dataValue.value.value;
    expect(["State", "Reason", "Detail"].map((name) => text(`s-press/Status/${name}`))).toEqual([
      "ERROR",
      "TIMEOUT",
      "no answer within 3 s",
    ]);
    expect(text("s-press/Status/LastReadout")).toEqual(new Date("2026-11-20T09:00:00.000Z"));
    expect(text("s-press/Status/NextRetry")).toEqual(new Date("2026-11-20T09:00:20.000Z"));
    expect(["State", "Reason", "DataSources", "FailingDataSources"].map((name) => text(`Collector/Status/${name}`))).toEqual([
      "ERROR",
      "TIMEOUT",
      2,
      1,
    ]);
    await serving.describe([reportOf(LAYOUT)]);
    expect(["State", "Reason"].map((name) => text(`s-press/Status/${name}`))).toEqual(["OK", ""]);
    expect(text("s-press/Status/NextRetry")).toBeNull();
    expect(text("Collector/Status/State")).toBe("OK");
  });
});

test("the last readout of a source and of the collector is written with its batch, and not when the state changes", async () => {
  const oven = layoutOf("oven", variableOf("c", { scalar: "int16" }));
  const times = () =>
    ["s-press", "s-oven", "Collector"].map((id) => fake.nodes.get(`${id}/Status/LastReadout`)?.$dataValue.value.value?.getTime());
  const [first, second, third] = [1_900_000_000_000, 1_900_000_001_000, 1_900_000_002_000];
  vi.setSystemTime(third + 1000);
  onTestFinished(() => void vi.useRealTimers());
  await serving.describe([reportOf(LAYOUT), reportOf(oven)]);
  await serving.write(batchOf(LAYOUT, [good(1), { quality: "bad", fault: "stale" }], first));
  expect(times()).toEqual([first, undefined, first]);
  await serving.write(batchOf(oven, [good(1)], second));
  expect(times()).toEqual([first, second, second]);
  await serving.write(batchOf(LAYOUT, [{ quality: "bad", fault: "stale" }, undefined], third));
  expect(times()).toEqual([first, second, second]);
  await serving.write(batchOf(LAYOUT, [undefined, good(1)], third));
  await serving.describe([failing(LAYOUT), reportOf(oven)]);
  expect(times()).toEqual([third, second, third]);
  // The clock was an hour ahead, and is set back.
  await serving.write(batchOf(LAYOUT, [undefined, good(1)], third + 3_600_000));
  expect(times()).toEqual([third + 3_600_000, second, third + 3_600_000]);
  await serving.write(batchOf(LAYOUT, [undefined, good(1)], third + 500));
  expect(times()).toEqual([third + 500, second, third + 500]);
});

test("10,000 variables are added and written without holding the thread for long", async () => {
  const layout = layoutOf("big", ...Array.from({ length: 10_000 }, (_, i) => variableOf(`${i}`, { scalar: "int16" })));
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  await serving.describe([reportOf(layout)]);
  await serving.write(
    batchOf(
      layout,
      layout.variables.map((_, i) => good(i)),
    ),
  );
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(1);
  expect(shown("v-9999")).toEqual(["Good", 9999]);
});
