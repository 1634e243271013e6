import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../model/context.ts";
import type { Policy } from "../model/policy.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { loadPolicy } from "./policy-file.ts";
import { Reloader } from "./reloader.ts";
import type { SettingsEffect } from "./settings-changes.ts";
import { type LoadedSettings, loadSettings } from "./settings-file.ts";

const UUID = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";

function started(settings: string, policy?: string) {
  const folder = mkdtempSync(join(tmpdir(), "collector-reloader-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = { settings: join(folder, "collector.yaml"), policy: join(folder, "policy.yaml") };
  const put = (what: keyof typeof files, text: string): void => writeFileSync(files[what], text);
  put("settings", settings);
  if (policy !== undefined) put("policy", policy);
  const found = loadPolicy(files.policy);
  const taken: (readonly [LoadedSettings["settings"], readonly SettingsEffect[]])[] = [];
  const policies: Policy[] = [];
  const order: string[] = [];
  const reloader = new Reloader({
    loaded: loadSettings(files.settings),
    policy: found,
    policyFile: files.policy,
    uuid: UUID,
    log: silentLog,
    keep: () => {},
    onSettings: (now, effects) => {
      order.push("settings");
      taken.push([now.settings, [...effects]]);
    },
    onPolicy: (now) => {
      order.push("policy");
      policies.push(now);
    },
    lookEveryMs: 5,
  });
  return { files, put, reloader, taken, policies, order };
}

test("gives the parts what has changed, and nothing where nothing has", () => {
  const { put, reloader, taken, policies } = started("log: { level: info }\n");
  reloader.reread();
  put("settings", "# another comment\nlog: { level: info }\n");
  reloader.reread();
  expect([taken, policies]).toEqual([[], []]);
  put("settings", "log: { level: warn }\nbuffer: { max_age: 1h }\n");
  reloader.reread();
  expect(taken).toEqual([[expect.objectContaining({ log: { level: "warn", format: "auto" } }), ["buffer", "log"]]]);
});

test("a policy that changes with the settings comes before them", () => {
  const { put, reloader, order } = started("");
  put("settings", "log: { level: warn }\n");
  put("policy", "discovery: false\n");
  reloader.reread();
  expect(order).toEqual(["policy", "settings"]);
});

test("a bad file is its own trouble: the other one is taken", () => {
  const { files, put, reloader, taken, policies } = started("", "discovery: true\n");
  put("settings", "log: { level: loud }\n");
  put("policy", "discovery: false\n");
  reloader.reread();
  expect(taken).toEqual([]);
  expect(policies.map(({ discovery }) => discovery)).toEqual([false]);
  expect(textsOf(reloader.notes())).toEqual([
    expect.stringMatching(new RegExp(`^${files.settings}:1: log\\.level: .*; the settings of before stay`)),
  ]);
});

test("a policy file that is gone opens and closes nothing; one that comes is taken", () => {
  const { files, put, reloader, policies } = started("", "discovery: false\n");
  rmSync(files.policy);
  reloader.reread();
  expect(policies).toEqual([]);
  expect(textsOf(reloader.notes())).toEqual([
    `${files.policy}: does not exist any more; write an empty file for the defaults; the policy of before stays in force`,
  ]);
  put("policy", "");
  reloader.reread();
  expect(policies.map(({ discovery }) => discovery)).toEqual([true]);
  expect(textsOf(reloader.notes())).toEqual([]);
});

test("names what waits for a restart, and takes the rest of the same change", () => {
  const { files, put, reloader, taken } = started("");
  put("settings", "http: { listen: '127.0.0.1:1' }\nlog: { level: warn }\n");
  reloader.reread();
  expect(taken.map(([{ http }, effects]) => [http.listen, effects])).toEqual([["127.0.0.1:9420", ["log"]]]);
  expect(codesOf(reloader.notes())).toContain("restart_needed");
  expect(textsOf(reloader.notes())).toEqual([expect.stringContaining(`${files.settings}: http.listen is 127.0.0.1:1, `)]);
  put("settings", "log: { level: warn }\n");
  reloader.reread();
  expect(taken).toHaveLength(1);
  expect(textsOf(reloader.notes())).toEqual([]);
});

test("looks by itself, until it is stopped", async () => {
  const { put, reloader, taken } = started("");
  reloader.start();
  put("settings", "log: { level: warn }\n");
  await expect.poll(() => taken.length).toBe(1);
  reloader.stop();
});

test("what a part throws ends nothing, and the next change is taken", () => {
  const { put, reloader, taken } = started("");
  Object.defineProperty(taken, "push", { value: () => expect.fail("a part"), configurable: true });
  put("settings", "log: { level: warn }\n");
  reloader.reread();
  delete (taken as { push?: unknown }).push;
  put("settings", "log: { level: error }\n");
  reloader.reread();
  expect(taken.map(([{ log }]) => log.level)).toEqual(["error"]);
});
