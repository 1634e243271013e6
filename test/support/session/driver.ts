import { z } from "zod";
import {
  type Discovered,
  type DriverContext,
  defineDriver,
  type Limits,
  type Point,
  type Prepared,
  type Request,
} from "../../../drivers/driver.ts";
import { FaultError, PartialRefusal } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";
import { warning } from "../../../src/model/warning.ts";

/** What the device of the tests' driver does, chosen by `details.does`; what happens there is counted in `seen`. */
export const SEEN = { connects: 0, closes: 1, aborts: 2, sameRequests: 3, found: 4, ends: 5 } as const;
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

/** Finds points in tens; words say what becomes of one, or of the look-up when it comes there. `found` counts what was looked up. */
async function* prepared(
  points: readonly Point<string>[],
  ctx: DriverContext,
  seen: Int32Array,
  onProgram: () => void,
): AsyncGenerator<Prepared<string>[]> {
  try {
    for (let at = 0; at < points.length; at += 10) {
      const batch = points.slice(at, at + 10);
      const words = batch.map(({ address }) => address);
      if (words.includes("prepare: never")) await untilAborted(ctx.signal, seen);
      if (words.includes("prepare: ends")) process.exit(7);
      while (words.includes("prepare: deaf")) {
        await new Promise(setImmediate);
        yield [];
      }
      if (words.includes("prepare: other program")) {
        onProgram();
        throw new FaultError("stale", "the program changed", { scope: "program" });
      }
      if (words.includes("prepare: unasked")) yield [{ point: { ...at0(batch) }, address: "unasked", type: at0(batch).type }];
      if (words.includes("prepare: unnamed")) throw new RangeError("a library's own words");
      if (words.includes("prepare: busy")) throw new FaultError("device_error", "BadServerTooBusy", { scope: "busy" });
      if (words.includes("prepare: slow")) await later(100);
      if (words.includes("prepare: cannot cross"))
        yield [{ point: at0(batch), address: (() => 1) as unknown as string, type: at0(batch).type }];
      Atomics.add(seen, SEEN.found, batch.length);
      yield batch.map((point): Prepared<string> => {
        if (point.address === "lost") return { point, refusal: new FaultError("not_found", "no such symbol"), retryAfterMs: 7000 };
        const type = point.address === "typed" ? ({ scalar: "int64" } as const) : point.type;
        return { point, address: `${point.address} found`, type };
      });
    }
  } finally {
    Atomics.add(seen, SEEN.ends, 1);
  }
}

const at0 = <T>([first]: readonly T[]): T => {
  if (first === undefined) throw new Error("there is none");
  return first;
};

/** `count` variables in a few folders; `found` counts what was looked for. */
async function* discovered(count: number, does: string, ctx: DriverContext, seen: Int32Array): AsyncGenerator<Discovered> {
  const paths = [["Plant"], ["Plant", "Line 1"]];
  try {
    for (let i = 0; i < count || does === "discovers and is deaf"; i++) {
      if (i % 100 === 0) {
        // As a device answers: not all at once.
        await new Promise(setImmediate);
        ctx.progress?.(i, count);
      }
      if (i === 1200 && does === "discovers and ends") process.exit(7);
      if (i === 1200 && does === "discovers and waits") await untilAborted(ctx.signal, seen);
      if (i === 1200 && does === "discovers and has no name for it") throw new RangeError("a library's own words");
      if (i === 1200 && does === "discovers and fails") throw new ReasonError("CONNECTION_RESET", "the device has gone");
      Atomics.add(seen, SEEN.found, 1);
      yield { address: `v${i}`, name: `variable ${i}`, type: { scalar: "float64" }, path: paths[i % 2] ?? [], unit: "°C" };
    }
    ctx.progress?.(count, count);
  } finally {
    Atomics.add(seen, SEEN.ends, 1);
  }
}

let isLoaded = false;
const load = (): Promise<void> | undefined =>
  isLoaded
    ? undefined
    : later(50).then(() => {
        isLoaded = true;
      });

/** Addresses are words for what becomes of a reading or of the whole request. */
export default defineDriver<Details, object, string, Request<string>, Limits>({
  type: "far",
  title: "driver for tests of the session worker",
  details,
  settings: z.strictObject({}),
  maxConnections: 10,
  endpoint: () => ({ host: "127.0.0.1", port: 1, transport: "tcp" }),
  keepsConnection: () => true,
  parseAddress: (text, type) => ({ address: text, type: type ?? { scalar: "float64" } }),
  plan: (points) => (points.length === 0 ? [] : [{ points }]),
  load,
  reasonOf: (error) => (error instanceof RangeError ? { type: "HOST_DOWN" } : undefined),
  async connect({ details: { does, seen: shared } }, ctx) {
    const seen = new Int32Array(shared);
    if (does === "refuses")
      throw new ReasonError(
        { type: "OPC_UA_ERROR_RESPONSE", code: 0x80560000, name: "BadTooManySessions", description: null, reason: "full" },
        "the server has too many sessions",
        { retryAfterMs: 7000, cause: new Error("outer", { cause: new Error("inner") }) },
      );
    if (does === "is loaded" && !isLoaded) throw new Error("it is not loaded");
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
    const warnings = [warning("device_limited", "as it is")];
    if (does === "warns") setTimeout(() => warnings.push(warning("device_limited", "and more")), 50);
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
    if (does === "remembers") {
      warnings.push(warning("device_limited", `opened ${Number(ctx.device?.get("opened") ?? 0)} times before`));
      ctx.device?.set("opened", Number(ctx.device.get("opened") ?? 0) + 1);
    }
    let epoch = "program 1";
    let limits: Limits = { maxPoints: 1000, maxBytes: 1e6, inFlight: 2 };
    if (does === "takes less later") setTimeout(() => (limits = { ...limits, maxPoints: 10 }), 50);
    return {
      ...(does.startsWith("prepares") && {
        prepare: (points: readonly Point<string>[], prepareCtx: DriverContext) =>
          prepared(points, prepareCtx, seen, () => {
            epoch = "program 2";
          }),
      }),
      get epoch() {
        return does.startsWith("prepares") ? epoch : undefined;
      },
      ...(does.startsWith("discovers") && {
        discover: (discoverCtx: DriverContext) => discovered(50_000, does, discoverCtx, seen),
      }),
      get limits() {
        return limits;
      },
      async read(request, readCtx) {
        if (request === last) Atomics.add(seen, SEEN.sameRequests, 1);
        last = request;
        switch (request.points[0]?.address) {
          case "request refused":
            throw new FaultError("device_error", "BadTooManyOperations", { scope: "busy" });
          case "partly refused": {
            const refusal = new FaultError("access_denied", "item refused");
            const others = [{ places: [3], refusal: new FaultError("out_of_range", "too far") }];
            throw new PartialRefusal([undefined, { quality: "good", value: 5 }], [{ places: [0, 2], refusal }, ...others]);
          }
          case "fewer at once":
            limits = { ...limits, maxPoints: 20 };
            break;
          case "limits cannot cross":
            limits = { ...limits, helper: () => 1 } as Limits;
            break;
          case "too many":
            limits = { ...limits, maxPoints: 30 };
            throw new FaultError("device_error", "too many at once", { scope: "busy" });
          case "other program":
            epoch = "program 2";
            throw new FaultError("not_found", "the program changed", { scope: "program" });
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
