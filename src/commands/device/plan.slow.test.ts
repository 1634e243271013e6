import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { plant, source, variable } from "../../../test/support/agent.ts";
import { askedAgent } from "../../../test/support/asked-agent.ts";
import { COLLECTOR, startTestServer, temporaryFolder } from "../../api/server/testing.ts";
import { EXIT } from "../io.ts";
import { runCommandWith, settingsFile } from "../testing.ts";

function here(settings: Readonly<Record<string, unknown>> = {}) {
  const folder = temporaryFolder();
  const config = settingsFile(folder, settings);
  writeFileSync(join(folder, "policy.yaml"), "sources: {networks: [127.0.0.0/8]}\n");
  return { folder, run: (...words: string[]) => runCommandWith({ env: { HOME: folder } }, "plan", ...words, "--config", config) };
}

it("tells of a source that the service reads: requests, bytes, time, interval, without a connection of its own", async () => {
  const { folder, run } = here();
  const device = await plant();
  const { agent } = await askedAgent(folder);
  const variables = [
    variable(1, 1, "holding:0"),
    variable(1, 2, "holding:1"),
    variable(1, 3, "holding:900"),
    variable(1, 4, "9/holding:0"),
  ];
  await agent.apply([source(1, device.port, { variables })]);
  await expect.poll(() => agent.reports()[0]?.counters.readouts).toBeGreaterThan(2);
  const json = await run("machine-1", "--json");
  const found = JSON.parse(json.out);
  expect([json.code, json.err, found.from]).toEqual([EXIT.good, "", "service"]);
  expect(found).toMatchObject({
    source: { name: "machine-1", type: "modbus_tcp" },
    interval_ms: 50,
    variables: 4,
    bytes: 4,
    requests: 1,
    set_aside: 1,
    silent: ["unit 9"],
    limits: { maxRegisters: 125, inFlight: 1 },
    measured: { readouts: expect.any(Number), unreached: 0 },
    first_requests: [{ words: expect.stringContaining("holding"), part: "unit 1", variables: 2, bytes: 4 }],
  });
  expect(found.feasible_interval_ms).toBeGreaterThan(0);
  const text = (await run("machine-1")).out;
  expect(text).toMatch(/^machine-1 \(modbus_tcp 127.*\), as the service reads it\n {2}Plan: +1 request for 4 variables, 4 B of answers/);
  expect(text.match(/Proposal: .*/g)).toHaveLength(1);
  expect(text).toMatch(/\n {2}Measured: .*median of \d+ readouts.*\n {2}Interval: +50 ms: the plan /);
  expect(Math.max(...text.split("\n").map(({ length }) => length))).toBeLessThan(200);
  expect(device.connections()).toBe(1);
});

it("proposes an interval where the plan does not fit, and says how long the buffer lasts", async () => {
  const { folder, run } = here();
  const device = await plant({ misbehave: () => ({ delayMs: 80 }) });
  const left = { hours: 71.5, filling: false, bytes_per_hour: 1000, bound: "max_bytes", warn_below_hours: 12 };
  const { agent } = await askedAgent(folder, {}, { buffer: { left } as never });
  await agent.apply([source(1, device.port)]);
  await expect.poll(() => agent.reports()[0]?.counters.readouts).toBeGreaterThan(1);
  const { out } = await run("machine-1", "--json");
  expect(JSON.parse(out)).toMatchObject({ fits: false, interval_ms: 50, buffer_left: { hours: 71.5, filling: false } });
  expect([200, 250, 500, 1000]).toContain(JSON.parse(out).feasible_interval_ms);
  expect((await run("machine-1")).out).toMatch(
    /Interval: +50 ms: the plan does not fit, which takes .* with some room\n(.*\n)* {2}Proposal: +lengthen the interval: `collector source set machine-1 --interval \d+m?s`\n/,
  );
  expect((await run("machine-1")).out).toMatch(/\n {2}Buffer: +room for 3 d of values at today's rate, of all data sources together\n/);
});

it("reads a source itself where no service runs, and says so; what fails has its reason", async () => {
  const { folder, run } = here({ collector: COLLECTOR });
  const api = await startTestServer(undefined, COLLECTOR, { socketFile: join(folder, "api.sock") });
  mkdirSync(join(folder, "keys"), { recursive: true });
  writeFileSync(join(folder, "keys", "admin.key"), api.adminKey);
  const device = await plant();
  const add = (name: string, port: number) =>
    api.send("POST", "/v2/data-sources", {
      name,
      collector: COLLECTOR,
      machine: COLLECTOR,
      details: { type: "modbus_tcp", host: "127.0.0.1", port },
    });
  await add("press-1", device.port);
  await add("press-2", 1);
  mkdirSync(join(folder, "variables"));
  for (const name of ["press-1", "press-2"])
    writeFileSync(join(folder, "variables", `${name}.csv`), "name;address;type\nspeed;holding:1;\n");
  const { code, out, err } = await run("press-1", "--json");
  expect([code, err]).toEqual([EXIT.good, expect.stringContaining("over a connection of its own")]);
  expect(JSON.parse(out)).toMatchObject({ from: "own connection", requests: 1, bytes: 2, fits: true, interval_ms: 10_000 });
  const failed = await run("press-2", "--json");
  expect([failed.code, JSON.parse(failed.out).reason]).toEqual([EXIT.sourceFailed, { type: "CONNECTION_REFUSED" }]);
  expect(await run("press-9")).toMatchObject({ code: EXIT.usage, err: expect.stringContaining("there is no data source press-9") });
});
