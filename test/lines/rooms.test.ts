import { describe, expect, test } from "vitest";
import { byRoom, columnOf, countLines, difference, roomOf, sumOf } from "./rooms.ts";

describe("columnOf", () => {
  test.each([
    ["src/agent/agent.ts", "production"],
    ["src/commands/simulate/simulate.ts", "production"],
    ["drivers/s7/link.ts", "production"],
    ["drivers/lib/tcp.ts", "production"],
    ["gateway/gateway.ts", "production"],
    ["build.ts", "production"],
    ["drivers/simulator.ts", "simulators"],
    ["drivers/fins/simulator-plc.ts", "simulators"],
    ["drivers/opcua/simulator/space.ts", "simulators"],
    ["simulators/machines/press.ts", "simulators"],
    ["src/commands/replay/replay.ts", "workbench"],
    ["workbench/read.ts", "workbench"],
    ["src/agent/agent.slow.test.ts", "tests"],
    ["drivers/fins/simulator-tcp.test.ts", "tests"],
    ["src/commands/replay/replay.test.ts", "tests"],
    ["src/buffer/testing/file.ts", "tests"],
    ["src/api/server/testing-openapi.ts", "tests"],
    ["src/sinks/mqtt/testing.ts", "tests"],
    ["test/bench/bench.ts", "tests"],
  ])("%s: %s", (path, column) => {
    expect(columnOf(path)).toBe(column);
  });
});

test.each([
  ["src/main.ts", "src"],
  ["src/agent/search/step.ts", "src/agent"],
  ["drivers/driver.ts", "drivers"],
  ["drivers/opcua/open.ts", "drivers/opcua"],
  ["simulators/machines/press.ts", "simulators"],
  ["vitest.config.ts", "."],
])("roomOf: %s is in %s", (path, room) => {
  expect(roomOf(path)).toBe(room);
});

test("countLines counts a last line without an end", () => {
  expect(["", "a", "a\n", "a\n\nb"].map(countLines)).toEqual([0, 1, 1, 3]);
});

const NOW = byRoom([
  { path: "src/agent/a.ts", lines: 10 },
  { path: "src/agent/b.ts", lines: 5 },
  { path: "src/agent/b.test.ts", lines: 7 },
  { path: "drivers/s7/simulator.ts", lines: 3 },
]);

test("byRoom and sumOf add files up by room and column", () => {
  expect([...NOW]).toEqual([
    ["drivers/s7", { production: 0, simulators: 3, workbench: 0, tests: 0 }],
    ["src/agent", { production: 15, simulators: 0, workbench: 0, tests: 7 }],
  ]);
  expect(sumOf(NOW)).toEqual({ production: 15, simulators: 3, workbench: 0, tests: 7 });
});

test("difference names rooms that grew, shrank or went, and no others", () => {
  const before = byRoom([
    { path: "src/agent/a.ts", lines: 20 },
    { path: "src/agent/b.test.ts", lines: 7 },
    { path: "drivers/s7/simulator.ts", lines: 3 },
    { path: "gateway/gateway.ts", lines: 4 },
  ]);
  expect([...difference(NOW, before)]).toEqual([
    ["gateway", { production: -4, simulators: 0, workbench: 0, tests: 0 }],
    ["src/agent", { production: -5, simulators: 0, workbench: 0, tests: 0 }],
  ]);
});
