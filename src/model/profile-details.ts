/** Types of the API whose wire protocol has no public description: a profile or a plugin of the settings says how they are read. */
export const BOUND_TYPES = ["vendor_b", "odac", "plastcontrol"] as const;
export type BoundType = (typeof BOUND_TYPES)[number];

export const isBoundType = (type: string): type is BoundType => (BOUND_TYPES as readonly string[]).includes(type);

/** What of the details of a bound type a profile gets beside host and port, with the values that it can have (API-V2, 2.2). */
export const DETAIL_VALUES = {
  vendor_b: { machine: ["C4", "C5", "C6"], initialization_mode: ["Default", "Extended"] },
  odac: { protocol_override: ["odac", "host", "none"] },
  plastcontrol: { readout_mode: ["active", "passive"] },
} as const satisfies Readonly<Record<BoundType, Readonly<Record<string, readonly string[]>>>>;
