import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { DriverEntry } from "../../drivers/driver.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import type { Permit } from "../model/policy.ts";
import type { SourceReport } from "../model/report.ts";
import { type Breathe, createBreather } from "../model/timer.ts";
import type { Readout } from "../model/value.ts";
import { createLanes } from "./connection-pool.ts";
import { DeviceMemories } from "./device-memory.ts";
import { canonicalJson, reconcile } from "./reconcile.ts";
import type { Resolver } from "./resolve.ts";
import { type RunningSource, startSource } from "./source.ts";
import { SourceSlot, type WantedSource } from "./source-slot.ts";
import { configuredVariables, fingerprintOf, type SourceInput, specOf } from "./source-spec.ts";
import { createReasonBudget } from "./state-log.ts";
import { logChange, nextState, type Problem, type SourceState, toReadoutState } from "./status.ts";

export interface AgentDeps {
  readonly drivers: Readonly<Record<string, DriverEntry>>;
  readonly clock: Clock;
  /** A log that carries the given fields in every line. */
  logFor(fields: Readonly<Record<string, unknown>>): Log;
  /** Absent: the system's look-up. */
  readonly resolver?: Resolver;
  /** Which addresses may be connected to; absent: all. */
  readonly permit?: Permit;
  /** Takes a readout at once: drivers fill the same readings anew, from the source's readout after the next on. */
  emit(layout: Layout, readout: Readout): void;
  /** A readout began so many ms after its tick; absent: nobody measures. */
  late?(ms: number): void;
  /** After each change of a source's state, and after each change of the set. */
  changed(): void;
}

/** The set of data sources that run. */
export interface Agent {
  /**
   * Brings what runs to what is wanted. Unchanged sources notice nothing, and no source waits for another to stop. Resolves when the
   * changes have been made; of several that wait to be taken in only the latest is.
   */
  apply(wanted: readonly SourceInput[]): Promise<void>;
  /** In the order of the configuration. */
  reports(): readonly SourceReport[];
  stop(): Promise<void>;
}

/** Sources that start at once are this far apart on average, and never wait longer than the longest. */
const START_GAP_MS = 10;
const LONGEST_START_SPREAD_MS = 10_000;

