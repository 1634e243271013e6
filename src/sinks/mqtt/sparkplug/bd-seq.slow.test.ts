import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Log, silentLog } from "../../../model/context.ts";
import { BdSeq } from "./bd-seq.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "bdseq-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const seqOf = (uuid = "sink-1", log: Log = silentLog, at: string | undefined = folder) =>
  new BdSeq({ folder: at, uuid, endpoint: "h:1", log });

describe("BdSeq", () => {
  it("begins at 0, and continues after a restart of the process that nothing announced", () => {
    const first = seqOf();
    expect([first.next(), first.next(), first.next()]).toEqual([0, 1, 2]);
    expect(seqOf().next()).toBe(3);
    expect(seqOf("sink-2").next()).toBe(0);
    expect(readdirSync(folder).sort()).toEqual(["sink-1.bdseq.json", "sink-2.bdseq.json"]);
  });

  it("is 0 again after 255", () => {
    writeFileSync(path.join(folder, "sink-1.bdseq.json"), '{"endpoint":"h:1","bdSeq":255}');
    expect(seqOf().next()).toBe(0);
  });

  it.each(["", "{}", '{"endpoint":"h:1","bdSeq":256}', '{"endpoint":"h:1","bdSeq":-1}', "[]", '{"bdSeq":1'])(
    "begins at 0 with a warning where its file holds %j",
    (text) => {
      writeFileSync(path.join(folder, "sink-1.bdseq.json"), text);
      const warned: string[] = [];
      const log: Log = { ...silentLog, warn: (_, message) => warned.push(message) };
      expect(seqOf("sink-1", log).next()).toBe(0);
      expect(warned).toEqual([expect.stringMatching(/bdSeq begins at 0/)]);
    },
  );

  it("goes with its sink", () => {
    const bdSeq = seqOf();
    bdSeq.next();
    bdSeq.close(false);
    expect(readdirSync(folder)).toHaveLength(1);
    bdSeq.close(true);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("counts in memory where there is no folder, or one that cannot be written", () => {
    const bdSeq = new BdSeq({ folder: undefined, uuid: "sink-1", endpoint: "h:1", log: silentLog });
    expect([bdSeq.next(), bdSeq.next()]).toEqual([0, 1]);
    const unwritable = seqOf("sink-1", silentLog, path.join(folder, "file\0"));
    expect([unwritable.next(), unwritable.next()]).toEqual([0, 1]);
  });
});
