import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { bound, type Parameters, parametersOf } from "./ignition-parameters.ts";
import { ignitionEntry } from "./ignition-tag.ts";
import { Definitions, members } from "./ignition-types.ts";
import { isObject, type JsonObject, objectsIn, textOf } from "./json-text.ts";

/** The folder of definitions, which are not tags. */
const TYPES = "_types_";

/** The tag export of Ignition 8 and later. */
export const ignitionJson: TagListFormat = {
  program: "Ignition",
  what: "tag export (JSON)",
  read({ json }, wanted) {
    if (!json || "fault" in json) return undefined;
    const { value } = json;
    const roots = Array.isArray(value) ? objectsIn(value) : isObject(value) ? [value] : [];
    return roots.some(isIgnition) ? entriesOf(roots, wanted) : undefined;
  },
};

const isIgnition = (one: JsonObject): boolean => isTag(one) || objectsIn(one["tags"]).some((inner) => isTag(inner) || isIgnition(inner));
const isTag = (one: JsonObject): boolean =>
  "name" in one && ("tagType" in one || "valueSource" in one || "opcItemPath" in one || "typeId" in one);

/** Folders and instances within each other. */
const MAX_DEPTH = 50;
/** Nodes that a file may have once its types are filled in: each level of types may multiply them. */
const MAX_NODES = 200_000;

/** The place of a tag, with the values of the parameters that it sees. */
interface Scope {
  readonly path: readonly string[];
  readonly parameters: Parameters;
  readonly isEnabled: boolean;
}

const TOP: Scope = { path: [], parameters: new Map(), isEnabled: true };

function* entriesOf(roots: readonly JsonObject[], wanted: Wanted): Generator<TagEntry> {
  const walk = new Walk(new Definitions(roots), wanted);
  for (const root of roots) {
    // The file of several tags has no name, and that of a provider the provider's.
    const isNamed = textOf(root["name"]) !== "" && !/^provider$/i.test(textOf(root["tagType"]));
    for (const node of isNamed ? [root] : objectsIn(root["tags"])) yield* walk.entries(node, TOP);
  }
}

class Walk {
  readonly #definitions: Definitions;
  readonly #wanted: Wanted;
  #nodes = 0;

  constructor(definitions: Definitions, wanted: Wanted) {
    this.#definitions = definitions;
    this.#wanted = wanted;
  }

  /** Entries of the tags at and below a node. */
  *entries(node: JsonObject, scope: Scope): Generator<TagEntry> {
    const type = textOf(node["tagType"]).toLowerCase();
    if (textOf(node["name"]) === TYPES || type === "udttype") return;
    const below: Scope = { ...scope, path: [...scope.path, textOf(node["name"])] };
    const name = below.path.join("/");
    if (below.path.length > MAX_DEPTH) {
      yield { place: name, name, problem: `is nested deeper than ${MAX_DEPTH} levels` };
      return;
    }
    if (++this.#nodes > MAX_NODES) {
      yield { place: name, refusal: `has more than ${MAX_NODES} tags once its types are filled in; export a part of it` };
      return;
    }
    if (type === "udtinstance" || "typeId" in node) yield* this.#inInstance(node, below, scope);
    else if (Array.isArray(node["tags"])) for (const tag of objectsIn(node["tags"])) yield* this.entries(tag, below);
    else if (type !== "folder") yield tagEntry(node, name, scope, this.#wanted);
  }

  *#inInstance(node: JsonObject, below: Scope, { path, parameters: outer }: Scope): Generator<TagEntry> {
    const typeId = textOf(node["typeId"]);
    const chain = this.#definitions.chain(typeId);
    if (!chain) {
      const name = below.path.join("/");
      const problem = `its type ${JSON.stringify(typeId)} is not in the file, or inherits from itself; export the folder _types_ with the tags`;
      yield { place: name, name, problem };
      return;
    }
    const layers = [...chain, node];
    const own = layers.map((layer) => layer["parameters"]);
    const parameters = parametersOf(own, { name: textOf(node["name"]), path }, outer);
    const isEnabled = below.isEnabled && node["enabled"] !== false;
    for (const tag of members(layers)) yield* this.entries(tag, { ...below, parameters, isEnabled });
  }
}

function tagEntry(node: JsonObject, name: string, { parameters, isEnabled }: Scope, wanted: Wanted): TagEntry {
  const source = textOf(node["valueSource"]);
  // A tag with an address and no value source is an OPC tag.
  if (source.toLowerCase() !== "opc" && !(source === "" && "opcItemPath" in node))
    return { place: name, name, problem: `is not read from a device: its value source is ${source === "" ? "memory" : source}` };
  const text = (key: string): string | undefined => bound(node[key], parameters);
  const [path, server, scaleMode, unit] = ["opcItemPath", "opcServer", "scaleMode", "engUnit"].map(text);
  const ends = ["rawLow", "rawHigh", "scaledLow", "scaledHigh"].map(text);
  const comment = text("documentation") || text("tooltip") || "";
  if (path === undefined || server === undefined || scaleMode === undefined || ends.includes(undefined))
    return {
      place: name,
      name,
      problem: "one of its properties has parameters that the file does not give, or an expression that is not a sum",
    };
  return ignitionEntry(
    {
      place: name,
      name,
      server,
      path,
      isEnabled: isEnabled && node["enabled"] !== false,
      scaleMode,
      ends: ends.map((end) => end ?? "") as [string, string, string, string],
      unit: unit ?? "",
      comment,
    },
    wanted,
  );
}
