import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { memoryFolder, temporaryFolder } from "../../../src/buffer/testing/folder.ts";
import { buildShim, hasCompiler } from "../../lab/shim.ts";

const LIVES = 80;

describe.skipIf(!hasCompiler())("the n-th write fails, n = 1 to 80", () => {
  it.each([
    ["EIO", 1],
    ["ENOSPC", 1],
    ["ENOSPC", 6],
    ["EROFS", 3],
  ])(
    "%s, %i in a row: nothing is lost, counted twice or set aside",
    (code, failures) => {
      using folder = temporaryFolder();
      // The shim answers for the disk.
      using memory = memoryFolder();
      const state = join(memory.path, "state");
      const control = join(folder.path, "control");
      mkdirSync(state);
      writeFileSync(control, Buffer.alloc(32));
      const shim = buildShim("failio", folder.path);
      const child = [join(import.meta.dirname, "nth-write-child.ts"), state, control, String(LIVES), String(failures), code];
      const env = { ...process.env, LD_PRELOAD: shim, FAIL_PREFIX: state, FAIL_CONTROL: control };
      const found = JSON.parse(execFileSync(process.execPath, child, { env, encoding: "utf8" }));
      console.log(
        `${code} × ${failures}: ${found.lives} lives, a write failed in ${found.failed} of them, ${found.thrown} attempts were repeated`,
      );
      expect(found).toMatchObject({ lives: LIVES, faults: [], alarms: [] });
      expect(found.failed).toBeGreaterThan(LIVES / 2);
      expect(found.thrown).toBeGreaterThan(LIVES / 4);
      expect(found.slices).toBeGreaterThan(10 * LIVES);
    },
    120_000,
  );
});

describe.skipIf(!hasCompiler())("a file system without locks", () => {
  it("is named as such, and not as another collector", () => {
    using folder = temporaryFolder();
    const file = join(folder.path, "buffer.db");
    const script = `
      const { openBuffer } = await import(${JSON.stringify(new URL("../../../src/buffer/open.ts", import.meta.url).href)});
      try { openBuffer(${JSON.stringify(file)}, { maxBytes: 2 ** 30, maxAgeMs: 1e12, onAlarm() {} }).close(); console.log("open"); }
      catch (error) { console.log(error.message); }`;
    const run = (env: NodeJS.ProcessEnv): string =>
      execFileSync(process.execPath, ["--input-type=module", "-e", script], { env, encoding: "utf8" }).trim();
    const found = run({ ...process.env, LD_PRELOAD: buildShim("nolocks", folder.path) });
    expect(found).toMatch(/^the file system of .*buffer\.db\.lock gives no locks \(ENOLCK\).* put state_dir on a disk of this machine$/);
    expect(readdirSync(folder.path).filter((name) => name.includes("probe"))).toEqual([]);
    expect(run(process.env)).toBe("open");
  });
});
