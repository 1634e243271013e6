import { readFileSync } from "node:fs";
import * as z from "zod";
import { replaceFile } from "../lib/files.ts";

const ownersSchema = z.record(z.string(), z.string());

/**
 * Which data source (uuid) had each variables file (by its name), kept over restarts in a small file: a name that fits several sources
 * stays with the one that had it. A file that cannot be read or written costs that alone.
 */
export class FileOwners {
  readonly #file: string | undefined;
  #owners: ReadonlyMap<string, string>;

  /** `file` undefined: nothing is kept over a restart. */
  constructor(file: string | undefined) {
    this.#file = file;
    this.#owners = new Map(file === undefined ? [] : Object.entries(read(file)));
  }

  ownerOf(name: string): string | undefined {
    return this.#owners.get(name);
  }

  /** Replaces all. */
  keep(owners: ReadonlyMap<string, string>): void {
    if (owners.size === this.#owners.size && [...owners].every(([name, uuid]) => this.#owners.get(name) === uuid)) return;
    this.#owners = owners;
    if (this.#file === undefined) return;
    try {
      replaceFile(this.#file, JSON.stringify(Object.fromEntries(owners)), { mode: 0o640 });
    } catch {
      // After a restart such a name is nobody's, which its sources say.
    }
  }
}

function read(file: string): Readonly<Record<string, string>> {
  try {
    return ownersSchema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return {};
  }
}
