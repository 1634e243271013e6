import { readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { ReasonError } from "../../../src/model/reason.ts";
import { explainReason } from "../../../src/model/words/catalogue.ts";
import { type Bench, createBench, ROWS, type Row } from "./rows.ts";

const README = path.resolve(import.meta.dirname, "../../../drivers/opcua/README.md");
const [BEGIN, END] = ["<!-- failures: written by test/faults/opcua, do not edit -->", "<!-- /failures -->"];

interface Told {
  readonly row: Row;
  readonly error: ReasonError;
}

describe("OPC UA failures", () => {
  const told: Told[] = [];
  let bench: (Bench & { close(): Promise<void> }) | undefined;
  afterEach(async () => {
    await bench?.close();
    bench = undefined;
  });

  it.each(ROWS.map((row) => [row.what, row] as const))("%s", { timeout: 60_000 }, async (_, row) => {
    bench = createBench();
    const error: unknown = await row.run(bench).then(
      () => new Error("it succeeded"),
      (failed: unknown) => failed,
    );
    if (!(error instanceof ReasonError)) throw error;
    expect({ reason: error.reason.type, condition: error.condition }).toEqual({ reason: row.reason, condition: row.condition });
    expect(error.message).toMatch(row.detail);
    if (error.reason.type === "OPC_UA_ERROR_RESPONSE") {
      expect(error.reason.name).toBe(row.name);
      expect(error.reason.code).toBeGreaterThanOrEqual(0x8000_0000);
      expect(error.reason.description).toBeTruthy();
    }
    expect(error.message).not.toContain("hunter2");
    expect(error.retryAfterMs).toBe(row.retryAfterMs);
    told.push({ row, error });
  });

  it("tells every two apart", () => {
    expect(told.length).toBe(ROWS.length);
    const details = told.map(({ error }) => plain(error.message));
    const alike = told.filter(({ error }, i) => details.indexOf(plain(error.message)) !== i).map(({ row }) => row.what);
    // The same cause, met on two ways.
    expect(alike).toEqual(["the server hangs up in mid-session", "the collector does not trust the server that a password would go to"]);
  });

  it("is what the driver's README says", async () => {
    const readme = readFileSync(README, "utf8");
    const [before, after] = [readme.indexOf(BEGIN), readme.indexOf(END)];
    expect(before).toBeGreaterThan(0);
    await expect(`${readme.slice(0, before + BEGIN.length)}\n\n${table(told)}\n\n${readme.slice(after)}`).toMatchFileSnapshot(README);
  });
});

/** Without what changes from run to run. */
function plain(text: string): string {
  return text
    .replaceAll(/\b[0-9A-F]{40}\b/g, "THUMBPRINT")
    .replaceAll(/(opc\.tcp:\/\/)?127\.0\.0\.1:\d+/g, "$1HOST:PORT")
    .replaceAll(/urn:[\w:.-]*[0-9a-f]{8}-[0-9a-f-]{27}[\w:.-]*/g, "URI")
    .replaceAll(/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g, "DATE")
    .replaceAll(/\/\S*opcua-driver-\w+/g, "/var/lib/collector/pki");
}

function table(rows: readonly Told[]): string {
  const titles = {
    network: "Network",
    endpoint: "Choice of the endpoint",
    certificates: "Certificates and clocks",
    user: "The user",
    session: "The session",
  } as const;
  const cell = (text: string) => plain(text).replaceAll("|", "\\|").replaceAll("\n", " ");
  return (Object.keys(titles) as (keyof typeof titles)[])
    .map((group) => {
      const lines = rows
        .filter(({ row }) => row.group === group)
        .map(({ row, error }) => {
          const condition = error.condition === undefined ? "" : ` (\`${error.condition}\`)`;
          const { nextStep } = explainReason(error.reason, error.condition ?? null, { detail: error.message });
          return `| ${row.what} | \`${cell(JSON.stringify(error.reason))}\`${condition} | ${cell(error.message)} | ${cell(nextStep)} |`;
        });
      return [
        `### ${titles[group]}`,
        "",
        "| what happens | reason (condition) | detail in status | next step |",
        "| --- | --- | --- | --- |",
        ...lines,
      ].join("\n");
    })
    .join("\n\n");
}
