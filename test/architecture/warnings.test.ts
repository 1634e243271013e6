import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { WARNINGS } from "../../src/model/words/warnings.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const files = globSync("{src,drivers,test}/**/*.ts", { cwd: ROOT });
const isTest = (file: string): boolean => file.endsWith(".test.ts");
const isProduction = (file: string): boolean =>
  !isTest(file) && !/^test\/|\/testing(\/|\.ts$)/.test(file) && file !== "src/model/words/warnings.ts";
const textOf = (wanted: (file: string) => boolean): string =>
  files
    .filter(wanted)
    .map((file) => readFileSync(path.join(ROOT, file), "utf8"))
    .join("\n");

/** Codes that tests raise and look at by their words alone. The list only becomes shorter. */
const BY_WORDS: readonly string[] = [
  "interval_missing",
  "interval_unit_doubtful",
  "addresses_renumberable",
  "addresses_looked_up",
  "waits_for_turn",
  "endpoint_differs",
  "plugin_unfenced",
  "plugin_has_rights",
  "plugin_ends",
  "protocol_forced",
  "no_encryption",
  "password_in_clear",
  "certificate_unnamed",
  "own_certificate_expires",
  "broker_is_old",
  "raw_without_quality",
  "retain_unsupported",
  "topics_may_collide",
  "status_suspended",
  "link_slow",
  "readout_too_large",
  "value_too_large",
  "listens_here_alone",
  "anonymous_access",
  "client_cut_off",
  "client_refused",
  "connections_exhausted",
  "sessions_exhausted",
  "session_ended",
  "sink_process_ended",
  "settings_unused",
  "profile_unusable",
  "api_not_used",
  "api_in_clear",
  "api_ended",
  "page_ended",
  "buffer_full_of_waiting",
  "buffer_damaged",
  "buffer_newer",
  "buffer_unrecovered",
  "buffer_disk_small",
  "buffer_fills",
  "values_dropped",
  "collector_fails",
];

it("each code of a warning is raised somewhere", () => {
  const program = textOf(isProduction);
  expect(Object.keys(WARNINGS).filter((code) => !program.includes(`"${code}"`))).toEqual([]);
});

it("each code of a warning is looked at by a test", () => {
  const tests = textOf((file) => isTest(file) && file !== "test/architecture/warnings.test.ts");
  expect(Object.keys(WARNINGS).filter((code) => !tests.includes(`"${code}"`))).toEqual(BY_WORDS);
});
