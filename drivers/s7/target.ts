import type { S7Details } from "../../src/model/details.ts";
import type { OtherWay } from "../driver.ts";
import type { IsoTarget } from "../lib/iso.ts";
import type { S7Settings } from "./settings.ts";

/** First byte of the called TSAP. */
const CONNECTION_TYPES = { pg: 1, op: 2, basic: 3 } as const;
/** A slot has five bits, a rack three. */
const [MAX_RACK, MAX_SLOT] = [7, 31];

const bytesOf = (tsap: string): Buffer => Buffer.from(tsap.replace(/[.:]/, ""), "hex");

/** The TSAPs for a connection; a string: rack or slot is out of range. Pure. */
export function targetOf({ rack, slot }: S7Details, settings: S7Settings): IsoTarget | string {
  if (settings.connection_type === "raw") return { callingTsap: bytesOf(settings.local_tsap), calledTsap: bytesOf(settings.remote_tsap) };
  if (rack < 0 || rack > MAX_RACK) return `rack ${rack} is out of range: 0 to ${MAX_RACK}`;
  if (slot < 0 || slot > MAX_SLOT) return `slot ${slot} is out of range: 0 to ${MAX_SLOT}`;
  const calledTsap = Buffer.of(CONNECTION_TYPES[settings.connection_type], rack * 32 + slot);
  return { callingTsap: Buffer.of(1, 0), calledTsap, isPlace: true };
}

const USUAL_SLOTS: readonly (readonly [slot: number, of: string])[] = [
  [1, "S7-1200, S7-1500"],
  [0, "S7-1200, S7-1500"],
  [2, "S7-300, S7-400"],
  [3, "S7-400"],
];

/** What to try where the controller refuses the connection. Pure. */
export function adviceOn({ rack, slot }: S7Details, settings: S7Settings): string {
  if (settings.connection_type === "raw")
    return `are the TSAPs right (local ${settings.local_tsap}, remote ${settings.remote_tsap}), and is one of the controller's connections free?`;
  const others = USUAL_SLOTS.filter(([usual]) => usual !== slot).map(([usual, of]) => `${usual} (${of})`);
  return `asked for rack ${rack}, slot ${slot}; other slots worth trying: ${others.join(", ")}; or all of its connections of the type ${settings.connection_type} are taken`;
}

/** Slots of the usual CPUs, then the other connection types of the given one: a CPU may refuse one type, or have no connection of it left. Pure. */
export function otherWays(details: S7Details, settings: S7Settings): readonly OtherWay<S7Details, S7Settings>[] {
  if (settings.connection_type === "raw") return [];
  const slots = USUAL_SLOTS.filter(([slot]) => details.rack !== 0 || slot !== details.slot).map(([slot]) => ({
    words: details.rack === 0 ? `slot ${slot}` : `rack 0, slot ${slot}`,
    fields: [...(details.rack === 0 ? [] : ["rack=0"]), `slot=${slot}`],
    details: { ...details, rack: 0, slot },
    settings,
  }));
  const types = (["pg", "op", "basic"] as const).filter((type) => type !== settings.connection_type);
  const others = types.map((type) => ({
    words: `connection type ${type}`,
    fields: [`connection_type=${type}`],
    details,
    settings: { ...settings, connection_type: type },
  }));
  return [...slots, ...others];
}
