import type { S7Details } from "../../src/model/details.ts";
import type { OtherWay } from "../driver.ts";
import type { IsoTarget } from "../lib/iso.ts";
import type { S7Settings } from "./settings.ts";

/** First byte of the called TSAP. */
const CONNECTION_TYPES = { pg: 1, op: 2, basic: 3 } as const;
/** Devices without rack and slot: the TSAPs of both ends, as projects usually have them. Not verified against hardware. */
const PRESETS = { logo: ["02.00", "02.00"], s7_200: ["4D.57", "4D.57"] } as const;
/** The other usual TSAPs of a LOGO!: those that LOGO!Soft proposes for a connection of its own. */
const LOGO_OTHER = { local_tsap: "10.00", remote_tsap: "20.00" } as const;

type ConnectionType = S7Settings["connection_type"];
const isByPlace = (type: ConnectionType): type is keyof typeof CONNECTION_TYPES => Object.hasOwn(CONNECTION_TYPES, type);

/** TSAPs of the collector and of the controller; undefined: they follow from rack and slot. */
export const tsapsOf = (settings: S7Settings): readonly [local: string, remote: string] | undefined =>
  isByPlace(settings.connection_type) ? undefined : tsapsBy(settings.connection_type, settings);

const tsapsBy = (type: Exclude<ConnectionType, keyof typeof CONNECTION_TYPES>, { local_tsap, remote_tsap }: S7Settings) =>
  type === "raw" ? ([local_tsap, remote_tsap] as const) : PRESETS[type];

/** A slot has five bits, a rack three. */
const [MAX_RACK, MAX_SLOT] = [7, 31];

const bytesOf = (tsap: string): Buffer => Buffer.from(tsap.replace(/[.:]/, ""), "hex");

/** The TSAPs for a connection; a string: rack or slot is out of range. Pure. */
export function targetOf({ rack, slot }: S7Details, settings: S7Settings): IsoTarget | string {
  const type = settings.connection_type;
  if (!isByPlace(type)) {
    const [local, remote] = tsapsBy(type, settings);
    return { callingTsap: bytesOf(local), calledTsap: bytesOf(remote) };
  }
  if (rack < 0 || rack > MAX_RACK) return `rack ${rack} is out of range: 0 to ${MAX_RACK}`;
  if (slot < 0 || slot > MAX_SLOT) return `slot ${slot} is out of range: 0 to ${MAX_SLOT}`;
  const calledTsap = Buffer.of(CONNECTION_TYPES[type], rack * 32 + slot);
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
  const tsaps = tsapsOf(settings);
  if (tsaps) {
    const [local, remote] = tsaps;
    return `are the TSAPs right (local ${local}, remote ${remote}), and is one of the controller's connections free?`;
  }
  const others = USUAL_SLOTS.filter(([usual]) => usual !== slot).map(([usual, of]) => `${usual} (${of})`);
  return `asked for rack ${rack}, slot ${slot}; other slots worth trying: ${others.join(", ")}; or all of its connections of the type ${settings.connection_type} are taken`;
}

/** Slots of the usual CPUs, then the other connection types of the given one: a CPU may refuse one type, or have no connection of it left. Pure. */
export function otherWays(details: S7Details, settings: S7Settings): readonly OtherWay<S7Details, S7Settings>[] {
  if (tsapsOf(settings)) return settings.connection_type === "logo" ? [logoOther(details, settings)] : [];
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

const logoOther = (details: S7Details, settings: S7Settings): OtherWay<S7Details, S7Settings> => ({
  words: `TSAPs ${LOGO_OTHER.local_tsap} and ${LOGO_OTHER.remote_tsap}`,
  fields: ["connection_type=raw", ...Object.entries(LOGO_OTHER).map(([field, tsap]) => `${field}=${tsap}`)],
  details,
  settings: { ...settings, connection_type: "raw", ...LOGO_OTHER },
});