export function createAgent(deps: AgentDeps): Agent {
  const lanes = createLanes(deps.clock.monotonicMs);
  const memories = new DeviceMemories();
  const reasonLines = createReasonBudget(deps.clock.monotonicMs);
  const slots = new Map<string, SourceSlot>();
  /** By source: what its fingerprint was taken of, so that an unchanged one is not digested again. */
  let known = new Map<string, { readonly input: SourceInput; readonly fingerprint: string }>();
  /** By source; they change without the source being started again. */
  let warnings = new Map<string, readonly string[]>();
  let order: readonly string[] = [];
  /** Settles when the rounds so far have been taken in; what they change may go on. */
  let taken: Promise<unknown> = Promise.resolve();
  /** What the next round will take in: the latest. */
  let queued: { readonly wanted: readonly SourceInput[]; readonly round: Promise<Round> } | undefined;
  /** Starts go one by one, so that timers and sockets have their turn between them. */
  let lastTurn: Promise<void> = Promise.resolve();
  const turn = (): Promise<void> => {
    lastTurn = lastTurn.then(() => nextTurn());
    return lastTurn;
  };
  /** One after the other, as the starts are; never rejects. */
  let lastSpec: Promise<unknown> = Promise.resolve();
  let stopped = false;

  /** By source: what its last start had to say. A restart says it only where it is new. */
  const warned = new Map<string, readonly string[]>();
  const newWarnings = (uuid: string, warnings: readonly string[]): readonly string[] => {
    const before = warned.get(uuid) ?? [];
    warned.set(uuid, warnings);
    return warnings.filter((words) => !before.includes(words));
  };

  const start = async (input: SourceInput, last: SourceReport | undefined, startSpreadMs: number): Promise<RunningSource> => {
    const { record, variables } = input;
    const configured = configuredVariables(variables);
    const seen = last?.status.last_readout_at ?? null;
    const lastReadoutAt = seen === null ? null : Date.parse(seen);
    const made = lastSpec.then(() => specWithDriver(input, deps.drivers));
    lastSpec = made;
    const prepared = await made;
    if ("problem" in prepared) return parked(input, configured, lastReadoutAt, prepared.problem, deps);
    const { spec } = prepared;
    const log = deps.logFor({ source: record.name, type: record.type, endpoint: `${spec.endpoint.host}:${spec.endpoint.port}` });
    for (const warning of newWarnings(record.uuid, spec.warnings)) log.warn({}, warning);
    try {
      return startSource(spec, configured, lastReadoutAt, { ...deps, lanes, memories, startSpreadMs, log, reasonLines });
    } catch (error) {
      return parked(input, configured, lastReadoutAt, internalError(error), deps);
    }
  };

  /** True: some have changed. Logs those that are new. */
  const takeWarnings = (wanted: readonly SourceInput[]): boolean => {
    const before = warnings;
    warnings = new Map(wanted.filter((input) => input.warnings.length > 0).map((input) => [input.record.uuid, input.warnings]));
    let haveChanged = before.size !== warnings.size;
    for (const { record, warnings: now } of wanted) {
      const known = before.get(record.uuid) ?? [];
      haveChanged ||= now.length !== known.length || now.some((warning, i) => warning !== known[i]);
      const fresh = now.filter((warning) => !known.includes(warning));
      if (fresh.length === 0) continue;
      const log = deps.logFor({ source: record.name, type: record.type });
      for (const warning of fresh) log.warn({}, warning);
    }
    return haveChanged;
  };

  const takeIn = async (wanted: readonly SourceInput[]): Promise<Round> => {
    const breathe = createBreather();
    const inputs = new Map<string, { readonly input: SourceInput; readonly fingerprint: string }>();
    for (const input of wanted) {
      const before = known.get(input.record.uuid);
      const isSame = before !== undefined && isSameInput(before.input, input);
      inputs.set(input.record.uuid, { input, fingerprint: isSame ? before.fingerprint : await fingerprint(input, breathe) });
      await breathe();
    }
    if (stopped) return { made: Promise.resolve() };
    const prints = new Map([...known].map(([id, one]) => [id, one.fingerprint]));
    const plan = reconcile(inputs, prints, (one) => one.fingerprint);
    known = inputs;
    order = [...inputs.keys()];
    for (const uuid of warned.keys()) if (!inputs.has(uuid)) warned.delete(uuid);
    const haveChanged = takeWarnings(wanted);
    const startSpreadMs = Math.min(LONGEST_START_SPREAD_MS, Math.max(0, plan.start.length - 1) * START_GAP_MS);
    const changes: Promise<void>[] = [];
    for (const id of new Set([...plan.stop, ...plan.start])) {
      changes.push(change(id, inputs.get(id), startSpreadMs));
      await breathe();
    }
    if (haveChanged || changes.length > 0) deps.changed();
    return { made: Promise.all(changes).then(() => {}) };
  };

  /** Of one source, whatever the others do. */
  const change = async (id: string, wanted: Omit<WantedSource, "startSpreadMs"> | undefined, startSpreadMs: number): Promise<void> => {
    const slot = slots.get(id) ?? new SourceSlot(turn, (one, last) => start(one.input, last, one.startSpreadMs));
    slots.set(id, slot);
    try {
      await slot.want(wanted && { ...wanted, startSpreadMs });
    } catch (error) {
      // The next round tries it again.
      known.delete(id);
      throw error;
    }
    if (!known.has(id)) slots.delete(id);
    deps.changed();
  };

  return {
    apply(wanted) {
      const round = queued?.round ?? taken.then(() => takeQueued());
      queued = { wanted, round };
      // One that fails is its caller's affair: the next one is made all the same.
      taken = round.catch(() => {});
      return round.then(({ made }) => made);
    },
    reports: () =>
      order.flatMap((id) => {
        const report = slots.get(id)?.report();
        const own = warnings.get(id);
        if (!report) return [];
        return own ? { ...report, warnings: [...own, ...report.warnings] } : report;
      }),
    async stop() {
      stopped = true;
      await taken;
      await Promise.all([...slots.values()].map((slot) => slot.want(undefined)));
    },
  };

  async function takeQueued(): Promise<Round> {
    const wanted = queued?.wanted;
    queued = undefined;
    return stopped || !wanted ? { made: Promise.resolve() } : takeIn(wanted);
  }
}

