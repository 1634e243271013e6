import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock } from "../../test/support/agent.ts";
import { ApiClient, type PullResult, type ReportResult } from "../api/client.ts";
import type { Desired } from "../api/desired.ts";
import { loadLastGood, saveLastGood } from "../api/last-good.ts";
import { COLLECTOR, modbusSource, recordingLog, startTestServer, temporaryFolder } from "../api/server/testing.ts";
import { type DataSource, dataSourceSchema, type ReadoutStatusReport } from "../model/resources.ts";
import { warning } from "../model/warning.ts";
import { type PollingOptions, type PollState, runPolling } from "./poll.ts";
import type { StatusGlance } from "./status-reporter.ts";

/** With room for a machine that is busy elsewhere. */
const VERSION = "1";
const until = <T>(look: () => T | Promise<T>) => expect.poll(look, { timeout: 10_000, interval: 10 });

const desired = (rest: Partial<Desired> = {}): Desired => ({
  collector: COLLECTOR,
  sources: [],
  sinks: [],
  variables: null,
  secrets: {},
  revision: null,
  fetchedAt: "2026-11-20T09:00:00.000Z",
  ...rest,
});

/** A client that answers as it is told. */
function fakeClient(
  pull: (n: number, previous: Desired | null) => PullResult | Promise<PullResult>,
  report: () => ReportResult = () => ({ type: "reported" }),
) {
  const pulls: (Desired | null)[] = [];
  const reports: ReadoutStatusReport[] = [];
  const client: PollingOptions["client"] = {
    base: "http://fake/api",
    pull: async (previous) => {
      pulls.push(previous);
      return pull(pulls.length, previous);
    },
    reportStatuses: async (sent) => {
      reports.push(sent);
      return report();
    },
  };
  return { client, pulls, reports };
}

const glancesOf = (reports: ReadoutStatusReport): readonly StatusGlance[] =>
  reports.map(({ data_source: uuid, readout_status: status }) => ({ uuid, mark: undefined, look: () => ({ report: { status } }) }));

function start(client: PollingOptions["client"], options: Partial<PollingOptions> = {}) {
  const controller = new AbortController();
  const log = recordingLog();
  const applied: [Desired, string][] = [];
  const states: PollState[] = [];
  const lastGoodFile = options.lastGoodFile ?? join(temporaryFolder(), "last-good.json");
  const polling = runPolling(
    {
      client,
      collector: COLLECTOR,
      version: VERSION,
      lastGoodFile,
      clock,
      pollIntervalMs: 50,
      onConfiguration: (configuration, origin) => applied.push([configuration, origin]),
      onState: (state) => states.push(state),
      onWarnings: () => {},
      glances: () => [],
      mayDiscover: () => true,
      ...options,
      times: { retryFirstMs: 20, retryMaxMs: 50, reportMs: 20, ...options.times },
    },
    { signal: controller.signal, log },
  );
  const stop = async () => {
    controller.abort();
    await polling;
  };
  onTestFinished(stop);
  return { log, applied, states, lastGoodFile, stop };
}

test("a file of another version is written again, so that the next start need not validate it", async () => {
  const lastGoodFile = join(temporaryFolder(), "last-good.json");
  await saveLastGood(lastGoodFile, desired({ sources: [] }), { version: "0" });
  const answer = desired({ sources: [], revision: "2" });
  const { client, pulls } = fakeClient((n) =>
    n === 1 ? { type: "configuration", configuration: answer, warnings: [] } : { type: "unchanged" },
  );
  const { stop } = start(client, { lastGoodFile });
  await until(() => pulls.length).toBeGreaterThan(1);
  await stop();
  expect(await loadLastGood(lastGoodFile, COLLECTOR, VERSION)).toMatchObject({ type: "loaded", isOwn: true });
});

