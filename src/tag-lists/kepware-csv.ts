import { csvTable, type Row } from "./csv-table.ts";
import type { TagEntry, TagListFormat } from "./format.ts";
import { isWide, type KepwareTag, kepwareCells } from "./kepware-tag.ts";

const WORD_ORDER =
  "the list does not say the order of words, which is First Word Low in a device of Kepware by default: check a value of 32 bits with --try, and set order=CDAB on the data source where it is wrong";

/** The tag list of one device, as KEPServerEX and ThingWorx Kepware Server export it. */
export const kepwareCsv: TagListFormat = {
  program: "Kepware",
  what: "tag list (CSV)",
  read: (file, wanted) =>
    csvTable(file, ["tag name", "address", "data type", "respect data type"], (row, line): readonly TagEntry[] => {
      const tag = tagOf(row);
      const cells = kepwareCells(tag, wanted);
      if (typeof cells === "string") return [{ place: line, name: tag.name, problem: cells }];
      const notes: readonly TagEntry[] = wanted.type === "modbus_tcp" && isWide(tag.type) ? [{ note: WORD_ORDER }] : [];
      return [{ place: line, tag: cells }, ...notes];
    }),
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
