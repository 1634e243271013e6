import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { PORTS } from "../plant/configured.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");

test("npm run demo: only a port that is taken moves, and who stops reading ends it with all of its processes", {
  timeout: 120_000,
}, async () => {
  const cwd = mkdtempSync(path.join(os.tmpdir(), "collector-demo-ends-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const server = createServer();
  // Taken by somebody else, it is taken as well.
  await new Promise((done) => server.once("error", done).listen(PORTS.http, "127.0.0.1", () => done(undefined)));
  onTestFinished(() => void server.close());
  const demo = spawn(path.join(ROOT, "bin/collector-node"), [path.join(ROOT, "test/plant/demo.ts"), "--steady"], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void demo.kill("SIGKILL"));
  let [out, err] = ["", ""];
  demo.stderr.on("data", (text) => {
    err += String(text);
  });
  await new Promise<void>((done, fail) => {
    demo.once("exit", (code) => fail(new Error(`it ended with ${code}: ${out}${err}`)));
    demo.stdout.on("data", (text) => {
      out += String(text);
      if (/configured over the API/.test(out)) done();
    });
  });
  const moved = /^port (.*) is taken/.exec(out)?.[1]?.split(", ").map(Number) ?? [];
  expect(moved).toContain(PORTS.http);
  for (const port of [PORTS.machines.press, PORTS.machines.oven].filter((one) => !moved.includes(one)))
    expect(out).toContain(`at 127.0.0.1:${port}`);
  const collector = Number(/collector: process (\d+)/.exec(out)?.[1]);
  const shown = (file: string): string => readFileSync(`/proc/${collector}/${file}`, "utf8").replaceAll("\0", " ");
  expect([shown("comm"), shown("cmdline")]).toEqual(["collector\n", expect.stringMatching(/^collector run --config /)]);
  const ended = once(demo, "close");
  demo.removeAllListeners("exit");
  demo.stdout.destroy();
  const [code] = await ended;
  expect([code, err]).toEqual([0, ""]);
  expect(() => process.kill(collector, 0)).toThrow("ESRCH");
  expect(existsSync(path.join(cwd, ".demo"))).toBe(false);
});
