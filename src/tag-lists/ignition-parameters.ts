import { isObject, textOf } from "./json-text.ts";

/** Values of the parameters of a UDT instance, by their names. */
export type Parameters = ReadonlyMap<string, string>;

/** The text that parameters may make of a few characters. */
const MAX_TEXT = 4000;
/** Names of parameters are short. */
const MAX_EXPRESSION = 200;

/**
 * The parameters that members of an instance see: those of its types, its own, and those of Ignition itself. A later list wins. Values may
 * name parameters of the instance around it (`outer`); one that cannot be made is left out. Pure.
 */
export function parametersOf(
  lists: readonly unknown[],
  { name, path }: { readonly name: string; readonly path: readonly string[] },
  outer: Parameters,
): Parameters {
  const given = new Map<string, string>([
    ...outer,
    ["InstanceName", name],
    ["ParentInstanceName", outer.get("InstanceName") ?? ""],
    ["RootInstanceName", outer.get("RootInstanceName") ?? name],
    ["PathToParentFolder", path.join("/")],
  ]);
  const made = new Map(given);
  for (const list of lists)
    for (const [key, parameter] of Object.entries(isObject(list) ? list : {})) {
      const value = bound(isObject(parameter) && "value" in parameter ? parameter["value"] : parameter, given);
      if (value === undefined) made.delete(key);
      else made.set(key, value);
    }
  return made;
}

/**
 * A property as text, with the values of the parameters in it (`{Name}`, `{Name+2}`); empty: it is absent or not a text. Undefined: it cannot be
 * made, because a parameter is not known or its expression is not a sum. Pure.
 */
export function bound(value: unknown, parameters: Parameters): string | undefined {
  const isBinding = isObject(value) && textOf(value["bindType"]).toLowerCase() === "parameter";
  const text = textOf(isBinding ? value["binding"] : value);
  if (isObject(value) && !isBinding) return undefined;
  // A binding to one parameter may be its bare name.
  if (isBinding && parameters.has(text)) return parameters.get(text);
  let isWhole = true;
  let left = MAX_TEXT;
  const filled = text.replace(/\{([^{}]*)\}/g, (all, expression: string) => {
    const part = left < 0 ? undefined : termOf(expression, parameters);
    if (part === undefined) isWhole = false;
    else left -= part.length;
    return part ?? all;
  });
  if (left < 0) return undefined;
  // A plain text may hold braces that name no parameter.
  return isWhole || !isBinding ? filled : undefined;
}

function termOf(expression: string, parameters: Parameters): string | undefined {
  if (expression.length > MAX_EXPRESSION) return undefined;
  const known = parameters.get(expression.trim());
  if (known !== undefined) return known;
  const [, name = "", sign, number] = /^\s*([^+-]+?)\s*(?:([+-])\s*(\d{1,9})\s*)?$/.exec(expression) ?? [];
  const value = parameters.get(name);
  if (value === undefined || sign === undefined || !/^-?\d{1,9}$/.test(value)) return undefined;
  return String(Number(value) + (sign === "+" ? Number(number) : -Number(number)));
}
