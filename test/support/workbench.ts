import { workbench as shipped } from "../../workbench/main.ts";

/** The workbench in the version that the command line has in tests. */
export const workbench = { ...shipped, version: "0" };
