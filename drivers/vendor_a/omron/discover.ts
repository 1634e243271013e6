import { FaultError } from "../../../src/model/fault.ts";
import { type DataType, MAX_COUNT } from "../../../src/model/value.ts";
import type { Discovered, DriverContext } from "../../driver.ts";
import type { Catalog } from "./catalog.ts";
import { indicesAt } from "./locate.ts";
import { listVariables } from "./look-up.ts";
import type { VariableKind } from "./objects.ts";
import { ELEMENTARY, elementsOf, isLaidOut, isStructureCode, type Shape } from "./types.ts";

/** Variables, and members of structures in all. */
const MAX_VARIABLES = 100_000;
const MAX_MEMBERS = 200_000;

/** Lists published variables, the system's behind the user's, each with its members. Throws FaultError: the controller has no list. */
export async function* discoverVariables(catalog: Catalog, ctx: DriverContext): AsyncGenerator<Discovered> {
  let done = 0;
  const left = { members: MAX_MEMBERS };
  for (const kind of ["user", "system"] as const satisfies readonly VariableKind[])
    for await (const page of listVariables(catalog, kind, ctx))
      for (const { instance, name } of page) {
        if (++done > MAX_VARIABLES) return;
        ctx.progress?.(done, undefined);
        yield* oneVariable(name, await shapeOrWords(catalog, instance, name, ctx), left);
      }
  if (done > 0) return;
  const why = catalog.refused ?? "it does not answer, or none is published";
  throw new FaultError("device_error", `the controller lists no variables: ${why}; reading by name works without`);
}

async function shapeOrWords(catalog: Catalog, instance: number, name: string, ctx: DriverContext): Promise<Shape | string> {
  return catalog.shapeOf(instance, name, ctx).catch((error: unknown) => {
    if (error instanceof FaultError && error.scope === "points") return error.message;
    throw error;
  });
}

function* oneVariable(name: string, shape: Shape | string, left: { members: number }): Generator<Discovered> {
  if (typeof shape === "string") yield { address: name, name, type: undefined, path: [], comment: shape };
  else yield* oneShape(name, name, [], shape, left);
}

function* oneShape(address: string, name: string, path: readonly string[], shape: Shape, left: { members: number }): Generator<Discovered> {
  const { structure } = shape;
  yield { address, name, type: listedType(shape), path, ...(structure && { comment: structure.name }) };
  if (!structure) return;
  const isArray = shape.dimensions.length > 0;
  for (let i = 0; i < elementsOf(shape); i++) {
    const index = isArray ? `[${indicesAt(i, shape).join(",")}]` : "";
    for (const member of structure.members) {
      if (left.members-- <= 0) return;
      yield* oneShape(`${address}${index}.${member.name}`, member.name, [...path, `${name}${index}`], member.shape, left);
    }
  }
}

/** The type in which it is read; undefined: a type that is not read as a whole, or an array that one variable cannot hold. */
function listedType(shape: Shape): DataType | undefined {
  const { code, structure, dimensions } = shape;
  const isReadable = isStructureCode(code) ? structure !== undefined && isLaidOut(structure) : ELEMENTARY.has(code);
  const scalar = isStructureCode(code) ? "string" : ELEMENTARY.get(code)?.scalar;
  const count = elementsOf(shape);
  if (!isReadable || !scalar || count < 1 || count > MAX_COUNT) return undefined;
  return { scalar, ...(dimensions.length > 0 && { count }), ...(dimensions.length > 1 && { dimensions }) };
}
