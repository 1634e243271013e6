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
