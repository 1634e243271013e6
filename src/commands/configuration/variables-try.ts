import { DeviceMemories } from "../../agent/device-memory.ts";
import { lookAt } from "../../agent/readings.ts";
import { atOnce } from "../../base/timer.ts";
import { permitOf } from "../../lib/policy.ts";
import type { ReasonError } from "../../model/reason.ts";
import type { DataSource } from "../../model/resources.ts";
import { type DataType, formatDataType, type Reading } from "../../model/value.ts";
import type { VariableInput } from "../../model/variable.ts";
import { type RecordOfSource, specOfRecord } from "../device/browse-target.ts";
import { contextOf, endpointText, failureLines, failureObject, personLog, pkiOf, policyOf } from "../device/device.ts";
import { keptOf, PassDeadline, readPass } from "../device/pass.ts";
import { jsonValue, textValue } from "../device/values.ts";
import type { CommandIo } from "../io.ts";
import { formatTable } from "../table.ts";
import type { ApiOptions } from "./api-connection.ts";

/** Variables that are read, from the top of the file. */
const TRIED = 10;
/** For all of them, as of `collector read`. */
const TIMEOUT_MS = 10_000;
/** The variables are not in the API: each has a uuid for this command only. */
const UUID = "00000000-0000-4000-8000-";

/** The first variables of a file, read once. */
export interface Tried {
  readonly source: Pick<DataSource, "name">;
  readonly endpoint: string;
  readonly values: readonly { readonly variable: VariableInput; readonly reading: Reading; readonly type: DataType }[];
  /** The device did not answer, or stopped answering. */
  readonly failure: ReasonError | undefined;
}

const UNANSWERED: Reading = { quality: "bad", fault: "no_answer" };

/**
 * Reads the first ten of the variables over a connection of its own, as the service would: with their types and scaling. Throws UsageError where
 * the data source cannot be connected to as it is configured.
 */
export async function tryVariables(
  variables: readonly VariableInput[],
  { record, sources, settings, api }: Omit<RecordOfSource, "variables">,
  options: ApiOptions,
  io: CommandIo,
): Promise<Tried> {
  const some = variables.filter(({ status }) => status !== "INACTIVE").slice(0, TRIED);
  const withUuids = some.map((variable, n) => ({
    ...variable,
    uuid: `${UUID}${String(n).padStart(12, "0")}`,
    data_source: record.uuid,
  }));
  const spec = await specOfRecord({ record, sources, variables: withUuids, settings, api }, options, io);
  const { driver, connect, timeouts, prepareMs, points, layout } = spec;
  const log = personLog(io);
  const permit = permitOf(policyOf(options.config).policy, "sources");
  const pki = await pkiOf(driver.type, options.config, log, io);
  const kept = keptOf(points, { driver, settings: connect.settings, log });
  const deadline = new PassDeadline(TIMEOUT_MS, prepareMs, io);
  const context = contextOf({ ...connect, driver, timeouts }, { signal: deadline.signal, log, permit, pki });
  const device = new DeviceMemories().of(driver.type);
  const { pass, session } = await readPass(driver, connect, { ...context, device }, undefined, kept, deadline);
  deadline.end();
  await session?.close();
  const { all } = atOnce(lookAt(spec, pass.readings, pass.failure, layout));
  const values = layout.variables.map(({ type }, place) => {
    const reading = all[place] ?? UNANSWERED;
    const own = type.scalar === "auto" && reading.quality !== "bad" ? (reading.type ?? type) : type;
    return { variable: some[place] as VariableInput, reading, type: own };
  });
  return { source: record, endpoint: endpointText(driver, connect.details, connect.settings), values, failure: pass.failure };
}

/** True: each was read. */
export const allRead = ({ values }: Tried): boolean => values.every(({ reading }) => reading.quality !== "bad");

export function triedText({ source, endpoint, values, failure }: Tried): string {
  // The failure of the device is told below, once.
  const faultWords = ({ fault, detail }: Extract<Reading, { readonly quality: "bad" }>): string =>
    detail === undefined || failure ? fault : `${fault}: ${detail}`;
  const rows = values.map(({ variable: { name, address, unit }, reading, type }) => [
    name,
    address,
    reading.quality === "bad" ? "-" : textValue(reading.value, type),
    unit ?? "",
    formatDataType(type),
    reading.quality === "bad" ? faultWords(reading) : reading.quality,
  ]);
  const table = rows.length === 0 ? [] : formatTable([["NAME", "ADDRESS", "VALUE", "UNIT", "TYPE", "QUALITY"], ...rows]);
  return [...table, ...(failure ? failureLines(failure, endpoint, { source: source.name }) : [])].map((line) => `${line}\n`).join("");
}

export const triedObject = ({ source, endpoint, values, failure }: Tried): object => ({
  ok: failure === undefined && values.every(({ reading }) => reading.quality !== "bad"),
  values: values.map(({ variable: { name, address }, reading, type }) => ({
    name,
    address,
    type: formatDataType(type),
    ...(reading.quality === "bad"
      ? { value: null, quality: reading.quality, fault: reading.fault, ...(reading.detail !== undefined && { detail: reading.detail }) }
      : { value: jsonValue(reading.value, type), quality: reading.quality }),
  })),
  ...(failure && failureObject(failure, endpoint, { source: source.name })),
});
