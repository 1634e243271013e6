import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { keysFolder } from "../../api/access.ts";
import { lastGoodFile } from "../../api/embedded.ts";
import { toJson } from "../../base/json.ts";
import { credentialsFolder, firstLine, loadCredentials } from "../../configuration/credentials.ts";
import { policyFile } from "../../configuration/policy-file.ts";
import { readSecretFiles } from "../../configuration/secret-files.ts";
import { DEFAULT_SETTINGS_FILE, loadSettings, stateDirIn } from "../../configuration/settings-file.ts";
import { readBoundedFile } from "../../lib/bounded-file.ts";
import { hasCode, namesIn } from "../../lib/files.ts";
import { holdsSecret, redact } from "../../lib/redact.ts";
import { type TarFile, tarOf } from "../../lib/tar.ts";
import { messageOf } from "../../model/failure.ts";
import { capturesFolder } from "../../service/failure-captures.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import type { LogLines } from "../../service/recent-log.ts";
import { answer } from "../answer.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { checkConfiguration } from "./configuration-check.ts";
import { examine, statusOf } from "./doctor.ts";
import { lookIntoService } from "./known.ts";
import { ServiceError, tellService } from "./local-client.ts";

export interface BundleOptions {
  readonly config?: string;
  readonly json?: boolean;
  /** Captures of failed data sources go along. */
  readonly captures?: boolean;
}

/** A text of the bundle. */
interface TextFile extends TarFile {
  readonly content: string;
}

/** Of one file; what is longer loses its beginning. */
const MAX_FILE_BYTES = 16 * 2 ** 20;
const MAX_SECRET_BYTES = 64 * 1024;
/** Data sources whose plans are taken along. */
const MAX_PLANS = 50;
const LOG_LINES = 5000;
const LOG_MS = 10_000;

const ABOUT = `What this collector is, how it is configured and how it is. Made by: collector support-bundle

doctor.json         what stands in the way on the machine, and versions
check.json          mistakes in the files of the configuration
status.json         data sources, data sinks and buffer, as the running service sees them
plans.json          requests and times of the data sources
collector.yaml      settings
policy.yaml         where the collector may connect and listen
configuration.txt   the last good copy of the configuration API's answer
log.txt             the last lines of the log

Passwords, keys and tokens are replaced by [redacted]. Addresses and names stay. A file that is missing could not be read.
`;

const ABOUT_CAPTURES = `captures/           what failed data sources exchanged with their devices before they failed (wireshark), values and addresses
                    of the devices included; log-ins, secrets and what is encrypted are left out
`;
/** The newest ones. */
const MAX_CAPTURES = 20;
const MAX_CAPTURE_BYTES = 2 * 2 ** 20;

/** `collector support-bundle [FILE]`: one file with all that a question needs, without secrets. Throws UsageError. */
export async function supportBundle(named: string | undefined, options: BundleOptions, io: CommandIo): Promise<ExitCode> {
  const now = new Date();
  const file = path.resolve(named ?? `collector-support-${now.toISOString().replace(/[-:]|\.\d+/g, "")}.tar.gz`);
  const { secrets, problems } = secretsHere(options.config, io);
  const found = await collect(options.config, io);
  if (io.signal.aborted) return EXIT.interrupted;
  const captures = options.captures ? capturesHere(options.config, secrets) : { files: [], notes: [] };
  const notes = [...found.notes, ...captures.notes, ...problems.map((problem) => `not read, so not looked for: ${problem}`)];
  const known = captures.files.length === 0 ? ABOUT : `${ABOUT}\n${ABOUT_CAPTURES}`;
  const about = notes.length === 0 ? known : `${known}\n${notes.join("\n")}\n`;
  const texts: readonly TextFile[] = [{ name: "README.txt", content: about }, ...found.files];
  const files = texts.map(({ name, content }) => ({
    name,
    content: redact(content.slice(-MAX_FILE_BYTES), secrets),
  }));
  const leaking = files.filter(({ content }) => holdsSecret(content, secrets)).map(({ name }) => name);
  if (leaking.length > 0) {
    complain(io, `nothing was written: a secret is still in ${leaking.join(", ")}; this is a fault of the collector, please report it`);
    return EXIT.ownFailure;
  }
  const bytes = gzipSync(tarOf([...files, ...captures.files], now.getTime()));
  write(file, bytes);
  for (const note of notes) complain(io, note);
  const names = [...files, ...captures.files].map(({ name }) => name);
  answer(
    io,
    options,
    { file, bytes: bytes.length, files: names, notes },
    `${file}: ${names.join(", ")}\nLook it over before you send it: tar -xzf ${file}\n`,
  );
  return EXIT.good;
}

