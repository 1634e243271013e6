import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { isObject, type JsonObject, objectsIn, textOf } from "./json-text.ts";
import { modbusAddress, saysWordOrder } from "./kepware-modbus.ts";
import { isWide, type KepwareTag, kepwareCells, WORD_ORDER } from "./kepware-tag.ts";

/** `servermain.TAG_DATA_TYPE`, as PTC's SDK for the Configuration API has it; arrays are 20 more. */
const TYPES: Readonly<Record<number, string>> = {
  [-1]: "Default",
  0: "String",
  1: "Boolean",
  2: "Char",
  3: "Byte",
  4: "Short",
  5: "Word",
  6: "Long",
  7: "DWord",
  8: "Float",
  9: "Double",
  10: "BCD",
  11: "LBCD",
  12: "Date",
  13: "LLong",
  14: "QWord",
};
const FIRST_ARRAY = 20;
/** `servermain.TAG_SCALING_TYPE`. */
const SCALINGS: readonly string[] = ["None", "Linear", "Square Root"];

/** The project file of KEPServerEX and ThingWorx Kepware, and what their Configuration API answers: a channel, a device, a list of tags. */
export const kepwareJson: TagListFormat = {
  program: "Kepware",
  what: "project (JSON)",
  read({ json }, wanted) {
    if (!json || "fault" in json) return undefined;
    const { value } = json;
    const root = isObject(value) && isObject(value["project"]) ? value["project"] : value;
    return isKepware(root) ? entriesOf(root, wanted) : undefined;
  },
};

/** Its own names of fields are in none of the other programs' files. */
function isKepware(root: unknown): boolean {
  if (Array.isArray(root)) return isKepware(root[0]);
  if (!isObject(root)) return false;
  return "common.ALLTYPES_NAME" in root || objectsIn(root["channels"]).some((channel) => "common.ALLTYPES_NAME" in channel);
}

/** The place of a tag: names from the channel down to its group, and the device with its settings. */
interface Scope {
  readonly channel: string | undefined;
  readonly device: JsonObject | undefined;
  readonly groups: readonly string[];
}

const TOP: Scope = { channel: undefined, device: undefined, groups: [] };

function* entriesOf(root: unknown, wanted: Wanted): Generator<TagEntry> {
  // A list of tags, groups, devices or channels, each known by its own fields.
  const roots = Array.isArray(root) ? objectsIn(root) : [root as JsonObject];
  for (const one of roots) {
    if ("servermain.TAG_ADDRESS" in one) yield* tagEntries(one, TOP, wanted);
    else if ("devices" in one) yield* inChannel(one, wanted);
    else if (isDeviceObject(one)) yield* inDevice(one, undefined, wanted);
    else if ("channels" in one) for (const channel of objectsIn(one["channels"])) yield* inChannel(channel, wanted);
    else yield* inGroup(one, { ...TOP, groups: [nameOf(one)] }, wanted);
  }
}

const nameOf = (one: JsonObject): string => textOf(one["common.ALLTYPES_NAME"]);
const isDeviceObject = (one: JsonObject): boolean => Object.keys(one).some((key) => key.startsWith("servermain.DEVICE_"));

function* inChannel(channel: JsonObject, wanted: Wanted): Generator<TagEntry> {
  for (const device of objectsIn(channel["devices"])) yield* inDevice(device, nameOf(channel), wanted);
}

function* inDevice(device: JsonObject, channel: string | undefined, wanted: Wanted): Generator<TagEntry> {
  const scope: Scope = { channel, device, groups: [] };
  yield* inGroup(device, scope, wanted);
  const id = textOf(device["servermain.DEVICE_ID_STRING"]);
  const unit = /^<[^<>]*>\.(\d{1,3})$/.exec(id)?.[1];
  if (wanted.type === "modbus_tcp" && unit !== undefined && unit !== "1")
    yield { device: deviceName(scope) ?? "", note: `Kepware reads this device as unit ${unit}: set unit=${unit} on the data source` };
}

