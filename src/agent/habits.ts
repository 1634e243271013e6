import type { AnyDriver, Limits, Point, Request } from "../../drivers/driver.ts";
import type { Log } from "../model/context.ts";
import { HABITS, type Habit, type HabitName, habitWords, isBenefit } from "../model/habit.ts";
import type { DeviceHabits } from "./device-habits.ts";
import { InFlight, judge, type Round } from "./in-flight.ts";

/** Larger sources are not planned once more to look at their habits. */
const MAX_POINTS_PLANNED = 5000;

/** A device takes one request at a time if this many readouts in a row lose one among others, and read everything one by one. */
const LOST_TOGETHER = 3;

/** The most requests that any device is tried with. */
const MOST_IN_FLIGHT = 8;

type Settings = Readonly<Record<string, unknown>>;

/** One that is asked as if the device had a habit not. */
export interface Trial {
  readonly name: HabitName;
  readonly part: string | null;
  readonly request: Request;
}

/** The settings that one source's requests are made with. */
interface Effective {
  readonly version: number;
  /** The first of them is forgotten then, epoch ms. */
  readonly untilMs: number;
  readonly points: readonly Point[];
  /** The last session's; undefined: there was none. */
  readonly granted: Limits | undefined;
  readonly habits: readonly Habit[];
  readonly settings: unknown;
}

export interface HabitsOf {
  readonly driver: AnyDriver;
  /** The driver's, as they are configured. */
  readonly settings: unknown;
  /** A habit that was not seen to hold for so long is forgotten. */
  readonly keepMs: number;
  /** Names the way on from the address (a route), where there are several: two devices have two names. */
  readonly place: string;
  readonly epochMs: () => number;
  readonly log: Log;
}

/**
 * The habits of a device as one of its sources meets them: each is a setting that was learned, and everything is planned and connected as if it
 * were set.
 */
export class Habits {
  readonly #of: HabitsOf;
  readonly #mayPause: boolean;
  #device: DeviceHabits;
  #effective: Effective | undefined;
  #granted: Limits | undefined;
  #limits: { readonly granted: Limits; readonly settings: unknown; readonly own: Limits } | undefined;
  /** Readouts in a row. */
  #lostTogether = 0;
  /** Pause between an answer and the next request, ms. */
  #pauseMs = 0;
  /** Undefined: devices of this type answer in order, or the settings say how many are sent. */
  readonly #inFlight: InFlight | undefined;
  /** The device has several parts, or it is not known yet: a gateway may give one the answer of another. */
  #hasParts = true;

