import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { COLLECTOR, startTestServer, temporaryFolder } from "../../src/api/server/testing.ts";
import { type RunOptions, runCommand, runCommandWith, settingsFile } from "../../src/commands/testing.ts";

/** The API on a free port, and the command line with settings that name it; `more` stands in the settings too. */
export async function commandLine(more: Readonly<Record<string, unknown>> = {}) {
  const folder = temporaryFolder();
  const api = await startTestServer(folder, COLLECTOR, { databaseFile: join(folder, "api", "api.db") });
  const config = settingsFile(folder, { collector: COLLECTOR, embedded_api: { listen: new URL(api.server.url).host }, ...more });
  const run = (...words: string[]) => runCommand(...words, "--config", config);
  const runWith = (options: RunOptions, ...words: string[]) => runCommandWith(options, ...words, "--config", config);
  const well = async (...words: string[]) => {
    const { code, out, err } = await run(...words);
    expect([code, err], words.join(" ")).toEqual([0, ""]);
    return out;
  };
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  return { api, folder, run, runWith, well, write };
}
