import { type Cells, parseNumber } from "../configuration/variable-file.ts";
import type { Place, TagEntry, Wanted } from "./format.ts";
import { lineThrough } from "./scaling.ts";

/** A tag of Ignition that reads an OPC server, from any of its files. */
export interface IgnitionTag {
  readonly place: Place;
  readonly name: string;
  readonly server: string;
  readonly path: string;
  readonly isEnabled: boolean;
  /** `Off`, `Linear` and others; empty: off. */
  readonly scaleMode: string;
  /** Raw low, raw high, scaled low, scaled high; empty: not given. */
  readonly ends: readonly [string, string, string, string];
  readonly unit: string;
  readonly comment: string;
}

/** Its own server has one entry for each device that it reads: `ns=1;s=[Device]address`; before Ignition 8 without the namespace. */
const OWN_SERVER = /^Ignition OPC[- ]UA Server$/i;
const OF_A_DEVICE = /^(?:nsu?=[^;]*;s=)?\[([^\]]+)\](.+)$/;

/** The tag as an entry of a list. Pure. */
export function ignitionEntry(tag: IgnitionTag, wanted: Wanted): TagEntry {
  const { place, name, server, path } = tag;
  if (path === "") return { place, name, problem: "has no OPC item path" };
  const isOwn = server === "" || OWN_SERVER.test(server);
  const [, device, address] = (isOwn && OF_A_DEVICE.exec(path)) || [];
  if (wanted.type === "opcua") return { place, device: server === "" ? "Ignition OPC UA Server" : server, ...cellsOf(tag, path) };
  if (device === undefined || address === undefined)
    return {
      place,
      name,
      problem: `is of the OPC server ${JSON.stringify(server)}, not of a device that Ignition reads; import it into a data source of the type opcua`,
    };
  // Here this form is the current bank.
  if (wanted.type === "fins" && /^E[0-9A-F]\d+$/i.test(address))
    return {
      place,
      device,
      name,
      problem: `${JSON.stringify(address)} has the bank in its first digit in Ignition, and not here; write it with _, as E0_100`,
    };
  return { place, device, ...cellsOf(tag, address) };
}

function cellsOf(tag: IgnitionTag, address: string): { readonly tag: Cells } | { readonly name: string; readonly problem: string } {
  const { name, isEnabled, unit, comment } = tag;
  const line = scalingOf(tag);
  if (typeof line === "string") return { name, problem: line };
  // The type of a tag is that of the value in Ignition; the address, or the device, says how it is read.
  return { tag: { name, address, unit, comment, ...line, ...(!isEnabled && { status: "INACTIVE" }) } };
}

function scalingOf({ scaleMode, ends }: IgnitionTag): Pick<Cells, "factor" | "offset"> | string {
  if (/^(off|none|0|)$/i.test(scaleMode)) return {};
  if (!/^(linear|1)$/i.test(scaleMode)) return `the scale mode ${scaleMode} has no counterpart here; only Linear has`;
  if (ends.some((end) => end === ""))
    return "its linear scaling lacks a raw or a scaled end, which the file leaves out where it is Ignition's default; give both there";
  const [rawLow, rawHigh, low, high] = ends.map(parseNumber);
  if (rawLow === undefined || rawHigh === undefined || low === undefined || high === undefined)
    return "one of the four ends of its scaling is not a number";
  return lineThrough({ rawLow, rawHigh, low, high }) ?? "its scaling is not a line: both raw ends, or both scaled ends, are equal";
}
