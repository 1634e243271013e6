import { type JsonObject, objectsIn, textOf } from "./json-text.ts";

/** Types that inherit from each other, in a row. */
const MAX_CHAIN = 20;

/** The UDT definitions of a file, by the path below the folder `_types_`. */
export class Definitions {
  readonly #byPath = new Map<string, JsonObject>();

  constructor(roots: readonly JsonObject[]) {
    for (const root of roots) this.#collect(root, []);
  }

  /** The definitions that a type inherits from, the farthest first, and itself last; undefined: one is missing, or inherits from itself. */
  chain(typeId: string): readonly JsonObject[] | undefined {
    const chain: JsonObject[] = [];
    for (let id = typeId; id !== ""; ) {
      const definition = this.#byPath.get(pathOf(id));
      if (!definition || chain.length >= MAX_CHAIN) return undefined;
      chain.unshift(definition);
      id = textOf(definition["typeId"]);
    }
    return chain.length === 0 ? undefined : chain;
  }

  #collect(node: JsonObject, folders: readonly string[]): void {
    const name = textOf(node["name"]);
    if (/^udttype$/i.test(textOf(node["tagType"]))) {
      this.#byPath.set([...folders, name].join("/"), node);
      return;
    }
    const below = name === "_types_" || /^provider$/i.test(textOf(node["tagType"])) || name === "" ? [] : [...folders, name];
    for (const inner of objectsIn(node["tags"])) this.#collect(inner, below);
  }
}

/** `[provider]_types_/Folder/Motor` and `Folder/Motor` are one type. */
const pathOf = (typeId: string): string => typeId.replace(/^\[[^\]]*\]/, "").replace(/^_types_\//, "");

/**
 * The members of an instance: those of each layer, the later ones with their properties over the earlier, by name and in the order in which they
 * come first. Pure.
 */
export function members(layers: readonly JsonObject[]): readonly JsonObject[] {
  const byName = new Map<string, JsonObject[]>();
  for (const layer of layers)
    for (const member of objectsIn(layer["tags"])) {
      const name = textOf(member["name"]);
      const known = byName.get(name);
      if (known) known.push(member);
      else byName.set(name, [member]);
    }
  return [...byName.values()].map((same) => (same.length === 1 ? (same[0] ?? {}) : merged(same)));
}

function merged(layers: readonly JsonObject[]): JsonObject {
  const one: JsonObject = Object.assign({}, ...layers);
  const inner = members(layers);
  // Parameters of an instance within are given piece by piece too.
  const parameters: unknown = Object.assign({}, ...layers.map(({ parameters: own }) => own ?? {}));
  return {
    ...one,
    ...(inner.length > 0 && { tags: inner }),
    ...(layers.some((layer) => "parameters" in layer) && { parameters }),
  };
}
