import type { StoredBatch } from "../buffer/buffer.ts";
import type { ReasonError, ReasonType } from "../model/reason.ts";
import type { Job } from "./flow.ts";

/**
 * Finds the readout on which the far side closes the connection each time (a broker that speaks MQTT 3.1.1 cannot say that a publish
 * is too large), so that it does not come again for ever and hold up all behind it. What was under way at two closes in a row is
 * written with nothing beside it; a job that alone was under way then goes row by row; a row on which it closes again in smaller and
 * smaller messages, and is given up in the end. So is one on which the collector itself fails each time.
 */
export interface Guard {
  /** Writes have to go one at a time. */
  isAlone(): boolean;
  /** A close was seen with one write under way, or beside what was told: before the next the connection has to prove that it lasts. */
  isSuspicious(): boolean;
  /** The job itself, or its rows by themselves. */
  partsOf(job: Job): readonly Job[];
  verdictOf(part: Job): Verdict;
  begin(part: Job): void;
  held(part: Job): void;
  /** The way out was lost with what has begun: how many writes that were. `isTelling`: something else was under way beside them. */
  lost(reason: ReasonError, isTelling?: boolean): number;
}

export interface Verdict {
  /** The sink makes no larger messages, but for single values. */
  readonly maxMessageBytes?: number;
  /** So often the way out was lost right after it: it is not written any more. */
  readonly closes?: number;
  /** The last time for this. */
  readonly why?: string;
}

/** By closes with this row alone under way; after the last it is given up. 1: each value by itself. */
const MESSAGE_BYTES = [undefined, 16_384, 1024, 1] as const;
const TOGETHER = 2;
/** After so many writes without a loss nothing is suspected: a row may never come again. */
const FORGET_AFTER = 256;
/** The oldest beyond so many are forgotten: those that were dropped meanwhile never come again. */
const MAX_SUSPECTS = 1000;

interface Closes {
  /** With others under way. */
  together: number;
  alone: number;
  why: string;
}

export function createGuard(): Guard {
  const suspects = new Map<string, Closes>();
  const underWay = new Set<string>();
  let heldInARow = 0;
  /** The last close may have been for what was told: the writes are not suspected for it, once. */
  let isInDoubt = false;
  const alone = (part: Job): number => suspects.get(keyOf(part))?.alone ?? 0;
  const some = (is: (closes: Closes) => boolean): boolean => suspects.size > 0 && [...suspects.values()].some(is);
  return {
    isAlone: () => some((closes) => closes.alone > 0 || closes.together >= TOGETHER),
    isSuspicious: () => isInDoubt || some((closes) => closes.alone > 0),
    partsOf(job) {
      const { rows } = job.group;
      if (rows.length <= 1 || alone(job) === 0) return [job];
      return rows.map((row) => ({ ...job, group: { ...job.group, rows: [row], bytes: row.payload.byteLength } }));
    },
    verdictOf(part) {
      const { alone: closes, why } = suspects.get(keyOf(part)) ?? { alone: 0, why: "" };
      if (closes === 0) return {};
      if (closes >= MESSAGE_BYTES.length) return { closes, why };
      const maxMessageBytes = MESSAGE_BYTES[closes];
      return maxMessageBytes === undefined ? {} : { maxMessageBytes };
    },
    begin: (part) => void underWay.add(keyOf(part)),
    held(part) {
      const key = keyOf(part);
      underWay.delete(key);
      suspects.delete(key);
      if (suspects.size > 0 && ++heldInARow >= FORGET_AFTER) suspects.clear();
    },
    lost({ reason: { type }, condition, message }, isTelling = false) {
      const keys = [...underWay];
      underWay.clear();
      heldInARow = 0;
      if (!isClose(type) && condition !== "internal_error") return keys.length;
      if (keys.length === 0) {
        isInDoubt &&= isTelling;
        return 0;
      }
      isInDoubt = isTelling && !isInDoubt;
      if (isInDoubt) return keys.length;
      for (const key of keys) {
        const closes = suspects.get(key) ?? { together: 0, alone: 0, why: "" };
        closes.why = message;
        if (keys.length === 1) closes.alone++;
        else closes.together++;
        suspects.set(key, closes);
      }
      for (const key of [...suspects.keys()].slice(0, Math.max(0, suspects.size - MAX_SUSPECTS))) suspects.delete(key);
      return keys.length;
    },
  };
}

/** The far side, or something on the way, has ended the connection. */
export const isClose = (type: ReasonType): boolean => type === "CONNECTION_CLOSED" || type === "CONNECTION_RESET";

const keyOf = ({ group: { rows } }: Job): string => `${idOf(rows[0])}-${rows.length > 1 ? "many" : "one"}`;
const idOf = (row: StoredBatch | undefined): number => row?.id ?? 0;
