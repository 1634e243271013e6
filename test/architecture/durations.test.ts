import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** A difference of two times of the wall clock. */
const DIFFERENCE = /(?:Date\.now\(\)|new Date\(\)\.getTime\(\))\)? - | - (?:Date\.now\(\)|Date\.parse\()/;

const SHOWN = "the service shows its times by the clock as it is set now (upMsOf, isoTimeAt)";
const KEPT = "the time lies in a file and outlives the start of the machine";
/** Files that may measure by the wall clock, and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "src/api/server/backups.ts": KEPT,
  "src/commands/configuration/restore.ts": KEPT,
  "src/commands/device/live.ts": SHOWN,
  "src/commands/device/probe-sink.ts": SHOWN,
  "src/commands/device/probe.ts": SHOWN,
  "src/commands/service/doctor-checks.ts": SHOWN,
  "src/console/feed.ts": "the collector's clock beside the browser's",
  "src/console/selection.ts": "an order, not a duration",
  "src/console/timeline.tsx": SHOWN,
  "src/console/words.tsx": SHOWN,
  "src/lib/files.ts": KEPT,
  "src/os/pki/store.ts": KEPT,
  "src/os/pki/trust.ts": KEPT,
  "src/service/process-metrics.ts": SHOWN,
  "src/service/source-metrics.ts": SHOWN,
  "src/service/words/service-words.ts": SHOWN,
  "src/sinks/opcua/serving.ts": "the age of a stamp as the sink was given it",
  "src/sinks/opcua/source-status.ts": "an order, not a duration",
};

test("no duration is a difference of the wall clock, but where a reason stands here", () => {
  const files = globSync(["src/**/*.{ts,tsx}", "drivers/**/*.ts"], { cwd: ROOT });
  const measured = files.filter(
    (file) => !/\.test\.ts$|testing|simulator/.test(file) && DIFFERENCE.test(readFileSync(path.join(ROOT, file), "utf8")),
  );
  expect(measured.toSorted()).toEqual(Object.keys(EXCEPTIONS));
});
