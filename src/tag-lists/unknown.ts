import type { TagListFormat } from "./format.ts";

/** A JSON text that is broken, or of a program that is not known: the last of the formats that are JSON. */
export const unknownJson: TagListFormat = {
  program: "an unknown program's",
  what: "JSON file",
  read({ json }) {
    if (!json) return undefined;
    return [
      {
        refusal:
          "fault" in json
            ? json.fault
            : "is JSON, but not a project of Kepware, a tag export of Ignition, or flows of Node-RED with nodes for S7 or Modbus",
      },
    ];
  },
};

/** A spreadsheet of a program that is not known: the last of the formats that are spreadsheets. */
export const unknownSpreadsheet: TagListFormat = {
  program: "an unknown program's",
  what: "spreadsheet (XLSX)",
  read: ({ sheets }) => (sheets ? [{ refusal: UNKNOWN_SHEETS }] : undefined),
};

const UNKNOWN_SHEETS =
  "has no sheet with the columns Name, Data Type and Logical Address (PLC tags of TIA Portal), or group, name, address, attribute and type (tags of EMQX Neuron)";