function* inGroup(group: JsonObject, scope: Scope, wanted: Wanted): Generator<TagEntry> {
  for (const tag of objectsIn(group["tags"])) yield* tagEntries(tag, scope, wanted);
  for (const inner of objectsIn(group["tag_groups"])) yield* inGroup(inner, { ...scope, groups: [...scope.groups, nameOf(inner)] }, wanted);
}

function deviceName({ channel, device }: Scope): string | undefined {
  if (!device) return undefined;
  return channel === undefined ? nameOf(device) : `${channel}.${nameOf(device)}`;
}

function* tagEntries(one: JsonObject, scope: Scope, wanted: Wanted): Generator<TagEntry> {
  const tag = tagOf(one, scope);
  const device = deviceName(scope);
  if (wanted.type === "opcua" && device !== undefined && !isOpcUaClient(scope.device)) {
    yield* ofItsServer(tag, device);
    return;
  }
  const at = { place: device === undefined ? tag.name : `${device}.${tag.name}`, ...(device !== undefined && { device }) };
  const cells = kepwareCells(tag, wanted);
  if (typeof cells === "string") {
    yield { ...at, name: tag.name, problem: cells };
    return;
  }
  const address = scope.device && wanted.type === "modbus_tcp" ? modbusAddress(tag.address, tag.type, scope.device) : tag.address;
  if (typeof address !== "string") yield { ...at, name: tag.name, problem: address.problem };
  else yield { ...at, tag: { ...cells, address }, ...(address !== tag.address && { from: tag.address }) };
  if (wanted.type === "modbus_tcp" && isWide(tag.type) && !(scope.device && saysWordOrder(scope.device)))
    yield { ...(device !== undefined && { device }), note: scope.device ? ASSUMED_ORDER : WORD_ORDER };
}

const ASSUMED_ORDER =
  "the device does not say the order of words: First Word Low is taken, which is Kepware's default; check a value of 32 bits with --try";

const isOpcUaClient = (device: JsonObject | undefined): boolean =>
  /^OPC UA Client/i.test(textOf(device?.["servermain.MULTIPLE_TYPES_DEVICE_DRIVER"]));

/** The tag as Kepware's own OPC UA server has it, where it is scaled already (unverified: its namespace is 2 in examples of others). */
function ofItsServer({ name, address, comment, unit }: KepwareTag, device: string): readonly TagEntry[] {
  const path = `${device}.${name}`;
  return [{ place: path, tag: { name: path, address: `ns=2;s=${path}`, unit, comment }, from: address }, { note: OF_ITS_SERVER }];
}

const OF_ITS_SERVER =
  "the addresses are those of Kepware's own OPC UA server, because the data source is one; its devices are not read directly";

function tagOf(one: JsonObject, { groups }: Scope): KepwareTag {
  const field = (name: string): unknown => one[`servermain.TAG_${name}`];
  const end = (name: string): string => textOf(field(`SCALING_${name}`));
  const mode = field("SCALING_TYPE");
  return {
    name: [...groups, nameOf(one)].join("."),
    address: textOf(field("ADDRESS")),
    type: typeName(field("DATA_TYPE")),
    isWriteOnly: false,
    scaling: {
      mode: typeof mode === "number" ? (SCALINGS[mode] ?? String(mode)) : "",
      ends: [end("RAW_LOW"), end("RAW_HIGH"), end("SCALED_LOW"), end("SCALED_HIGH")],
      isNegated: field("SCALING_NEGATE_VALUE") === true,
    },
    unit: textOf(field("SCALING_UNITS")),
    comment: textOf(one["common.ALLTYPES_DESCRIPTION"]),
  };
}

function typeName(code: unknown): string {
  if (typeof code !== "number") return "Default";
  const isArray = code >= FIRST_ARRAY;
  const name = TYPES[isArray ? code - FIRST_ARRAY : code];
  return name === undefined ? String(code) : `${name}${isArray ? " Array" : ""}`;
}
