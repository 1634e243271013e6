import { readFileSync } from "node:fs";
import { nodesets } from "node-opcua-nodesets";
import { expect, it } from "vitest";
import { BUILT_IN_NAMES, wireType } from "./built-in.ts";
import { STANDARD_ENCODINGS, STANDARD_TYPES } from "./standard-structures.ts";
import type { Definition, Field } from "./structures.ts";

/** Of one data type, as the OPC Foundation's own file of namespace 0 has it. */
interface Described {
  readonly name: string;
  readonly parent: string | undefined;
  readonly fields: readonly string[];
}

const XML = readFileSync(nodesets.standard, "utf8");
const described = new Map<string, Described>();
for (const [, id = "", name = "", body = ""] of XML.matchAll(
  /<UADataType NodeId="(i=\d+)" BrowseName="([^"]+)"[^>]*>([\s\S]*?)<\/UADataType>/g,
))
  described.set(id, {
    name,
    parent: /ReferenceType="HasSubtype" IsForward="false">(i=\d+)</.exec(body)?.[1],
    // Those of enumerations have a Value.
    fields: [...body.matchAll(/<Field ((?![^>]*\bValue=)[^>]*)>/g)].map(([, field = ""]) => field),
  });
/** Data types by their binary encoding. */
const encoded = new Map(
  [...XML.matchAll(/<UAObject NodeId="(i=\d+)" BrowseName="Default Binary"[\s\S]*?"HasEncoding" IsForward="false">(i=\d+)</g)].map(
    ([, encoding = "", type = ""]) => [encoding, type] as const,
  ),
);

/** A structure by its name, anything else as it travels. */
function travelsAs(id: string): string {
  const builtIn = wireType(Number(id.slice(2)));
  if (builtIn !== undefined) return BUILT_IN_NAMES[builtIn] ?? "?";
  const { name = "?", parent = "i=22" } = described.get(id) ?? {};
  const above = travelsAs(parent);
  return above === "ExtensionObject" || STANDARD_TYPES.has(id) ? name : above;
}

/** Behind those of what it is derived from. */
const fieldsOf = (id: string | undefined): readonly string[] => {
  const one = id === undefined ? undefined : described.get(id);
  return one ? [...fieldsOf(one.parent), ...one.fields.map(written)] : [];
};
const written = (field: string): string => {
  const [name, type = "i=24", rank] = [/Name="([^"]+)"/, /DataType="([^"]+)"/, /ValueRank="([^"]+)"/].map((one) => one.exec(field)?.[1]);
  return `${name}:${travelsAs(type)}${rank === "1" ? "[]" : ""}`;
};

const names = new Map<Definition, string>(
  [...STANDARD_TYPES].map(([id, definition]) => [definition, described.get(id)?.name ?? id] as const),
);
const typeOf = ({ type }: Field): string => ("structure" in type ? names.get(type.structure) : BUILT_IN_NAMES[type.builtIn]) ?? "?";

it.each([...STANDARD_ENCODINGS])("has the fields of %s as the specification has them", (encoding, definition) => {
  const dataType = encoded.get(encoding);
  expect(STANDARD_TYPES.get(dataType ?? "")).toBe(definition);
  expect(definition.fields.map((field) => `${field.name}:${typeOf(field)}${field.valueRank === 1 ? "[]" : ""}`)).toEqual(
    fieldsOf(dataType),
  );
});
