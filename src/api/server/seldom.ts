import type { Log } from "../../model/context.ts";

/** An error of one kind that lasts is logged again after this, ms. */
const AGAIN_MS = 600_000;
/** Kinds that are remembered. */
const MAX_KINDS = 20;

/** Logs the first error of a kind, such as SQLite's code of a full disk, and what follows within ten minutes as debug. `nowMs` is monotonic. */
export function seldom(log: Pick<Log, "error" | "debug">, nowMs: () => number = () => performance.now()) {
  const logged = new Map<string, number>();
  return (kind: string, fields: object, message: string): void => {
    const before = logged.get(kind);
    if (before !== undefined && nowMs() - before < AGAIN_MS) {
      log.debug(fields, message);
      return;
    }
    const [oldest] = logged.keys();
    if (logged.size >= MAX_KINDS && oldest !== undefined) logged.delete(oldest);
    logged.set(kind, nowMs());
    log.error(fields, message);
  };
}
