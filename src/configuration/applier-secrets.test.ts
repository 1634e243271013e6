import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock, source } from "../../test/support/agent.ts";
import type { SourceInput } from "../agent/source-spec.ts";
import { apiAccess } from "../api/access.ts";
import { silentLog } from "../model/context.ts";
import { settingsSchema } from "../model/settings.ts";
import { Applier } from "./applier.ts";
import { createCredentials } from "./credentials.ts";

const OPCUA = {
  type: "opcua",
  host: "10.0.0.5",
  port: 4840,
  endpoint_url: "opc.tcp://10.0.0.5:4840",
  security_settings: { security_mode: "Sign", endpoint_security_policy: "Basic256Sha256", token_security_policy: "Basic256Sha256" },
  user_identity: { type: "UserNamePassword", username: "reader" },
};

test("several moves at once, each confirmed, set again or taken back by itself, end as a fresh start would", async () => {
  const dir = mkdtempSync(join(tmpdir(), "collector-applier-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  mkdirSync(join(dir, "variables"));
  writeFileSync(join(dir, "filed"), "from-file\n");
  const settings = settingsSchema.parse({
    sources: { filed: { password_file: "filed" }, roaming: { password_networks: ["10.0.0.0/24"] } },
  });
  const keys = ["confirmed", "again", "back", "roaming"];
  const credentials = createCredentials(new Map(keys.map((key) => [key, `of ${key}`])));
  const start = () => {
    const stop = new AbortController();
    const applied: (readonly SourceInput[])[] = [];
    const applier = new Applier({
      local: {
        settings,
        settingsDir: dir,
        settingsFile: join(dir, "collector.yaml"),
        settingsText: "",
        variablesDir: join(dir, "variables"),
        api: apiAccess(settings, dir),
      },
      stateDir: dir,
      credentials,
      clock,
      log: silentLog,
      signal: stop.signal,
      applySinks: () => {},
      applySources: async (sources) => void applied.push(sources),
      onSettled: () => {},
    });
    onTestFinished(() => stop.abort());
    const passwords = () => Object.fromEntries((applied.at(-1) ?? []).map(({ record, secrets }) => [record.name, secrets["password"]]));
    return { applier, passwords };
  };
  const names = [...keys, "filed"];
  const at = (hosts: Readonly<Record<string, string>>) => ({
    collector: "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11",
    sources: names.map((name, n) => {
      const { record } = source(n + 1, 502);
      const host = hosts[name] ?? "10.0.0.5";
      return { ...record, name, type: "opcua", details: { ...OPCUA, host } };
    }),
    sinks: [],
    variables: [],
    secrets: {},
    revision: null,
    fetchedAt: "2026-11-20T09:00:00.000Z",
  });
  const all = { ...Object.fromEntries(keys.map((key) => [key, `of ${key}`])), filed: "from-file" };
  const { applier, passwords } = start();
  const settled = (expected: Readonly<Record<string, string | undefined>>) => expect.poll(passwords, { timeout: 10_000 }).toEqual(expected);

  applier.setDesired(at({}));
  await settled(all);
  const moved = Object.fromEntries(names.map((name) => [name, "10.0.0.66"]));
  applier.setDesired(at(moved));
  const none = { ...Object.fromEntries(names.map((name) => [name, undefined])), roaming: "of roaming" };
  await settled(none);
  expect(applier.withheld.map(({ name }) => name).sort()).toEqual(["again", "back", "confirmed", "filed"]);

  const held = (name: string) => applier.withheld.find((one) => one.name === name);
  const confirmed = held("confirmed");
  if (!confirmed) throw new Error("it is not withheld");
  // Not what the person has seen.
  expect(applier.confirmSecret(confirmed.uuid, confirmed.was)).toBe(false);
  expect(applier.confirmSecret(confirmed.uuid, confirmed.now)).toBe(true);
  expect(applier.secretChanged("again")).toMatchObject([{ host: "10.0.0.66", user: "reader" }]);
  await settled({ ...none, confirmed: "of confirmed", again: "of again" });
  expect(applier.confirmSecret(confirmed.uuid, confirmed.now)).toBe(false);
  const filed = held("filed");
  if (!filed) throw new Error("it is not withheld");
  expect(applier.confirmSecret(filed.uuid, filed.now)).toBe(true);
  const last = at({ ...moved, back: "10.0.0.5" });
  applier.setDesired(last);
  await settled(all);
  expect(applier.withheld).toEqual([]);

  // A restart has the same, and so it holds what is moved next.
  const next = start();
  next.applier.setDesired(last);
  await expect.poll(next.passwords, { timeout: 10_000 }).toEqual(all);
  next.applier.setDesired(at({}));
  await expect
    .poll(next.passwords, { timeout: 10_000 })
    .toEqual({ ...Object.fromEntries(names.map((name) => [name, undefined])), back: "of back", roaming: "of roaming" });
});
