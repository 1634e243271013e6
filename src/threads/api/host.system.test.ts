import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { COLLECTOR, temporaryFolder } from "../../api/server/testing.ts";
import { textsOf } from "../../model/testing/warnings.ts";
import { EmbeddedApi } from "./host.ts";

test("a damaged database is one line and one note, without a dying worker beside it, until it is there again", async () => {
  const folder = temporaryFolder();
  const databaseFile = join(folder, "api.db");
  writeFileSync(databaseFile, "no database ".repeat(1000));
  const lines: [string, string][] = [];
  const at = (level: string) => (_fields: object, message: string) => void lines.push([level, message]);
  let tries = 0;
  const debug = (_fields: object, message: string) => {
    if (message.includes("started again")) tries++;
  };
  const api = new EmbeddedApi({
    entry: new URL("./worker.ts", import.meta.url),
    workerData: {
      databaseFile,
      keysDir: join(folder, "keys"),
      listen: "127.0.0.1:0",
      values: { maxBytes: 2 ** 30, maxAgeMs: 2 ** 40 },
      collector: COLLECTOR,
      readoutIntervalUnit: "seconds",
      publishIntervalUnit: "seconds",
      version: "0",
    },
    log: { debug, info: at("info"), warn: at("warn"), error: at("error") },
  });
  try {
    await expect.poll(() => tries, { timeout: 20_000 }).toBeGreaterThanOrEqual(2);
    expect(textsOf(api.notes())).toEqual([
      expect.stringMatching(/cannot start: the configuration database .*api\.db cannot be opened.*collector api restore/),
    ]);
    expect(lines).toEqual([["error", textsOf(api.notes())[0]]]);
    rmSync(databaseFile);
    await expect.poll(() => textsOf(api.notes()), { timeout: 20_000 }).toEqual([]);
    expect(lines.filter(([level]) => level === "error")).toHaveLength(1);
  } finally {
    await api.stop();
  }
});

/** Says that its port is taken, and dies; the next one has the port at once. */
const WORKER = `
import { existsSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
const listening = { type: "listening", url: "http://127.0.0.1:1", keyFiles: { admin: "", collector: "" } };
if (existsSync(workerData.databaseFile)) {
  parentPort.postMessage(listening);
  parentPort.on("message", () => process.exit(0));
} else {
  writeFileSync(workerData.databaseFile, "");
  parentPort.postMessage({ type: "port_trouble", message: "the port is taken" });
  parentPort.postMessage(listening);
  setTimeout(() => process.exit(1), 300);
}
`;

test("a port that was taken is no alarm any more once a new worker listens on it", async () => {
  const folder = temporaryFolder();
  const entry = join(folder, "worker.mjs");
  writeFileSync(entry, WORKER);
  const told: string[] = [];
  const tell = (_fields: object, message: string) => void told.push(message);
  const api = new EmbeddedApi({
    entry: pathToFileURL(entry),
    workerData: { databaseFile: join(folder, "died"), listen: "127.0.0.1:1" } as never,
    log: { debug: tell, info: tell, warn: tell, error: tell },
  });
  try {
    await expect.poll(() => textsOf(api.notes())).toContain("the port is taken");
    await expect.poll(() => told, { timeout: 20_000 }).toContain("the embedded configuration API listens");
    expect(textsOf(api.notes())).not.toContain("the port is taken");
  } finally {
    await api.stop();
  }
});
