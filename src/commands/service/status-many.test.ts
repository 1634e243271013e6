import fc from "fast-check";
import { expect, test } from "vitest";
import { CONDITIONS } from "../../model/condition.ts";
import { FAULTS } from "../../model/fault.ts";
import type { ServiceStatus, SourceStatus } from "../../model/service-status.ts";
import { reported } from "../../model/testing/warnings.ts";
import { errorWords } from "../../service/words/state-words.ts";
import { namesWithin, wrapped } from "../lines.ts";
import { renderStatus } from "./status.ts";
import { foldFailing } from "./status-folded.ts";

const NOW = Date.parse("2026-11-20T09:05:00.000Z");
type Error = NonNullable<SourceStatus["error"]>;

function source(n: number, error: Error | null = null, more: Partial<SourceStatus> = {}): SourceStatus {
  const since = "2026-11-20T09:00:00.000Z";
  return {
    uuid: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
    name: `press-${n}`,
    type: "modbus_tcp",
    endpoint: `10.0.0.${n}:502`,
    status: {
      last_readout_at: "2026-11-20T09:04:59.000Z",
      configured_variables: 2,
      state: error ? { type: "ERROR", reason: error.reason, error_at: since } : { type: "OK" },
    },
    since,
    error,
    next_retry_at: null,
    interval_ms: 1000,
    warnings: [],
    counters: { readouts: 300, failed_readouts: 0, overruns: 0, values_read: 600, values_faulted: 0, values_unchanged: 0, connects: 1 },
    faults: [],
    ...more,
  };
}
const timeout: Error = { reason: { type: "TIMEOUT" }, condition: null, detail: "no answer within 3000 ms" };
const refused: Error = { reason: { type: "CONNECTION_REFUSED" }, condition: null, detail: "ECONNREFUSED" };
const policy: Error = { reason: { type: "UNKNOWN" }, condition: "forbidden_by_policy", detail: "closed" };
const unknown: Error = { reason: { type: "UNKNOWN" }, condition: "protocol_violation", detail: "HTTP" };
const name: Error = { reason: { type: "LOOKUP_ERROR" }, condition: null, detail: "no such name" };

const report = (sources: readonly SourceStatus[]): ServiceStatus => ({
  version: "1.2.3",
  collector: "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33",
  started_at: "2026-11-20T07:00:00.000Z",
  config: { origin: "api", api_url: "http://127.0.0.1:8420", ok: true, message: null, since: "2026-11-20T07:00:00.000Z", warnings: [] },
  sources,
  sinks: [],
  buffer: { bytes: 0, max_bytes: 2 ** 30, unanswered_bytes: 0, rejected: {}, suppressed: 0, removed_sinks: [], lost: null },
  alarms: [],
});
const rowsIn = (lines: readonly string[]): number => lines.reduce((sum, { length }) => sum + Math.max(1, Math.ceil(length / 80)), 0);
const linesOf = (text: string): readonly string[] => text.trimEnd().split("\n");

test("two hundred sources with every kind of trouble are a page of a terminal", () => {
  const errors = [timeout, refused, policy, unknown, name];
  const sources = Array.from({ length: 200 }, (_, i) =>
    source(i, i % 3 === 0 ? (errors[(i / 3) % 5] ?? null) : null, i % 7 === 0 ? { warnings: [reported("slow")] } : {}),
  );
  const bad = sources.map((one, i) =>
    i % 10 === 1 ? { ...one, faults: [{ variable: "v", fault: "stale" as const, detail: null }] } : one,
  );
  const lines = linesOf(renderStatus(report(bad), NOW));
  expect(rowsIn(lines)).toBeLessThanOrEqual(24);
  expect(lines.join("\n")).toContain("Data sources: 200 (133 OK, 67 ERROR); 20 with bad variables; data sinks: none");
  expect(lines.join("\n")).toMatch(/\n14 × TIMEOUT \(press-0, .*, … \d+ more\): collector probe press-0\n/);
  expect(lines.join("\n")).toMatch(/\n20 variables stale \(press-1, .*more\): collector explain press-1 v\n/);
  expect(lines.join("\n")).not.toContain("--failing");
});

test("a few causes of many sources are explained in full", () => {
  const sources = Array.from({ length: 40 }, (_, i) => source(i, i % 2 === 0 ? timeout : null));
  expect(renderStatus(report(sources), NOW)).toMatch(/\n20 × TIMEOUT for 5 min: press-0, .*, … \d+ more\n {2}Next step: Check power/);
});

