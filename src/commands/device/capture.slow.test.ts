import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { plant, source, variable } from "../../../test/support/agent.ts";
import { askedAgent } from "../../../test/support/asked-agent.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { EXIT } from "../io.ts";
import { runCommandWith, settingsFile } from "../testing.ts";

const FRAMES = { sourceBytes: 65_536, totalBytes: 1 << 20 };
const SECTION = Buffer.of(0x0a, 0x0d, 0x0d, 0x0a);

async function here(frames = FRAMES) {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  const device = await plant({ units: new Map([[1, { holding: new Map([[0, 7]]) }]]) });
  const { agent } = await askedAgent(folder, { frames });
  const one = source(1, device.port, { variables: [variable(1, 1, "holding:0", { name: "force" })], local: { interval: "50ms" } });
  await agent.apply([one]);
  await expect.poll(() => agent.reports()[0]?.counters.readouts ?? 0).toBeGreaterThan(1);
  const name = one.record.name;
  const run = (...words: string[]) => runCommandWith({}, "capture", name, ...words, "--config", config);
  return { folder, agent, name, run, config, out: path.join(folder, "out.pcapng") };
}

it("writes what is kept, for its owner alone, and never over another file", async () => {
  const { run, out, name } = await here();
  const { code, out: text } = await run("--out", out);
  expect(code).toBe(EXIT.good);
  expect(text).toContain(`frames and events of ${name}`);
  expect(text).toContain("Look at it: wireshark out.pcapng");
  const capture = readFileSync(out);
  expect(capture.subarray(0, 4)).toEqual(SECTION);
  // A request and its answer: function 3, one register; its value.
  expect(capture.includes(Buffer.of(3, 0, 0, 0, 1))).toBe(true);
  expect(capture.includes(Buffer.of(3, 2, 0, 7))).toBe(true);
  expect(statSync(out).mode & 0o777).toBe(0o600);
  const again = await run("--out", out);
  expect([again.code, again.err]).toEqual([EXIT.usage, expect.stringContaining("is there already; name another file with --out")]);
  expect(readFileSync(out)).toEqual(capture);
});

it("goes on with what comes, and says in JSON what it has", async () => {
  const { run, out, agent, name } = await here();
  const before = agent.reports()[0]?.counters.readouts ?? 0;
  const { code, out: text } = await run("--for", "1s", "--out", out, "--json");
  expect(code).toBe(EXIT.good);
  const found = JSON.parse(text) as { events: number; bytes: number; missing: number; from: string; to: string };
  expect(found).toMatchObject({ source: name, type: "modbus_tcp", file: out, missing: 0, withheld: 0 });
  expect(found.bytes).toBe(statSync(out).size);
  expect(found.events).toBeGreaterThanOrEqual(2 * before);
  expect(Date.parse(found.to)).toBeGreaterThan(Date.parse(found.from));
});

it("goes to a pipe, and refuses what cannot be", async () => {
  const { run, folder, config } = await here();
  const piped = await run("--out", "-");
  expect([piped.code, piped.err]).toEqual([EXIT.good, ""]);
  expect(Buffer.from(piped.out, "latin1").subarray(0, 4)).toEqual(SECTION);
  for (const [words, problem] of [
    [["--out", "-", "--json"], "--json: the capture itself goes"],
    [["--for", "soon"], "--for soon: expected a duration such as 30s"],
    [["--for", "2h"], "at most 1h"],
    [["--out", path.join(folder, "no", "such.pcapng")], "cannot be written"],
  ] as const) {
    const refused = await run(...words);
    expect([refused.code, refused.err]).toEqual([EXIT.usage, expect.stringContaining(problem)]);
  }
  const unknown = await runCommandWith({}, "capture", "nobody", "--config", config);
  expect([unknown.code, unknown.err]).toEqual([EXIT.usage, expect.stringContaining('the service reads no data source "nobody"')]);
});

it("says why nothing is kept, and what to do without a service", async () => {
  const { run } = await here({ ...FRAMES, sourceBytes: 0 });
  const off = await run();
  expect([off.code, off.err]).toEqual([EXIT.usage, expect.stringContaining("captures.source_bytes is 0B")]);
  const folder = temporaryFolder();
  const alone = await runCommandWith({}, "capture", "press-1", "--config", settingsFile(folder, {}));
  expect([alone.code, alone.err]).toEqual([EXIT.ownFailure, expect.stringContaining("the collector does not run here")]);
});
