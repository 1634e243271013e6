import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, it } from "vitest";

const UNITS = path.resolve(import.meta.dirname, "../systemd");
const exposureOf = (unit: string) =>
  spawnSync("systemd-analyze", ["security", "--offline=true", "--no-pager", path.join(UNITS, unit)], { encoding: "utf8" });
const isMissing = spawnSync("systemd-analyze", ["--version"]).error !== undefined && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1";

it.skipIf(isMissing).each([
  ["collector.service", 1.1],
  ["collector-credentials.service", 1.2],
])("%s has an exposure of at most %d", (unit, budget) => {
  const { stdout, stderr } = exposureOf(unit);
  expect(stderr).toBe("");
  const [, exposure = "none"] = /exposure level for \S+: ([\d.]+)/.exec(stdout) ?? [];
  expect(Number(exposure)).toBeGreaterThan(0);
  expect(Number(exposure)).toBeLessThanOrEqual(budget);
});
