import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { SourceInput } from "../agent/source-spec.ts";
import type { Desired } from "../api/desired.ts";
import { createYielder, sleep } from "../base/timer.ts";
import type { SinkSpec } from "../delivery/messages.ts";
import { heaps } from "../lib/heap.ts";
import type { ApiAccess } from "../model/api-access.ts";
import type { Log } from "../model/context.ts";
import type { SecretPlace } from "../model/secret-place.ts";
import type { Settings } from "../model/settings.ts";
import { type Warning, warning } from "../model/warning.ts";
import { type ProfileFiles, ProfileReader } from "./bindings.ts";
import { type ConfigurationChange, changesOf } from "./changes.ts";
import { type Credentials, canonicalKey } from "./credentials.ts";
import { type DesiredState, desiredState } from "./desired-state.ts";
import { type KeptOptions, KeptOptionsFile, withKeptOptions } from "./kept-options.ts";
import { unusedOptions } from "./local-options.ts";
import { type Round, Rounds } from "./rounds.ts";
import { readSecretFiles, type SecretFiles } from "./secret-files.ts";
import { judgeSecrets, SecretPlacesFile, secretPlacesFile, type WithheldSecret, withoutSecret, withPlace } from "./secret-places.ts";
import { secretName, secretUses } from "./secret-uses.ts";
import { readYaml, SettingsError } from "./strict-yaml.ts";
import { type VariableFiles, VariableFolder } from "./variable-files.ts";
import { placeIn } from "./watched-file.ts";

/** What of this machine's settings says what runs. */
export interface LocalSettings {
  readonly settings: Settings;
  /** Folder that relative paths of the settings count from. */
  readonly settingsDir: string;
  /** For words about it: its path, and what it holds. */
  readonly settingsFile: string;
  readonly settingsText: string;
  /** Of local variable files. */
  readonly variablesDir: string;
  readonly api: ApiAccess;
}

export interface ApplierOptions {
  /** Of the start. */
  readonly local: LocalSettings;
  readonly stateDir: string;
  readonly credentials: Credentials;
  readonly clock: ConstructorParameters<typeof VariableFolder>[1];
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly applySinks: (sinks: readonly SinkSpec[]) => void;
  /** Settles once the sources are started. */
  readonly applySources: (sources: readonly SourceInput[]) => Promise<void>;
  /** Called where a configuration has changed, and not for the first one. */
  readonly onChanges?: (changes: readonly ConfigurationChange[]) => void;
  /** All that was asked for has been applied. */
  readonly onSettled: () => void;
}

/** How often local variable files and password files are looked at. */
export const LOOK_EVERY_MS = 2000;

/** A new folder is taken after this, whichever of its files still changes. */
const LONGEST_FOLDER_WAIT_MS = 10_000;

/** Settings that are for nothing, in status. */
const MAX_UNUSED = 20;

/** True: all that a round is made of is the same: what has not changed are the same objects. */
const isSame = <T extends object>(before: T, now: T): boolean => (Object.keys(now) as (keyof T)[]).every((key) => before[key] === now[key]);

/** A round that changes nothing. */
const UNCHANGED: Round = { made: Promise.resolve() };

/**
 * Brings what runs to what the configuration, the local files and the secrets say: at every change that is announced, and every two seconds
 * for the files, whose changes nobody announces.
 */
export class Applier {
  readonly #options: ApplierOptions;
  #local: LocalSettings;
  #folder: VariableFolder;
  /** What takes the folder's place once its files can be taken; since when, monotonic ms. */
  #nextFolder: { readonly folder: VariableFolder; readonly sinceMs: number } | undefined;
  readonly #rounds: Rounds;
  readonly #secretPlaces: SecretPlacesFile;
  readonly #keptOptions: { readonly sources: KeptOptionsFile; readonly sinks: KeptOptionsFile };
  #withheld: ReadonlyMap<string, WithheldSecret> = new Map();
  /** Problems of files that were logged. */
  readonly #logged = new Set<string>();
  #unused: readonly string[] = [];
  readonly #profiles = new ProfileReader();
  #desired: Desired | undefined;
  #applied:
    | {
        readonly desired: Desired;
        readonly local: LocalSettings;
        readonly files: VariableFiles;
        readonly secretFiles: string;
        readonly keptSources: KeptOptions | undefined;
        readonly keptSinks: KeptOptions | undefined;
        readonly profileFiles: ProfileFiles;
      }
    | undefined;
  /** What was applied last. */
  #state: DesiredState | undefined;
  #isReady = false;
  #looking: NodeJS.Timeout | undefined;

