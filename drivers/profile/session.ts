import { parseDuration } from "../../src/base/duration.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Reading } from "../../src/model/value.ts";
import type { Warning } from "../../src/model/warning.ts";
import type { Discovered, DriverContext, Limits, Session } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { type ProfileAddress, parseAddress } from "./address.ts";
import { type Answer, readingOf } from "./answer.ts";
import type { Compiled, CompiledError, CompiledRequest } from "./compiled.ts";
import { Inbox, NotSent, staleMsOf } from "./inbox.ts";
import { ProfileLink } from "./link.ts";
import type { ExpectedPeer } from "./listener.ts";
import { describeRequest, type ProfileRequest } from "./plan.ts";

/** Variables of one answer. */
const MAX_POINTS = 5000;

/** If a device connects by itself: its place, and its connection; undefined: what it sent before it went is not stale. */
interface Connected {
  readonly peer: ExpectedPeer;
  readonly link: ProfileLink | undefined;
}

/** A device that a profile describes. */
export class ProfileSession implements Session<ProfileAddress, ProfileRequest, Limits> {
  readonly limits: Limits;
  readonly #compiled: Compiled;
  readonly #inbox: Inbox;
  readonly #link: ProfileLink | undefined;
  readonly #peer: ExpectedPeer | undefined;
  #isClosed = false;

  private constructor(compiled: Compiled, inbox: Inbox, link: ProfileLink | undefined, peer?: ExpectedPeer) {
    this.#compiled = compiled;
    this.#inbox = inbox;
    this.#link = link;
    this.#peer = peer;
    this.limits = { maxPoints: MAX_POINTS, maxBytes: compiled.framing.maxBytes, inFlight: 1 };
  }

  /** Sends what the profile sends once when connected. Takes the connection over, also where it throws. Throws ReasonError. */
  static async overConnection(connection: Connection, compiled: Compiled, ctx: DriverContext): Promise<ProfileSession> {
    const inbox = new Inbox(connection.where, staleMsOf(compiled));
    // That it took the connection is a sign of life: one that sends seldom is not connected to again before its messages would be stale.
    inbox.heard();
    const link = new ProfileLink(connection, ctx.tap, compiled, inbox);
    try {
      await link.begin(ctx);
      return new ProfileSession(compiled, inbox, link);
    } catch (error) {
      void link.close();
      throw error;
    }
  }

  /** Of a device that connects by itself; the same, and gives its place back where it throws. */
  static async atPeer({ peer, link }: Connected, compiled: Compiled, ctx: DriverContext): Promise<ProfileSession> {
    try {
      await link?.begin(ctx);
      return new ProfileSession(compiled, peer.inbox, link, peer);
    } catch (error) {
      void link?.close();
      peer.release(link);
      throw error;
    }
  }

  async read(request: ProfileRequest, ctx: DriverContext): Promise<readonly Reading[]> {
    const { name, args, points } = request;
    const compiled = this.#compiled.requests.get(name);
    if (!compiled) throw new FaultError("address_invalid", `the profile has no request ${name}`);
    try {
      const answer = await this.#answerTo(compiled, args, ctx);
      if ("error" in answer) return errorReadings(answer.error, request);
      return points.map(({ address }) => readingOf(address.variable, answer.body, address.raw, address.encoding));
    } catch (error) {
      if (!(error instanceof NotSent)) throw error;
      return points.map(() => ({ quality: "bad", fault: error.fault, detail: error.message }));
    }
  }

  #answerTo(request: CompiledRequest, args: readonly string[], ctx: DriverContext): Promise<NonNullable<Answer>> {
    const link = this.#link;
    if (request.send === undefined) {
      const { answer_within } = this.#compiled.profile;
      const answerMs = Math.min(ctx.timeouts.answerMs, parseDuration(answer_within) ?? 0);
      return this.#inbox.read(ctx, request.name, answerMs, link?.failure());
    }
    if (!link) throw new ReasonError("CONNECTION_CLOSED", `${describeRequest({ name: request.name, args })}: the device is not connected`);
    return link.ask(ctx, request, args);
  }

  async *discover(): AsyncGenerator<Discovered> {
    const { profile } = this.#compiled;
    for (const [name, variable] of Object.entries(profile.variables)) {
      // What takes arguments has an address for each value of them.
      if (Object.keys(profile.requests[variable.request]?.arguments ?? {}).length > 0) continue;
      const { unit, comment } = variable;
      const { type } = parseAddress(name, undefined, profile);
      yield { address: name, name, type, ...(unit !== undefined && { unit }), ...(comment !== undefined && { comment }) };
    }
  }

  warnings(): readonly Warning[] {
    return [...(this.#link?.warnings() ?? []), ...(this.#peer?.warnings() ?? [])];
  }

  alive(): boolean {
    return this.#link?.alive() ?? this.#peer?.isAway() ?? false;
  }

  /** The connection of a device that connects by itself stays at its place: cut off, it may be away for longer than its messages count. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#peer) this.#peer.release(this.#link);
    else await this.#link?.close();
  }
}

/** An error is about all that was asked for in one request: asking for less of it would bring the same. */
function errorReadings(
  { answer: { fault = "device_error", about, reason, meaning } }: CompiledError,
  request: ProfileRequest,
): readonly Reading[] {
  const detail = `${describeRequest(request)}: ${meaning}`;
  if (reason !== undefined) throw new ReasonError(reason, detail);
  if (about !== "variables") throw new FaultError(fault, detail, { scope: about });
  return request.points.map(() => ({ quality: "bad", fault, detail }));
}