function write(file: string, bytes: Buffer): void {
  try {
    writeFileSync(file, bytes, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if (hasCode(error, "EEXIST")) throw new UsageError(`${file} is there already; name another file`);
    throw new UsageError(`${file} cannot be written: ${messageOf(error)}`);
  }
}

interface Collected {
  readonly files: readonly TextFile[];
  /** What could not be had. */
  readonly notes: readonly string[];
}

async function collect(config: string | undefined, io: CommandIo): Promise<Collected> {
  const files: TextFile[] = [];
  const notes: string[] = [];
  const add = (name: string, value: object): void => void files.push({ name, content: `${toJson(value)}\n` });
  const [examined, checked, status] = await Promise.all([examine(config, io), checkConfiguration(config, io), statusOf(config, io)]);
  add("doctor.json", examined);
  add("check.json", checked.findings);
  if (status) {
    add("status.json", status);
    const sources = status.sources.slice(0, MAX_PLANS).map(({ uuid }) => uuid);
    add("plans.json", await plansOf(sources, config, io));
  } else notes.push("status.json: the service does not run here, or this user may not ask it");
  const settings = path.resolve(config ?? DEFAULT_SETTINGS_FILE);
  for (const [name, from] of [
    ["collector.yaml", settings],
    ["policy.yaml", policyFile(settings)],
    ["configuration.txt", lastGoodFile(path.resolve(stateDirIn(config)))],
  ] as const) {
    try {
      files.push({ name, content: readBoundedFile(from, MAX_FILE_BYTES).toString("utf8") });
    } catch (error) {
      notes.push(`${name}: ${messageOf(error)}`);
    }
  }
  const log = (await serviceLog(config, io)) ?? (await journal(io));
  if (log === undefined) notes.push("log.txt: neither the service nor the journal has one for this user");
  else files.push({ name: "log.txt", content: log });
  return { files, notes };
}

/** What failed data sources exchanged. A file in which a secret of this machine still is stays here: drivers take their own out. */
function capturesHere(
  config: string | undefined,
  secrets: ReadonlySet<string>,
): { readonly files: readonly TarFile[]; readonly notes: readonly string[] } {
  const folder = capturesFolder(path.resolve(stateDirIn(config)));
  const files: TarFile[] = [];
  const notes: string[] = [];
  const timeOf = (name: string): string => name.slice(-CAPTURE_TIME.length);
  const names = namesOf(folder, notes).filter((name) => name.endsWith(".pcapng"));
  for (const name of names.toSorted((one, other) => timeOf(other).localeCompare(timeOf(one))).slice(0, MAX_CAPTURES)) {
    try {
      const content = readBoundedFile(path.join(folder, name), MAX_CAPTURE_BYTES);
      if (holdsSecret(content.toString("latin1"), secrets) || holdsSecret(content.toString("utf8"), secrets))
        notes.push(`captures/${name}: left out, because it holds a secret of this machine`);
      else files.push({ name: `captures/${name.slice(-MAX_NAME)}`, content });
    } catch (error) {
      notes.push(`captures/${name}: ${messageOf(error)}`);
    }
  }
  if (names.length === 0) notes.push("captures: there are none");
  return { files, notes };
}

/** How the name of a capture ends. */
const CAPTURE_TIME = "20260102T030405Z.pcapng";
/** Of a name in an archive, behind its folder. */
const MAX_NAME = 90;

function namesOf(folder: string, notes: string[]): readonly string[] {
  try {
    return namesIn(folder);
  } catch (error) {
    if (!hasCode(error, "ENOENT")) notes.push(`captures: ${messageOf(error)}`);
    return [];
  }
}

async function plansOf(sources: readonly string[], config: string | undefined, io: CommandIo): Promise<object> {
  const plans: Record<string, unknown> = {};
  for (const source of sources) {
    try {
      // No values: a question needs none.
      plans[source] = (await lookIntoService({ source, filter: "\0" }, config, io)).plan;
    } catch (error) {
      if (!(error instanceof ServiceError || error instanceof UsageError)) throw error;
      plans[source] = messageOf(error);
    }
  }
  return plans;
}

async function serviceLog(config: string | undefined, io: CommandIo): Promise<string | undefined> {
  try {
    const socket = localSocketPath(stateDirIn(config));
    const lines: string[] = [];
    for (let after = 0; ; ) {
      const found = (await tellService(socket, "/log", { after }, io.signal)) as LogLines;
      lines.push(...found.lines);
      if (found.lines.length === 0) return `${lines.join("\n")}\n`;
      after = found.next;
    }
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

const journal = (io: CommandIo): Promise<string | undefined> =>
  new Promise((done) => {
    const args = ["--no-pager", "-u", "collector", "-n", String(LOG_LINES), "-o", "short-iso"];
    const limits = { timeout: LOG_MS, maxBuffer: MAX_FILE_BYTES, signal: io.signal };
    execFile("journalctl", args, limits, (error, stdout) => done(error || stdout === "" ? undefined : stdout));
  });

/** Every secret that this machine keeps and this user may read, to look for it in what is written. */
function secretsHere(
  config: string | undefined,
  io: CommandIo,
): { readonly secrets: ReadonlySet<string>; readonly problems: readonly string[] } {
  const secrets = new Set<string>();
  const problems: string[] = [];
  const take = (file: string | undefined): void => {
    if (file === undefined) return;
    try {
      secrets.add(firstLine(readBoundedFile(file, MAX_SECRET_BYTES)).trim());
    } catch (error) {
      if (!hasCode(error, "ENOENT")) problems.push(messageOf(error));
    }
  };
  const settingsFile = path.resolve(config ?? DEFAULT_SETTINGS_FILE);
  const kept = loadCredentials(io.env["CREDENTIALS_DIRECTORY"], credentialsFolder(settingsFile));
  for (const secret of kept.secrets.values()) secrets.add(secret);
  problems.push(...kept.problems);
  const keys = keysFolder(path.resolve(stateDirIn(config)));
  try {
    for (const name of namesIn(keys)) take(path.join(keys, name));
  } catch (error) {
    problems.push(messageOf(error));
  }
  try {
    const { settings } = loadSettings(config);
    for (const secret of readSecretFiles(settings, path.dirname(settingsFile)).values())
      if ("secret" in secret) secrets.add(secret.secret);
      else problems.push(secret.problem);
    take(settings.api?.key_file);
    take(settings.api?.proxy_password_file);
  } catch {
    // What is wrong with the settings is in check.json.
  }
  secrets.delete("");
  return { secrets, problems };
}
