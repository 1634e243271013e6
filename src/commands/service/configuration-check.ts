import path from "node:path";
import { typeOf } from "../../../drivers/driver.ts";
import { specOf } from "../../agent/source-spec.ts";
import { lastGoodFile } from "../../api/embedded.ts";
import { readLastGood } from "../../api/last-good.ts";
import { boundOptions, readProfile } from "../../configuration/bindings.ts";
import { credentialsFolder, loadCredentials } from "../../configuration/credentials.ts";
import { keptOptionsFile, optionsOf, readKeptOptions } from "../../configuration/kept-options.ts";
import { loadPolicy, policyFile } from "../../configuration/policy-file.ts";
import { readSecretFiles } from "../../configuration/secret-files.ts";
import { DEFAULT_SETTINGS_FILE, type LoadedSettings, loadSettings } from "../../configuration/settings-file.ts";
import { SettingsError } from "../../configuration/strict-yaml.ts";
import { readBoundedFile } from "../../lib/bounded-file.ts";
import { listenRefusal } from "../../lib/policy.ts";
import { messageOf } from "../../model/failure.ts";
import type { Policy } from "../../model/policy.ts";
import type { DataSink, DataSource } from "../../model/resources.ts";
import type { Settings } from "../../model/settings.ts";
import type { Variable } from "../../model/variable.ts";
import { type ClosedHost, closedHosts, foundHosts, hostsOf, openingLines } from "../closed-hosts.ts";
import { variableFiles } from "../configuration/variable-folder.ts";
import { entryOf } from "../device/device.ts";
import type { CommandIo } from "../io.ts";

/** Something that a person should look at. */
export interface Finding {
  /** error: it cannot be used. warning: it can, and is perhaps not what was meant. */
  readonly level: "error" | "warning";
  /** File with line, or the data source and variable. */
  readonly where: string;
  readonly message: string;
}

/** What was found wrong, and what was looked at. */
export interface Checked {
  readonly findings: readonly Finding[];
  /** Undefined: they cannot be used. */
  readonly settings: LoadedSettings | undefined;
  readonly policy: Policy | undefined;
  /** As kept on disk; null: nothing is kept, or this user may not read it. */
  readonly sources: readonly DataSource[] | null;
  readonly sinks: readonly DataSink[];
  readonly variables: number;
  /** Hosts that policy.yaml closes, and its lines that open them all. */
  readonly closed: { readonly hosts: readonly ClosedHost[]; readonly lines: readonly string[] };
}

/** Variables of one source that are named. */
const MAX_NAMED = 20;
/** A name that takes longer is judged when it is connected to. */
const NAME_MS = 1000;
/** Of a key or a certificate. */
const MAX_FILE_BYTES = 2 ** 20;

/** Looks at every file of the configuration as the service would read it. Changes nothing, and asks neither API nor devices, but names of hosts are looked up. Never throws. */
export async function checkConfiguration(config: string | undefined, io: CommandIo): Promise<Checked> {
  return new Check(config, io).run();
}

const NONE_CLOSED: Checked["closed"] = { hosts: [], lines: [] };

class Check {
  readonly #config: string | undefined;
  readonly #io: CommandIo;
  readonly #findings: Finding[] = [];

  constructor(config: string | undefined, io: CommandIo) {
    this.#config = config;
    this.#io = io;
  }

  async run(): Promise<Checked> {
    const settings = this.#attempt(() => loadSettings(this.#config));
    const policy = this.#attempt(() => loadPolicy(policyFile(this.#config === undefined ? undefined : path.resolve(this.#config))))?.policy;
    if (!settings) return this.#checked(settings, policy, null, [], 0);
    this.#addresses(settings, policy);
    this.#secrets(settings);
    const stateDir = path.resolve(settings.settings.state_dir);
    this.#keptOptions(stateDir);
    const kept = await readLastGood(lastGoodFile(stateDir));
    if (kept.type !== "loaded") {
      this.#warn(lastGoodFile(stateDir), `${kept.message}; data sources and variables are not checked`);
      return this.#checked(settings, policy, null, [], 0);
    }
    const { sources, sinks, variables } = kept.configuration;
    for (const { text } of kept.warnings) this.#warn(lastGoodFile(stateDir), text);
    this.#names(settings, "sources", sources);
    this.#names(settings, "sinks", sinks);
    const count = await this.#sources(settings, sources, variables ?? []);
    const found = policy ? await foundHosts(hostsOf(sources, sinks, settings.settings), NAME_MS, this.#io.signal) : [];
    const closed = policy ? { hosts: closedHosts(policy, found), lines: openingLines(policy, found) } : NONE_CLOSED;
    return { ...this.#checked(settings, policy, sources, sinks, count), closed };
  }

  #checked(
    settings: LoadedSettings | undefined,
    policy: Policy | undefined,
    sources: readonly DataSource[] | null,
    sinks: readonly DataSink[],
    variables: number,
  ): Checked {
    return { findings: this.#findings, settings, policy, sources, sinks, variables, closed: NONE_CLOSED };
  }

  /** Undefined: the file cannot be used, and each problem is a finding. */
  #attempt<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      for (const { line, path: key, message } of error.problems)
        this.#fail(`${error.file}${line === undefined ? "" : `:${line}`}`, key === "" ? message : `${key}: ${message}`);
      return undefined;
    }
  }

