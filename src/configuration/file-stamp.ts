import { statSync } from "node:fs";
import { messageOf } from "../model/failure.ts";

export interface FileStamp {
  /** Inode, size and times: another one where the file, what it holds, its owner or its rights are others. */
  readonly text: string;
  /** Epoch ms. */
  readonly modifiedMs: number;
  /** When what it holds, its owner or its rights changed last, which a copy cannot carry over as it does `modifiedMs`; epoch ms. */
  readonly changedMs: number;
  readonly bytes: number;
}

/** Undefined: there is no such file. One that cannot be looked at has a stamp that says so. */
export function stampOf(path: string): FileStamp | undefined {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (!found) return undefined;
    const { ino, size, mtimeNs, ctimeNs } = found;
    return {
      text: [ino, size, mtimeNs, ctimeNs].join(" "),
      modifiedMs: Number(mtimeNs / 1_000_000n),
      changedMs: Number(ctimeNs / 1_000_000n),
      bytes: Number(size),
    };
  } catch (error) {
    return { text: messageOf(error), modifiedMs: 0, changedMs: Number.POSITIVE_INFINITY, bytes: 0 };
  }
}
