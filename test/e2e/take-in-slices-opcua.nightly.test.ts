import { testTakingInSlices } from "../support/take-in-slices.ts";

testTakingInSlices("opcua");
