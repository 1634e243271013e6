import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { DriverEntry } from "../../drivers/driver.ts";
import { createYielder, type YieldToEventLoop } from "../base/timer.ts";
import { sharedBudget } from "../lib/log-budget.ts";
import { canonicalJson, reconcile } from "../lib/reconcile.ts";
import { literalAddress } from "../model/address.ts";
import { timeAt, upMsOf } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Kept } from "../model/kept.ts";
import type { SourceReport } from "../model/report.ts";
import { type Warning, WarningTimes } from "../model/warning.ts";
import type { SourceFrames } from "../model/wire.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { detailsProblem } from "./details-problem.ts";
import { HabitMemories } from "./device-habits.ts";
import { DeviceMemories } from "./device-memory.ts";
import { type FrameMemory, FrameRings } from "./frame-rings.ts";
import type { Sample } from "./live-values.ts";
import { type Look, type Looked, type RunningSource, type SourceDeps, startSource } from "./source.ts";
import { type DesiredSource, SourceSlot } from "./source-slot.ts";
import { configuredIntervalMs, configuredVariables, type SourceInput, type SourceSpec, specOf, usedOf } from "./source-spec.ts";
import { StateLines } from "./state-lines.ts";
import { createReasonBudget, type SharedLines } from "./state-log.ts";
import { logChange, nextState, type Problem, type SourceState, toReadoutState } from "./status.ts";

export interface AgentDeps
  extends Pick<
    SourceDeps,
    "clock" | "resolver" | "permit" | "listenRefusal" | "keptOf" | "late" | "failed" | "alarm" | "prepare" | "emit"
  > {
  readonly drivers: Readonly<Record<string, DriverEntry>>;
  /** A log that carries the given fields in every line. */
  logFor(fields: Readonly<Record<string, unknown>>): Log;
  /** After each change of a source's state, and after each change of the set. */
  changed(): void;
  /** The habits of a device over restarts, by its transport, host and port; absent: none are kept. */
  readonly habitsOf?: (device: string) => Kept;
  /** Absent: what passes over connections is not kept. */
  readonly frames?: FrameMemory;
}

/** A source at a glance: for whoever goes over many of them often. */
export interface Glance {
  readonly uuid: string;
  /** Another one whenever its state is another; undefined: its state is not read off so. */
  readonly mark: object | undefined;
  /** Its report, and one of its last values (undefined: it was not read). Undefined: nothing is known of it. */
  look(): { readonly report: SourceReport; readonly sample: Sample | undefined } | undefined;
}

/** What a source is to run as. */
interface DesiredInput {
  readonly input: SourceInput;
  /** Another one whenever it would run otherwise. */
  readonly version: number;
}

/** Sources that start at once are this far apart on average, and never wait longer than the longest. */
const START_GAP_MS = 10;
const LONGEST_START_SPREAD_MS = 10_000;

/** Warnings of all sources together: thousands may be slow at once. */
const NOTES_PER_MINUTE = 20;

