import { fstatSync } from "node:fs";

/** The number of a socket that is open in this process; undefined: there is none. */
export function socketOf(given: string | undefined): number | undefined {
  if (given === undefined || !/^\d{1,6}$/.test(given)) return undefined;
  try {
    return fstatSync(Number(given)).isSocket() ? Number(given) : undefined;
  } catch {
    return undefined;
  }
}
