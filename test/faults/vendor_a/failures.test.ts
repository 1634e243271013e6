import { describeFailures } from "../support/failures.ts";
import { FILE_ROWS } from "./file-rows.ts";
import { createBench, ROWS } from "./rows.ts";

describeFailures({
  type: "vendor_a",
  title: "EtherNet/IP",
  groups: {
    network: "Network and protocol",
    connection: "Connecting",
    everything: "A whole request is refused",
    tag: "One tag",
    variable: "A variable of an NJ or NX controller",
    files: "Data files",
  },
  rows: [...ROWS, ...FILE_ROWS],
  createBench,
});
