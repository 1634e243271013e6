import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LineDevice, startLineDevice } from "../../../test/support/plugin/line-device.ts";
import { runCommand } from "../testing.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const BROKEN = path.join(ROOT, "test/support/plugin/broken.mjs");
const SAMPLES = {
  Python: ["/usr/bin/python3", path.relative("", path.join(ROOT, "drivers/plugin/samples/line_plugin.py"))],
  TypeScript: [process.execPath, path.join(ROOT, "drivers/plugin/samples/line-plugin.ts")],
} as const;

let device: LineDevice;
let withDevice: readonly string[];
beforeAll(async () => {
  device = await startLineDevice({ temperature: "21.5", count: "7", name: "press 7" });
  withDevice = ["--details", "host=127.0.0.1", "--details", `port=${device.port}`, "--read", "temperature", "--read", "count:uint64"];
});
afterAll(() => device[Symbol.asyncDispose]());

describe("plugin check", () => {
  test.each(Object.entries(SAMPLES))("passes for the sample in %s, with a device and without one", async (_language, command) => {
    const [tried, alone] = await Promise.all([
      runCommand("plugin", "check", ...withDevice, "--json", "--", ...command),
      runCommand("plugin", "check", ...command),
    ]);
    const { ok, checks } = JSON.parse(tried.out) as { ok: boolean; checks: { name: string; outcome: string; detail: string }[] };
    expect(checks.filter(({ outcome }) => outcome !== "passed")).toEqual([]);
    expect([ok, tried.code]).toEqual([true, 0]);
    expect(checks.find(({ name }) => name === "read")?.detail).toBe("temperature = 21.5, count = 7");
    expect(alone).toMatchObject({
      code: 0,
      err: "",
      out: expect.stringContaining("The plugin keeps its contract: 8 checks passed, 6 skipped"),
    });
  });

  test.concurrent.each([
    ["mute", "hello: the plugin did not answer (its hello) within 10000 ms"],
    ["other-contract", "hello: the plugin broke its contract: its first line: hello.contract: expected 1"],
    ["chatters", "quiet: the plugin broke its contract: it sent a line without a request"],
    ["falls-over", "unknown-verb: the plugin ended without a request (exit code 4)"],
    ["validates-all", "validate-empty: it has no problem with details that have no host and no port"],
    ["hangs", "not-open: the plugin did not answer (read) within 1000 ms"],
    ["late", "not-open: the plugin did not answer (read) within 1000 ms"],
    ["dies", "not-open: the plugin ended without a request (exit code 3); it wrote: Traceback: it fell over"],
    ["floods", "not-open: the plugin broke its contract: it sent a line of more than 262144 bytes"],
    ["lies", "not-open: the plugin broke its contract: its answer to read"],
    ["prints", 'not-open: the plugin broke its contract: a line that is not JSON: "debug: reading"'],
    ["other-id", "not-open: the plugin broke its contract: it answered request"],
    ["always-reads", "not-open: read is answered with a result"],
    ["values", "read: a: out_of_range"],
    ["counts", "read: 1 readings for 2 addresses"],
    ["endless", "discover: a comes twice"],
    ["stays", "shutdown: it still ran 2000 ms after shutdown"],
  ])("fails for a plugin that %s, with the reason", async (way, reason) => {
    const words = ["--details", "host=127.0.0.1", "--details", "port=1", "--read", "a:uint16", "--read", "b:uint16", "--timeout", "1s"];
    const { code, out } = await runCommand("plugin", "check", ...words, "--", process.execPath, BROKEN, way);
    expect(out.trim().split("\n").at(-1)).toContain(`The plugin cannot be used: ${reason}`);
    expect(code).toBe(3);
  });

  test.each([
    [["no-such-program-4711"], "there is no such program"],
    [["--type", "s7", "/bin/true"], "--type s7: expected one of"],
    [["--details", "host=127.0.0.1", "/bin/true"], "host and port of the device are missing"],
    [["--read", "a", "/bin/true"], "--read needs the device"],
    [["--timeout", "soon", "/bin/true"], "--timeout soon: expected a duration"],
  ])("says what is wrong in %j", async (words, message) => {
    const { code, err } = await runCommand("plugin", "check", ...words);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });
});
