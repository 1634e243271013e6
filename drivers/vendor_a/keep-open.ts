import type { DriverContext } from "../driver.ts";
import type { CipLink } from "./link.ts";

/** A connection without traffic is kept open with a question after this. */
const KEEP_OPEN_MS = 15_000;

/** A session whose connection in the device ends without traffic. */
export interface Kept {
  readonly link: Pick<CipLink, "answeredAt">;
  readonly ctx: DriverContext;
  alive(): boolean;
  /** A question that costs the device little. */
  ask(ctx: DriverContext): Promise<unknown>;
  /** Begins what is due between the reads; true: there was something. */
  askOther?(): boolean;
}

/** Asks until the session's connection is lost, or until the function that it gives is called. */
export function keepOpen(kept: Kept): () => void {
  const { link, ctx } = kept;
  const timer = setInterval(() => {
    if (!kept.alive()) clearInterval(timer);
    else if (kept.askOther?.() !== true && performance.now() - link.answeredAt >= KEEP_OPEN_MS) {
      const bounded: DriverContext = { ...ctx, signal: AbortSignal.timeout(ctx.timeouts.answerMs + 1000) };
      kept.ask(bounded).catch((error: unknown) => ctx.log.debug({ err: error }, "the connection could not be kept open"));
    }
  }, KEEP_OPEN_MS).unref();
  return () => clearInterval(timer);
}
