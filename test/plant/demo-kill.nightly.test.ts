import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { VICTIMS } from "../plant/kills.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const DEMO = `${path.join(ROOT, "bin/collector-node")} ${path.join(ROOT, "test/plant/demo.ts")} --kill --for 25 --json`;
/** One of the demo's own ports: while it is taken the demo is elsewhere, and disturbs no other one. */
const TAKEN = 9420;
/** A namespace of its own lets nobody take the port of what was killed until it is back. */
const ALONE = ["-n", "sh", "-c", `ip link set lo up && exec ${DEMO}`];
const canBeAlone = spawnSync("unshare", ["-n", "ip", "link", "set", "lo", "up"], { stdio: "ignore" }).status === 0;

test("npm run demo -- --kill: each part is killed and comes back, and the ledger is exact", { timeout: 150_000 }, async () => {
  const cwd = mkdtempSync(path.join(os.tmpdir(), "collector-demo-kill-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  if (!canBeAlone) {
    const server = createServer();
    // Taken by somebody else, it is taken as well.
    await new Promise((done) => server.once("error", done).listen(TAKEN, "127.0.0.1", () => done(undefined)));
    onTestFinished(() => void server.close());
  }
  const [program, words] = canBeAlone ? ["unshare", ALONE] : ["sh", ["-c", `exec ${DEMO}`]];
  const demo = spawn(program, words, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void demo.kill("SIGKILL"));
  const [out, err]: [string[], string[]] = [[], []];
  demo.stdout.on("data", (text) => out.push(String(text)));
  demo.stderr.on("data", (text) => err.push(String(text)));
  const [code] = (await once(demo, "close")) as [number | null];
  const said = `${out.join("")}\n${err.join("")}`;
  expect(code, said).toBe(0);
  const { ok, ledger_exact, kills, sinks, sources, broker } = JSON.parse(out.join(""));
  expect({ ok, ledger_exact }, said).toEqual({ ok: true, ledger_exact: true });
  expect(kills.slice(0, VICTIMS.length).map(({ what }: { readonly what: string }) => what)).toEqual(VICTIMS);
  for (const { back_ms } of kills) expect(back_ms).toBeGreaterThan(0);
  expect(sources).toHaveLength(10);
  const [{ accepted, delivered, pending, dropped }] = sinks;
  expect({ delivered, pending, dropped }).toEqual({ delivered: accepted, pending: 0, dropped: 0 });
  expect(accepted).toBeGreaterThan(100);
  expect(broker).toMatchObject({ distinct_values: accepted, gaps: 0 });
});
