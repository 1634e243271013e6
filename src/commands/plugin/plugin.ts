import { accessSync, constants } from "node:fs";
import path from "node:path";
import { CHECKS, type CheckResult, type CheckTarget, checkPlugin } from "../../../drivers/plugin/check.ts";
import { parseDuration } from "../../model/duration.ts";
import { toJson } from "../../model/json.ts";
import { escapeControls } from "../../model/plain-text.ts";
import { BOUND_TYPES } from "../../model/profile-details.ts";
import { type DataType, parseDataType, TYPE_EXAMPLES } from "../../model/value.ts";
import { type CommandIo, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { writeLines } from "../lines.ts";
import { pairsOf } from "../pairs.ts";

interface CheckOptions {
  readonly json?: boolean;
  readonly type?: string;
  readonly details?: readonly string[];
  readonly parameter?: readonly string[];
  readonly read?: readonly string[];
  readonly timeout?: string;
}

/** `collector plugin check COMMAND`: plays the specification's checks against a plugin. */
export async function check(io: CommandIo, given: readonly string[], options: CheckOptions): Promise<ExitCode> {
  const command = commandOf(given, io.env["PATH"]);
  const source = sourceOf(options);
  const points = (options.read ?? []).map(pointOf);
  if (points.length > 0 && !source) throw new UsageError("--read needs the device: --details host=ADDRESS --details port=PORT");
  const answerMs = parseDuration(options.timeout ?? "5s");
  if (answerMs === undefined || answerMs < 1) throw new UsageError(`--timeout ${options.timeout}: expected a duration such as 5s`);
  const results: CheckResult[] = [];
  for await (const result of checkPlugin({ command, points, answerMs, signal: io.signal, ...(source && { source }) })) {
    results.push(result);
    if (options.json !== true) writeLines(io, [lineOf(result)]);
  }
  if (io.signal.aborted) throw new StoppedError("stopped");
  const failed = results.filter(({ outcome }) => outcome === "failed");
  const skipped = results.filter(({ outcome }) => outcome === "skipped");
  if (options.json === true) io.stdout.write(`${toJson({ ok: failed.length === 0, command, checks: results })}\n`);
  else writeLines(io, ["", summaryOf(results.length - failed.length - skipped.length, failed, skipped.length)]);
  return failed.length === 0 ? EXIT.good : EXIT.sourceFailed;
}

const lineOf = ({ name, outcome, detail }: CheckResult): string => {
  const what = CHECKS.find((one) => one.name === name)?.what ?? "";
  return `${outcome.padEnd(8)}${name.padEnd(16)}${outcome === "passed" && detail === "" ? what : escapeControls(detail)}`;
};

const summaryOf = (passed: number, failed: readonly CheckResult[], skipped: number): string => {
  const [first] = failed;
  const rest = skipped === 0 ? "" : `, ${skipped} skipped`;
  return first
    ? `The plugin cannot be used: ${first.name}: ${first.detail}`
    : `The plugin keeps its contract: ${passed} checks passed${rest}`;
};

/** The command with an absolute path, as the settings need it: a plugin has no PATH. */
function commandOf([program = "", ...args]: readonly string[], searched = ""): readonly string[] {
  const places = program.includes("/") ? [path.resolve(program)] : searched.split(":").map((folder) => path.join(folder, program));
  const found = places.find((place) => path.isAbsolute(place) && isExecutable(place));
  if (found === undefined) throw new UsageError(`${program}: there is no such program, or it cannot be executed`);
  return [found, ...args];
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function sourceOf({ type, details, parameter }: CheckOptions): CheckTarget["source"] {
  if (type !== undefined && !(BOUND_TYPES as readonly string[]).includes(type))
    throw new UsageError(`--type ${type}: expected one of ${BOUND_TYPES.join(", ")}`);
  if (details === undefined || details.length === 0) return undefined;
  const { host = "", port, ...rest } = pairsOf("--details", details);
  if (host === "" || !Number.isInteger(Number(port))) throw new UsageError("--details: host and port of the device are missing");
  return {
    ...(type !== undefined && { type }),
    details: { host, port: Number(port), ...rest },
    addresses: [host],
    settings: pairsOf("--parameter", parameter),
  };
}

function pointOf(text: string): { readonly address: string; readonly type: DataType } {
  const at = text.lastIndexOf(":");
  if (at < 0) return { address: text, type: { scalar: "auto" } };
  const type = parseDataType(text.slice(at + 1));
  if (!type) throw new UsageError(`--read ${text}: after the last colon comes ${TYPE_EXAMPLES}`);
  return { address: text.slice(0, at), type };
}
