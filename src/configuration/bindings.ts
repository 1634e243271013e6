import { messageOf } from "../model/failure.ts";
import type { Profile } from "../model/profile.ts";
import { isBoundType } from "../model/profile-details.ts";
import type { Settings } from "../model/settings.ts";
import { stampOf } from "./file-stamp.ts";
import { loadProfile } from "./profile-file.ts";

/** A profile of a file, or why it cannot be used. */
export type FileProfile = Profile | { readonly problem: string };

/** The profiles that the settings name, by their absolute paths. */
export type ProfileFiles = ReadonlyMap<string, FileProfile>;

type LocalOptions = Readonly<Record<string, unknown>>;

/**
 * The profiles of the settings while the service runs: a file that has not changed is not read again, and where it cannot be used any more,
 * what it said goes on.
 */
export class ProfileReader {
  #files: ProfileFiles = new Map();
  #stamps = new Map<string, string>();
  #notes = new Map<string, string>();

  /** Files that cannot be used while an earlier content of them goes on, in words. */
  get notes(): readonly string[] {
    return [...this.#notes.values()];
  }

  /** The same object where nothing has changed. */
  read(settings: Pick<Settings, "bindings" | "sources">): ProfileFiles {
    const names = profileNames(settings);
    const stamps = new Map(names.map((name) => [name, stampOf(name)?.text ?? "absent"]));
    const isSame = stamps.size === this.#stamps.size && names.every((name) => stamps.get(name) === this.#stamps.get(name));
    if (isSame) return this.#files;
    const notes = new Map<string, string>();
    const files = new Map<string, FileProfile>();
    for (const name of names) {
      const before = this.#files.get(name);
      const now = stamps.get(name) === this.#stamps.get(name) && before ? before : readProfile(name);
      const goesOn = "problem" in now && before !== undefined && !("problem" in before);
      files.set(name, goesOn ? before : now);
      const note = goesOn ? `${now.problem}; what it said when it was good stays in force` : this.#notes.get(name);
      if (note !== undefined && (goesOn || now === before)) notes.set(name, note);
    }
    this.#files = files;
    this.#stamps = stamps;
    this.#notes = notes;
    return files;
  }
}

const profileNames = ({ bindings, sources }: Pick<Settings, "bindings" | "sources">): readonly string[] => {
  const entries: readonly (Readonly<Record<string, unknown>> | undefined)[] = [...Object.values(bindings), ...Object.values(sources)];
  return [...new Set(entries.flatMap((entry) => (typeof entry?.["profile"] === "string" ? [entry["profile"]] : [])))];
};

/** One profile. */
export function readProfile(file: string): FileProfile {
  try {
    return loadProfile(file);
  } catch (error) {
    return { problem: messageOf(error).replaceAll("\n", "; ") };
  }
}

/**
 * The local options of a data source with what it is read by: its own profile (in the place of that file's name) or plugin, else that of
 * `bindings`. The same object where its type has a driver of its own. Pure.
 */
export function boundOptions(
  type: string,
  local: LocalOptions,
  { bindings }: Pick<Settings, "bindings">,
  profileIn: (file: string) => FileProfile | undefined,
): LocalOptions {
  if (!isBoundType(type)) return local;
  const isOwn = "profile" in local || "plugin" in local;
  const { profile: file, plugin }: LocalOptions = isOwn ? local : (bindings[type] ?? {});
  if (typeof file === "string") return { ...local, profile: profileIn(file) ?? { problem: `${file} was not read` } };
  return plugin === undefined ? local : { ...local, plugin };
}