/** Every reason and condition, and OPC UA codes: different causes. */
const CAUSES: readonly Error[] = [
  ...(
    ["LOOKUP_ERROR", "NO_ROUTE_TO_HOST", "HOST_DOWN", "NETWORK_UNREACHABLE", "CONNECTION_REFUSED", "CONNECTION_RESET", "TIMEOUT"] as const
  ).map((type): Error => ({ reason: { type }, condition: null, detail: "as the system says" })),
  ...CONDITIONS.filter((condition) => condition !== "all_variables_faulted").map(
    (condition): Error => ({ reason: { type: "UNKNOWN" }, condition, detail: "as the detail says" }),
  ),
  ...["BadTooManySessions", "BadUserAccessDenied", "BadCertificateUntrusted"].map(
    (name, i): Error => ({
      reason: { type: "OPC_UA_ERROR_RESPONSE", code: 0x80560000 + i, name, description: null, reason: null },
      condition: null,
      detail: "",
    }),
  ),
  ...["a", "b", "c"].map(
    (digits): Error => ({
      reason: { type: "UNKNOWN" },
      condition: "certificate_refused",
      detail: `its certificate is not trusted: \`sudo collector pki trust ${digits.repeat(64)}\``,
    }),
  ),
];

/** A command, or a sentence that tells somebody to do something. */
const NEXT_STEP =
  /^(sudo )?(collector|journalctl|timedatectl) [-a-z]|^(If|Check|Close|Correct|Compare|Do|Enter|Free|Give|Look|Move|Open|Permit|Set|Type|Wait) /;

test("each of up to twelve different causes over two hundred sources is named with its next step, on a page of a terminal; of more the rest is counted", () => {
  const cases = fc.record({
    causes: fc.shuffledSubarray([...CAUSES], { minLength: 1 }),
    faults: fc.shuffledSubarray([...FAULTS], { maxLength: 3 }),
    seed: fc.infiniteStream(fc.nat(1000)),
    hasNotes: fc.boolean(),
  });
  fc.assert(
    fc.property(cases, ({ causes, faults, seed, hasNotes }) => {
      const sources = Array.from({ length: 200 }, (_, i) => {
        // The first ones have each cause and fault once, the others any or none.
        const error = i < causes.length ? causes[i] : causes[seed.next().value ?? 0];
        const fault = error ? undefined : faults[seed.next().value ?? 0];
        return source(i, error ?? null, {
          faults: fault ? [{ variable: "v 1", fault, detail: null }] : [],
          warnings: hasNotes ? [reported("slow")] : [],
        });
      });
      const found = faults.filter((fault) => sources.some((one) => one.faults.some((known) => known.fault === fault)));
      const text = renderStatus(report(sources), NOW);
      expect(rowsIn(linesOf(text))).toBeLessThanOrEqual(24);
      const count = causes.length + found.length;
      const more = /… (\d+) more causes? at \d+ data sources: collector status --failing/.exec(text)?.[1];
      expect(Number(more ?? 0)).toBe(Math.max(0, count - 12));
      if (count > 12) return;
      for (const error of causes) {
        const same = sources.filter((one) => one.error === error);
        const words = "name" in error.reason ? error.reason.name : errorWords(error);
        const begin = new RegExp(`^${same.length} × ${words}\\b.*[ (]${same[0]?.name}\\b`);
        const at = linesOf(text).findIndex((one) => begin.test(one));
        const [head = "", next = ""] = linesOf(text).slice(at, at + 2);
        const step = next.startsWith("  ") ? next.replace("Next step: ", "").trim() : head.split(": ").at(-1);
        expect(step?.replace(/ press-\d+| [abc]{64}/, " *")).toMatch(NEXT_STEP);
      }
      for (const fault of found)
        expect(text).toMatch(new RegExp(`\\n\\d+ variables? ${fault}( \\(.*\\))?:(\\n {2}| )collector (explain|status) press-`));
    }),
    { numRuns: 200 },
  );
});

test("equal causes are explained once, whatever their details say, and heal one by one", () => {
  const few = [source(1, timeout), source(2, { ...timeout, detail: "another" }), source(3, refused), source(4)];
  const text = renderStatus(report(few), NOW);
  expect(text.match(/Next step:/g)).toHaveLength(2);
  expect(text).toMatch(/\nTIMEOUT: 2 data sources, the first for 5 min\n {2}Sources: {3}press-1, press-2\n {2}Detail: .*\(press-1\)\n/);
  expect(text).toContain("press-3: 10.0.0.3:502 refused the connection.");
  const healed = renderStatus(report([source(1), ...few.slice(1)]), NOW);
  expect(healed).toContain("press-2: 10.0.0.2:502 did not answer in time.");
  expect(foldFailing([source(1), source(2)])).toEqual([]);
});

