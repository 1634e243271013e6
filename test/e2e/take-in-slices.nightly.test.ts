import { testTakingInSlices } from "../support/take-in-slices.ts";

testTakingInSlices("modbus_tcp");