/** The set of data sources that run. */
export class Agent {
  readonly #deps: AgentDeps;
  readonly #pool: ConnectionPool;
  readonly #memories = new DeviceMemories();
  readonly #habits: HabitMemories;
  readonly #rings: FrameRings | undefined;
  readonly #stateLines: StateLines;
  readonly #lines: SharedLines;
  /** What all sources together may say of their settings and their pace, beside their states. */
  readonly #budgeted: (log: Log) => Log;
  readonly #slots = new Map<string, SourceSlot>();
  /** By source. */
  #known = new Map<string, DesiredInput>();
  #lastVersion = 0;
  /** By source; they change without the source being started again. */
  #warnings = new Map<string, { readonly own: readonly Warning[]; readonly times: WarningTimes }>();
  /** By source: what its last start warned of. A restart logs only what is new. */
  readonly #startWarnings = new Map<string, readonly Warning[]>();
  #order: readonly string[] = [];
  /** Settles when the rounds so far have been taken in; what they change may go on. */
  #taken: Promise<unknown> = Promise.resolve();
  /** What the next round will take in: the latest. */
  #queued: { readonly desired: readonly SourceInput[]; readonly round: Promise<Round> } | undefined;
  /** Starts go one by one, so that timers and sockets have their turn between them. */
  #lastTurn: Promise<void> = Promise.resolve();
  /** One after the other, as the starts are; never rejects. */
  #lastSpec: Promise<unknown> = Promise.resolve();
  /** Changes of the policy are taken one after the other. Never rejects. */
  #policyTaken: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: AgentDeps) {
    this.#deps = deps;
    this.#pool = new ConnectionPool(deps.clock.monotonicMs);
    this.#habits = new HabitMemories(deps.clock.epochMs, deps.habitsOf);
    this.#rings = deps.frames && deps.frames.sourceBytes > 0 ? new FrameRings(deps.frames) : undefined;
    this.#stateLines = new StateLines(deps.logFor({}));
    this.#lines = { reasonLines: createReasonBudget(deps.clock.monotonicMs), stateLines: this.#stateLines };
    this.#budgeted = sharedBudget(deps.logFor({}), {
      linesPerMinute: NOTES_PER_MINUTE,
      of: "data sources",
    });
  }

  /**
   * Brings what runs to what is desired. Unchanged sources notice nothing, and no source waits for another to stop. Resolves when the
   * changes have been made; of several that wait to be taken in only the latest is.
   */
  apply(desired: readonly SourceInput[]): Promise<void> {
    const round = this.#queued?.round ?? this.#taken.then(() => this.#takeQueued());
    this.#queued = { desired, round };
    // One that fails is its caller's affair: the next one is made all the same.
    this.#taken = round.catch(() => {});
    return round.then(({ made }) => made);
  }

  /** In the order of the configuration. */
  reports(): readonly SourceReport[] {
    return this.#order.flatMap((id) => this.#reportOf(id) ?? []);
  }

  /** `reports` one by one; what is not looked at costs next to nothing. */
  *glances(): Generator<Glance> {
    for (const uuid of this.#order) {
      const slot = this.#slots.get(uuid);
      const look = () => {
        const report = this.#reportOf(uuid);
        return report && { report, sample: slot?.sample() };
      };
      yield { uuid, mark: slot?.mark, look };
    }
  }

  #reportOf(id: string): SourceReport | undefined {
    const report = this.#slots.get(id)?.report();
    const own = this.#warnings.get(id);
    if (!report || !own) return report;
    return { ...report, warnings: [...own.times.dated(own.own, this.#deps.clock.epochMs()), ...report.warnings] };
  }

  /** The source with this uuid or name, looked into; undefined: there is none. Of several with one name the first. */
  inspect(name: string, look: Look): (Looked & { readonly report: SourceReport }) | undefined {
    const id = this.#idOf(name);
    const report = id === undefined ? undefined : this.#reportOf(id);
    return report && { report, ...(this.#slots.get(report.uuid)?.inspect(look) ?? { plan: null, readout: null }) };
  }

  /** Sinks may know less than was reported: the next readout of each source, or of this one, reports all values. */
  reportAll(uuid?: string): void {
    for (const slot of uuid === undefined ? this.#slots.values() : [this.#slots.get(uuid)]) slot?.reportAll();
  }

  /**
   * What the source with this uuid or name exchanged last, without its secrets; `none`: there is no such source. Undefined: nothing of it is
   * kept, because that is turned off or it cannot run as it is configured.
   */
  frames(name: string): SourceFrames | "none" | undefined {
    const id = this.#idOf(name);
    return id === undefined ? "none" : this.#slots.get(id)?.frames();
  }

  #idOf(name: string): string | undefined {
    const isNamed = (id: string): boolean => this.#known.get(id)?.input.record.name === name;
    return this.#order.find((uuid) => uuid === name.toLowerCase()) ?? this.#order.find(isNamed);
  }

  /**
   * The policy that `permit` follows is another one: sources whose device may be connected to no longer, or may be now, begin again at once.
   * The others notice nothing. Settles when those are started; never rejects.
   */
  policyChanged(): Promise<void> {
    this.#policyTaken = this.#policyTaken.then(() => this.#takePolicy());
    return this.#policyTaken;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#taken;
    await Promise.all([...this.#slots.values()].map((slot) => slot.want(undefined)));
    this.#stateLines.flush();
  }

  async #takePolicy(): Promise<void> {
    const concerned = [...this.#slots].filter(([, slot]) => this.#isConcerned(slot));
    // All have closed before the first begins again: they may share connections.
    await Promise.all(concerned.map(([id, slot]) => this.#guarded(id, slot.hold())));
    await Promise.all(concerned.map(([id, slot]) => this.#guarded(id, slot.resume())));
    if (concerned.length > 0) this.#deps.changed();
  }

  async #takeQueued(): Promise<Round> {
    const desired = this.#queued?.desired;
    this.#queued = undefined;
    return this.#isStopped || !desired ? { made: Promise.resolve() } : this.#takeIn(desired);
  }

  async #takeIn(desired: readonly SourceInput[]): Promise<Round> {
    const yieldToEventLoop = createYielder();
    const inputs = await this.#versionsOf(desired, yieldToEventLoop);
    if (this.#isStopped) return { made: Promise.resolve() };
    const before = new Map([...this.#known].map(([id, { version }]) => [id, version]));
    const plan = reconcile(inputs, before, ({ version }) => version);
    this.#known = inputs;
    this.#order = [...inputs.keys()];
    for (const uuid of this.#startWarnings.keys()) if (!inputs.has(uuid)) this.#startWarnings.delete(uuid);
    const haveChanged = this.#takeWarnings(desired);
    this.#rings?.expect(inputs.size);
    const startSpreadMs = Math.min(LONGEST_START_SPREAD_MS, Math.max(0, plan.start.length - 1) * START_GAP_MS);
    const changes: Promise<void>[] = [];
    for (const id of new Set([...plan.stop, ...plan.start])) {
      changes.push(this.#change(id, inputs.get(id), startSpreadMs));
      await yieldToEventLoop();
    }
    if (haveChanged || changes.length > 0) this.#deps.changed();
    return { made: Promise.all(changes).then(() => {}) };
  }

  /** Digests say whether a source would run otherwise where only the objects are others: a start digests none. */
  async #versionsOf(desired: readonly SourceInput[], yieldToEventLoop: YieldToEventLoop): Promise<Map<string, DesiredInput>> {
    const inputs = new Map<string, DesiredInput>();
    for (const input of desired) {
      const known = this.#known.get(input.record.uuid);
      const isSame =
        known !== undefined &&
        (isSameInput(known.input, input) || (await digestOf(known.input, yieldToEventLoop)) === (await digestOf(input, yieldToEventLoop)));
      inputs.set(input.record.uuid, { input, version: isSame ? known.version : ++this.#lastVersion });
      await yieldToEventLoop();
    }
    return inputs;
  }

  /** True: some have changed. Logs those that are new. */
  #takeWarnings(desired: readonly SourceInput[]): boolean {
    const before = this.#warnings;
    this.#warnings = new Map(
      desired
        .filter(({ warnings }) => warnings.length > 0)
        .map(({ record: { uuid }, warnings: own }) => [uuid, { own, times: before.get(uuid)?.times ?? new WarningTimes() }]),
    );
    let haveChanged = before.size !== this.#warnings.size;
    for (const { record, warnings: now } of desired) {
      const known = before.get(record.uuid)?.own ?? [];
      haveChanged ||= now.length !== known.length || now.some(({ text }, i) => text !== known[i]?.text);
      const fresh = now.filter(({ text }) => !known.some((one) => one.text === text));
      if (fresh.length === 0) continue;
      const log = this.#deps.logFor({ source: record.name, type: record.type });
      for (const { text } of fresh) this.#budgeted(log).warn({}, text);
    }
    return haveChanged;
  }

  /** True: the policy says something else of its device than it does. */
  #isConcerned(slot: SourceSlot): boolean {
    const { permit, resolver } = this.#deps;
    const { endpoint } = slot;
    if (!permit || !endpoint) return false;
    const literal = literalAddress(endpoint.host);
    const addresses = literal ? [literal] : (resolver?.addressesInUse(endpoint) ?? []);
    const allowed = addresses.filter(({ address }) => permit(address, endpoint.port) === undefined);
    const isForbidden = slot.report()?.error?.condition === "forbidden_by_policy";
    return isForbidden ? allowed.length > 0 || addresses.length === 0 : allowed.length < addresses.length;
  }

  async #guarded(id: string, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#deps.logFor({ source: id }).error({ err: error }, "the data source could not be begun again after a change of the policy");
    }
  }

  /** Of one source, whatever the others do. */
  async #change(id: string, desired: DesiredInput | undefined, startSpreadMs: number): Promise<void> {
    const slot = this.#slots.get(id) ?? this.#newSlot();
    this.#slots.set(id, slot);
    try {
      await slot.want(desired && { ...desired, startSpreadMs });
    } catch (error) {
      // The next round tries it again.
      this.#known.delete(id);
      throw error;
    }
    if (!this.#known.has(id)) this.#slots.delete(id);
    this.#deps.changed();
  }

  #newSlot(): SourceSlot {
    return new SourceSlot(
      () => this.#turn(),
      (one, last) => this.#start(one, last),
    );
  }

  #turn(): Promise<void> {
    this.#lastTurn = this.#lastTurn.then(() => nextTurn());
    return this.#lastTurn;
  }

  async #start({ input, startSpreadMs }: DesiredSource, last: SourceReport | undefined): Promise<RunningSource> {
    const deps = this.#deps;
    const { record, variables } = input;
    const configured = await configuredVariables(variables, createYielder());
    const seen = last?.status.last_readout_at ?? null;
    const lastReadoutAt = seen === null ? null : Date.parse(seen);
    const made = this.#lastSpec.then(() => specWithDriver(input, deps.drivers));
    this.#lastSpec = made;
    const prepared = await made;
    const parkedDeps = { ...deps, ...this.#lines };
    if ("problem" in prepared) return parked(input, configured, lastReadoutAt, prepared.problem, parkedDeps);
    const { spec } = prepared;
    const log = deps.logFor({ source: record.name, type: record.type, endpoint: `${spec.endpoint.host}:${spec.endpoint.port}` });
    this.#logNewWarnings(spec, log);
    try {
      const [pool, memories, habits, notes] = [this.#pool, this.#memories, this.#habits, this.#budgeted(log)];
      const shared = { pool, memories, habits, rings: this.#rings, startSpreadMs, log, notes };
      return startSource(spec, configured, lastReadoutAt, { ...deps, ...this.#lines, ...shared });
    } catch (error) {
      return parked(input, configured, lastReadoutAt, internalError(error), parkedDeps);
    }
  }

  #logNewWarnings({ uuid, warnings }: SourceSpec, log: Log): void {
    const before = this.#startWarnings.get(uuid) ?? [];
    this.#startWarnings.set(uuid, warnings);
    for (const { text } of warnings) if (!before.some((one) => one.text === text)) this.#budgeted(log).warn({}, text);
  }
}

/** What a round changes goes on after it has been taken in. */
interface Round {
  readonly made: Promise<void>;
}

/** Cheap, because records and variables that have not changed are the same objects; false also where only the objects are others. */
const isSameInput = (before: SourceInput, now: SourceInput): boolean =>
  before.record === now.record &&
  before.optionsProblem === now.optionsProblem &&
  before.missingSecret === now.missingSecret &&
  before.awaitedSecret === now.awaitedSecret &&
  before.withheldSecret === now.withheldSecret &&
  before.readoutIntervalUnit === now.readoutIntervalUnit &&
  (before.variables === now.variables ||
    (before.variables.length === now.variables.length && before.variables.every((variable, i) => variable === now.variables[i]))) &&
  isDeepStrictEqual(before.local, now.local) &&
  isDeepStrictEqual(before.secrets, now.secrets);

const VARIABLES_AT_ONCE = 50;

/** A digest, because what it covers holds secrets. Goes by slices. */
async function digestOf(input: SourceInput, yieldToEventLoop: YieldToEventLoop): Promise<string> {
  const hash = createHash("sha256").update(canonicalJson(usedOf({ ...input, variables: [] })));
  for (let from = 0; from < input.variables.length; from += VARIABLES_AT_ONCE) {
    hash.update(canonicalJson(input.variables.slice(from, from + VARIABLES_AT_ONCE)));
    await yieldToEventLoop();
  }
  return hash.digest("base64");
}

async function specWithDriver(input: SourceInput, drivers: Readonly<Record<string, DriverEntry>>): ReturnType<typeof specOf> {
  const { type } = input.record;
  const entry = Object.hasOwn(drivers, type) ? drivers[type] : undefined;
  if (!entry) {
    const wrong = detailsProblem(input.record);
    const detail = `type ${JSON.stringify(type)} has no driver here; there are: ${Object.keys(drivers).join(", ")}${wrong === undefined ? "" : `; its details are not right either: ${wrong}`}`;
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
function parked(
  input: SourceInput,
  configured: number,
  lastReadoutAt: number | null,
  problem: Problem,
  deps: AgentDeps & SharedLines,
): RunningSource {
  const { record } = input;
  const now = upMsOf(deps.clock);
  const timeOf = (upMs: number): number => timeAt(deps.clock, upMs);
  const before: SourceState = { type: "UNKNOWN", since: now };
  const state = nextState(before, problem, now);
  logChange(deps.logFor({ source: record.name, type: record.type }), deps.stateLines, before, state, {
    source: record.name,
    endpoint: null,
    timeOf,
  });
  return {
    endpoint: undefined,
    report: () => ({
      uuid: record.uuid,
      name: record.name,
      type: record.type,
      endpoint: null,
      status: {
        last_readout_at: lastReadoutAt === null ? null : new Date(lastReadoutAt).toISOString(),
        configured_variables: configured,
        state: toReadoutState(state, timeOf),
      },
      since: new Date(timeOf(now)).toISOString(),
      error: problem,
      next_retry_at: null,
      interval_ms: configuredIntervalMs(input),
      warnings: [],
      counters: { readouts: 0, failed_readouts: 0, overruns: 0, values_read: 0, values_faulted: 0, values_unchanged: 0, connects: 0 },
      faults: [],
      layout: null,
    }),
    stop: async () => {},
  };
}
