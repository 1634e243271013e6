import { simulation as shipped } from "../../simulators/main.ts";

/** The simulators in the version that the command line has in tests. */
export const simulation = { ...shipped, version: "0" };
