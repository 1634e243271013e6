import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../model/context.ts";
import { textsOf } from "../model/testing/warnings.ts";
import { loadPolicy } from "./policy-file.ts";
import { WatchedFile } from "./watched-file.ts";

function watched() {
  const folder = mkdtempSync(join(tmpdir(), "collector-watched-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "policy.yaml");
  const lines: string[] = [];
  const write = (_: object, message: string): void => void lines.push(message);
  const watch = new WatchedFile({
    file,
    load: () => loadPolicy(file).policy.discovery,
    meanwhile: "the policy of before stays in force",
    log: { ...silentLog, info: write, error: write },
  });
  /** Each content has a stamp of its own, also where the clock of the file system is coarse. */
  const put = (text: string): void => {
    rmSync(file, { force: true });
    writeFileSync(file, text);
  };
  return { file, watch, lines, put };
}

test("takes a file once it has stayed the same from one look to the next, and not again", () => {
  const { watch, put } = watched();
  put("discovery: false\n");
  expect([watch.look(), watch.look(), watch.look()]).toEqual([undefined, false, undefined]);
  put("discovery: fal");
  expect(watch.look()).toBeUndefined();
  put("discovery: true\n");
  expect([watch.look(), watch.look(), watch.look()]).toEqual([undefined, true, undefined]);
  expect(textsOf(watch.notes())).toEqual([]);
});

test("takes it at once where somebody asks for it", () => {
  const { watch, put } = watched();
  put("discovery: false\n");
  expect([watch.reread(), watch.reread(), watch.look()]).toEqual([false, false, undefined]);
});

test("names what cannot be used while it is so, and logs it once for each content", () => {
  const { file, watch, lines, put } = watched();
  put("\ndicovery: true\n");
  const words = `${file}:2: dicovery: this key is not known; did you mean discovery?; the policy of before stays in force`;
  expect([watch.look(), watch.look()]).toEqual([undefined, undefined]);
  expect(textsOf(watch.notes())).toEqual([words]);
  put("\ndicovery: true\n");
  watch.reread();
  expect(lines).toEqual([words]);
  put("discovery: [\n");
  watch.reread();
  expect(lines).toHaveLength(2);
  put("discovery: true\n");
  expect(watch.reread()).toBe(true);
  expect(lines.slice(2)).toEqual(["the file can be used again"]);
  expect(textsOf(watch.notes())).toEqual([]);
});

test("shows at most ten problems of a file", () => {
  const { file, watch, put } = watched();
  put(Array.from({ length: 30 }, (_, i) => `key${i}: 1\n`).join(""));
  watch.reread();
  expect(textsOf(watch.notes())).toHaveLength(11);
  expect(textsOf(watch.notes()).at(-1)).toBe(`${file}: 20 more problems; the policy of before stays in force`);
});

test("sees a change of the rights alone", () => {
  const { file, watch, put } = watched();
  put("discovery: true\n");
  expect([watch.look(), watch.look()]).toEqual([undefined, true]);
  chmodSync(file, 0o600);
  expect([watch.look(), watch.look()]).toEqual([undefined, true]);
});