test("silences of different causes are not one cause", () => {
  const of = (condition: Error["condition"]): Error => ({ ...timeout, condition });
  const conditions = ["unit_silent", "never_answered", "answers_no_more", "answers_too_slow"] as const;
  const sources = conditions.flatMap((condition, n) => [source(2 * n + 1, of(condition)), ...(n === 0 ? [source(20, of(condition))] : [])]);
  expect(foldFailing(sources).map(({ error, sources: same }) => [error.condition, same.length])).toEqual(
    conditions.map((condition, n) => [condition, n === 0 ? 2 : 1]),
  );
});

test("OPC UA errors of different codes are different causes", () => {
  const of = (code: number): Error => ({
    reason: { type: "OPC_UA_ERROR_RESPONSE", code, name: null, description: null, reason: null },
    condition: null,
    detail: "",
  });
  expect(foldFailing([source(1, of(1)), source(2, of(2)), source(3, of(1))]).map(({ sources }) => sources.length)).toEqual([2, 1]);
});

test("a clock that is not right has a line each, and none once it is", () => {
  const of = (clock: NonNullable<ServiceStatus["clock"]>) => renderStatus({ ...report([source(1)]), clock }, NOW);
  const time = "2026-11-20T09:05:00.000Z";
  expect(of({ time, synchronised: true, jumped: null })).not.toContain("Clock");
  const wrong = of({ time, synchronised: false, jumped: { at: "2026-11-20T08:00:00.000Z", by_ms: -3_600_000 } });
  expect(wrong).toContain("Clock: not synchronised");
  expect(wrong).toContain("Clock: set 1 h back at 2026-11-20T08:00:00.000Z");
  expect(of({ time, synchronised: true, jumped: { at: "2026-11-18T08:00:00.000Z", by_ms: 5000 } })).not.toContain("Clock");
});

test("--failing and one source leave the rest away", () => {
  const many = Array.from({ length: 40 }, (_, i) => source(i, i < 30 ? timeout : null));
  const failing = renderStatus(report(many.slice(0, 30)), NOW, { failing: true });
  expect(failing).toContain("press-29");
  expect(failing).not.toContain("… ");
  expect(renderStatus(report([]), NOW, { failing: true })).toContain("No data source fails.");
  expect(renderStatus(report(many), NOW, { all: true })).toContain("\npress-39 ");
  const faults = Array.from({ length: 12 }, (_, i) => ({ variable: `v${i}`, fault: "stale" as const, detail: null }));
  const one = renderStatus(report([source(1, timeout, { faults })]), NOW, { source: "press-1" });
  expect(one).toMatch(/^press-1 \(modbus_tcp 10\.0\.0\.1:502\)\n {2}State: {5}ERROR TIMEOUT for 5 min\n/);
  expect(one).toMatch(/\n {2}Cause: .*\n.*\n {2}v11: stale\n.*collector probe press-1\n.*\n$/s);
});

test("in a terminal the tables leave out what is in no hurry, instead of breaking their rows", () => {
  const wide = source(1, timeout, { endpoint: "[2001:db8::1234:5678]:44818", type: "vendor_gateway" });
  const of = (columns?: number) =>
    linesOf(renderStatus(report([wide, source(2)]), NOW, { columns })).filter(
      (line) => /^(SOURCE|press)/.test(line) && !line.includes(": "),
    );
  expect(of()[0]).toMatch(/^SOURCE +TYPE +ENDPOINT +STATE +FOR +INTERVAL +VARIABLES +BAD +READ +OVERRUNS$/);
  expect(of(200)).toEqual(of());
  expect(of(80)[0]).toMatch(/^SOURCE +TYPE +ENDPOINT +STATE +FOR +VARIABLES +BAD$|^SOURCE +ENDPOINT +STATE +FOR +VARIABLES +BAD$/);
  for (const line of of(80)) expect(line.length).toBeLessThanOrEqual(80);
  // What is wrong stays, however narrow it is.
  expect(of(20)[0]).toMatch(/^SOURCE +STATE +FOR +BAD$/);
});

test("lines and lists of names fit their columns", () => {
  expect(wrapped("a bb ccc dddd", "  ", 6)).toEqual(["a bb", "  ccc", "  dddd"]);
  // A command stays whole, to be copied.
  expect(wrapped("  set it with `collector set a b`, or not", "    ", 24)).toEqual([
    "  set it with",
    "    `collector set a b`,",
    "    or not",
  ]);
  expect(namesWithin(["a", "b", "c"], 80)).toBe("a, b, c");
  expect(namesWithin(["aaaa", "bbbb", "cccc", "dddd"], 18)).toBe("aaaa, … 3 more");
});
