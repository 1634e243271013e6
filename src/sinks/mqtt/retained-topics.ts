import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import type { Log } from "../../model/context.ts";

/** Where one sink has left something for good, kept in a small file over restarts of the process. */
export interface LeftBehind {
  /** What changes in it is written a moment later. */
  readonly topics: Set<string>;
  /** Writes what is still to write; `forget` removes the file. Never throws. */
  close(forget: boolean): void;
}

const WRITE_AFTER_MS = 50;
const MAX_FILE_BYTES = 64 * 2 ** 20;
const fileSchema = z.object({ endpoint: z.string(), topics: z.array(z.string()) });

/**
 * `endpoint`: what was left at another one is not this one's, and forgotten. `folder` undefined: in memory only.
 * A file that cannot be read or written is told to the log, and nothing else.
 */
export function openLeftBehind(folder: string | undefined, uuid: string, endpoint: string, log: Log): LeftBehind {
  if (folder === undefined) return { topics: new Set(), close: () => undefined };
  const file = path.join(folder, `${encodeURIComponent(uuid)}.json`);
  let timer: NodeJS.Timeout | undefined;

  const write = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const next = `${file}.new`;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o750 });
      writeFileSync(next, JSON.stringify({ endpoint, topics: [...topics] }), { flush: true });
      renameSync(next, file);
    } catch (error) {
      log.warn({ err: error, file }, "the file of the retained topics cannot be written; after a restart old ones may stay on the broker");
    }
  };
  const changed = (): void => {
    timer ??= setTimeout(write, WRITE_AFTER_MS);
  };
  const topics = watchedSet(read(file, endpoint, log), changed);
  return {
    topics,
    close(forget) {
      if (timer) write();
      if (!forget) return;
      try {
        rmSync(file, { force: true });
      } catch (error) {
        log.debug({ err: error, file }, "the file of the retained topics cannot be removed");
      }
    },
  };
}

function read(file: string, endpoint: string, log: Log): readonly string[] {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (!stat) return [];
    if (stat.size > MAX_FILE_BYTES) throw new Error(`it has ${stat.size} bytes, more than ${MAX_FILE_BYTES}`);
    const found = fileSchema.parse(JSON.parse(readFileSync(file, "utf8")));
    return found.endpoint === endpoint ? found.topics : [];
  } catch (error) {
    log.warn({ err: error, file }, "the file of the retained topics cannot be read; old ones may stay on the broker");
    return [];
  }
}

function watchedSet(first: readonly string[], changed: () => void): Set<string> {
  const set = new Set(first);
  const add = set.add.bind(set);
  const remove = set.delete.bind(set);
  set.add = (topic) => {
    if (!set.has(topic)) {
      add(topic);
      changed();
    }
    return set;
  };
  set.delete = (topic) => {
    const was = remove(topic);
    if (was) changed();
    return was;
  };
  return set;
}
