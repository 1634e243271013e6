import { randomUUID } from "node:crypto";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Condition } from "../../../src/model/condition.ts";
import type { Reason } from "../../../src/model/reason.ts";
import { explainReason } from "../../../src/model/words/catalogue.ts";
import { type Lab, missingParts, POWER, startLab, type Told } from "./lab.ts";
import { hostOf, MATRIX, portOf, type Row, TIMES } from "./matrix.ts";

/** Deadlines of behaviour are asserted with this margin; what was measured is printed. */
const MARGIN = 3;
const KNOWN_WITHIN_MS = 250;
const DOC = path.resolve(import.meta.dirname, "../../../docs/generated/failure-mapping.md");

const HALF_OPEN_INTERVAL_MS = 10_000;
const LONG_OUTAGE_MS = 15_000;
/** Long enough before the retry to end the fault first. */
const SHOWN_AHEAD_MS = 500;

const missing = missingParts();
const required = process.env["COLLECTOR_REQUIRE_PARTS"] === "1";
const nameOf = (row: Row) => `${row.transport}, ${row.when}: ${row.what}`;

function sourceOf(row: Row, name: string) {
  const uuid = randomUUID();
  const type = row.transport === "tcp" ? "modbus_tcp" : "udp_echo";
  const details = { type, host: hostOf(row), port: portOf(row), ephemeral_connections: false };
  const { intervalMs, nameMs, connectMs, answerMs } = TIMES;
  return {
    record: {
      uuid,
      type,
      name,
      collector: uuid,
      machine: uuid,
      manufacturer: null,
      device_model: null,
      note: null,
      readout_interval: intervalMs,
      readout_limit: null,
      details,
    },
    variables: [
      {
        uuid,
        data_source: uuid,
        name: "v",
        address: row.transport === "tcp" ? "holding:0" : "1",
        type: null,
        unit: null,
        scaling: null,
        comment: null,
        status: "ACTIVE",
      },
    ],
    warnings: [],
    local: { name_timeout: `${nameMs}ms`, connect_timeout: `${connectMs}ms`, answer_timeout: `${answerMs}ms` },
    secrets: {},
    readoutIntervalUnit: "milliseconds",
  };
}

interface Result {
  readonly row: Row;
  readonly exact: boolean;
  readonly knownMs: number;
  readonly healedMs: number | undefined;
}

it.runIf(required)("the lab's parts are here", () => expect(missing).toBeUndefined());

