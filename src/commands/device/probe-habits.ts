import type { AnySession, Point } from "../../../drivers/driver.ts";
import { DeviceMemories } from "../../agent/device-memory.ts";
import { countOf } from "../../base/number.ts";
import { silentLog } from "../../model/context.ts";
import { type Habit, habitWords } from "../../model/habit.ts";
import type { ReasonError } from "../../model/reason.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { contextOf, endpointText, failureLines, failureObject, personLog } from "./device.ts";
import { keptOf, PassDeadline, readPass } from "./pass.ts";
import type { ProbeTarget } from "./probe-walk.ts";

/** Readouts in a row that teach nothing new, after which the device is known: whole ones, and those that lack something. */
const QUIET_READOUTS = { whole: 3, partly: 10 } as const;

interface Found {
  readonly habits: readonly Habit[];
  readonly readouts: number;
  readonly requests: number;
  /** Variables that the last readout brought. */
  readonly good: number;
  /** Of the last readout. */
  readonly failure: ReasonError | undefined;
}

/** `collector probe SOURCE --habits`: reads again and again until it is known how the device wants to be asked. Throws UsageError. */
export async function probeHabits(
  target: ProbeTarget,
  name: string | undefined,
  { timeoutMs, json = false }: { readonly timeoutMs: number; readonly json?: boolean },
  io: CommandIo,
): Promise<ExitCode> {
  const { driver, details, settings, points } = target;
  if (points.length === 0) throw new UsageError("--habits needs variables to read: give addresses, or a data source that has some");
  const endpoint = endpointText(driver, details, settings);
  const found = await find(target, timeoutMs, io);
  if (io.signal.aborted) return EXIT.interrupted;
  const { habits, readouts, requests, good, failure } = found;
  if (json) {
    const read = { readouts, requests, variables: points.length, good };
    const result = { ok: !failure, source: { ...(name !== undefined && { name }), type: driver.type, endpoint }, ...read, habits };
    writeJson(io, { ...result, ...(failure && failureObject(failure, endpoint)) });
  } else
    writeLines(
      io,
      textOf(found, name === undefined ? `${driver.type} ${endpoint}` : `${name} (${driver.type} ${endpoint})`, points.length, endpoint),
    );
  return failure ? EXIT.sourceFailed : EXIT.good;
}

function textOf({ habits, readouts, requests, good, failure }: Found, who: string, variables: number, endpoint: string): readonly string[] {
  const none = failure ? [] : ["It has none of the habits that the collector knows: it is read as it is configured."];
  return [
    `${who}: ${good} of ${countOf(variables, "variable")} read in the last of ${countOf(readouts, "readout")}, with ${countOf(requests, "request")} in all`,
    ...(habits.length > 0 ? habits.map((habit) => `  Habit: ${habitWords(habit)}`) : none),
    ...(failure ? failureLines(failure, endpoint) : []),
  ];
}

async function find(target: ProbeTarget, timeoutMs: number, io: CommandIo): Promise<Found> {
  const { driver, details, settings, timeouts, prepareMs, permit, pki } = target;
  const points = target.points.map(({ address, type }, index): Point => ({ index, address, type }));
  const log = personLog(io);
  // Each habit is in the result.
  const kept = keptOf(points, { driver, settings, log: silentLog });
  const device = new DeviceMemories().of(driver.type);
  const endMs = performance.now() + timeoutMs;
  const known = () => kept.habits.list(kept.learned.points);
  let session: AnySession | undefined;
  let quiet = 0;
  let found: Found = { habits: [], readouts: 0, requests: 0, good: 0, failure: undefined };
  try {
    const isKnown = () => quiet >= (found.good === points.length ? QUIET_READOUTS.whole : QUIET_READOUTS.partly);
    while (!isKnown() && performance.now() < endMs && !io.signal.aborted) {
      const before = known().length;
      const deadline = new PassDeadline(endMs - performance.now(), prepareMs, io);
      const ctx = contextOf({ driver, details, settings, timeouts }, { signal: deadline.signal, log, permit, pki });
      const done = await readPass(driver, target, { ...ctx, device }, session, kept, deadline);
      deadline.end();
      const keepsIt = driver.keepsConnection(details, settings) && !done.pass.failure;
      if (!keepsIt) await done.session?.close();
      session = keepsIt ? done.session : undefined;
      const good = done.pass.readings.filter((reading) => reading?.quality === "good").length;
      const { readouts, requests } = found;
      const { failure } = done.pass;
      quiet = failure || known().length > before || good > found.good ? 0 : quiet + 1;
      found = { habits: known(), readouts: readouts + 1, requests: requests + done.pass.requests, good, failure };
    }
  } finally {
    await session?.close();
  }
  return found;
}
