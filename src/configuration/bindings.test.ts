import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { settingsSchema } from "../model/settings.ts";
import { boundOptions, ProfileReader, readProfile } from "./bindings.ts";
import { loadSettings } from "./settings-file.ts";

const PROFILE = `profile: 1
name: scale
for: [vendor_b]
framing: { type: delimiter, end: <CR>, max_bytes: 64 }
requests: { weight: { reads: the weight, send: W? } }
variables: { weight: { request: weight, whole: true } }
`;
let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "bindings-"));
  file = path.join(folder, "scale.yaml");
});
afterAll(() => rmSync(folder, { recursive: true }));

let stamp = 1_700_000_000;
const put = (text: string): void => {
  writeFileSync(file, text);
  stamp++;
  utimesSync(file, stamp, stamp);
};

describe("the profiles of the settings", () => {
  test("are named from the folder of the settings file, by type and by source", () => {
    const settingsFile = path.join(folder, "collector.yaml");
    writeFileSync(settingsFile, "bindings: { vendor_b: { profile: scale.yaml } }\nsources: { press: { profile: own/other.yaml } }\n");
    const { settings } = loadSettings(settingsFile);
    expect(settings.bindings).toEqual({ vendor_b: { profile: file } });
    expect(settings.sources).toEqual({ press: { profile: path.join(folder, "own/other.yaml") } });
    expect(settingsSchema.safeParse({ bindings: { modbus_tcp: { profile: "x" } } }).success).toBe(false);
  });

  test("are read once; a change is taken; what cannot be used any more goes on as it was, until it is right", () => {
    const settings = settingsSchema.parse({ bindings: { vendor_b: { profile: file } } });
    const reader = new ProfileReader();
    put(PROFILE);
    const first = reader.read(settings);
    expect(first.get(file)).toMatchObject({ name: "scale" });
    expect(reader.read(settings)).toBe(first);
    put(PROFILE.replace("for:", "fr:"));
    expect(reader.read(settings).get(file)).toBe(first.get(file));
    expect(reader.notes).toEqual([
      expect.stringMatching(/scale\.yaml:3: fr: this key is not known.*; what it said when it was good stays in force$/),
    ]);
    // Another look at the same mistake.
    expect(reader.read(settings).get(file)).toBe(first.get(file));
    expect(reader.notes).toHaveLength(1);
    put(PROFILE.replace("name: scale", "name: better scale"));
    expect(reader.read(settings).get(file)).toMatchObject({ name: "better scale" });
    expect(reader.notes).toEqual([]);
    expect(new ProfileReader().read(settings)).toEqual(reader.read(settings));
    rmSync(file);
    expect(reader.read(settings).get(file)).toMatchObject({ name: "better scale" });
    expect(reader.notes).toEqual([expect.stringContaining("does not exist")]);
  });

  test("take the place of their name in the options of a source: its own before that of its type, and none of other types", () => {
    put(PROFILE);
    const settings = settingsSchema.parse({ bindings: { vendor_b: { profile: file } } });
    expect(boundOptions("vendor_b", { interval: "1s" }, settings, readProfile)).toMatchObject({
      interval: "1s",
      profile: { name: "scale" },
    });
    const own = path.join(folder, "own.yaml");
    expect(boundOptions("vendor_b", { profile: own }, settings, readProfile)).toEqual({
      profile: { problem: `${own}: the profile does not exist` },
    });
    const untouched = { interval: "1s" };
    expect(boundOptions("odac", untouched, settings, readProfile)).toBe(untouched);
    expect(boundOptions("modbus_tcp", untouched, settings, readProfile)).toBe(untouched);
  });
});

test("a source's own plugin or profile wins over its type's, and of one place the profile is read", () => {
  const [own, type] = [{ command: ["/own"] }, { socket: "/run/type.sock" }];
  const bound = (local: object, binding: object) =>
    boundOptions("odac", { ...local }, { bindings: { odac: binding } }, (name) => ({ problem: name }));
  expect(bound({}, { plugin: type })).toEqual({ plugin: type });
  expect(bound({ plugin: own }, { plugin: type, profile: "a" })).toEqual({ plugin: own });
  expect(bound({ profile: "b" }, { plugin: type })).toEqual({ profile: { problem: "b" } });
  expect(bound({}, { plugin: type, profile: "a" })).toEqual({ profile: { problem: "a" } });
  expect(boundOptions("s7", {}, { bindings: { odac: { plugin: type } } }, () => undefined)).toEqual({});
});

test.each([
  [{ command: ["plugin"] }, "expected an absolute path first"],
  [{ command: [] }, "Too small|at least"],
  [{ socket: "plugin.sock" }, "expected an absolute path, such as"],
  [{ program: "/x" }, "not known|nrecognized"],
])("bindings.odac.plugin %j is refused", (plugin, message) => {
  const { error } = settingsSchema.safeParse({ bindings: { odac: { plugin } } });
  expect(error?.issues.map((issue) => issue.message).join()).toMatch(new RegExp(message));
});
