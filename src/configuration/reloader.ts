import { isDeepStrictEqual } from "node:util";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Policy } from "../model/policy.ts";
import { type Warning, warning } from "../model/warning.ts";
import { LOOK_EVERY_MS } from "./applier.ts";
import type { KeptName, KeptText } from "./kept-text.ts";
import { loadPolicy, type StartPolicy } from "./policy-file.ts";
import { type AwaitedSetting, awaitedWords, changesOf, type SettingsEffect, settingsInForce } from "./settings-changes.ts";
import { DEFAULT_SETTINGS_FILE, type LoadedSettings, loadSettings, type StartSettings } from "./settings-file.ts";
import { SettingsError } from "./strict-yaml.ts";
import { WatchedFile } from "./watched-file.ts";

export interface ReloaderOptions {
  /** Of the start. */
  readonly loaded: StartSettings;
  readonly policy: StartPolicy;
  readonly policyFile: string;
  /** The collector that runs. */
  readonly uuid: string;
  readonly log: Log;
  /** Takes each text that can be used, for the next start. */
  readonly keep: (name: KeptName, text: KeptText) => void;
  /** The settings in force, and what of them changes. */
  readonly onSettings: (now: LoadedSettings, effects: ReadonlySet<SettingsEffect>) => void;
  readonly onPolicy: (now: Policy) => void;
  readonly lookEveryMs?: number;
}

/**
 * Keeps the settings and the policy of a running service as their files say: looks at both from time to time, and reads them at once when
 * asked to. A file that cannot be used leaves what it said before in force.
 */
export class Reloader {
  readonly #options: ReloaderOptions;
  readonly #settingsFile: WatchedFile<LoadedSettings>;
  readonly #policyFile: WatchedFile<Policy>;
  #inForce: LoadedSettings;
  #policy: Policy;
  #awaited: readonly AwaitedSetting[] = [];
  #looking: NodeJS.Timeout | undefined;

  constructor(options: ReloaderOptions) {
    const { loaded, policy, policyFile, log, keep } = options;
    this.#options = options;
    this.#inForce = loaded;
    this.#policy = policy.policy;
    const file = loaded.file ?? DEFAULT_SETTINGS_FILE;
    let isThere = loaded.file !== undefined;
    this.#settingsFile = new WatchedFile({
      file,
      load: () => {
        const now = loadSettings(isThere ? file : undefined, file);
        isThere ||= now.file !== undefined;
        keep("settings", { file, text: now.text });
        return now;
      },
      problem: loaded.problem,
      meanwhile: "the settings of before stay in force",
      log,
    });
    let hasPolicy = policy.file !== undefined;
    this.#policyFile = new WatchedFile({
      file: policyFile,
      load: () => {
        const now = loadPolicy(policyFile);
        if (hasPolicy && now.file === undefined) throw new SettingsError(policyFile, [{ path: "", message: GONE }]);
        hasPolicy ||= now.file !== undefined;
        keep("policy", { file: policyFile, text: now.text });
        return now.policy;
      },
      problem: policy.problem,
      meanwhile: "the policy of before stays in force",
      log,
    });
  }

  start(): void {
    const { lookEveryMs = LOOK_EVERY_MS, loaded, policy, policyFile, keep } = this.#options;
    if (!loaded.problem) keep("settings", { file: loaded.file ?? DEFAULT_SETTINGS_FILE, text: loaded.text });
    if (!policy.problem) keep("policy", { file: policyFile, text: policy.text });
    this.#looking = setInterval(() => this.#take((file) => file.look()), lookEveryMs);
  }

  stop(): void {
    clearInterval(this.#looking);
  }

  /** Reads both files now. */
  reread(): void {
    this.#options.log.info({}, "reloading settings and policy");
    this.#take((file) => file.reread());
  }

  /** What a person should know, for status: files that cannot be used, settings that wait for a restart. */
  notes(): readonly Warning[] {
    const file = this.#inForce.file ?? DEFAULT_SETTINGS_FILE;
    return [
      ...this.#settingsFile.notes(),
      ...this.#policyFile.notes(),
      ...this.#awaited.map((awaited) => warning("restart_needed", awaitedWords(file, awaited))),
    ];
  }

  /** One file's trouble is not the other's. The policy comes first: what it closes is not opened for a moment by new settings. */
  #take(read: <T>(file: WatchedFile<T>) => T | undefined): void {
    this.#guarded(() => {
      const policy = read(this.#policyFile);
      if (policy) this.#takePolicy(policy);
    });
    this.#guarded(() => {
      const loaded = read(this.#settingsFile);
      if (loaded) this.#takeSettings(loaded);
    });
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.log.error({ err: error }, `the settings could not be taken over: ${messageOf(error)}`);
    }
  }

  #takePolicy(policy: Policy): void {
    if (isDeepStrictEqual(policy, this.#policy)) return;
    const { log, policyFile, onPolicy } = this.#options;
    this.#policy = policy;
    log.info({ file: policyFile }, "the policy has changed");
    onPolicy(policy);
  }

  #takeSettings(loaded: LoadedSettings): void {
    const { uuid, log, onSettings } = this.#options;
    const before = this.#inForce;
    const file = loaded.file ?? DEFAULT_SETTINGS_FILE;
    const { settings, awaited } = settingsInForce(before.settings, loaded.settings, uuid);
    if (!isDeepStrictEqual(awaited, this.#awaited)) for (const one of awaited) log.warn({}, awaitedWords(file, one));
    this.#awaited = awaited;
    const changes = changesOf(before.settings, settings);
    if (changes.length === 0 && before.file === loaded.file) return;
    this.#inForce = { ...loaded, settings };
    log.info({ file, changed: changes.map(([path]) => path) }, "the settings have changed");
    // Relative paths count from the file's folder: where there is a file now, they are others.
    const effects = changes.map(([, effect]) => effect);
    onSettings(this.#inForce, new Set<SettingsEffect>(before.file === loaded.file ? effects : [...effects, "applied"]));
  }
}

const GONE = "does not exist any more; write an empty file for the defaults";
