import { describe, expect, it } from "vitest";
import * as z from "zod";
import { type Settings, settingsSchema } from "../model/settings.ts";
import { awaitedWords, changesOf, SETTINGS_EFFECTS, settingsInForce } from "./settings-changes.ts";

const UUID = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";
const OTHER = "11111111-6a52-4f7e-9a43-1f0c2f1d4a11";
const API = { url: "https://api.example", key_file: "/etc/key" };

const settingsOf = (input: z.input<typeof settingsSchema> = {}): Settings => settingsSchema.parse(input);
const effects = (before: z.input<typeof settingsSchema>, after: z.input<typeof settingsSchema>) =>
  changesOf(settingsOf(before), settingsOf(after)).map(([, effect]) => effect);

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
}

/** The paths of all settings that have none below them. */
const pathsOf = ({ properties }: JsonSchema, path: readonly string[] = []): readonly string[] =>
  properties === undefined ? [path.join(".")] : Object.entries(properties).flatMap(([key, schema]) => pathsOf(schema, [...path, key]));

describe("what a change of a setting does", () => {
  const paths = pathsOf(z.toJSONSchema(settingsSchema, { io: "input", unrepresentable: "any" }) as JsonSchema);
  const isBelow = (path: string, at: string): boolean => path === at || path.startsWith(`${at}.`);

  it.each(paths)("%s is in exactly one class", (path) => {
    expect(SETTINGS_EFFECTS.filter(([at]) => isBelow(path, at))).toHaveLength(1);
  });

  it("names no setting that there is not", () => {
    expect(paths.length).toBeGreaterThan(20);
    expect(SETTINGS_EFFECTS.filter(([at]) => !paths.some((path) => isBelow(path, at)))).toEqual([]);
  });

  it.each([
    [{}, {}, []],
    [{ log: { level: "info" } }, { log: { level: "debug" } }, ["log"]],
    [{}, { buffer: { max_age: "1h" } }, ["buffer"]],
    [{ sources: { a: { interval: "1s" } } }, { sources: { a: { interval: "2s" } } }, ["applied"]],
    [{ sources: { a: { x: 1, y: 2 } } }, { sources: { a: { y: 2, x: 1 } } }, []],
    [{}, { sinks: { b: {} }, embedded_api: { poll_interval: "5s" } }, ["configuration", "applied"]],
    [{}, { variables_dir: "/v" }, ["applied"]],
    [{ collector: UUID }, { collector: UUID, api: API }, ["configuration"]],
    [{}, { http: { listen: "127.0.0.1:1" }, state_dir: "/s" }, ["restart", "restart"]],
    [{}, { readout_interval_unit: "milliseconds" }, ["configuration"]],
  ] as const)("%j → %j: %j", (before, after, expected) => {
    expect(effects(before as object, after as object)).toEqual(expected);
  });
});

describe("what a running service can take of the file", () => {
  const inForce = (running: z.input<typeof settingsSchema>, file: z.input<typeof settingsSchema>) =>
    settingsInForce(settingsOf(running), settingsOf(file), UUID);

  it("is all of it where nothing asks for a restart", () => {
    const file = { collector: UUID, api: API, log: { level: "debug" as const }, sources: { a: {} } };
    expect(inForce({ collector: UUID }, file)).toEqual({ settings: settingsOf(file), awaited: [] });
  });

  it("is not where it listens and keeps its state; the file's other changes are taken", () => {
    const { settings, awaited } = inForce(
      {},
      {
        state_dir: "/other",
        http: { listen: "127.0.0.1:1" },
        embedded_api: { listen: "127.0.0.1:2", poll_interval: "9s" },
        log: { level: "warn" },
      },
    );
    expect(settings).toEqual(settingsOf({ embedded_api: { poll_interval: "9s" }, log: { level: "warn" } }));
    expect(awaited.map(({ setting }) => setting)).toEqual(["state_dir", "http.listen", "embedded_api.listen"]);
    expect(awaitedWords("/etc/c.yaml", awaited[1] ?? expect.fail())).toBe(
      '/etc/c.yaml: http.listen is 127.0.0.1:1, the collector runs with 127.0.0.1:9420: "systemctl restart collector" takes the new one',
    );
  });

  it("never opens the embedded API's address to others in plain http with what was meant for another address", () => {
    const tls = { cert_file: "/c", key_file: "/k" };
    const running = { embedded_api: { listen: "0.0.0.0:8420", tls } };
    expect(inForce(running, {}).settings.embedded_api).toMatchObject({ listen: "0.0.0.0:8420", tls, insecure: false });
    const renewed = { embedded_api: { listen: "0.0.0.0:8420", tls: { cert_file: "/c2", key_file: "/k2" } } };
    expect(inForce(running, renewed)).toEqual({ settings: settingsOf(renewed), awaited: [] });
  });

  it("an embedded API that is not running yet listens where the file says", () => {
    const { settings, awaited } = inForce({ collector: UUID, api: API }, { collector: UUID, embedded_api: { listen: "127.0.0.1:2" } });
    expect(awaited).toEqual([]);
    expect(settings.api).toBeUndefined();
    expect(settings.embedded_api.listen).toBe("127.0.0.1:2");
  });

  it("as another collector the way to the API waits for the restart too", () => {
    const { settings, awaited } = inForce({}, { collector: OTHER, api: API, log: { level: "warn" } });
    expect(awaited).toEqual([{ setting: "collector", running: UUID, configured: OTHER }]);
    expect(settings).toEqual(settingsOf({ log: { level: "warn" } }));
    expect(inForce({ collector: UUID, api: API }, {}).settings).toMatchObject({ collector: UUID, api: API });
  });

  it("is the same collector where the file names the uuid that it has anyway", () => {
    expect(inForce({}, { collector: UUID, api: API })).toMatchObject({ settings: { api: API }, awaited: [] });
  });

  it("asks for nothing once the file has the old values again", () => {
    const { settings } = inForce({}, { http: { listen: "127.0.0.1:1" } });
    expect(settingsInForce(settings, settingsOf(), UUID)).toEqual({ settings: settingsOf(), awaited: [] });
  });
});
