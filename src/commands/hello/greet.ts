import type { DriverContext, Endpoint } from "../../../drivers/driver.ts";
import type { Connection } from "../../../drivers/lib/connection.ts";
import { openTcp } from "../../../drivers/lib/tcp.ts";
import { Deadline } from "../../base/deadline.ts";
import { toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { fence, type Hello, lookAt, MAX_HEARD_BYTES } from "./hellos.ts";
import type { Look, Recognised } from "./recognised.ts";

/** The end of one hello. */
export interface Greeted {
  readonly found?: Recognised;
  /** See Look. */
  readonly isVague: boolean;
  /** closed: the device ended the connection without a byte; silent: it sent nothing, or nothing that is known. */
  readonly outcome: "answered" | "closed" | "silent";
}

/**
 * Says one hello over a connection of its own and looks at the answer; each answer is waited for within the context's `answerMs`. Throws
 * ReasonError where there is no connection, or the signal aborts before it.
 */
export async function greet(endpoint: Endpoint, hello: Hello, ctx: DriverContext): Promise<Greeted> {
  const connection = await openTcp(endpoint, ctx);
  try {
    return await new Greeting(connection, hello, ctx).result;
  } finally {
    await connection.close();
  }
}

/** The talk over one connection, which it does not close. */
class Greeting {
  readonly result: Promise<Greeted>;
  readonly #connection: Connection;
  readonly #hello: Hello;
  readonly #ctx: DriverContext;
  readonly #settle: (greeted: Greeted) => void;
  readonly #onAbort = (): void => this.#end("silent");
  #heard = Buffer.alloc(0);
  #look: Look;
  #sent = 0;
  #deadline: Deadline | undefined;
  #isOver = false;

  constructor(connection: Connection, hello: Hello, ctx: DriverContext) {
    const { promise, resolve } = Promise.withResolvers<Greeted>();
    this.result = promise;
    this.#settle = resolve;
    this.#connection = connection;
    this.#hello = hello;
    this.#ctx = ctx;
    this.#look = lookAt(hello, this.#heard);
    ctx.signal.addEventListener("abort", this.#onAbort, { once: true });
    connection.onLost(() => this.#end("closed"));
    connection.onBytes((chunk) => this.#received(chunk));
    if (ctx.signal.aborted) this.#onAbort();
    else this.#send();
  }

  #received(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#ctx.tap?.("in", Uint8Array.prototype.slice.call(chunk));
    this.#heard = Buffer.concat([this.#heard, chunk.subarray(0, MAX_HEARD_BYTES - this.#heard.length)]);
    this.#look = lookAt(this.#hello, this.#heard);
    if (this.#look.isDone || this.#heard.length >= MAX_HEARD_BYTES) this.#end("silent");
    else if (this.#look.requests.length > this.#sent) this.#send();
  }

  #send(): void {
    for (const request of this.#look.requests.slice(this.#sent)) {
      const allowed = fence(request);
      if (allowed !== true) {
        this.#connection.fail(new ReasonError("UNKNOWN", `not sent: ${allowed}`, { condition: "internal_error" }), "destroy");
        return;
      }
      this.#ctx.tap?.("out", Uint8Array.prototype.slice.call(request));
      this.#connection.write(request);
      this.#sent++;
    }
    this.#deadline?.cancel();
    this.#deadline = new Deadline(this.#ctx.timeouts.answerMs, () => this.#end("silent"));
  }

  #end(outcome: Greeted["outcome"]): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#deadline?.cancel();
    this.#connection.onBytes(undefined);
    this.#ctx.signal.removeEventListener("abort", this.#onAbort);
    const { found, isVague = false } = this.#look;
    const known = found && { found };
    const isMute = this.#heard.length === 0;
    this.#settle({ ...known, isVague, outcome: found ? "answered" : isMute ? outcome : "silent" });
  }
}

/** The result of several hellos at one port. */
export interface PortFound {
  readonly found?: Recognised;
  /** A connection came about. */
  readonly isOpen: boolean;
  /** Each connection was ended without a byte. */
  readonly isClosedEachTime: boolean;
  /** Why the last connection did not come about. */
  readonly failure?: ReasonError;
}

/**
 * Says these hellos one after the other, each over a connection of its own and never two at once, until one is recognised for sure, a
 * connection does not come about, or the signal aborts. `pace` is awaited before each connection. Never throws.
 */
export async function greetPort(
  endpoint: Endpoint,
  hellos: readonly Hello[],
  ctx: DriverContext,
  pace: () => Promise<unknown> = async () => undefined,
): Promise<PortFound> {
  const left = [...hellos];
  let vague: Recognised | undefined;
  let closed = 0;
  let said = 0;
  try {
    for (let hello = left.shift(); hello && !ctx.signal.aborted; hello = left.shift()) {
      await pace();
      if (ctx.signal.aborted) break;
      const { found, isVague, outcome } = await greet(endpoint, hello, ctx);
      said++;
      if (found && !isVague) return { found, isOpen: true, isClosedEachTime: false };
      if (found) {
        if (vague?.type === undefined) vague = found;
        if (found.type !== undefined) {
          // Its own hellos come next, and the last word is theirs.
          const own = left.filter(({ type }) => type === found.type);
          if (own.length === 0) break;
          left.splice(0, left.length, ...own, ...left.filter(({ type }) => type !== found.type));
        }
      }
      if (outcome === "closed") closed++;
    }
  } catch (error) {
    return { ...(vague && { found: vague }), isOpen: said > 0, isClosedEachTime: false, failure: toReasonError(error) };
  }
  return { ...(vague && { found: vague }), isOpen: said > 0, isClosedEachTime: said > 0 && closed === said };
}