describe.skipIf(missing !== undefined)("network faults", () => {
  let lab: Lab;
  const results: Result[] = [];
  beforeAll(async () => {
    lab = await startLab();
    // The first source loads the driver, which is no part of what a row measures.
    const warm = MATRIX.find(({ when }) => when === "session");
    if (!warm) throw new Error("the matrix has no row in a session");
    lab.apply([sourceOf(warm, "warm-up")]);
    await until(({ good }) => good === true, 0, 15_000, "the first value of all");
    lab.apply([]);
  }, 60_000);
  afterAll(async () => {
    await lab?.down();
    const exact = results.filter((result) => result.exact).length;
    console.log(
      [
        ...results.map(
          ({ row, exact: ok, knownMs, healedMs }) =>
            `${ok ? "exact" : "WRONG"}  ${nameOf(row)}: ${row.reason} after ${knownMs} ms (allowed ${row.byMs} + ${KNOWN_WITHIN_MS})${healedMs === undefined ? "" : `, read again after ${healedMs} ms`}`,
        ),
        `matrix: ${results.length} rows, ${exact} exact, ${MATRIX.length - results.length} skipped`,
      ].join("\n"),
    );
  }, 60_000);

  async function until(check: (told: Told) => boolean, from: number, withinMs: number, what: string): Promise<Told> {
    const deadline = Date.now() + withinMs;
    for (;;) {
      const found = lab.told.slice(from).find(check);
      if (found) return found;
      if (Date.now() > deadline)
        throw new Error(`${what}: not within ${withinMs} ms; told: ${JSON.stringify(lab.told.slice(from).slice(-5))}`);
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  it.each(MATRIX.map((row, i) => [nameOf(row), row, `row-${i}`] as const))(
    "%s",
    async (_, row, name) => {
      const ofRow = ({ source }: Told) => source === name;
      let from = lab.told.length;
      let began: number;
      if (row.when === "session") {
        lab.apply([sourceOf(row, name)]);
        await until((told) => ofRow(told) && told.good === true, from, 15_000, "the first value");
        from = lab.told.length;
        await lab.fault(row.fault ?? "");
        began = Date.now();
      } else {
        if (row.fault !== undefined) await lab.fault(row.fault);
        began = Date.now();
        lab.apply([sourceOf(row, name)]);
      }
      const failed = await until((told) => ofRow(told) && told.state === "ERROR", from, (row.byMs + 1000) * MARGIN, "the failure");
      const knownMs = Math.max(0, failed.at - began);
      const exact = failed.reason === row.reason && (row.condition ?? null) === (failed.condition ?? null);
      let healedMs: number | undefined;
      if (row.fault !== undefined) {
        await lab.heal();
        const healed = Date.now();
        const good = await until(
          (told) => ofRow(told) && told.good === true && told.at >= healed,
          from,
          (TIMES.connectMs + TIMES.intervalMs + 1000) * MARGIN,
          "the first value after the fault",
        );
        healedMs = good.at - healed;
      }
      results.push({ row, exact, knownMs, healedMs });
      lab.apply([]);
      expect({ reason: failed.reason, condition: failed.condition ?? null, detail: failed.detail }).toMatchObject({
        reason: row.reason,
        condition: row.condition ?? null,
      });
      expect(knownMs).toBeLessThan((row.byMs + KNOWN_WITHIN_MS) * MARGIN);
    },
    90_000,
  );

  it("a device that was without power between two readouts costs none of them", async () => {
    const name = "half-open";
    const row = MATRIX.find(({ fault }) => fault === POWER);
    if (!row) throw new Error("the matrix has no such row");
    const [input] = [sourceOf(row, name)];
    const from = lab.told.length;
    lab.apply([{ ...input, record: { ...input.record, readout_interval: HALF_OPEN_INTERVAL_MS } }]);
    const ofRow = ({ source }: Told) => source === name;
    await until((told) => ofRow(told) && told.good === true, from, 15_000, "the first value");
    // The first readout comes at once, the second at a tick of the schedule: from there on, a whole interval is free.
    const second = await until(
      (told) => ofRow(told) && told.good === true && told !== lab.told.slice(from).find((t) => ofRow(t) && t.good),
      from,
      HALF_OPEN_INTERVAL_MS * MARGIN,
      "the second value",
    );
    await lab.fault(POWER);
    await lab.heal();
    const backAfterMs = Date.now() - second.at;
    await until(
      (told) => ofRow(told) && told.good === true && told.at > second.at,
      from,
      HALF_OPEN_INTERVAL_MS * MARGIN,
      "the value after it",
    );
    lab.askRetries();
    const { failedReadouts } = await until((told) => ofRow(told) && told.failedReadouts !== undefined, from, 5000, "the counters");
    lab.apply([]);
    console.log(
      `half-open connection: the device was back ${backAfterMs} ms after a readout, with one every ${HALF_OPEN_INTERVAL_MS} ms; failed readouts ${failedReadouts}`,
    );
    // A slow machine needs longer than the interval for it: then a readout came in between, and fails.
    expect(failedReadouts).toBeLessThanOrEqual(backAfterMs < HALF_OPEN_INTERVAL_MS ? 0 : 1);
  }, 120_000);

  it("after an outage of more than 10 s it is read again by the retry that status shows", async () => {
    const name = "long-outage";
    const row = MATRIX.find(({ when, fault }) => when === "session" && fault === "drop");
    if (!row) throw new Error("the matrix has no such row");
    const from = lab.told.length;
    const ofRow = ({ source }: Told) => source === name;
    lab.apply([sourceOf(row, name)]);
    await until((told) => ofRow(told) && told.good === true, from, 15_000, "the first value");
    await lab.fault("drop");
    const began = Date.now();
    await new Promise((done) => setTimeout(done, LONG_OUTAGE_MS));
    // The promise is what status shows while it waits; an attempt that is under way promises nothing.
    let promised: number | null | undefined;
    for (const deadline = Date.now() + 120_000; !promised || promised < Date.now() + SHOWN_AHEAD_MS; ) {
      if (Date.now() > deadline) throw new Error(`no retry is shown that lies ahead; last: ${promised}`);
      const asked = lab.told.length;
      lab.askRetries();
      promised = (await until((told) => ofRow(told) && told.retryAt !== undefined, asked, 5000, "the retry that is shown")).retryAt;
    }
    await lab.heal();
    const healed = Date.now();
    const back = await until((told) => ofRow(told) && told.good === true && told.at >= healed, from, 180_000, "the first value after it");
    lab.apply([]);
    console.log(
      `outage of ${healed - began} ms: a retry was shown for ${promised - healed} ms after its end, read again ${back.at - promised} ms after that`,
    );
    expect(back.at - promised).toBeLessThan(1000 * MARGIN);
  }, 240_000);

  it("is what the generated table says", async () => {
    expect(results.length).toBe(MATRIX.length);
    await expect(`${table()}\n`).toMatchFileSnapshot(DOC);
  });
});

/** Only what does not change from run to run. */
function table(): string {
  const rows = MATRIX.map(({ transport, when, what, reason, condition }) => {
    const { sentence } = explainReason({ type: reason } as Reason, (condition as Condition | undefined) ?? null);
    return `| ${transport.toUpperCase()} | ${when === "connect" ? "at connect" : "while reading"} | ${what} | \`${reason}\`${condition === undefined ? "" : ` (\`${condition}\`)`} | ${sentence} |`;
  });
  return [
    "# What each network failure is called",
    "",
    "Every row was produced in the network lab (`test/faults/net`), with the reason that the collector gave.",
    "",
    "| transport | when | what happens | reason (condition) | in words |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}
