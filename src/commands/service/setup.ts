import { existsSync, mkdirSync, statSync } from "node:fs";
import path from "node:path";
import { isMap, parseDocument } from "yaml";
import { apiAccess, type RequesterAccess, requesterAccess } from "../../api/access.ts";
import { CLIENT_TIMEOUTS } from "../../api/client.ts";
import { createRequester } from "../../api/requester.ts";
import { DEFAULT_SETTINGS_FILE, parseSettings } from "../../configuration/settings-file.ts";
import { readBoundedFile } from "../../lib/bounded-file.ts";
import { type FileOptions, replaceFile } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import { settingsSchema } from "../../model/settings.ts";
import { answer } from "../answer.ts";
import { ApiError, collectorsOf, connectionOf } from "../configuration/api-connection.ts";
import { issueWords } from "../configuration/fields.ts";
import { passwordFrom } from "../files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";

export interface SetupOptions {
  readonly config?: string;
  /** File whose first line is the key. */
  readonly keyFile: string;
  readonly collector?: string;
  /** File with the certificate authorities of the API; copied to the folder of the settings. */
  readonly ca?: string;
  readonly insecure?: boolean;
  readonly json?: boolean;
}

const MAX_SETTINGS_BYTES = 2 ** 20;

/**
 * `collector setup URL`: asks the platform's API with the key, finds out which collector the key is for, and writes address, key and collector
 * to the settings. What it can be given is replaced as a whole, for that is what was tried: an old `ca` or `insecure` that is not given again
 * is taken away. All other lines stay. Nothing is written before the API has answered. Throws UsageError.
 */
export async function setup(url: string, options: SetupOptions, io: CommandIo): Promise<ExitCode> {
  const file = path.resolve(options.config ?? DEFAULT_SETTINGS_FILE);
  const key = passwordFrom(options.keyFile, "--key-file");
  const keyFile = path.join(path.dirname(file), "api.key");
  const ca = options.ca === undefined ? undefined : path.resolve(options.ca);
  const insecure = options.insecure ? true : undefined;
  const asked = { url, key_file: keyFile, ...(ca !== undefined && { tls: { ca_file: ca } }), ...(insecure && { insecure }) };
  const keptCa = path.join(path.dirname(file), "api-ca.pem");
  const checked = settingsSchema.safeParse({ api: asked, collector: options.collector ?? "00000000-0000-0000-0000-000000000000" });
  if (!checked.success) throw new UsageError(issueWords(checked.error).join("\n"));

  const access = requesterAccess(apiAccess(checked.data, path.dirname(file)));
  const authorities = authoritiesOf(access);
  // The settings' key file does not exist yet.
  const requester = createRequester({ ...access, readKey: () => key, timeouts: CLIENT_TIMEOUTS });
  let known: readonly string[];
  try {
    known = await collectorsOf(connectionOf(requester, checked.data, io).list);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    complain(io, `${error.message}\nNothing was written.`);
    return error.status === undefined ? EXIT.ownFailure : EXIT.usage;
  } finally {
    requester.close();
  }
  const collector = collectorOf(options.collector?.toLowerCase(), known);
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o755 });
    const { text, stateDir } = edited(file, { url, key_file: keyFile, ca: ca && keptCa, insecure }, collector);
    // What they name comes first: settings whose key is not there would not start. The service sees nobody's home: hence copies.
    replaceFile(keyFile, `${key}\n`, readableBy(stateDir));
    if (authorities !== undefined) replaceFile(keptCa, authorities, { mode: 0o644 });
    replaceFile(file, text, { mode: 0o644 });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    complain(io, `cannot write the settings: ${messageOf(error)}.\nThey belong to root: type sudo collector setup …`);
    return EXIT.ownFailure;
  }
  answer(
    io,
    options,
    { api: requester.base, collector, settings_file: file, key_file: keyFile, ca_file: ca === undefined ? null : keptCa },
    `${requester.base} accepts the key.\nCollector: ${collector}\nKept in ${file} and ${keyFile}.\nRestart the service: systemctl restart collector\n`,
  );
  return EXIT.good;
}

/** The certificate authorities to keep. Throws UsageError where a file cannot be used. */
function authoritiesOf({ readRoute }: RequesterAccess): string | undefined {
  try {
    return readRoute().ca;
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** Throws UsageError where it is not clear, or not the one that was named. */
function collectorOf(named: string | undefined, known: readonly string[]): string {
  if (named !== undefined) {
    if (known.length > 0 && !known.includes(named))
      throw new UsageError(`the key does not reach collector ${named}; it reaches:\n${known.join("\n")}`);
    return named;
  }
  const [only, ...others] = known;
  if (only !== undefined && others.length === 0) return only;
  throw new UsageError(
    only === undefined
      ? "the API does not report which collector the key is for; name it with --collector"
      : `the key reaches several collectors; name one with --collector:\n${known.join("\n")}`,
  );
}

/** For root alone, and where the service is another user, whose the state folder is, for its group to read. */
function readableBy(stateDir: string): FileOptions {
  const owner = statSync(stateDir, { throwIfNoEntry: false });
  return owner && owner.uid !== 0 && process.geteuid?.() === 0 ? { mode: 0o640, gid: owner.gid } : {};
}

/**
 * The settings with collector and these keys of api set, or taken away where they are undefined; comments and all other keys stay. Throws
 * UsageError where the file is not usable.
 */
function edited(
  file: string,
  { ca, ...api }: { readonly url: string; readonly key_file: string; readonly ca: string | undefined; readonly insecure: true | undefined },
  collector: string,
): { readonly text: string; readonly stateDir: string } {
  const text = existsSync(file) ? readBoundedFile(file, MAX_SETTINGS_BYTES).toString("utf8") : "";
  const document = parseDocument(text);
  if (document.errors.length > 0 || (document.contents !== null && !isMap(document.contents)))
    throw new UsageError(`${file} is not a settings file; correct it first`);
  document.set("collector", collector);
  for (const [name, value] of Object.entries({ ...api, ca: undefined }))
    if (value === undefined) document.deleteIn(["api", name]);
    else document.setIn(["api", name], value);
  if (ca !== undefined) document.setIn(["api", "tls", "ca_file"], ca);
  else if (document.hasIn(["api", "tls", "ca_file"])) document.deleteIn(["api", "tls", "ca_file"]);
  const next = document.toString({ lineWidth: 0 });
  const parsed = parseSettings(Buffer.from(next));
  if ("problems" in parsed)
    throw new UsageError(parsed.problems.map(({ line, path: at, message }) => `${file}:${line ?? 1}: ${at}: ${message}`).join("\n"));
  return { text: next, stateDir: path.resolve(path.dirname(file), parsed.settings.state_dir) };
}
