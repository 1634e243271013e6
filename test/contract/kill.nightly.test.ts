import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { expect, onTestFinished, test } from "vitest";
import { apiOf } from "../support/api.ts";

const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";
const ROUNDS = 100;
/** Runs that share the rounds: each has a database of its own, and waits for its own starts. */
const RUNS = 4;
const LONGEST_LIFE_MS = 150;

/** One file starts in a third of the time. */
async function bundled(folder: string): Promise<string> {
  const outfile = join(folder, "api-process.mjs");
  // If the package that stays outside is found.
  symlinkSync(join(import.meta.dirname, "../../node_modules"), join(folder, "node_modules"));
  await build({
    entryPoints: [join(import.meta.dirname, "api-process.ts")],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    external: ["better-sqlite3"],
    banner: { js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);' },
    logLevel: "error",
  });
  return outfile;
}

async function start(script: string, folder: string): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = spawn(process.execPath, [script, folder, COLLECTOR], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.trim()));
    child.once("exit", (code) => reject(new Error(`the API ended with ${code}`)));
  });
  return { child, url };
}

interface Written {
  /** Names of data sources whose creation was answered. */
  readonly created: string[];
  /** The number of the last change of the first data source that was answered. */
  changed: number;
  attempted: number;
}

/** Creates and changes until the process is killed under it. */
async function writeUntilKilled(child: ChildProcess, url: string, key: string, first: string | undefined, written: Written, life: number) {
  const api = apiOf(url, key);
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const writing = (async () => {
    let uuid = first;
    for (;;) {
      const name = `source ${written.attempted + 1}`;
      const source = await api.post("/v2/data-sources", {
        name,
        collector: COLLECTOR,
        machine: COLLECTOR,
        details: { type: "modbus_tcp", host: "127.0.0.1" },
      });
      written.created.push(name);
      uuid ??= source.uuid;
      written.attempted++;
      await api.patch(`/v2/data-sources/${uuid}`, { readout_limit: written.attempted });
      written.changed = written.attempted;
    }
  })().catch((error: unknown) => {
    // The kill ends it, and nothing else may.
    if (!child.killed) throw error;
  });
  setTimeout(() => child.kill("SIGKILL"), life);
  await ended;
  await writing;
}

async function readAll(url: string, key: string) {
  const sources: { readonly uuid: string; readonly name: string; readonly readout_limit: number | null }[] = [];
  let cursor: string | null = null;
  do {
    const page = (await apiOf(url, key).get(`/v2/data-sources${cursor === null ? "" : `?cursor=${cursor}`}`)) as {
      readonly data: typeof sources;
      readonly metadata: { readonly next_cursor: string | null };
    };
    sources.push(...page.data);
    cursor = page.metadata.next_cursor;
  } while (cursor !== null);
  return sources;
}

test(`no answered change is lost in ${ROUNDS} kills during writes`, { timeout: 240_000 }, async () => {
  const root = mkdtempSync(join(tmpdir(), "collector-kill-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const script = await bundled(root);
  const run = async (n: number): Promise<number> => {
    const folder = join(root, `run-${n}`);
    const written: Written = { created: [], changed: 0, attempted: 0 };
    let first: string | undefined;
    for (let round = 0; round <= ROUNDS / RUNS; round++) {
      const { child, url } = await start(script, folder);
      const key = readFileSync(join(folder, "keys", "admin.key"), "utf8").trim();
      const sources = await readAll(url, key);
      const names = new Set(sources.map(({ name }) => name));
      expect(written.created.filter((name) => !names.has(name))).toEqual([]);
      // One more may have been made whose answer did not arrive.
      expect(sources.length).toBeLessThanOrEqual(written.created.length + round);
      first = sources[0]?.uuid;
      const changed = sources[0]?.readout_limit ?? 0;
      expect(changed).toBeGreaterThanOrEqual(written.changed);
      expect(changed).toBeLessThanOrEqual(written.attempted);
      // The last start only looks.
      if (round === ROUNDS / RUNS) child.kill("SIGKILL");
      else await writeUntilKilled(child, url, key, first, written, 20 + Math.random() * LONGEST_LIFE_MS);
    }
    return written.created.length + written.changed;
  };
  const changes = await Promise.all(Array.from({ length: RUNS }, (_, n) => run(n)));
  // The kills fell into writes, not beside them: on a slow computer not each of them.
  expect(changes.reduce((sum, count) => sum + count)).toBeGreaterThan(ROUNDS / 2);
});
