import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scanLeaves } from "./leaf-scan.ts";
import { A, append, batch, open } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

const FRAME = 24 + 4096;

const idsIn = (file: string): ReadonlySet<number> =>
  new Set([...scanLeaves(file)].flatMap((found) => (found?.what === "batch" ? [found.row.id] : [])));
const accountIn = (file: string): string | undefined =>
  [...scanLeaves(file)].flatMap((found) => (found?.what === "account" ? [found.body] : [])).at(-1);

it("finds what was committed to the WAL and the newest account, and nothing of a transaction that was not", () => {
  using folder = temporaryFolder();
  const [file, copy] = [join(folder.path, "buffer.db"), join(folder.path, "copy.db")];
  using buffer = open(file);
  buffer.setSinks([A]);
  append(buffer, batch(1), batch(2));
  const bytesBefore = statSync(`${file}-wal`).size;
  const [added] = append(buffer, batch(3));
  for (const own of ["", "-wal"]) copyFileSync(`${file}${own}`, `${copy}${own}`);
  expect([...idsIn(copy)]).toContain(added?.id);
  expect(JSON.parse(accountIn(copy) ?? "{}")).toMatchObject({ meta: [{ next_id: (added?.id ?? 0) + 1 }] });
  // The header of the WAL is damaged: the frames themselves say which WAL they are of.
  const wal = readFileSync(`${copy}-wal`);
  writeFileSync(`${copy}-wal`, Buffer.from(wal).fill(0, 0, 32));
  expect([...idsIn(copy)]).toContain(added?.id);
  writeFileSync(`${copy}-wal`, wal);
  expect(wal.length - bytesBefore).toBeGreaterThan(FRAME);
  truncateSync(`${copy}-wal`, wal.length - FRAME);
  expect([...idsIn(copy)]).not.toContain(added?.id);
  expect(JSON.parse(accountIn(copy) ?? "{}")).toMatchObject({ meta: [{ next_id: added?.id }] });
});
