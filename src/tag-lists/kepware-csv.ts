import { csvTable, type Row } from "./csv-table.ts";
import type { TagEntry, TagListFormat } from "./format.ts";
import { isWide, type KepwareTag, kepwareCells, WORD_ORDER } from "./kepware-tag.ts";

/** An address with a digit for the area and five more, in a cell. */
const SIX_DIGITS = /(?:^|[;,\t"])[134]\d{5}(?=$|["; ,.\t\r\n])/m;
const LOST_ZERO =
  "the other addresses of the list have six digits, and this one has five, as if a spreadsheet had dropped the 0 of a coil; export the list again";

/** The tag list of one device, as KEPServerEX and ThingWorx Kepware Server export it. */
export const kepwareCsv: TagListFormat = {
  program: "Kepware",
  what: "tag list (CSV)",
  read(file, wanted) {
    const hasSixDigits = wanted.type === "modbus_tcp" && SIX_DIGITS.test(file.text);
    return csvTable(file, ["tag name", "address", "data type", "respect data type"], (row, line): readonly TagEntry[] => {
      const tag = tagOf(row);
      const cells = kepwareCells(tag, wanted);
      if (typeof cells === "string") return [{ place: line, name: tag.name, problem: cells }];
      if (hasSixDigits && /^[134]\d{4}$/.test(tag.address)) return [{ place: line, name: tag.name, problem: LOST_ZERO }];
      const notes: readonly TagEntry[] = wanted.type === "modbus_tcp" && isWide(tag.type) ? [{ note: WORD_ORDER }] : [];
      return [{ place: line, tag: cells }, ...notes];
    });
  },
};

const tagOf = (cell: Row): KepwareTag => ({
  name: cell("tag name"),
  address: cell("address"),
  type: cell("data type"),
  isWriteOnly: /^WO$/i.test(cell("client access")),
  scaling: {
    mode: cell("scaling"),
    ends: [cell("raw low"), cell("raw high"), cell("scaled low"), cell("scaled high")],
    isNegated: /^(1|true|yes)$/i.test(cell("negate value")),
  },
  unit: cell("eng units") || cell("eng. units"),
  comment: cell("description"),
});