test("the last good configuration comes before any network, the API's replaces it and is kept", async () => {
  const lastGoodFile = join(temporaryFolder(), "last-good.json");
  await saveLastGood(lastGoodFile, desired({ variables: [] }));
  const fresh = desired({ revision: "2", secrets: { a: { password: "Canary" } } });
  let answer: (result: PullResult) => void = () => {};
  const { client, pulls } = fakeClient((n) => (n === 1 ? new Promise((resolve) => (answer = resolve)) : { type: "unchanged" }));
  const { applied, stop, states } = start(client, { lastGoodFile });
  await until(() => applied.length).toBe(1);
  expect(applied[0]).toEqual([desired({ variables: [], areSecretsAwaited: true }), "last_good"]);
  await until(() => pulls.length).toBe(1);
  expect(states).toEqual([]);
  answer({ type: "configuration", configuration: fresh, warnings: [] });
  await until(() => pulls.length).toBeGreaterThan(2);
  expect(applied.slice(1)).toEqual([[fresh, "api"]]);
  expect(pulls.slice(0, 2)).toEqual([desired({ variables: [], areSecretsAwaited: true }), fresh]);
  await stop();
  expect(await loadLastGood(lastGoodFile, COLLECTOR)).toEqual({
    type: "loaded",
    configuration: desired({ areSecretsAwaited: true }),
    warnings: [],
    isOwn: false,
  });
  expect(readFileSync(lastGoodFile, "utf8")).not.toContain("Canary");
});

test("a kept configuration with a password in an address is written again at the first answer, and not set aside", async () => {
  const lastGoodFile = join(temporaryFolder(), "last-good.json");
  const received = (host: string) => ({
    uuid: "10000000-0000-4000-8000-000000000001",
    type: "modbus_tcp",
    readout_limit: null,
    readout_interval: 10,
    name: "press",
    collector: COLLECTOR,
    manufacturer: null,
    device_model: null,
    note: null,
    machine: "0b6f3f0e-0f4f-4b3c-8b0f-5a1c2d3e4f50",
    details: { type: "modbus_tcp", host, port: 502 },
  });
  const withPassword = received("reader:Canary-33b1@10.0.0.7") as DataSource;
  await saveLastGood(lastGoodFile, desired({ sources: [withPassword] }));
  const answer = desired({ sources: [dataSourceSchema.parse(withPassword)], revision: "2" });
  const { client, pulls } = fakeClient((n) =>
    n === 1 ? { type: "configuration", configuration: answer, warnings: [] } : { type: "unchanged" },
  );
  const { stop } = start(client, { lastGoodFile });
  await until(() => pulls.length).toBeGreaterThan(1);
  await stop();
  const kept = readdirSync(dirname(lastGoodFile)).map((name) => readFileSync(join(dirname(lastGoodFile), name), "utf8"));
  expect(kept).toEqual([expect.stringContaining("10.0.0.7")]);
  expect(kept.join()).not.toContain("Canary");
});

test("what is at work already goes on until the API answers: its secrets too, and a revision of before counts for nothing", async () => {
  const lastGoodFile = join(temporaryFolder(), "last-good.json");
  await saveLastGood(lastGoodFile, desired());
  const current = desired({ revision: "1", secrets: { a: { password: "Canary" } } });
  const { client, pulls } = fakeClient(() => ({ type: "unchanged" }));
  const { applied, stop } = start(client, { lastGoodFile, current });
  await until(() => pulls.length).toBeGreaterThan(1);
  await stop();
  expect(applied).toEqual([]);
  expect(pulls[0]).toEqual({ ...current, revision: null });
});

test("failures keep what runs, are one line each, and health is one line again", async () => {
  const failed = (kind: "unreachable" | "timeout"): PullResult => ({ type: "failed", kind, message: `no ${kind}` });
  const { client, pulls } = fakeClient((n) => {
    if (n === 1) return { type: "configuration", configuration: desired(), warnings: [warning("records_unusable", "w")] };
    if (n <= 4) return failed("unreachable");
    if (n <= 6) return failed("timeout");
    return { type: "configuration", configuration: desired(), warnings: [warning("records_unusable", "w")] };
  });
  const { applied, states, log, stop } = start(client);
  await until(() => pulls.length).toBeGreaterThan(9);
  await stop();
  expect(applied.every(([configuration]) => configuration.collector === COLLECTOR)).toBe(true);
  expect(states.map(({ ok, message }) => [ok, message])).toEqual([
    [true, null],
    [false, "no unreachable"],
    [false, "no timeout"],
    [true, null],
  ]);
  expect(states[2]?.sinceUpMs).toBe(states[1]?.sinceUpMs);
  expect(log.lines.map((line) => line.split(" {")[0])).toEqual([
    expect.stringContaining("no configuration was kept yet"),
    "info the configuration API answers",
    "warn w",
    "warn no unreachable",
    "warn no timeout",
    "info the configuration API answers again",
  ]);
});

