import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock, source } from "../../test/support/agent.ts";
import type { SourceInput } from "../agent/source-spec.ts";
import { apiAccess } from "../api/access.ts";
import { silentLog } from "../model/context.ts";
import { settingsSchema } from "../model/settings.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { Applier, type LocalSettings } from "./applier.ts";
import { createCredentials } from "./credentials.ts";
import { loadSettings } from "./settings-file.ts";

const COLLECTOR = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";

test("other local settings are applied at once; another folder of variables takes over once its files can be taken, with nothing in between", async () => {
  const dir = mkdtempSync(join(tmpdir(), "collector-applier-"));
  const folder = (name: string, variable: string): string => {
    mkdirSync(join(dir, name));
    writeFileSync(join(dir, name, "machine-1.csv"), `name;address\n${variable};holding:0\n`);
    return join(dir, name);
  };
  const local = (variablesDir: string, settings: object = {}): LocalSettings => {
    const parsed = settingsSchema.parse(settings);
    return {
      settings: parsed,
      settingsDir: dir,
      settingsFile: join(dir, "collector.yaml"),
      settingsText: "",
      variablesDir,
      api: apiAccess(parsed, dir),
    };
  };
  const before = folder("before", "old");
  const stop = new AbortController();
  const applied: (readonly SourceInput[])[] = [];
  const applier = new Applier({
    local: local(before),
    stateDir: dir,
    credentials: createCredentials(new Map()),
    clock,
    log: silentLog,
    signal: stop.signal,
    applySinks: () => {},
    applySources: async (sources) => void applied.push(sources),
    onSettled: () => {},
  });
  onTestFinished(() => {
    applier.stop();
    stop.abort();
    rmSync(dir, { recursive: true });
  });
  const names = () => applied.map(([only]) => only?.variables.map(({ name }) => name).join());
  await applier.watchFiles();
  applier.start();
  const { record, variables } = source(1, 502);
  applier.setDesired({
    collector: COLLECTOR,
    sources: [record],
    sinks: [],
    variables,
    secrets: {},
    revision: null,
    fetchedAt: "2026-11-20T09:00:00.000Z",
  });
  await expect.poll(() => names().at(-1), { timeout: 15_000 }).toBe("old");

  applied.length = 0;
  const after = folder("after", "new");
  const sources = { "machine-1": { interval: "3s" } };
  applier.use(local(after, { sources }));
  await expect.poll(() => applied[0]?.[0]?.local).toEqual({ interval: "3s" });
  expect(names()).toEqual(["old"]);
  await expect.poll(() => names().at(-1), { timeout: 15_000 }).toBe("new");
  expect(names()).toEqual(["old", "new"]);
});

test("settings that are for nothing are said with their line, until they are right", async () => {
  const dir = mkdtempSync(join(tmpdir(), "collector-applier-"));
  const file = join(dir, "collector.yaml");
  const local = (text: string): LocalSettings => {
    writeFileSync(file, text);
    const loaded = loadSettings(file);
    const { settings } = loaded;
    return {
      settings,
      settingsDir: dir,
      settingsFile: file,
      settingsText: loaded.text,
      variablesDir: join(dir, "v"),
      api: apiAccess(settings, dir),
    };
  };
  const stop = new AbortController();
  const said: string[] = [];
  const applier = new Applier({
    local: local("log: { level: info }\nsources:\n  machine-2:\n    interval: 1s\nsinks: { broker: {} }\n"),
    stateDir: dir,
    credentials: createCredentials(new Map()),
    clock,
    log: { ...silentLog, warn: (_, text) => void said.push(text) },
    signal: stop.signal,
    applySinks: () => {},
    applySources: async () => {},
    onSettled: () => {},
  });
  onTestFinished(() => {
    applier.stop();
    stop.abort();
    rmSync(dir, { recursive: true });
  });
  const { record, variables } = source(1, 502);
  applier.setDesired({
    collector: COLLECTOR,
    sources: [record],
    sinks: [],
    variables,
    secrets: {},
    revision: null,
    fetchedAt: "2026-11-20T09:00:00.000Z",
  });
  const wrong = [
    `${file}:3: sources.machine-2: no data source of this collector has this name or uuid; did you mean machine-1?`,
    `${file}:5: sinks.broker: no data sink of this collector has this name or uuid; there is none`,
  ];
  await expect.poll(() => textsOf(applier.notes())).toEqual(wrong);
  applier.use(local("sources:\n  machine-1: { interval: 1s }\n"));
  await expect.poll(() => textsOf(applier.notes())).toEqual([]);
  expect(said).toEqual(wrong);
});
