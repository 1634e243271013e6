import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { CHECKS, type CheckResult, type CheckTarget, checkPlugin } from "../../../drivers/plugin/check.ts";
import { parseDuration } from "../../base/duration.ts";
import { toJson } from "../../base/json.ts";
import { escapeControls } from "../../base/plain-text.ts";
import { loadPolicy, policyFile } from "../../configuration/policy-file.ts";
import { SettingsError } from "../../configuration/strict-yaml.ts";
import { messageOf } from "../../model/failure.ts";
import { BOUND_TYPES } from "../../model/profile-details.ts";
import { type DataType, parseDataType, TYPE_EXAMPLES } from "../../model/value.ts";
import { type CommandIo, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { writeLines } from "../lines.ts";
import { pairsOf } from "../pairs.ts";
import { socketOf, type UnitFile, unitFiles } from "./unit.ts";

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

/** The command with absolute paths, as the settings need them: a plugin has no PATH, and runs in the root folder. */
function commandOf([program = "", ...args]: readonly string[], searched = ""): readonly string[] {
  const places = program.includes("/") ? [path.resolve(program)] : searched.split(":").map((folder) => path.join(folder, program));
  const found = places.find((place) => path.isAbsolute(place) && isExecutable(place));
  if (found === undefined) throw new UsageError(`${program}: there is no such program, or it cannot be executed`);
  return [found, ...args.map((word) => (word.includes("/") && existsSync(word) ? path.resolve(word) : word))];
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

interface UnitOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly out?: string;
}

/** So that unit, socket and user have names that systemd takes. */
const UNIT_NAME = /^[a-z][a-z0-9_]{0,30}$/;

/** `collector plugin unit NAME COMMAND`: the units of a plugin. */
export async function unit(io: CommandIo, name: string, command: readonly string[], options: UnitOptions): Promise<ExitCode> {
  if (!UNIT_NAME.test(name)) throw new UsageError(`${name}: expected a name of small letters, digits and underscores, such as odac`);
  if (!path.isAbsolute(command[0] ?? "")) throw new UsageError(`${command[0]}: expected an absolute path, such as /opt/odac/plugin`);
  if (command.some((word) => escapeControls(word) !== word))
    throw new UsageError("a word of the command has a control character, or one that cannot be seen");
  const files = unitFiles({ name, command, policy: policyIn(options.config) });
  const { out } = options;
  if (out !== undefined) writeAll(out, files);
  if (options.json === true) io.stdout.write(`${toJson({ ok: true, socket: socketOf(name), files })}\n`);
  else if (out !== undefined)
    writeLines(
      io,
      files.map((file) => `wrote ${path.join(out, file.name)}`),
    );
  else io.stdout.write(files.map((file) => `# /etc/systemd/system/${file.name}\n${file.text}`).join("\n"));
  return EXIT.good;
}

function policyIn(config: string | undefined) {
  try {
    return loadPolicy(policyFile(config)).policy;
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}

function writeAll(folder: string, files: readonly UnitFile[]): void {
  try {
    for (const { name, text } of files) writeFileSync(path.join(folder, name), text);
  } catch (error) {
    throw new UsageError(`--out ${folder}: ${messageOf(error)}`);
  }
}
