/** A plant, and what goes wrong in it: all of a play, as data that a seed makes. Times are ms since its start. */
export interface Play {
  readonly seed: number;
  readonly devices: readonly DevicePlan[];
  readonly sources: readonly SourcePlan[];
  readonly troubles: readonly TroublePlan[];
  readonly lengthMs: number;
}

export interface DevicePlan {
  readonly type: "modbus_tcp" | "s7";
  readonly answerMs: number;
  /** A gateway is busy for so long with a request that has no answer, and takes nothing else meanwhile; 0: it forgets it. */
  readonly holdMs: number;
  readonly keepsConnection: boolean;
}

export interface SourcePlan {
  readonly device: number;
  /** The unit that it reads; of an S7, the data block. */
  readonly unit: number;
  readonly intervalMs: number;
  /** Registers, or words of the block. */
  readonly places: readonly number[];
}

/** Troubles of a device and all that it holds. */
export const DEVICE_TROUBLES = [
  "silent",
  "connect refused",
  "no route",
  "connect without an answer",
  "resets",
  "closes after each answer",
  "deaf at first",
  "drops the first request",
  "busy",
  "refuses everything",
  "garbage",
  "slow",
  "very slow",
  "loses every fifth request",
  "hurried",
  "no gaps",
  "short blocks",
  "reboot",
] as const;
/** Troubles of one unit behind it. */
export const UNIT_TROUBLES = ["unit silent", "unit given up by its gateway", "unit slow", "unit busy"] as const;
/** Troubles of one place of a unit. */
export const PLACE_TROUBLES = ["place missing", "place silent", "place ends the connection", "place busy"] as const;
/** Troubles of the collector itself. */
export const OWN_TROUBLES = ["kill", "clock jumps", "interval changed", "variables changed", "source removed and back"] as const;
export type TroubleKind =
  | (typeof DEVICE_TROUBLES)[number]
  | (typeof UNIT_TROUBLES)[number]
  | (typeof PLACE_TROUBLES)[number]
  | (typeof OWN_TROUBLES)[number];

export interface TroublePlan {
  readonly kind: TroubleKind;
  /** Index of the source that it is about; its device, unit and first place are what is in trouble. */
  readonly source: number;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Numbers in [0, 1) that a seed makes (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** All is well for so long at first, and as long at most in the end. */
export const WELL_MS = 15_000;
const END_MS = 65_000;
const LONGEST_TROUBLE_MS = 30_000;

/** The play of a seed. */
export function playOf(seed: number): Play {
  const random = randomOf(seed);
  const within = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const oneOf = <T>(some: readonly T[]): T => some[Math.floor(random() * some.length)] as T;
  const devices: DevicePlan[] = [];
  const sources: SourcePlan[] = [];
  const wanted = within(5, 30);
  while (sources.length < wanted) {
    const type = random() < 0.7 ? "modbus_tcp" : "s7";
    const isGateway = type === "modbus_tcp" && random() < 0.6;
    const holdMs = isGateway ? oneOf([0, 0, 500, 3000]) : 0;
    const device = devices.push({ type, answerMs: oneOf([2, 5, 20]), holdMs, keepsConnection: random() < 0.7 }) - 1;
    const units = isGateway ? within(2, 8) : within(1, 2);
    const intervalMs = oneOf([500, 1000, 1000, 2000, 2000, 5000, 5000, 10_000]);
    for (let unit = 1; unit <= units; unit++) {
      const requests = within(1, isGateway ? 3 : 8);
      // Blocks of places with a gap in some, far from each other: a request each.
      const places = Array.from({ length: requests }, (_, i) => [500 * i, 500 * i + 1 + 2 * within(0, 1)]).flat();
      sources.push({ device, unit, intervalMs: random() < 0.8 ? intervalMs : oneOf([2000, 5000]), places });
    }
  }
  const kinds = [...DEVICE_TROUBLES, ...UNIT_TROUBLES, ...UNIT_TROUBLES, ...PLACE_TROUBLES, ...OWN_TROUBLES];
  const troubles = Array.from({ length: within(3, 8) }, (): TroublePlan => {
    const fromMs = WELL_MS + within(0, 10_000);
    return { kind: oneOf(kinds), source: within(0, sources.length - 1), fromMs, untilMs: fromMs + within(2000, LONGEST_TROUBLE_MS) };
  });
  return { seed, devices, sources, troubles, lengthMs: Math.max(...troubles.map(({ untilMs }) => untilMs)) + END_MS };
}

/** True: the trouble is about this source, itself or by its device. */
export function touches({ sources }: Play, { kind, source }: TroublePlan, other: number): boolean {
  const [of, own] = [sources[source], sources[other]];
  if (!of || !own) return false;
  if (kind === "kill" || kind === "clock jumps") return true;
  return (DEVICE_TROUBLES as readonly string[]).includes(kind) ? of.device === own.device : source === other;
}
