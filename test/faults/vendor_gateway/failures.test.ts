import { describeFailures } from "../support/failures.ts";
import { createBench, ROWS } from "./rows.ts";

describeFailures({
  type: "vendor_gateway",
  title: "Gateway",
  groups: {
    network: "The way to the gateway",
    security: "Keys and certificates",
    gateway: "The gateway, and the server behind it",
    variable: "One variable",
  },
  rows: ROWS,
  createBench,
});