  #addresses({ settings, file }: LoadedSettings, policy: Policy | undefined): void {
    if (!policy) return;
    const where = file ?? DEFAULT_SETTINGS_FILE;
    const refused = (key: string, at: string): void => {
      const words = listenRefusal(policy, at);
      if (words !== undefined) this.#fail(where, `${key}: ${words}`);
    };
    refused("http.listen", settings.http.listen);
    if (!settings.api) refused("embedded_api.listen", settings.embedded_api.listen);
    if (settings.page.enabled) refused("page.listen", settings.page.listen);
  }

  #secrets({ settings, file }: LoadedSettings): void {
    const where = file ?? DEFAULT_SETTINGS_FILE;
    for (const [name, secret] of readSecretFiles(settings, path.dirname(where)))
      if ("problem" in secret) this.#fail(where, `password_file ${name}: ${secret.problem}`);
    for (const problem of loadCredentials(this.#io.env["CREDENTIALS_DIRECTORY"], credentialsFolder(file)).problems)
      this.#warn(credentialsFolder(file), problem);
    const { api, page } = settings;
    const named = {
      "page.token_file": page.token_file,
      "page.tls.cert_file": page.tls?.cert_file,
      "page.tls.key_file": page.tls?.key_file,
      "api.key_file": api?.key_file,
      "api.proxy_password_file": api?.proxy_password_file,
      "api.tls.ca_file": api?.tls?.ca_file,
    };
    const own = { "api.tls.cert_file": api?.tls?.cert_file, "api.tls.key_file": api?.tls?.key_file };
    for (const [key, at] of Object.entries({ ...named, ...own })) {
      if (at === undefined) continue;
      try {
        readBoundedFile(at, MAX_FILE_BYTES);
      } catch (error) {
        this.#fail(where, `${key}: ${messageOf(error)}`);
      }
    }
  }

  /** Options that verbs keep on this machine: without them the service starts no data source or no data sink. */
  #keptOptions(stateDir: string): void {
    for (const kind of ["source", "sink"] as const)
      try {
        readKeptOptions(stateDir, kind);
      } catch (error) {
        this.#fail(keptOptionsFile(stateDir, kind), messageOf(error));
      }
  }

  /** Undefined: what is kept cannot be read, which is a finding already. */
  #optionsOf({ sources, state_dir: stateDir }: Settings, record: DataSource): Readonly<Record<string, unknown>> | undefined {
    try {
      return optionsOf(sources, path.resolve(stateDir), "source", record);
    } catch {
      return undefined;
    }
  }

  /** Entries of the settings that are for no record. */
  #names({ settings, file }: LoadedSettings, kind: "sources" | "sinks", records: readonly { uuid: string; name: string | null }[]): void {
    for (const key of Object.keys(settings[kind]))
      if (!records.some(({ uuid, name }) => uuid === key.toLowerCase() || name === key))
        this.#warn(
          file ?? DEFAULT_SETTINGS_FILE,
          `${kind}.${key} fits no data ${kind === "sources" ? "source" : "sink"}; it has no effect`,
        );
  }

  /** The number of variables. */
  async #sources(loaded: LoadedSettings, sources: readonly DataSource[], variables: readonly Variable[]): Promise<number> {
    const { bySource, problems } = await variableFiles(loaded, sources, this.#io.signal);
    for (const { file, line, message } of problems) this.#fail(`${file}${line === undefined ? "" : `:${line}`}`, message);
    const ofApi = Map.groupBy(variables, ({ data_source }) => data_source);
    let count = 0;
    for (const record of sources) {
      const own = bySource.get(record.uuid)?.variables ?? ofApi.get(record.uuid) ?? [];
      count += own.length;
      await this.#source(record, own, loaded);
    }
    return count;
  }

  async #source(record: DataSource, variables: readonly Variable[], { settings }: LoadedSettings): Promise<void> {
    const entry = entryOf(record.type);
    if (!entry) return this.#fail(record.name, `this collector has no driver for ${record.type}`);
    const { default: driver } = await entry.driver();
    const own = this.#optionsOf(settings, record);
    if (!own) return;
    const local = boundOptions(record.type, own, settings, readProfile);
    const made = await specOf(
      {
        record,
        variables,
        warnings: [],
        local,
        secrets: {},
        missingSecret: undefined,
        readoutIntervalUnit: settings.readout_interval_unit,
      },
      driver,
    );
    if ("problem" in made) return this.#fail(record.name, made.problem.detail);
    const { spec } = made;
    for (const { text } of spec.warnings) this.#warn(record.name, text);
    const refused = [...spec.refused].flatMap(([index, reading]) => (reading.quality === "bad" ? [{ index, reading }] : []));
    for (const { index, reading } of refused.slice(0, MAX_NAMED))
      this.#fail(`${record.name}/${spec.layout.variables[index]?.name}`, `${reading.fault}: ${reading.detail ?? ""}`);
    if (refused.length > MAX_NAMED) this.#fail(record.name, `${refused.length - MAX_NAMED} more variables cannot be read`);
    const strange = variables.filter(({ type }) => type !== null && !typeOf(driver, type)).length;
    if (strange > 0 && refused.length === 0) this.#warn(record.name, `${strange} variables have a type that ${driver.title} does not know`);
  }

  #fail(where: string, message: string): void {
    this.#findings.push({ level: "error", where, message });
  }

  #warn(where: string, message: string): void {
    this.#findings.push({ level: "warning", where, message });
  }
}