test("an unchanged configuration is not written again; a disk that refuses costs nothing but the file", async () => {
  const { client, pulls } = fakeClient(() => ({
    type: "configuration",
    configuration: desired({ fetchedAt: new Date().toISOString() }),
    warnings: [],
  }));
  const { lastGoodFile } = start(client);
  await until(() => existsSync(lastGoodFile)).toBe(true);
  writeFileSync(lastGoodFile, "marked");
  const n = pulls.length;
  await until(() => pulls.length).toBeGreaterThan(n + 2);
  expect(readFileSync(lastGoodFile, "utf8")).toBe("marked");

  const blocked = join(temporaryFolder(), "file");
  writeFileSync(blocked, "");
  const second = start(client, { lastGoodFile: join(blocked, "last-good.json") });
  await until(() => second.applied.length).toBeGreaterThan(2);
  expect(second.log.lines.some((line) => line.startsWith("error the configuration cannot be kept on disk"))).toBe(true);
});

test("fault: a configuration that the disk refused is not kept until it changes again", async () => {
  const folder = join(temporaryFolder(), "state");
  writeFileSync(folder, "");
  const answer = desired({ variables: [], revision: "1" });
  const { client, pulls } = fakeClient((n) =>
    n === 1 ? { type: "configuration", configuration: answer, warnings: [] } : { type: "unchanged" },
  );
  const lastGoodFile = join(folder, "last-good.json");
  const { log, applied } = start(client, { lastGoodFile, times: { keepAgainMs: 100 } });
  await until(() => pulls.length).toBeGreaterThan(6);
  const refusals = () => log.lines.filter((line) => line.startsWith("error the configuration cannot be kept on disk"));
  expect(refusals()).toHaveLength(1);
  rmSync(folder);
  await until(() => existsSync(lastGoodFile)).toBe(true);
  expect(await loadLastGood(lastGoodFile, COLLECTOR, VERSION)).toMatchObject({ configuration: { variables: [] }, isOwn: true });
  expect(log.lines.filter((line) => line.startsWith("info the configuration is kept on disk"))).toHaveLength(1);
  expect(applied).toHaveLength(1);
});

test("what throws in a callback stops nothing", async () => {
  const { client, pulls } = fakeClient(() => ({ type: "configuration", configuration: desired(), warnings: [] }));
  const { log } = start(client, {
    onConfiguration: () => {
      throw new Error("applied badly");
    },
  });
  await until(() => pulls.length).toBeGreaterThan(3);
  expect(log.lines.filter((line) => line.startsWith("error applying a configuration failed")).length).toBeGreaterThanOrEqual(3);
});

test("statuses: state changes at once, times alone less often, everything again after a while, nothing lost by a failure", async () => {
  const report = (uuid: string, last: string | null, type: "OK" | "UNKNOWN" = "OK"): ReadoutStatusReport[number] => ({
    data_source: uuid,
    readout_status: { last_readout_at: last, configured_variables: 1, state: { type } },
  });
  let present: ReadoutStatusReport = [report("a", null, "UNKNOWN"), report("b", null, "UNKNOWN")];
  let result: ReportResult = { type: "reported" };
  const { client, reports } = fakeClient(
    () => ({ type: "unchanged" }),
    () => result,
  );
  const { log } = start(client, {
    glances: () => glancesOf(present),
    times: { reportReadoutMs: 600_000, reportAllMs: 600_000 },
  });
  await until(() => reports).toEqual([present]);
  present = [report("a", "2026-11-20T09:00:00.000Z", "UNKNOWN"), report("b", "2026-11-20T09:00:00.000Z")];
  await until(() => reports.slice(1)).toEqual([[present[1]]]);
  result = { type: "failed", kind: "http_status", message: "503" };
  present = [report("a", null), report("b", "2026-11-20T09:00:00.000Z")];
  await until(() => reports.length).toBeGreaterThan(4);
  result = { type: "reported" };
  const failures = reports.length;
  await until(() => reports.length).toBeGreaterThan(failures);
  expect(reports.at(-1)).toEqual([present[0]]);
  expect(log.lines.filter((line) => line.includes("statuses cannot be reported"))).toHaveLength(1);
});