  /** `device`: see `use`. */
  constructor(of: HabitsOf, device: DeviceHabits) {
    this.#of = of;
    this.#device = device;
    this.#mayPause = this.#settingsOf("pause", 1) !== undefined;
    const several = Object.keys(this.#settingsOf("several_in_flight", MOST_IN_FLIGHT) ?? {});
    const isLearned = several.length > 0 && several.every((name) => (of.settings as Settings)[name] === undefined);
    this.#inFlight = isLearned ? new InFlight() : undefined;
  }

  /** The source is read at this device from now on. */
  use(device: DeviceHabits): void {
    if (device === this.#device) return;
    this.#effective = undefined;
    this.#hasParts = true;
    this.#device = device;
  }

  /** Those that are known, for these points. */
  list(points: readonly Point[]): readonly Habit[] {
    return this.#effectiveFor(points).habits;
  }

  /** The settings to connect with. The same object while nothing changes. */
  settings(points: readonly Point[]): unknown {
    return this.#effectiveFor(points).settings;
  }

  /** The limits of this source on a session that grants these: one object while the driver gives one. */
  limits(granted: Limits, points: readonly Point[]): Limits {
    this.#granted = granted;
    const { settings } = this.#effectiveFor(points);
    if (this.#limits?.granted !== granted || this.#limits.settings !== settings)
      this.#limits = { granted, settings, own: this.#limitsBy(granted, settings) };
    return this.#limits.own;
  }

  /** It was seen twice at least. `value`: see Habit. */
  learn(name: HabitName, part: string | undefined, value = 1): void {
    const settings = this.#settingsOf(name, value);
    if (!settings) return;
    const before = this.#device.known(name, part ?? null, this.#of.keepMs);
    if (before?.value === value) return;
    this.#device.learn(name, part ?? null, value);
    const habit = { name, part: part ?? null, value, since: new Date().toISOString(), settings };
    this.#of.log[isBenefit(habit) ? "info" : "warn"]({ habit: name }, habitWords(habit));
  }

  /** The device was seen to have it no longer. */
  forget(name: HabitName, part: string | undefined): void {
    if (!this.#device.known(name, part ?? null, this.#of.keepMs)) return;
    this.#device.forget(name, part ?? null);
    this.#of.log.info({ habit: name }, `${part ?? "the device"} does not need it any more: ${name} is forgotten`);
  }

  /** When the device answered last, monotonic ms. */
  get answeredMs(): number {
    return this.#device.answeredMs;
  }

  /** `afterMs`: from the answer before to the request; `nowMs`: monotonic. */
  answered(request: Request, afterMs: number, nowMs: number): void {
    if (!this.#watchesPauses) return;
    const provenMs = this.#device.answered(() => this.#what(request), afterMs, this.#pauseMs, nowMs);
    if (provenMs === undefined) return;
    if (provenMs > 0) this.learn("pause", undefined, provenMs);
    else this.forget("pause", undefined);
  }

  /** It ran into its time-out. */
  lost(request: Request, afterMs: number): void {
    if (this.#watchesPauses) this.#device.lost(this.#what(request), afterMs, this.#pauseMs);
  }

  /** After each readout: whether it went as planned, and the parts that it asked. */
  readout(isAsPlanned: boolean, parts: Iterable<string | undefined>): void {
    if (!this.#inFlight) return;
    this.#inFlight.readout(isAsPlanned);
    let hasParts = false;
    for (const part of parts) if (this.#device.isOneOfSeveral(`${this.#of.place} ${part ?? ""}`)) hasParts = true;
    if (hasParts !== this.#hasParts) this.#effective = undefined;
    this.#hasParts = hasParts;
  }

  /** Requests of one readout that are to be asked at once, to see what the device makes of it; 0: none are. `planned`: how many there are. */
  dueInFlight(granted: Limits, points: readonly Point[], planned: number): number {
    const most = Math.min(MOST_IN_FLIGHT, planned);
    if (!this.#inFlight || this.#hasParts || most < 2) return 0;
    const nowMs = this.#of.epochMs();
    const known = this.#device.known("several_in_flight", null, this.#of.keepMs);
    const others = this.list(points).filter(({ name }) => name !== "several_in_flight");
    if (others.some(({ name }) => name === "pause" || name === "one_in_flight")) return 0;
    const widest = { name: "several_in_flight", settings: this.#settingsOf("several_in_flight", MOST_IN_FLIGHT) ?? {} } as const;
    const own = known ? known.value : this.#limitsBy(granted, this.#merged(others)).inFlight;
    const may = Math.min(most, this.#limitsBy(granted, this.#merged([...others, widest])).inFlight);
    return this.#inFlight.due(known, own, may, nowMs) ?? 0;
  }

  /** They were asked. `lost`: one of them had no answer, or the device was busy. */
  triedInFlight(round: Round | "lost"): void {
    if (!this.#inFlight) return;
    const value = this.#inFlight.round(round === "lost" ? "other" : (changing) => judge(round, changing), this.#of.epochMs());
    if (value === undefined) return;
    this.learn("several_in_flight", undefined, value);
    this.#device.holds("several_in_flight", null);
  }

  /**
   * After a readout with several requests under way: one of them was lost or the device was busy, and whether everything was read then, one
   * by one.
   */
  askedTogether({ hasLost, wasBusy }: { readonly hasLost: boolean; readonly wasBusy: boolean }, isWhole: () => boolean): void {
    const several = this.#device.known("several_in_flight", null, this.#of.keepMs);
    if ((hasLost || wasBusy) && this.#inFlight && several && several.value > 1) {
      this.#inFlight.odd(this.#of.epochMs());
      this.learn("several_in_flight", undefined, 1);
      return;
    }
    this.#lostTogether = hasLost && isWhole() ? this.#lostTogether + 1 : 0;
    if (this.#lostTogether < LOST_TOGETHER) return;
    this.#lostTogether = 0;
    this.learn("one_in_flight", undefined);
  }

  /** A request by which it shows whether a habit still holds; undefined: none is due. `isGood`: it has values in this readout. */
  trial(
    points: readonly Point[],
    granted: Limits,
    planned: () => readonly Request[],
    isGood: (request: Request) => boolean,
  ): Trial | undefined {
    if (this.#device.isEmpty || points.length > MAX_POINTS_PLANNED) return undefined;
    const due = this.list(points).find((habit) => !isBenefit(habit) && this.#device.isToBeTried(habit.name, habit.part));
    if (!due) return undefined;
    const { name, part } = due;
    const others = this.list(points).filter((one) => one !== due);
    const asIfNot = this.#of.driver.plan(points, this.#limitsBy(granted, this.#merged(others)));
    const now = planned();
    const isOther = (request: Request) => name === "pause" || !now.some(({ points: some }) => isSame(some, request.points));
    const request = asIfNot.find((one) => isOther(one) && isGood(one));
    return request && { name, part, request };
  }

  tried({ name, part }: Trial, isAnswered: boolean): void {
    if (this.#device.tried(name, part, isAnswered))
      this.#of.log.info({ habit: name }, `${part ?? "the device"} does not need it any more: ${name} is forgotten`);
  }

  /** Requests that are under way together have no time between them. */
  get #watchesPauses(): boolean {
    return this.#mayPause && (this.#limits?.own.inFlight ?? 1) === 1;
  }

  #what(request: Request): string {
    return this.#of.driver.describe?.(request) ?? request.points.map(({ index }) => index).join(" ");
  }

  #effectiveFor(points: readonly Point[]): Effective {
    const granted = this.#granted;
    const known = this.#effective;
    const { version } = this.#device;
    const isSame = known !== undefined && known.version === version && known.points === points && known.granted === granted;
    if (isSame && !this.#device.isBeyond(known.untilMs)) return known;
    const habits = this.#device.isEmpty ? [] : this.#known(points);
    const untilMs = this.#device.leastSeenMs + this.#of.keepMs;
    const effective = { version: this.#device.version, untilMs, points, granted, habits, settings: this.#merged(habits) };
    this.#pauseMs = habits.find(({ name }) => name === "pause")?.value ?? 0;
    this.#effective = effective;
    return effective;
  }

  #known(points: readonly Point[]): readonly Habit[] {
    const { keepMs } = this.#of;
    const parts = [null, ...this.#partsOf(points)];
    return HABITS.flatMap((name) =>
      (name === "several_in_flight" && (!this.#inFlight || this.#hasParts) ? [] : parts).flatMap((part): readonly Habit[] => {
        const known = this.#device.known(name, part, keepMs);
        const settings = known && this.#settingsOf(name, known.value);
        return settings ? [{ name, part, value: known.value, since: new Date(known.sinceMs).toISOString(), settings }] : [];
      }),
    );
  }

  /** Those of the parts with habits that these points are read from. */
  #partsOf(points: readonly Point[]): readonly string[] {
    const { parts } = this.#device;
    if (parts.length === 0 || !this.#granted || points.length > MAX_POINTS_PLANNED) return parts;
    const planned = this.#of.driver.plan(points, this.#limitsBy(this.#granted, this.#of.settings));
    return parts.filter((part) => planned.some((request) => request.part === part));
  }

  #settingsOf(name: HabitName, value: number): Settings | undefined {
    return this.#of.driver.habitSettings?.(name, value, this.#of.settings) as Settings | undefined;
  }

  #limitsBy(granted: Limits, settings: unknown): Limits {
    return this.#of.driver.limits?.(granted, settings) ?? granted;
  }

  #merged(habits: readonly Pick<Habit, "settings">[]): unknown {
    const { settings } = this.#of;
    return habits.length === 0 ? settings : habits.reduce((merged, habit) => strictest(merged, habit.settings), settings as Settings);
  }
}

const isSame = (some: readonly Point[], others: readonly Point[]): boolean =>
  some.length === others.length && some.every((point, i) => point === others[i]);

/** That of two settings which asks less of a device: a longer pause, fewer at once. Pure. */
function strictest(settings: Settings, learned: Settings): Settings {
  const stricter = Object.entries(learned).map(([name, value]) => {
    const set = settings[name];
    if (typeof set !== "number" || typeof value !== "number") return [name, value];
    return [name, name.startsWith("min_") ? Math.max(set, value) : Math.min(set, value)];
  });
  return { ...settings, ...Object.fromEntries(stricter) };
}
