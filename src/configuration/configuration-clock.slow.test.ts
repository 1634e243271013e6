import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clock } from "../../test/support/agent.ts";
import { freePort } from "../../test/support/free-port.ts";
import { COLLECTOR, temporaryFolder } from "../api/server/testing.ts";
import type { Clock } from "../model/clock.ts";
import { silentLog } from "../model/context.ts";
import { settingsSchema } from "../model/settings.ts";
import type { Logger } from "../os/log.ts";
import { Configuration } from "./configuration.ts";

const DAY_MS = 86_400_000;
const logger = { ...silentLog, child: () => logger } as unknown as Logger;

test.each([
  ["from 1970 to the right time", -20_783 * DAY_MS, 0],
  ["two hours back", 0, -7_200_000],
])("a clock that is set %s moves along since when the configuration API does not answer", async (_, fromMs, toMs) => {
  let offMs = fromMs;
  const set: Clock = { ...clock, epochMs: () => clock.epochMs() + offMs };
  const folder = temporaryFolder();
  const keyFile = path.join(folder, "api.key");
  writeFileSync(keyFile, "key\n");
  const stop = new AbortController();
  const options = {
    settings: settingsSchema.parse({ collector: COLLECTOR, api: { url: `http://127.0.0.1:${await freePort()}`, key_file: keyFile } }),
    stateDir: folder,
    collector: COLLECTOR,
    version: "0",
    clock: set,
    log: logger,
    signal: stop.signal,
    workerUrl: () => new URL("../threads/api/worker.ts", import.meta.url),
    onConfiguration: () => {},
    glances: () => [],
    mayDiscover: () => true,
    listenRefusal: () => undefined,
  };
  const configuration = new Configuration(options);
  onTestFinished(async () => {
    stop.abort();
    await configuration.stop(Promise.resolve());
  });
  await expect.poll(() => configuration.status().message, { timeout: 5000 }).toMatch(/ECONNREFUSED|refused/i);
  offMs = toMs;
  const ageMs = set.epochMs() - Date.parse(configuration.status().since ?? "");
  expect(Math.abs(ageMs)).toBeLessThan(60_000);
});
