import { z } from "zod";
import { defineDriver, type Limits, type Point, type Request } from "../../../drivers/driver.ts";
import { FaultError } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";

/** What the far side of the tests' driver does, chosen by `details.does`; what happens there is counted in `seen`. */
export const SEEN = { connects: 0, closes: 1, aborts: 2, sameRequests: 3 } as const;
const details = z.object({
  does: z.string().default(""),
  /** Shared with the test: crosses threads by itself. */
  seen: z.custom<SharedArrayBuffer>((value) => value instanceof SharedArrayBuffer),
});
type Details = z.infer<typeof details>;

const untilAborted = (signal: AbortSignal, seen: Int32Array): Promise<never> =>
  new Promise((_, fail) => {
    const onAbort = () => {
      Atomics.add(seen, SEEN.aborts, 1);
      fail(signal.reason);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
const later = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Addresses are words for what becomes of a reading or of the whole request. */
export default defineDriver<Details, object, string, Request<string>, Limits>({
  type: "far",
  title: "driver for tests of the acquisition worker",
  details,
  settings: z.strictObject({}),
  maxConnections: 10,
  endpoint: () => ({ host: "127.0.0.1", port: 1, transport: "tcp" }),
  keepsConnection: () => true,
  parseAddress: (text, type) => ({ address: text, type: type ?? { scalar: "float64" } }),
  plan: (points) => (points.length === 0 ? [] : [{ points }]),
  async connect({ details: { does, seen: shared } }, ctx) {
    const seen = new Int32Array(shared);
    if (does === "refuses")
      throw new ReasonError(
        { type: "OPC_UA_ERROR_RESPONSE", code: 0x80560000, name: "BadTooManySessions", description: null, reason: "full" },
        "the server has too many sessions",
        { retryAfterMs: 7000, cause: new Error("outer", { cause: new Error("inner") }) },
      );
    if (does === "waits") await untilAborted(ctx.signal, seen);
    if (does === "comes late") await later(300);
    if (does === "spins") for (;;);
    if (does === "ends") process.exit(7);
    if (does === "looks up") {
      const found = (await ctx.resolve?.("press.example", ctx.signal)) ?? [];
      ctx.log.info({ found: found.map(({ address }) => address).join(" ") }, "looked up");
      ctx.connected?.("press.example", found.at(-1)?.address ?? "");
    }
    Atomics.add(seen, SEEN.connects, 1);
    let isAlive = true;
    const warnings = ["as it is"];
    if (does === "warns") setTimeout(() => warnings.push("and more"), 50);
    let last: Request<string> | undefined;
    if (does === "goes") setTimeout(() => (isAlive = false), 50);
    if (does === "throws aside") setTimeout(() => Promise.reject(new Error("thrown in a socket's handler")), 10);
    if (does === "storms") setInterval(() => Promise.reject(new Error("again and again")), 1);
    const readingOf = ({ address, index }: Point<string>): Reading => {
      switch (address) {
        case "bad":
          return { quality: "bad", fault: "not_found", detail: "BadNodeIdUnknown" };
        case "big":
          return { quality: "good", value: 2n ** 63n - 1n, type: { scalar: "int64" } };
        default:
          return { quality: "good", value: index / 2, sourceTime: 1_700_000_000_000 + index };
      }
    };
    return {
      limits: { maxPoints: 1000, maxBytes: 1e6, inFlight: 2 },
      async read(request, readCtx) {
        if (request === last) Atomics.add(seen, SEEN.sameRequests, 1);
        last = request;
        switch (request.points[0]?.address) {
          case "request refused":
            throw new FaultError("device_error", "BadTooManyOperations", { scope: "busy" });
          case "never":
            await untilAborted(readCtx.signal, seen);
            break;
          case "deaf":
            await later(60_000);
            break;
          case "end":
            process.exit(7);
            break;
          case "spin":
            for (;;);
          case "say":
            for (let i = 0; i < 1000; i++) readCtx.log.debug({ err: new Error("said"), i, helper: () => i }, "a line");
            break;
        }
        return request.points.map(readingOf);
      },
      warnings: () => warnings,
      alive: () => isAlive,
      async close() {
        isAlive = false;
        Atomics.add(seen, SEEN.closes, 1);
      },
    };
  },
});
