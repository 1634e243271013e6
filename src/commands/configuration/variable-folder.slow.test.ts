import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { loadSettings } from "../../configuration/settings-file.ts";
import { variableFiles } from "./variable-folder.ts";

afterEach(() => void vi.restoreAllMocks());

test("a file is taken also where timers fire before the clock that it is judged by", async () => {
  const folder = mkdtempSync(join(tmpdir(), "collector-variable-folder-"));
  try {
    const file = join(folder, "collector.yaml");
    const variables = join(folder, "variables");
    writeFileSync(file, `state_dir: ${folder}\nvariables_dir: ${variables}\n`);
    mkdirSync(variables);
    writeFileSync(join(variables, "press-1.csv"), "name,address\ntemp,holding:7\n");
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() * 0.98);
    const source = { uuid: "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01", name: "press-1" };
    const { bySource, problems } = await variableFiles(loadSettings(file), [source]);
    expect([bySource.get(source.uuid)?.variables.map(({ name }) => name), problems]).toEqual([["temp"], []]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
