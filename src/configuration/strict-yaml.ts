import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import type * as z from "zod";
import { nearest } from "../base/nearest.ts";
import { messageOf } from "../model/failure.ts";

export const MAX_PROBLEMS = 50;

export interface SettingsProblem {
  /** From 1; absent where the whole file is meant. */
  readonly line?: number;
  /** Keys joined by dots; empty for the whole file. */
  readonly path: string;
  /** What is wrong and what would be right. */
  readonly message: string;
}

/** A file of settings cannot be used. The message names the file and each problem with its line and key, one a line. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  readonly file: string;
  readonly problems: readonly SettingsProblem[];
  constructor(file: string, problems: readonly SettingsProblem[], options?: ErrorOptions) {
    const lines = problems.map(
      ({ line, path, message }) => `${file}${line === undefined ? "" : `:${line}`}: ${path === "" ? "" : `${path}: `}${message}`,
    );
    super(lines.join("\n"), options);
    this.file = file;
    this.problems = problems;
  }
}

type Path = readonly PropertyKey[];

/** A document of YAML, as plain data. */
export interface ReadYaml {
  readonly content: unknown;
  /** From 1: where the innermost key of the path that the document has begins, or its list item; undefined: nowhere. */
  lineOf(path: Path): number | undefined;
}

/** Strict YAML: UTF-8, each key once, no aliases without end. An empty document is an empty mapping. Pure, never throws. */
export function readYaml(bytes: Uint8Array): ReadYaml | { readonly problems: readonly SettingsProblem[] } {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { problems: [{ line: lineOfBadByte(bytes), path: "", message: "is not UTF-8; save the file as UTF-8" }] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, strict: true, uniqueKeys: true, stringKeys: true });
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0)
    return {
      problems: faults
        .slice(0, MAX_PROBLEMS)
        .map(({ pos, code, message }) => ({ line: lines.linePos(pos[0]).line, path: "", message: yamlSentence(code, message) })),
    };
  try {
    return {
      content: document.toJS({ maxAliasCount: 100 }) ?? {},
      lineOf(path) {
        const at = startOf(document, path);
        return at === undefined ? undefined : lines.linePos(at).line;
      },
    };
  } catch (error) {
    return { problems: [{ path: "", message: `${messageOf(error)}; write the values out instead of using aliases` }] };
  }
}

/**
 * What a schema found wrong, with the line of each. `knownKeys`: the keys that are known at a path; `describedAt`: what the value at a path
 * is, in words.
 */
export function schemaProblems(
  issues: readonly z.core.$ZodIssue[],
  { lineOf }: Pick<ReadYaml, "lineOf">,
  knownKeys: (path: readonly string[]) => readonly string[],
  describedAt: (path: readonly string[]) => string | undefined,
): readonly SettingsProblem[] {
  const at = (path: Path, message: string): SettingsProblem => {
    const line = lineOf(path);
    return { ...(line !== undefined && { line }), path: path.map(String).join("."), message };
  };
  return issues
    .flatMap((issue) => {
      const where = issue.path.map(String);
      if (issue.code === "unrecognized_keys") {
        const known = knownKeys(where);
        return issue.keys.map((key) => {
          const meant = nearest(key, known);
          return at(
            [...where, key],
            `this key is not known; ${meant === undefined ? `known here: ${known.join(", ")}` : `did you mean ${meant}?`}`,
          );
        });
      }
      const described = describedAt(where);
      return [at(issue.path, described ? `${issue.message} (${described})` : issue.message)];
    })
    .slice(0, MAX_PROBLEMS);
}

/** The place where the innermost key of `path` that the document has begins, or its list item; the content where it has none. */
function startOf(document: Document, path: Path): number | undefined {
  let node: unknown = document.contents;
  let start = isNode(node) ? node.range?.[0] : undefined;
  for (const key of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
      if (!pair) return start;
      start = isScalar(pair.key) ? pair.key.range?.[0] : start;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(key)];
      start = (isNode(node) ? node.range?.[0] : undefined) ?? start;
    } else return start;
  }
  return start;
}

function yamlSentence(code: string, message: string): string {
  if (code === "TAB_AS_INDENT") return "a tab indents this line; YAML takes spaces only";
  if (code === "DUPLICATE_KEY") return "this key occurs twice in the same place; keep one of them";
  return `not valid YAML: ${message.split("\n")[0]?.replace(/ at line \d+, column \d+:?$/, "") ?? ""}`;
}

/** The line of the first byte that is not UTF-8. */
function lineOfBadByte(bytes: Uint8Array): number {
  let line = 1;
  let start = 0;
  for (let i = 0; i <= bytes.length; i++) {
    if (i < bytes.length && bytes[i] !== 0x0a) continue;
    if (new TextDecoder().decode(bytes.subarray(start, i)).includes("\ufffd")) return line;
    start = i + 1;
    line++;
  }
  return 1;
}
