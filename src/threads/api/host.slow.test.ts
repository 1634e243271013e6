import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COLLECTOR, temporaryFolder } from "../../api/server/testing.ts";
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
    expect(api.notes()).toEqual([
      expect.stringMatching(/cannot start: the configuration database .*api\.db cannot be opened.*collector api restore/),
    ]);
    expect(lines).toEqual([["error", api.notes()[0]]]);
    rmSync(databaseFile);
    await expect.poll(() => api.notes(), { timeout: 20_000 }).toEqual([]);
    expect(lines.filter(([level]) => level === "error")).toHaveLength(1);
  } finally {
    await api.stop();
  }
});
