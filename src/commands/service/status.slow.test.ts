import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Condition } from "../../model/condition.ts";
import { silentLog } from "../../model/context.ts";
import type { ServiceStatus, SinkStatus, SourceStatus } from "../../model/service-status.ts";
import { reported } from "../../model/testing/warnings.ts";
import { localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { commandIo } from "../testing.ts";
import { renderStatus, status } from "./status.ts";

const NOW = Date.parse("2026-11-20T09:05:00.000Z");

const press: SourceStatus = {
  uuid: "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11",
  name: "press-1",
  type: "modbus_tcp",
  endpoint: "10.0.0.5:502",
  status: { last_readout_at: "2026-11-20T09:04:59.000Z", configured_variables: 12, state: { type: "OK" } },
  since: "2026-11-20T07:00:00.000Z",
  error: null,
  next_retry_at: null,
  interval_ms: 1000,
  warnings: [],
  counters: { readouts: 7200, failed_readouts: 0, overruns: 3, values_read: 86_400, values_faulted: 0, values_unchanged: 0, connects: 1 },
  faults: [],
};
const oven: SourceStatus = {
  ...press,
  name: "oven\u001b[2J",
  endpoint: "10.0.0.6:502",
  status: {
    ...press.status,
    state: { type: "ERROR", reason: { type: "CONNECTION_REFUSED" }, error_at: "2026-11-20T09:00:00.000Z" },
  },
  since: "2026-11-20T09:00:00.000Z",
  error: { reason: { type: "CONNECTION_REFUSED" }, condition: null, detail: "connect ECONNREFUSED 10.0.0.6:502" },
  next_retry_at: "2026-11-20T09:05:04.000Z",
  warnings: [reported("readout_limit is 10: 2 variables are not read")],
};
const broker: SinkStatus = {
  uuid: "1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22",
  name: null,
  type: "mqtt",
  endpoint: "broker:1883",
  state: "OK",
  since: "2026-11-20T07:00:00.000Z",
  error: null,
  next_retry_at: null,
  warnings: [],
  ledger: {
    accepted: 86_405,
    delivered: 86_000,
    unconfirmed: 0,
    filtered: 0,
    pending: 400,
    dropped: { too_old: 5 },
    delivered_unstored: 0,
  },
};
const report = (more: Partial<ServiceStatus> = {}): ServiceStatus => ({
  version: "1.2.3",
  collector: "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33",
  started_at: "2026-11-20T07:00:00.000Z",
  config: { origin: "api", api_url: "http://127.0.0.1:8420", ok: true, message: null, since: "2026-11-20T07:00:00.000Z", warnings: [] },
  sources: [press],
  sinks: [broker],
  buffer: { bytes: 12 * 2 ** 20, max_bytes: 2 ** 30, unanswered_bytes: 0, rejected: {}, suppressed: 0, removed_sinks: [], lost: null },
  alarms: [],
  ...more,
});

describe("for people", () => {
  test("what runs, at a glance", () => {
    expect(renderStatus(report(), NOW)).toBe(`collector 1.2.3 (2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33), running for 2 h 5 min
Configuration: as the API says; API http://127.0.0.1:8420: reachable for 2 h 5 min
Buffer: 12.0 MiB of 1.0 GiB; 0 B being written

SOURCE   TYPE        ENDPOINT      STATE  FOR        INTERVAL  VARIABLES  BAD   READ  OVERRUNS
press-1  modbus_tcp  10.0.0.5:502  OK     2 h 5 min  1 s              12    0  86400         3

SINK                                  TYPE  ENDPOINT     STATE  FOR        DELIVERED  PENDING  DROPPED
1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22  mqtt  broker:1883  OK     2 h 5 min      86000      400        5

1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22:
  Dropped: 5 too_old
`);
  });

  test("shows values that were sent without confirmation apart from delivered ones", () => {
    const ledger = { accepted: 700, delivered: 0, unconfirmed: 600, filtered: 0, pending: 100, dropped: {}, delivered_unstored: 0 };
    const text = renderStatus(report({ sinks: [{ ...broker, ledger }] }), NOW);
    expect(text).toMatch(/DELIVERED +UNCONFIRMED +PENDING +DROPPED\n.* 0 +600 +100 +0\n/);
    expect(text).toContain("Sent without confirmation, because MQTT with QoS 0 has none: 600");
  });

  test("one data sink with its account; of those that fail, how many there are in all", () => {
    const refused = { reason: { type: "CONNECTION_REFUSED" }, condition: null, detail: "no" } as const;
    const failing: SinkStatus = { ...broker, name: "plant", state: "ERROR", error: refused, filter: { units: ["bar"] } };
    const one = renderStatus(report({ sources: [], sinks: [failing] }), NOW, { source: "plant" });
    expect(one).toMatch(
      /^plant \(mqtt broker:1883\): CONNECTION_REFUSED for 2 h 5 min\n {2}Account: {3}86405 values accepted: 86000 delivered, 400 wait\n/,
    );
    expect(one).toMatch(/\n {2}Next step: .*\n {2}Takes units: bar\n {2}Dropped: 5 too_old\n$/);
    const summary = "Data sources: 30 (29 OK, 1 CONNECTION_REFUSED); data sinks: 1 (OK)";
    expect(renderStatus(report({ sources: [oven] }), NOW, { failing: true, summary })).toContain(summary);
    expect(renderStatus(report({ sources: [] }), NOW, { failing: true, summary })).toContain(`${summary}\nNo data source fails.`);
  });

  test("each trouble with since, detail, cause, next step and next try", () => {
    const text = renderStatus(report({ sources: [press, oven] }), NOW);
    expect(text).toMatch(/oven\\u001b\[2J +modbus_tcp +10\.0\.0\.6:502 +CONNECTION_REFUSED +5 min/);
    expect(text).toMatch(
      /\n {2}Since: {5}2026-11-20T09:00:00\.000Z \(5 min\)\n {2}Detail: {4}connect ECONNREFUSED 10\.0\.0\.6:502\n {2}Cause: {5}\S.*\n {2}Next step: \S.*\n {2}Next try: {2}2026-11-20T09:05:04\.000Z \(in 4 s\)\n {2}Note: readout_limit/,
    );
    expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  });

  test("URLs have no user and no password, also inside sentences", () => {
    const reason = {
      type: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY" as const,
      endpoint_url: "opc.tcp://reader:canary@plc:4840",
      endpoint_security_policy_uri: "http://opcfoundation.org/UA/SecurityPolicy#None",
      message_security_mode: "None",
      token_type: "Anonymous",
      token_security_policy_uri: "http://opcfoundation.org/UA/SecurityPolicy#None",
    };
    const state = { type: "ERROR" as const, reason, error_at: "2026-11-20T09:00:00.000Z" };
    const source: SourceStatus = {
      ...press,
      status: { ...press.status, state },
      error: { reason, condition: null, detail: "no endpoint of opc.tcp://reader:canary@plc:4840 fits" },
      warnings: [reported("the proxy http://u:canary@proxy:3128 is slow")],
    };
    const text = renderStatus(report({ sources: [source], alarms: [reported("https://t:canary@a is not reachable")] }), NOW);
    expect(text).not.toContain("canary");
    expect(text).toContain("no endpoint of opc.tcp://[redacted]@plc:4840 fits");
    expect(text).toContain("the detail lists that");
  });

  test("STATE tells what was never read from what failed, and names the condition", () => {
    const unread = { ...press.status, last_readout_at: null, state: { type: "UNKNOWN" as const } };
    const failed = { type: "ERROR" as const, reason: { type: "UNKNOWN" as const }, error_at: "2026-11-20T09:00:00.000Z" };
    const with_ = (name: string, condition: Condition | null): SourceStatus => ({
      ...press,
      name,
      interval_ms: condition === "interval_invalid" ? 0 : 5000,
      status: { ...press.status, state: failed },
      error: { reason: failed.reason, condition, detail: "d" },
    });
    const text = renderStatus(
      report({
        sources: [
          { ...press, name: "a", status: unread },
          { ...press, name: "b", status: { ...unread, configured_variables: 0 } },
          with_("c", "forbidden_by_policy"),
          with_("d", "certificate_refused"),
          with_("e", "type_not_supported"),
          with_("f", null),
          with_("g", "interval_invalid"),
        ],
        sinks: [{ ...broker, state: "ERROR", error: { reason: { type: "UNKNOWN" }, condition: "server_refuses", detail: "code 135" } }],
      }),
      NOW,
    );
    const states = new Map(text.split("\n").map((line) => [line.split(/ {2,}/)[0], line.split(/ {2,}/)[3]]));
    expect(["a", "b", "c", "d", "e", "f", "g", broker.uuid].map((name) => states.get(name))).toEqual([
      "NOT_READ_YET",
      "NO_VARIABLES",
      "FORBIDDEN_BY_POLICY",
      "CERTIFICATE_REFUSED",
      "TYPE_NOT_SUPPORTED",
      "ERROR_UNKNOWN",
      "INTERVAL_INVALID",
      "SERVER_REFUSES",
    ]);
    expect(text).toMatch(/\nb:\n {2}It has no variables/);
    expect(text).toMatch(/\ng +modbus_tcp +\S+ +INTERVAL_INVALID +\S+ \S+ \d+ min +- /);
    expect(text).toMatch(/\nc .* 5 s /);
  });

  test("bad variables, alarms and a configuration that cannot be had", () => {
    const text = renderStatus(
      report({
        sources: [{ ...press, faults: Array.from({ length: 12 }, (_, i) => ({ variable: `v${i}`, fault: "not_found", detail: null })) }],
        sinks: [],
        alarms: [reported("the disk is full", "disk_fills")],
        config: {
          origin: "last_good",
          api_url: "https://a",
          ok: false,
          message: "it answers 401",
          since: null,
          warnings: [reported("a record is bad")],
        },
        buffer: {
          bytes: 100,
          max_bytes: 2 ** 20,
          unanswered_bytes: 2048,
          rejected: { overflow: 7 },
          suppressed: 5,
          removed_sinks: [
            { uuid: "sink-9", name: null, pending: 12, until: "2026-11-21T08:00:00.000Z", dropped: {} },
            { uuid: "sink-8", name: "old", pending: 0, until: null, dropped: { sink_removed: 7, refused: 1 } },
          ],
          lost: { since: "2026-11-20T08:00:00.000Z", why: "the file was damaged" },
        },
      }),
      NOW,
    );
    expect(text).toContain(
      "Configuration: the last good copy on disk; API https://a: not asked yet\n  it answers 401\n  Next step: `collector doctor` looks at the way to the API; what runs continues unchanged.\n  Note: a record is bad\n",
    );
    expect(text).toContain("Buffer: 100 B of 1.0 MiB; 2.0 KiB being written; values rejected: 7 overflow\n");
    expect(text).toContain("Buffer: loss unknown since 2026-11-20T08:00:00.000Z: the file was damaged\n");
    expect(text).toContain("Buffer: values of the removed data sink sink-9: 12 wait until 2026-11-21T08:00:00.000Z\n");
    expect(text).toContain("Buffer: values of the removed data sink old: none wait, 7 dropped\n");
    expect(text).toContain("ALARM: the disk is full (for 2 h 5 min)\n  Next step: Make room: ");
    expect(text).toContain("\npress-1:\n  v0: not_found\n");
    expect(text).toMatch(/ {2}… 2 more bad variables\n {2}Next step: .*`collector explain press-1 v0`/);
    expect(text).toContain("No data sinks are configured.");
  });

  test("how much a slow link carries", () => {
    const link = { bytes_per_s: 8000, round_trip_ms: 120, window_bytes: 9000 };
    expect(renderStatus(report({ sinks: [{ ...broker, link }] }), NOW)).toContain(
      "  Link: about 7.8 KiB/s, round trips of 120 ms; at most 8.8 KiB sent ahead\n",
    );
    expect(renderStatus(report({ sinks: [{ ...broker, link: { ...link, bytes_per_s: null } }] }), NOW)).not.toContain("Link:");
  });
});

describe("the verb", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "collector-status-"));
    writeFileSync(join(folder, "collector.yaml"), "state_dir: .\n");
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const call = async (json: boolean, source?: string) => {
    const output = { out: "", err: "" };
    const io = commandIo({ onOut: (text) => (output.out += text), onErr: (text) => (output.err += text) });
    const exit = await status({ config: join(folder, "collector.yaml"), json, source }, io);
    return { exit, ...output };
  };

  test("says that nobody runs", async () => {
    expect(await call(false)).toEqual({
      exit: 4,
      out: "",
      err: expect.stringMatching(/nothing answers on .*collector\.sock\.\ncollector: Start it/),
    });
  });

  test("prints the running service's status; the exit code tells trouble", async () => {
    let current = report();
    const socket = await startLocalSocket(
      { path: localSocketPath(folder), handlers: { "/status": () => current } },
      { signal: new AbortController().signal, log: silentLog },
    );
    try {
      const good = await call(true);
      expect(good).toMatchObject({ exit: 0, err: "" });
      expect(JSON.parse(good.out)).toEqual(current);
      current = report({ sources: [{ ...press, faults: [{ variable: "a", fault: "stale", detail: null }] }] });
      expect(await call(false)).toMatchObject({ exit: 1, out: expect.stringContaining("a: stale") });
      current = report({ sources: [oven] });
      expect(await call(false)).toMatchObject({ exit: 3 });
      current = report({ sinks: [{ ...broker, name: "plant" }] });
      expect(await call(false, "plant")).toMatchObject({ exit: 0, out: expect.stringMatching(/^plant \(mqtt/) });
      const near = call(false, "plont");
      await expect(near).rejects.toThrow(
        "the service has no data source or data sink plont; did you mean plant?; there are: press-1, plant",
      );
      current = report({
        sinks: [{ ...broker, state: "ERROR", error: { reason: { type: "TIMEOUT" }, condition: null, detail: "no CONNACK" } }],
      });
      expect(await call(false)).toMatchObject({ exit: 3, out: expect.stringContaining("no CONNACK") });
    } finally {
      await socket.close();
    }
  });
});