  constructor(options: ApplierOptions) {
    const { log, local } = options;
    this.#options = options;
    this.#local = local;
    this.#folder = this.#folderAt(local.variablesDir);
    this.#secretPlaces = new SecretPlacesFile(secretPlacesFile(options.stateDir), log);
    const { stateDir } = options;
    this.#keptOptions = { sources: new KeptOptionsFile(stateDir, "source", log), sinks: new KeptOptionsFile(stateDir, "sink", log) };
    this.#rounds = new Rounds({
      take: () => {
        const round = this.#take();
        void heaps.whileFilling(() => round.then(({ made }) => made)).catch(() => {});
        return round;
      },
      onError: (error) => log.error({ err: error }, "the configuration could not be applied"),
      onSettled: options.onSettled,
    });
  }

  /** What a person should know, for status: settings that are for nothing that there is, options of this machine that cannot be read. */
  notes(): readonly Warning[] {
    const unusable = Object.values(this.#keptOptions).flatMap(({ problem }) => problem ?? []);
    return [
      ...this.#unused.map((text) => warning("settings_unused", text, placeIn(text))),
      ...this.#profiles.notes.map((text) => warning("profile_unusable", text, placeIn(text))),
      ...unusable.map((problem) => warning("settings_unusable", problem)),
    ];
  }

  /** True: the sources of a configuration have been started. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Notes which files are there, before the first configuration comes. */
  async watchFiles(): Promise<void> {
    await this.#folder.watch();
  }

  start(): void {
    this.#looking = setInterval(() => this.#rounds.ask(), LOOK_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#looking);
  }

  setDesired(desired: Desired): void {
    this.#desired = desired;
    this.#rounds.ask();
  }

  /** Other settings of this machine: what they do not change notices nothing. */
  use(local: LocalSettings): void {
    if (local.variablesDir !== this.#local.variablesDir)
      this.#nextFolder = { folder: this.#folderAt(local.variablesDir), sinceMs: this.#options.clock.monotonicMs() };
    this.#local = local;
    this.#rounds.ask();
  }

  /**
   * A secret of this machine was set or removed: it is bound to where it is used from now on, or to the place that it was given for, and
   * everything is applied again. Returns the places that it goes to.
   */
  secretChanged(key: string, given?: { readonly uuid: string; readonly place: SecretPlace }): readonly SecretPlace[] {
    const secret = secretName(canonicalKey(key));
    const free = withoutSecret(this.#secretPlaces.places, secret);
    this.#secretPlaces.use(given ? withPlace(free, { ...given, secret }) : free);
    this.#applyAll();
    const desired = this.#desired;
    if (!desired) return [];
    const { credentials } = this.#options;
    const uses = secretUses({ desired, credentials, secretFiles: new Map(), settings: this.#local.settings });
    return uses.filter((use) => use.secret === secret).map(({ place }) => place);
  }

  /** Entries that get no password of this machine where the configuration has them now. */
  get withheld(): readonly WithheldSecret[] {
    return [...this.#withheld.values()];
  }

  /** A person confirms that the password of an entry goes where the configuration has it. False: it is elsewhere by now, or not withheld. */
  confirmSecret(uuid: string, seen: SecretPlace): boolean {
    const held = this.#withheld.get(uuid);
    if (!held || !isDeepStrictEqual(held.now, seen)) return false;
    this.#secretPlaces.use(withPlace(this.#secretPlaces.places, { uuid, secret: held.secret, place: held.now }));
    this.#applyAll();
    return true;
  }

  #applyAll(): void {
    this.#applied = undefined;
    this.#rounds.ask();
  }

  async #take(): Promise<Round> {
    const { credentials, signal } = this.#options;
    await this.#waitForFiles();
    const desired = this.#desired;
    if (!desired || signal.aborted) return UNCHANGED;
    const local = this.#local;
    const { settingsDir, api } = local;
    await this.#takeNextFolder();
    const files = await this.#folder.look(desired.sources);
    const [keptSources, keptSinks] = [this.#keptOptions.sources.look(), this.#keptOptions.sinks.look()];
    const settings = {
      ...local.settings,
      sources: withKeptOptions(local.settings.sources, keptSources ?? {}, desired.sources),
      sinks: withKeptOptions(local.settings.sinks, keptSinks ?? {}, desired.sinks),
    };
    const secretFiles = readSecretFiles(settings, settingsDir);
    // Compared only, because they are secrets.
    const secretTexts = JSON.stringify([...secretFiles]);
    const profileFiles = this.#readProfiles(settings);
    const now = { desired, local, files, secretFiles: secretTexts, keptSources, keptSinks, profileFiles };
    if (this.#applied && isSame(this.#applied, now)) return UNCHANGED;
    this.#applied = now;
    this.#logProblems(files);
    this.#noteUnused(desired, local);
    const withheld = this.#judgeSecrets(desired, secretFiles, settings);
    const optionsProblems = {
      sources: keptSources ? undefined : this.#keptOptions.sources.problem,
      sinks: keptSinks ? undefined : this.#keptOptions.sinks.problem,
    };
    const state = await desiredState({ desired, files, credentials, withheld, secretFiles, profileFiles, settings, api, optionsProblems });
    const { sources, sinks } = state;
    await this.#logChanges(state);
    this.#options.applySinks(sinks);
    heaps.fit({ sources: sources.length, variables: sources.reduce((sum, { variables }) => sum + variables.length, 0) });
    const made = this.#options.applySources(sources).then(() => {
      this.#isReady = true;
    });
    return { made };
  }

  #readProfiles(settings: Settings): ProfileFiles {
    const before = this.#profiles.notes;
    const files = this.#profiles.read(settings);
    for (const words of this.#profiles.notes) if (!before.includes(words)) this.#options.log.error({}, words);
    return files;
  }

  /** One line for what people change, by name; all of it at the first configuration. */
  async #logChanges(now: DesiredState): Promise<void> {
    const before = this.#state;
    this.#state = now;
    const { clauses, changes } = await changesOf(before ?? { sources: [], sinks: [] }, now, createYielder());
    if (clauses.length > 0) this.#options.log.info({}, `configuration: ${clauses.join("; ")}`);
    if (before && changes.length > 0) this.#options.onChanges?.(changes);
  }

  #noteUnused({ sources, sinks }: Desired, { settings, settingsFile, settingsText }: LocalSettings): void {
    const before = this.#unused;
    const unused = [
      ...unusedOptions("sources", "data source", settings.sources, sources),
      ...unusedOptions("sinks", "data sink", settings.sinks, sinks),
    ];
    const yaml = unused.length > 0 ? readYaml(Buffer.from(settingsText)) : undefined;
    const problems = unused.slice(0, MAX_UNUSED).map(({ path: at, message }) => {
      const line = yaml && "lineOf" in yaml ? yaml.lineOf(at) : undefined;
      return { ...(line !== undefined && { line }), path: at.join("."), message };
    });
    this.#unused = problems.map((problem) => new SettingsError(settingsFile, [problem]).message);
    for (const words of this.#unused) if (!before.includes(words)) this.#options.log.warn({}, words);
  }

  #judgeSecrets(desired: Desired, secretFiles: SecretFiles, settings: Settings): ReadonlyMap<string, WithheldSecret> {
    const uses = secretUses({ desired, credentials: this.#options.credentials, secretFiles, settings });
    const { places, withheld } = judgeSecrets(uses, this.#secretPlaces.places);
    this.#secretPlaces.use(places);
    this.#withheld = withheld;
    return withheld;
  }

  #folderAt(variablesDir: string): VariableFolder {
    const { clock, stateDir } = this.#options;
    return new VariableFolder(variablesDir, clock, path.join(stateDir, "variable-files.json"));
  }

  /** Until the files of a new folder can be taken, those of the old one are at work: what the API says is not, in between. */
  async #takeNextFolder(): Promise<void> {
    const next = this.#nextFolder;
    if (!next) return;
    await next.folder.watch();
    const waitedMs = this.#options.clock.monotonicMs() - next.sinceMs;
    if (next !== this.#nextFolder || (next.folder.stillInMs() > 0 && waitedMs < LONGEST_FOLDER_WAIT_MS)) return;
    this.#folder = next.folder;
    this.#nextFolder = undefined;
  }

  /** Files that were there at the start are taken once they have stayed the same for a moment. */
  async #waitForFiles(): Promise<void> {
    const { signal } = this.#options;
    for (let waitMs = this.#folder.startWaitMs(); this.#desired && waitMs > 0 && !signal.aborted; waitMs = this.#folder.startWaitMs())
      await sleep(waitMs, signal);
  }

  /** Problems of a file that belongs to a source are in that source's status. */
  #logProblems({ problems }: VariableFiles): void {
    for (const { file, line, source, message } of problems) {
      const text = `${file}${line === undefined ? "" : `:${line}`}: ${message}`;
      if (source === undefined && !this.#logged.has(text)) this.#options.log.warn({}, text);
      this.#logged.add(text);
    }
  }
}
