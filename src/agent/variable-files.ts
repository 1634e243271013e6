import { type Dirent, readdirSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { messageOf } from "../model/failure.ts";
import type { Variable } from "../model/variable.ts";
import { readBoundedFile } from "../os/bounded-file.ts";
import { uuidV5 } from "./uuid-v5.ts";
import { type ParsedVariables, parseVariableCsv, parseVariableYaml } from "./variable-file.ts";

/** YAML takes some ten times the time of CSV. */
const FORMATS: Readonly<Record<string, { readonly maxBytes: number; readonly parse: (bytes: Uint8Array) => ParsedVariables }>> = {
  ".csv": { maxBytes: 10 * 1024 * 1024, parse: parseVariableCsv },
  ".yaml": { maxBytes: 1024 * 1024, parse: parseVariableYaml },
  ".yml": { maxBytes: 1024 * 1024, parse: parseVariableYaml },
};
const MAX_FILES = 10_000;

export interface VariableFileProblem {
  /** Absolute path of the file, or of the folder. */
  readonly file: string;
  /** From 1; absent where the whole file is meant. */
  readonly line?: number;
  /** The data source that is concerned, where it is clear. */
  readonly source?: string;
  readonly message: string;
}

export interface VariableFiles {
  /**
   * By data source uuid: a source that is listed has a local file, which wins over the API, whatever is left of it.
   * The uuid of each variable is the version 5 UUID of its name in the name space of its source.
   */
  readonly bySource: ReadonlyMap<string, { readonly variables: readonly Variable[]; readonly file: string }>;
  readonly problems: readonly VariableFileProblem[];
  /** What each file held; handed back with the next call, a file that has not changed is not read again. */
  readonly seen: ReadonlyMap<string, SeenFile & { readonly stamp: string }>;
}

interface SeenFile {
  /** Undefined: it could not be read. */
  readonly stamp: string | undefined;
  /** The data source that its variables belong to. */
  readonly source: string;
  readonly variables: readonly Variable[];
  readonly problems: ParsedVariables["problems"];
}

interface SourceName {
  readonly uuid: string;
  readonly name: string;
}

/**
 * The local variables of each data source: the files `<data source uuid or name>.csv`, `.yaml` or `.yml` of `folder` (DESIGN 6). They are
 * found by comparing with the folder's listing, never by building a path from a name. An absent folder is an empty one. Never throws.
 */
export function loadVariableFiles(folder: string, sources: readonly SourceName[], previous?: VariableFiles): VariableFiles {
  const { files, problems } = list(folder);
  const { matched, unmatched } = matchFiles(files, sources);
  problems.push(...unmatched.map(({ file, ...rest }) => ({ file: join(folder, file), ...rest })));
  const bySource = new Map<string, { readonly variables: readonly Variable[]; readonly file: string }>();
  const seen = new Map<string, SeenFile & { readonly stamp: string }>();
  for (const [source, names] of matched) {
    const [name = "", ...others] = names;
    const file = join(folder, name);
    if (others.length > 0) {
      problems.push({
        file,
        source,
        message: `${names.join(" and ")} are for the same data source; keep one of them. None of them is used`,
      });
      bySource.set(source, { variables: [], file });
      continue;
    }
    const now = read(file, source, previous?.seen.get(file));
    if (now.stamp !== undefined) seen.set(file, { ...now, stamp: now.stamp });
    problems.push(...now.problems.map((problem) => ({ file, source, ...problem })));
    bySource.set(source, { file, variables: now.variables });
  }
  return { bySource, problems, seen };
}

/** The same text while the folder holds the same files, unchanged: then there is no need to load them again. Never throws. */
export function variableFilesStamp(folder: string): string {
  const { files, problems } = list(folder);
  const stamps = files.map((name) => {
    try {
      return `${name} ${stampOf(join(folder, name))}`;
    } catch (error) {
      return `${name} ${messageOf(error)}`;
    }
  });
  return [...stamps, ...problems.map((problem) => problem.message)].join("\n");
}

/** Which files are for which data source, by its uuid or its name; a name that fits several is nobody's. Pure. */
export function matchFiles(
  files: readonly string[],
  sources: readonly SourceName[],
): {
  readonly matched: ReadonlyMap<string, readonly string[]>;
  readonly unmatched: readonly { readonly file: string; readonly message: string }[];
} {
  const byKey = new Map<string, SourceName[]>();
  const enter = (key: string, source: SourceName): void => {
    const there = byKey.get(key);
    if (!there) byKey.set(key, [source]);
    else if (!there.includes(source)) there.push(source);
  };
  for (const source of sources) {
    enter(source.uuid.toLowerCase(), source);
    // A file name from another system may hold the same letters composed in another way.
    enter(source.name.normalize("NFC"), source);
  }
  const matched = new Map<string, string[]>();
  const unmatched: { file: string; message: string }[] = [];
  for (const file of files) {
    const stem = file.slice(0, -extname(file).length).normalize("NFC");
    const fitting = byKey.get(stem) ?? byKey.get(stem.toLowerCase().match(/^[0-9a-f-]{36}$/)?.[0] ?? stem) ?? [];
    const [only, ...others] = fitting;
    if (!only) unmatched.push({ file, message: "fits no data source; its name must be the uuid or the name of one, exactly" });
    else if (others.length > 0) {
      const named = fitting.map(({ uuid, name }) => `${name} (${uuid})`).join(" and ");
      unmatched.push({ file, message: `fits several data sources: ${named}; name the file by the uuid of the one that is meant` });
    } else matched.set(only.uuid, [...(matched.get(only.uuid) ?? []), file]);
  }
  return { matched, unmatched };
}

function list(folder: string): { readonly files: readonly string[]; readonly problems: VariableFileProblem[] } {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    const absent = error instanceof Error && "code" in error && error.code === "ENOENT";
    return {
      files: [],
      problems: absent ? [] : [{ file: folder, message: `the folder of the variable files cannot be read: ${messageOf(error)}` }],
    };
  }
  const files = entries
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && Object.hasOwn(FORMATS, extname(name).toLowerCase()))
    .sort();
  if (files.length <= MAX_FILES) return { files, problems: [] };
  return {
    files: files.slice(0, MAX_FILES),
    problems: [{ file: folder, message: `holds more than ${MAX_FILES} variable files; the others are not read` }],
  };
}

function read(file: string, source: string, before: SeenFile | undefined): SeenFile {
  const format = FORMATS[extname(file).toLowerCase()];
  if (!format) return { stamp: undefined, source, variables: [], problems: [] };
  try {
    const stamp = stampOf(file);
    if (before?.stamp === stamp && before.source === source) return before;
    const { variables, problems } = format.parse(readBoundedFile(file, format.maxBytes));
    const named = variables.map((input) => ({ uuid: uuidV5(source, input.name), data_source: source, ...input }));
    return { stamp, source, variables: named, problems };
  } catch (error) {
    return { stamp: undefined, source, variables: [], problems: [{ message: messageOf(error).replace(`${file} `, "") }] };
  }
}

function stampOf(file: string): string {
  const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
  return [ino, size, mtimeNs, ctimeNs].join(" ");
}
