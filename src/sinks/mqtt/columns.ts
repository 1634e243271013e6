import type { Layout } from "../../model/layout.ts";
import type { SinkBatch } from "../sink.ts";

/** Variables whose values a message has as columns. */
export interface NamedColumns {
  /** By place in the layout 1 for those. */
  readonly mask: Uint8Array;
  /** Their names as a JSON array, in the same order. */
  readonly names: string;
}

const prepared = new WeakMap<Layout, NamedColumns>();

/** All variables that are published; where readouts leave out what is unchanged, those of them that have a reading in the batch. */
export function namedColumnsOf({ layout, readouts }: SinkBatch): NamedColumns {
  const used = new Uint8Array(layout.variables.length);
  for (const { readings, unchanged } of readouts) {
    if (!unchanged) return allOf(layout);
    for (let place = 0; place < used.length; place++) if (readings[place] !== undefined) used[place] = 1;
  }
  return chosenOf(layout, (place) => used[place] === 1);
}

function allOf(layout: Layout): NamedColumns {
  const known = prepared.get(layout);
  if (known) return known;
  const made = chosenOf(layout, () => true);
  prepared.set(layout, made);
  return made;
}

function chosenOf({ variables }: Layout, isChosen: (place: number) => boolean): NamedColumns {
  const mask = Uint8Array.from(variables, ({ exploration }, place) => (!exploration && isChosen(place) ? 1 : 0));
  const names = variables.flatMap(({ name }, place) => (mask[place] === 1 ? [JSON.stringify(name)] : []));
  return { mask, names: `[${names.join(",")}]` };
}
