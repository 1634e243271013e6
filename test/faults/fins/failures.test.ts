import { describeFailures } from "../support/failures.ts";
import { createBench, ROWS } from "./rows.ts";

describeFailures({
  type: "fins",
  title: "FINS",
  groups: {
    network: "Network and protocol",
    connection: "Connecting",
    relay: "Nodes on the way",
    everything: "Every read is refused",
    variable: "One variable",
  },
  rows: ROWS,
  createBench,
});