test("statuses are repeated after reportAllMs and their times after reportReadoutMs", async () => {
  let n = 0;
  const { client, reports } = fakeClient(() => ({ type: "unchanged" }));
  start(client, {
    glances: () =>
      glancesOf([
        {
          data_source: "a",
          readout_status: {
            last_readout_at: new Date(1_800_000_000_000 + n++).toISOString(),
            configured_variables: 1,
            state: { type: "OK" },
          },
        },
      ]),
    times: { reportReadoutMs: 60, reportAllMs: 600_000 },
  });
  await until(() => reports.length).toBeGreaterThan(2);
  expect(new Set(reports.map(([one]) => one?.readout_status.last_readout_at)).size).toBe(reports.length);

  const still = fakeClient(() => ({ type: "unchanged" }));
  const same: ReadoutStatusReport = [
    { data_source: "a", readout_status: { last_readout_at: null, configured_variables: 1, state: { type: "OK" } } },
  ];
  start(still.client, { glances: () => glancesOf(same), times: { reportReadoutMs: 20, reportAllMs: 60 } });
  await until(() => still.reports.length).toBeGreaterThan(2);
});

test("a source is looked at where its state is another, where devices may be asked what they have, after a failure, and for its times", async () => {
  let [mark, type, mayDiscover, looks]: [object, "OK" | "UNKNOWN", boolean, number] = [{}, "UNKNOWN", false, 0];
  let [passes, failing] = [0, 0];
  const { client, reports } = fakeClient(
    () => ({ type: "unchanged" }),
    () => (failing-- > 0 ? { type: "failed", kind: "http_status", message: "503" } : { type: "reported" }),
  );
  const look = () => {
    looks++;
    return { report: { discovers: true, status: { last_readout_at: `${looks}`, configured_variables: 1, state: { type } } } };
  };
  const times = { reportReadoutMs: 600_000, reportAllMs: 600_000 };
  const glances = () => {
    passes++;
    return [{ uuid: "a", mark, look }];
  };
  start(client, { glances, mayDiscover: () => mayDiscover, times });
  const said = () => reports.map(([one]) => [one?.readout_status.state.type, one?.capabilities]);
  const passesOn = async () => {
    const from = passes;
    await until(() => passes).toBeGreaterThan(from + 3);
  };
  const first = ["UNKNOWN", { variable_discovery: false }];
  await until(said).toEqual([first]);
  await passesOn();
  expect(looks).toBe(1);
  // Another object, the same state.
  mark = {};
  await until(() => looks).toBe(2);
  await passesOn();
  expect([looks, said()]).toEqual([2, [first]]);
  [mark, type] = [{}, "OK"];
  const second = ["OK", { variable_discovery: false }];
  await until(said).toEqual([first, second]);
  mayDiscover = true;
  failing = 2;
  const third = ["OK", { variable_discovery: true }];
  await until(said).toEqual([first, second, third, third, third]);
  await passesOn();
  expect(looks).toBe(6);
});

test("against the real server: a source is seen with the next poll, an outage keeps it, a status arrives", async () => {
  const api = await startTestServer();
  const client = new ApiClient({ url: api.server.url, collector: COLLECTOR, readKey: () => api.collectorKey, log: recordingLog() });
  onTestFinished(() => client.close());
  let reports: ReadoutStatusReport = [];
  const { applied, states, log, lastGoodFile } = start(client, { glances: () => glancesOf(reports) });
  await until(() => applied.length).toBe(1);
  const made = await api.send("POST", "/v2/data-sources", modbusSource());
  await until(() => applied.at(-1)?.[0].sources.map((one) => one.name)).toEqual(["press-1"]);
  const uuid = String(made.body["uuid"]);
  reports = [{ data_source: uuid, readout_status: { last_readout_at: null, configured_variables: 0, state: { type: "OK" } } }];
  const state = async () => (await api.send("GET", `/v2/data-sources/${uuid}`)).body["readout_status"]?.["state"];
  await until(state).toEqual({ type: "OK" });
  // The status is no new configuration: two of them were applied, and no more.
  expect(applied).toHaveLength(2);
  await api.server.close();
  await until(() => states.at(-1)?.ok).toBe(false);
  expect(applied).toHaveLength(2);
  expect(log.lines.join("\n")).not.toContain(api.collectorKey);
  expect(await loadLastGood(lastGoodFile, COLLECTOR)).toMatchObject({ configuration: { sources: [{ name: "press-1" }] } });
});
