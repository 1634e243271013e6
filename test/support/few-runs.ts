import fc from "fast-check";

/** Of properties that name no number of runs themselves: the quick tests try a part of what the whole suite tries. */
fc.configureGlobal({ numRuns: 25 });
