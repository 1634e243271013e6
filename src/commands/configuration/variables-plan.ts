import { toJson } from "../../base/json.ts";
import { MAX_ROWS } from "../../configuration/variable-file.ts";
import type { Variable, VariableInput } from "../../model/variable.ts";

export interface ImportPlan {
  readonly create: readonly VariableInput[];
  readonly change: readonly { readonly uuid: string; readonly fields: Partial<Omit<VariableInput, "name">> }[];
  readonly remove: readonly Variable[];
  readonly same: number;
}

/** Changes that bring the variables of a data source to those wanted, by name. At most MAX_ROWS of each, as a file has. Pure. */
export function importPlan(wanted: readonly VariableInput[], present: readonly Variable[], replace: boolean): ImportPlan {
  const byName = new Map(present.map((variable) => [variable.name, variable]));
  const create: VariableInput[] = [];
  const change: { uuid: string; fields: Omit<VariableInput, "name"> }[] = [];
  let same = 0;
  for (const input of wanted.slice(0, MAX_ROWS)) {
    const variable = byName.get(input.name);
    byName.delete(input.name);
    if (!variable) create.push(input);
    else {
      const { uuid, data_source: _, name: __, ...before } = variable;
      const { name: ___, ...fields } = input;
      if (toJson(sorted(before)) === toJson(sorted(fields))) same++;
      else change.push({ uuid, fields });
    }
  }
  return { create, change, remove: replace ? [...byName.values()] : [], same };
}

const sorted = (fields: object): object => Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)));