/** What a round changes goes on after it has been taken in. */
interface Round {
  readonly made: Promise<void>;
}

/** Cheap, because records and variables that have not changed are the same objects; false also where only the objects are others. */
const isSameInput = (before: SourceInput, now: SourceInput): boolean =>
  before.record === now.record &&
  before.missingSecret === now.missingSecret &&
  before.readoutIntervalUnit === now.readoutIntervalUnit &&
  (before.variables === now.variables ||
    (before.variables.length === now.variables.length && before.variables.every((variable, i) => variable === now.variables[i]))) &&
  isDeepStrictEqual(before.local, now.local) &&
  isDeepStrictEqual(before.secrets, now.secrets);

const VARIABLES_AT_ONCE = 50;

/** A digest, because what it covers holds secrets. Goes by slices. */
async function fingerprint(input: SourceInput, breathe: Breathe): Promise<string> {
  const hash = createHash("sha256").update(canonicalJson(fingerprintOf({ ...input, variables: [] })));
  for (let from = 0; from < input.variables.length; from += VARIABLES_AT_ONCE) {
    hash.update(canonicalJson(input.variables.slice(from, from + VARIABLES_AT_ONCE)));
    await breathe();
  }
  return hash.digest("base64");
}

async function specWithDriver(input: SourceInput, drivers: Readonly<Record<string, DriverEntry>>): ReturnType<typeof specOf> {
  const { type } = input.record;
  const entry = Object.hasOwn(drivers, type) ? drivers[type] : undefined;
  if (!entry) {
    const detail = `type ${JSON.stringify(type)} has no driver here; there are: ${Object.keys(drivers).join(", ")}`;
    return { problem: { reason: { type: "UNKNOWN" }, condition: "type_not_supported", detail } };
  }
  try {
    return await specOf(input, (await entry.driver()).default);
  } catch (error) {
    return { problem: internalError(error) };
  }
}

/** A driver's mistake, or one of ours: that source's trouble alone. */
const internalError = (error: unknown): Problem => ({ reason: { type: "UNKNOWN" }, condition: "internal_error", detail: messageOf(error) });

/** A source that cannot run as it is configured: a status and nothing else, until its configuration changes. */
function parked(input: SourceInput, configured: number, lastReadoutAt: number | null, problem: Problem, deps: AgentDeps): RunningSource {
  const { record } = input;
  const now = deps.clock.epochMs();
  const before: SourceState = { type: "UNKNOWN", since: now };
  const state = nextState(before, problem, now);
  logChange(deps.logFor({ source: record.name, type: record.type }), before, state, { source: record.name, endpoint: null });
  return {
    report: () => ({
      uuid: record.uuid,
      name: record.name,
      type: record.type,
      endpoint: null,
      status: {
        last_readout_at: lastReadoutAt === null ? null : new Date(lastReadoutAt).toISOString(),
        configured_variables: configured,
        state: toReadoutState(state),
      },
      since: new Date(now).toISOString(),
      error: problem,
      next_retry_at: null,
      interval_ms: 0,
      warnings: [],
      counters: { readouts: 0, failed_readouts: 0, overruns: 0, values_read: 0, values_faulted: 0, connects: 0 },
      faults: [],
      layout: null,
    }),
    stop: async () => {},
  };
}
