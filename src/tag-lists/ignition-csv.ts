import { csvTable, type Row } from "./csv-table.ts";
import type { TagEntry, TagListFormat } from "./format.ts";
import { ignitionEntry } from "./ignition-tag.ts";

/** `TagType` of what is not read from a device, in words. Members of a UDT instance are rows of their own or of their definition. */
const OTHERS: Readonly<Record<string, string>> = {
  1: "a memory, expression or query tag",
  2: "a client tag",
  10: "a UDT instance, whose members this list has only as a definition; export the tags as JSON with Ignition 8",
  13: "a derived tag",
};
const FOLDER = "6";
const OPC = "0";

/**
 * The tag list of Ignition 7, which later versions import too. Its columns and numbers are those of public descriptions of the format
 * (unverified: no file that Ignition itself wrote was at hand).
 */
export const ignitionCsv: TagListFormat = {
  program: "Ignition",
  what: "tag list (CSV)",
  read: (file, wanted) =>
    csvTable(file, ["path", "name", "tagtype", "opcserver", "opcitempath"], (row, line): readonly TagEntry[] => {
      const type = row("tagtype").toLowerCase();
      // A row with the version of the format.
      if (row("path").startsWith("#") || type === FOLDER || type === "folder") return [];
      const name = nameOf(row);
      if (type !== OPC && type !== "opc")
        return [{ place: line, name, problem: `is ${Object.hasOwn(OTHERS, type) ? OTHERS[type] : `a tag of the type ${type}`}` }];
      return [
        ignitionEntry(
          {
            place: line,
            name,
            server: row("opcserver"),
            path: row("opcitempath"),
            isEnabled: !/^(false|0)$/i.test(row("enabled")),
            scaleMode: row("scalemode"),
            ends: [row("rawlow"), row("rawhigh"), row("scaledlow"), row("scaledhigh")],
            unit: row("engunit"),
            comment: row("documentation") || row("tooltip"),
          },
          wanted,
        ),
      ];
    }),
};

const nameOf = (row: Row): string => [row("path").replace(/\/+$/, ""), row("name")].filter((part) => part !== "").join("/");
