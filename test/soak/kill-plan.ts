import type { AckFault } from "../support/ack-proxy.ts";
import type { Publish, Refusal } from "../support/refusing-broker.ts";

/** What the two ends of the soak of kills share. */
export const SINK = "7e0d3c5a-0000-4000-8000-00000000000a";
export const SOURCES = 3;
/** Of one readout. */
export const VALUES = 3;

/** What goes wrong between the collector and the values' receiver, by chance; all of it passes, so that nothing may be dropped. */
export interface Weather {
  /** What the broker does about a publish instead of taking it. */
  refuse(publish: Publish): Refusal | undefined;
  ack(): AckFault;
  /** From now on all is well. */
  clear(): void;
}

/** Of so many publishes the trouble of one topic lasts. */
const SPELL = 12;
/** Above it, 149 is an honest answer: below it a single value may be in the message. */
const LARGE_BYTES = 600;
const TROUBLES: readonly (Refusal | undefined)[] = [
  undefined,
  undefined,
  undefined,
  { how: "puback", code: 128 },
  { how: "puback", code: 131 },
  { how: "puback", code: 135 },
  { how: "puback", code: 149 },
];

export function createWeather(random: () => number): Weather {
  const spells = new Map<string, { refusal: Refusal | undefined; left: number }>();
  let isClear = false;
  return {
    refuse({ topic, bytes }) {
      if (isClear) return undefined;
      let spell = spells.get(topic);
      if (!spell || spell.left-- <= 0) {
        spell = { refusal: TROUBLES[Math.floor(random() * TROUBLES.length)], left: Math.floor(random() * SPELL) };
        spells.set(topic, spell);
      }
      const { refusal } = spell;
      if (refusal?.how === "puback" && refusal.code === 149 && bytes < LARGE_BYTES) return undefined;
      if (random() < 0.002) return { how: "reset" };
      return refusal;
    },
    ack() {
      const chance = isClear ? 1 : random();
      return chance < 0.04 ? "drop" : chance < 0.05 ? "reset" : "pass";
    },
    clear() {
      isClear = true;
    },
  };
}
