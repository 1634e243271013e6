import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../model/context.ts";
import type { HealthAnswer } from "../../service/health.ts";
import { localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { runCommand, settingsFile } from "../testing.ts";

/** Exit code and output of the verb where a service gives this answer; undefined: no service runs. */
async function healthOf(answer: HealthAnswer | undefined, json = false) {
  const folder = mkdtempSync(join(tmpdir(), "collector-health-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const config = settingsFile(folder, { state_dir: folder });
  if (answer) {
    const options = { path: localSocketPath(folder), handlers: { "/health": () => answer } };
    const socket = await startLocalSocket(options, { signal: new AbortController().signal, log: silentLog });
    onTestFinished(() => socket.close());
  }
  return runCommand("health", "--config", config, ...(json ? ["--json"] : []));
}

test("a service that reads what is due is healthy, ready or not", async () => {
  expect(await healthOf({ healthy: true, not_ready: null })).toEqual({ code: 0, out: "healthy\n", err: "" });
  expect(await healthOf({ healthy: true, not_ready: "no configuration is at work yet" })).toMatchObject({
    code: 0,
    out: "healthy; not ready: no configuration is at work yet\n",
  });
  expect(await healthOf({ healthy: true, not_ready: null }, true)).toMatchObject({ out: '{"healthy":true,"not_ready":null}\n' });
});

test("one that reads nothing is not, nor one that does not run", async () => {
  expect(await healthOf({ healthy: false, not_ready: null })).toMatchObject({
    code: 4,
    out: expect.stringMatching(/^no data source that is due/),
  });
  expect(await healthOf(undefined)).toMatchObject({ code: 4, out: "", err: expect.stringContaining("nothing answers on") });
});
