import { TagFile } from "./format.ts";
import { readTagList } from "./index.ts";
import type { Taken, TakeRules } from "./take.ts";

/** A list as the command reads it, with addresses that stay as they are. */
export function readList(content: string | Uint8Array, rules: Partial<TakeRules> = {}): Promise<Taken | undefined> {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return readTagList(new TagFile("list", bytes), {
    type: "modbus_tcp",
    readAddress: (tag) => tag,
    yieldToEventLoop: async () => undefined,
    ...rules,
  });
}

/** Each reason with the places of its tags. */
export const problemsOf = (list: Taken | undefined): readonly (readonly [places: string, message: string])[] =>
  (list?.problems ?? []).map(({ message, tags }) => [tags.map(({ place, name }) => `${place} ${name ?? ""}`.trim()).join(", "), message]);

/** Variables without what is empty. */
export const variablesOf = (list: Taken | undefined): readonly object[] =>
  (list?.variables ?? []).map(({ status: _, ...fields }) =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)),
  );
