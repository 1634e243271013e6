import { describeFailures } from "../support/failures.ts";
import { createBench, ROWS } from "./rows.ts";

describeFailures({
  type: "s7",
  title: "S7",
  groups: {
    network: "Network and protocol",
    connection: "Connecting",
    everything: "A whole job is refused",
    variable: "One variable",
  },
  rows: ROWS,
  createBench,
});
