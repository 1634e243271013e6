import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../model/context.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { Alarms } from "./alarms.ts";
import { Service, type ServiceOptions } from "./service.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "collector-run-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** No user can make a file there. */
const READ_ONLY = "/sys";

function serviceIn(stateDir: string, env: Record<string, string>) {
  const alarms = new Alarms(silentLog);
  const clock = { monotonicMs: () => 0, epochMs: () => 0, synced: () => true, bootedAtMs: () => 0 };
  const signal = new AbortController().signal;
  // What opening does not look at is left out.
  const service = new Service({ stateDir, env, alarms, clock, signal, log: silentLog } as unknown as ServiceOptions);
  return { service, alarms };
}

test("a state folder that is read-only at the start keeps no service from reading: it is asked in the run folder, with an alarm", async () => {
  const { service, alarms } = serviceIn(READ_ONLY, { RUNTIME_DIRECTORY: folder });
  await expect(service.open()).resolves.toBeUndefined();
  expect(codesOf(alarms.list([]))).toContain("state_dir_unwritable");
  expect(textsOf(alarms.list([]))).toEqual([
    expect.stringMatching(/state_dir \/sys cannot be written to .*values wait in memory, and this service answers on .*\.sock/),
  ]);
});

test("without a run folder the local socket is left out, and the service opens", async () => {
  const { service, alarms } = serviceIn(READ_ONLY, { RUNTIME_DIRECTORY: join(folder, "none") });
  await expect(service.open()).resolves.toBeUndefined();
  expect(textsOf(alarms.list([]))).toEqual([expect.stringMatching(/no verb can ask this service/)]);
});

test("a second service with the same state folder does not begin, wherever the first one is asked", async () => {
  await serviceIn(folder, {}).service.open();
  await expect(serviceIn(folder, { RUNTIME_DIRECTORY: folder }).service.open()).rejects.toThrow(
    "another collector is running with this state_dir",
  );
  await serviceIn(READ_ONLY, { RUNTIME_DIRECTORY: folder }).service.open();
  await expect(serviceIn(READ_ONLY, { RUNTIME_DIRECTORY: folder }).service.open()).rejects.toThrow("another collector is running");
});
