import { cutLineOf, type TagEntry, type TagFile, type TagListFormat, type Wanted } from "./format.ts";
import { isObject, type JsonObject, objectsIn, textOf } from "./json-text.ts";
import { inputsModbus } from "./telegraf-modbus.ts";
import { inputsOpcua, inputsS7comm } from "./telegraf-nodes.ts";

/** A configuration of a plant has some hundred KiB; the parser works in one piece. */
const MAX_CHARACTERS = 8 * 2 ** 20;
/** Tables and lists in values. */
const MAX_DEPTH = 20;

/** Plugins of Telegraf that read devices, by the type of data source. */
const PLUGINS: Readonly<Record<string, readonly string[]>> = {
  modbus_tcp: ["modbus"],
  s7: ["s7comm"],
  opcua: ["opcua", "opcua_listener"],
};
const ANY_PLUGIN = /^[ \t]*\[\[[ \t]*inputs[ \t]*\.[ \t]*(modbus|s7comm|opcua|opcua_listener)[ \t]*\]\]/m;

/** A configuration of Telegraf (TOML): the fields of inputs.modbus, inputs.s7comm, inputs.opcua and inputs.opcua_listener. */
export const telegraf: TagListFormat = {
  program: "Telegraf",
  what: "configuration (TOML)",
  read: (file, wanted) => (ANY_PLUGIN.test(file.text) ? entries(file, wanted) : undefined),
};

async function* entries({ text }: TagFile, wanted: Wanted): AsyncGenerator<TagEntry> {
  const inputs = cutLineOf(text) ?? (await inputsOf(text));
  if (typeof inputs === "string") {
    yield { refusal: inputs };
    return;
  }
  const plugins = Object.hasOwn(PLUGINS, wanted.type) ? (PLUGINS[wanted.type] ?? []) : [];
  const instances = plugins.flatMap((plugin) => objectsIn(inputs[plugin]).map((instance) => ({ plugin, instance })));
  if (instances.length === 0) {
    const known = Object.entries(PLUGINS).flatMap(([type, names]) =>
      names.filter((name) => objectsIn(inputs[name]).length > 0).map((name) => `inputs.${name} for data sources of the type ${type}`),
    );
    yield { refusal: `has nothing for a data source of the type ${wanted.type}; it has ${known.join(", ")}` };
    return;
  }
  const devices = devicesOf(instances);
  for (const [i, { plugin, instance }] of instances.entries()) {
    const device = devices[i] ?? "";
    yield* fieldsOf(plugin, instance, device);
  }
}

function fieldsOf(plugin: string, instance: JsonObject, device: string): Iterable<TagEntry> {
  if (plugin === "modbus") return inputsModbus(instance, device);
  return plugin === "s7comm" ? inputsS7comm(instance, device) : inputsOpcua(instance, device);
}

/** The plugins below `inputs`, or why there are none. Faults of the parser quote lines, in which a password may be: only their place is told. */
async function inputsOf(text: string): Promise<JsonObject | string> {
  if (text.length > MAX_CHARACTERS) return `is longer than ${MAX_CHARACTERS / 2 ** 20} Mi characters; cut it into parts`;
  const { parse, TomlError } = await import("smol-toml");
  try {
    const { inputs } = parse(text, { maxDepth: MAX_DEPTH, unsafeKeyBehaviour: "drop", integersAsBigInt: "asNeeded" });
    return isObject(inputs) ? inputs : "has no inputs";
  } catch (error) {
    if (!(error instanceof TomlError)) return "is not valid TOML";
    return `is not valid TOML at line ${error.line}, column ${error.column}; a variable of the environment outside of quotes is not either`;
  }
}

/** A name for each instance: its own, or where it connects to. Instances of one connection are one device. */
function devicesOf(instances: readonly { readonly plugin: string; readonly instance: JsonObject }[]): readonly string[] {
  const connectionOf = ({ instance }: { readonly instance: JsonObject }): string =>
    withoutUser(textOf(instance["controller"]) || textOf(instance["server"]) || textOf(instance["endpoint"]));
  const nameOf = ({ plugin, instance }: { readonly plugin: string; readonly instance: JsonObject }): string =>
    (plugin === "modbus" ? textOf(instance["name"]) : "") || connectionOf({ instance });
  const connections = new Map<string, Set<string>>();
  for (const one of instances) connections.set(nameOf(one), (connections.get(nameOf(one)) ?? new Set()).add(connectionOf(one)));
  return instances.map((one) => {
    const [name, connection] = [nameOf(one), connectionOf(one)];
    return (connections.get(name)?.size ?? 0) > 1 && connection !== name ? `${name} (${connection})` : name;
  });
}

const withoutUser = (url: string): string => url.replace(/^([a-z.]{1,20}:\/\/)[^/]*@/i, "$1");
