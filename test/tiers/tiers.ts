import { matchesGlob } from "node:path";

/**
 * short: `npm test`. system: whole programs, faults and times, without root. parts: needs root or a part of Debian. nightly: the long seeds
 * of what the others look at briefly.
 */
export const TIERS = ["short", "system", "parts", "nightly"] as const;
export type Tier = (typeof TIERS)[number];

/** Command that runs a tier. */
export const COMMANDS: Readonly<Record<Tier, string>> = {
  short: "npm test",
  system: "npm run test:system",
  parts: "npm run test:parts",
  nightly: "npm run test:nightly",
};

/** Tests beside the code: those of the tier short that start threads or servers are `*.slow.test.ts`, each file in a process of its own. */
export const BESIDE = "{src,drivers,gateway,simulators,workbench,package}/**/*.test.ts";
/** Folders whose files belong to the tier system, where their names do not say otherwise. */
const SYSTEM = "test/{e2e,faults,isolation}/**/*.test.ts";
const NAMED = /\.(system|parts|nightly)\.test\.ts$/;

/** The tier of a test file, told by its name (`*.parts.test.ts`), else by its folder. `file` is relative to the project. Pure. */
export function tierOf(file: string): Tier {
  const [, named] = NAMED.exec(file) ?? [];
  if (named !== undefined) return named as Tier;
  return matchesGlob(file, SYSTEM) ? "system" : "short";
}
