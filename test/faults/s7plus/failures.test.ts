import { describeFailures } from "../support/failures.ts";
import { createBench, ROWS } from "./rows.ts";

describeFailures({
  type: "s7plus",
  title: "S7plus",
  groups: {
    network: "Network and protocol",
    connection: "Connecting",
    login: "Logging in",
    session: "The session",
    variable: "One variable",
  },
  rows: ROWS,
  createBench,
});
