import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../model/context.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { keepText, keptText } from "./kept-text.ts";
import { startPolicy } from "./policy-file.ts";
import { Reloader } from "./reloader.ts";
import { startSettings } from "./settings-file.ts";

/** A machine whose collector is started again and again. */
function machine() {
  const folder = mkdtempSync(join(tmpdir(), "collector-kept-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const stateDir = join(folder, "state");
  const files = { settings: join(folder, "collector.yaml"), policy: join(folder, "policy.yaml") };
  const put = (what: keyof typeof files, text: string): void => writeFileSync(files[what], text);
  const settingsText = (more = "") => `state_dir: ./state\n${more}`;
  /** What runs from now on, as `runService` does it. */
  const start = (path: string | undefined = files.settings) => {
    const loaded = startSettings(path, files.settings);
    const policy = startPolicy(files.policy, stateDir);
    const taken: string[] = [];
    const reloader = new Reloader({
      loaded,
      policy,
      policyFile: files.policy,
      uuid: "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11",
      log: silentLog,
      keep: (name, text) => keepText(stateDir, name, text, silentLog),
      onSettings: ({ settings }) => void taken.push(settings.log.level),
      onPolicy: ({ discovery }) => void taken.push(`discovery ${discovery}`),
      lookEveryMs: 3_600_000,
    });
    reloader.start();
    onTestFinished(() => reloader.stop());
    return { loaded, policy, reloader, taken };
  };
  mkdirSync(stateDir);
  return { folder, stateDir, files, put, settingsText, start };
}

test("a typo does not end collection at the next start: the last good settings are in force, and status names the line", () => {
  const { files, put, settingsText, start } = machine();
  put("settings", settingsText("log: { level: warn }\n"));
  expect(textsOf(start().reloader.notes())).toEqual([]);
  put("settings", settingsText("log: { level: warn }\nsorces: {}\n"));
  const { loaded, reloader, taken } = start();
  expect(loaded.settings.log.level).toBe("warn");
  expect(textsOf(reloader.notes())).toEqual([
    expect.stringMatching(/collector\.yaml:3: sorces: this key is not known; did you mean sources\?; .*stay in force/),
  ]);
  // Read again while it is wrong, it is the same; right again, it is taken.
  reloader.reread();
  expect(textsOf(reloader.notes())).toHaveLength(1);
  put("settings", settingsText("log: { level: error }\n"));
  reloader.reread();
  expect([textsOf(reloader.notes()), taken]).toEqual([[], ["error"]]);
  // What was taken while it ran is what the next start falls back to.
  put("settings", "\tnot: yaml\n");
  rmSync(files.policy, { force: true });
  expect(() => start()).toThrow(/a tab indents/);
  put("settings", settingsText("\tnot: yaml\n"));
  expect(start().loaded.settings.log.level).toBe("error");
});

test("a policy that cannot be read leaves the one of before in force, and none of before leaves everything closed", () => {
  const { files, put, settingsText, start } = machine();
  put("settings", settingsText());
  put("policy", "discovery: false\n");
  start();
  put("policy", "discovry: true\n");
  const { policy, reloader, taken } = start();
  expect(policy.policy.discovery).toBe(false);
  expect(textsOf(reloader.notes())).toEqual([expect.stringMatching(/policy\.yaml:1: discovry: .*did you mean discovery/)]);
  put("policy", "discovery: true\n");
  reloader.reread();
  expect([textsOf(reloader.notes()), taken]).toEqual([[], ["discovery true"]]);
  // Without a file, the next bad one falls back to the defaults, which are closed.
  rmSync(files.policy);
  start();
  put("policy", "sources: 7\n");
  const closed = startPolicy(join(files.policy, "..", "absent.yaml"), "").policy;
  expect(start().policy.policy).toEqual({ ...closed, file: files.policy });
});

test("settings that are gone are those of before; without any that were good, the first start says what is wrong", () => {
  const { files, put, settingsText, start } = machine();
  put("settings", settingsText("log: { level: loud }\n"));
  expect(() => start()).toThrow(/collector\.yaml:2: log\.level/);
  put("settings", settingsText("log: { level: warn }\n"));
  start();
  rmSync(files.settings);
  expect(() => start(), "what names the state folder is gone as well").toThrow(/does not exist/);
});

test("what is kept is for its owner alone, of this file alone, and a damaged copy is none", () => {
  const { stateDir, files, put, settingsText, start } = machine();
  put("settings", settingsText());
  start();
  expect(readdirSync(stateDir).sort()).toEqual(["last-good-policy.json", "last-good-settings.json"]);
  const copy = join(stateDir, "last-good-settings.json");
  expect(statSync(copy).mode & 0o777).toBe(0o600);
  expect(keptText(stateDir, "settings", files.settings)).toBe(settingsText());
  expect(keptText(stateDir, "settings", "/etc/collector/another.yaml")).toBeUndefined();
  // A password file is named in the settings; what is in it is not kept.
  writeFileSync(join(stateDir, "..", "password.txt"), "canary-4711");
  put("settings", settingsText("sinks: { broker: { password_file: password.txt } }\n"));
  start();
  expect(readFileSync(copy, "utf8")).toContain("password.txt");
  expect(readFileSync(copy, "utf8")).not.toContain("canary-4711");
  writeFileSync(copy, readFileSync(copy, "utf8").slice(0, -20));
  put("settings", settingsText("log: 7\n"));
  expect(() => start()).toThrow(/collector\.yaml:2: log/);
});
