import type { Layout } from "../../model/layout.ts";
import type { Readout } from "../../model/value.ts";
import type { JsonBytes } from "./json-bytes.ts";
import { isWritable, timeText, writeFault, writeValue } from "./value-json.ts";

/** How times are written in rows: ISO 8601 with three digits, or as a number of ms since 1970. */
export type Timestamps = "iso" | "epoch_ms";

/** Parts of a row that a layout's readouts have in common, by place; undefined: it is not published. */
interface Row {
  /** `{"source":…,"machine":…,"variable":…,"ts":` */
  readonly head: string;
  /** `,"unit":…` */
  readonly unit: string;
  readonly isFloat32: boolean;
}

const prepared = new WeakMap<Layout, readonly (Row | undefined)[]>();

function rowsOf(layout: Layout): readonly (Row | undefined)[] {
  const known = prepared.get(layout);
  if (known) return known;
  const { name: source, machine = null } = layout.source;
  const common = `{"source":${JSON.stringify(source)},"machine":${JSON.stringify(machine)}`;
  const made = layout.variables.map(({ name, unit, type, exploration }) =>
    exploration
      ? undefined
      : {
          head: `${common},"variable":${JSON.stringify(name)},"ts":`,
          unit: `,"unit":${JSON.stringify(unit)}`,
          isFloat32: type.scalar === "float32",
        },
  );
  prepared.set(layout, made);
  return made;
}

/** Writes the readings from <= place < to as rows with commas between; returns how many. 64-bit integers are strings (README.md in this folder). */
export function writeRows(
  out: JsonBytes,
  layout: Layout,
  { readings, time }: Readout,
  timestamps: Timestamps,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const rows = rowsOf(layout);
  const ts = timestamps === "iso" ? timeText(time) : String(time);
  let count = 0;
  for (let place = from; place < to; place++) {
    const [reading, row] = [readings[place], rows[place]];
    if (reading === undefined || row === undefined) continue;
    if (count++ > 0) out.text(",");
    out.text(row.head);
    out.text(ts);
    out.text(',"value":');
    if (isWritable(reading)) writeValue(out, reading.value, row.isFloat32, "string");
    else out.text("null");
    out.text(`,"quality":"${isWritable(reading) ? reading.quality : "bad"}"`);
    out.text(row.unit);
    if (!isWritable(reading) || reading.doubt) {
      out.text(",");
      writeFault(out, reading);
    }
    out.text("}");
  }
  return count;
}
