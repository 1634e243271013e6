import { isDeepStrictEqual } from "node:util";
import type { Settings } from "../model/settings.ts";

/**
 * What a change of a setting does to a service that runs. `restart`: nothing, until the next start. `configuration`: the way to the
 * configuration API, or the embedded API, is another; what runs is compared with what is desired. `applied`: what runs is compared with
 * what is desired. `buffer`: the bounds of the buffer. `page`: the page is served again. `log`: the log.
 */
export type SettingsEffect = "restart" | "configuration" | "applied" | "buffer" | "page" | "log";

/** Each setting, or all that are below it, with the one thing that a change of it does. */
export const SETTINGS_EFFECTS: readonly (readonly [path: string, effect: SettingsEffect])[] = [
  ["collector", "restart"],
  ["state_dir", "restart"],
  ["http", "restart"],
  ["captures", "restart"],
  ["embedded_api.listen", "restart"],
  ["api", "configuration"],
  ["embedded_api.tls", "configuration"],
  ["embedded_api.insecure", "configuration"],
  ["embedded_api.poll_interval", "configuration"],
  ["embedded_api.values", "configuration"],
  // The embedded API fills in what a creation request leaves out, in these units.
  ["readout_interval_unit", "configuration"],
  ["publish_interval_unit", "configuration"],
  ["variables_dir", "applied"],
  ["bindings", "applied"],
  ["sources", "applied"],
  ["sinks", "applied"],
  ["buffer", "buffer"],
  ["page", "page"],
  ["log", "log"],
];

/** A setting that the file has changed and that is taken at the next start. */
export interface AwaitedSetting {
  /** Keys joined by dots. */
  readonly setting: string;
  /** In use. */
  readonly running: string;
  /** In the file. */
  readonly configured: string;
}

export interface SettingsInForce {
  readonly settings: Settings;
  readonly awaited: readonly AwaitedSetting[];
}

const captureWords = ({ captures }: Settings): string =>
  Object.entries(captures)
    .map(([key, bytes]) => `${key} ${bytes}`)
    .join(", ");

/** Which settings differ, and what each of them does. Pure. */
export const changesOf = (before: Settings, after: Settings): typeof SETTINGS_EFFECTS =>
  SETTINGS_EFFECTS.filter(([path]) => !isDeepStrictEqual(valueAt(before, path), valueAt(after, path)));

/**
 * What of the file's settings a service can take that runs on others, as which collector (`uuid`), and what it cannot. An embedded API that
 * does not run yet listens where the file says. While it goes on, and its address is to be another one, the certificate and the permission
 * for plain http stay as they are too, because they are about that address. As another collector the way to the API waits as well: the API
 * would have nothing for this one, and everything would stop. Pure.
 */
export function settingsInForce(running: Settings, file: Settings, uuid: string): SettingsInForce {
  const awaited: AwaitedSetting[] = [];
  const isOther = (setting: string, before: string | undefined, now: string | undefined): boolean => {
    if (before === now) return false;
    awaited.push({ setting, running: before ?? "not set", configured: now ?? "not set" });
    return true;
  };
  const isSameCollector = running.collector === file.collector || file.collector === uuid;
  const isOtherCollector = !isSameCollector && isOther("collector", running.collector ?? uuid, file.collector);
  isOther("state_dir", running.state_dir, file.state_dir);
  isOther("http.listen", running.http.listen, file.http.listen);
  isOther("http.source_series", String(running.http.source_series), String(file.http.source_series));
  isOther("captures", captureWords(running), captureWords(file));
  const api = isOtherCollector ? running.api : file.api;
  const goesOn = running.api === undefined && api === undefined;
  const { listen, tls, insecure } = running.embedded_api;
  const isElsewhere = goesOn && isOther("embedded_api.listen", listen, file.embedded_api.listen);
  const { collector: _, api: __, ...others } = file;
  return {
    settings: {
      ...others,
      ...(running.collector !== undefined && { collector: running.collector }),
      ...(api && { api }),
      state_dir: running.state_dir,
      http: running.http,
      captures: running.captures,
      embedded_api: { ...file.embedded_api, ...(isElsewhere && { listen, tls, insecure }) },
    },
    awaited,
  };
}

/** For status. Pure. */
export const awaitedWords = (file: string, { setting, running, configured }: AwaitedSetting): string =>
  `${file}: ${setting} is ${configured}, the collector runs with ${running}: "systemctl restart collector" takes the new one`;

/** Undefined: it is not set. */
function valueAt(settings: Settings, path: string): unknown {
  let value: unknown = settings;
  for (const key of path.split("."))
    value = typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined;
  return value;
}
