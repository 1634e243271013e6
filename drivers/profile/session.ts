import { parseDuration } from "../../src/model/duration.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { Profile } from "../../src/model/profile.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Reading } from "../../src/model/value.ts";
import type { Discovered, DriverContext, Limits, Session } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { type ProfileAddress, parseAddress } from "./address.ts";
import { type Answer, readingOf } from "./answer.ts";
import type { Compiled, CompiledError } from "./compiled.ts";
import { ProfileLink, type Timing } from "./link.ts";
import type { ExpectedPeer } from "./listener.ts";
import { describeRequest, type ProfileRequest } from "./plan.ts";

/** Variables of one answer. */
const MAX_POINTS = 5000;

const timingOf = ({ answer_within, between_bytes, pause, stale_after }: Profile): Timing => ({
  answerMs: parseDuration(answer_within) ?? 0,
  betweenBytesMs: parseDuration(between_bytes) ?? 0,
  pauseMs: pause === undefined ? 0 : (parseDuration(pause) ?? 0),
  staleMs: parseDuration(stale_after) ?? 0,
});

/** A device that a profile describes, over an open connection. */
export class ProfileSession implements Session<ProfileAddress, ProfileRequest, Limits> {
  readonly limits: Limits;
  readonly #compiled: Compiled;
  readonly #link: ProfileLink;

  readonly #peer: ExpectedPeer | undefined;

  private constructor(compiled: Compiled, link: ProfileLink, peer: ExpectedPeer | undefined) {
    this.#compiled = compiled;
    this.#link = link;
    this.#peer = peer;
    this.limits = { maxPoints: MAX_POINTS, maxBytes: compiled.framing.maxBytes, inFlight: 1 };
  }

  /**
   * Sends what the profile sends once when connected. Takes the connection over, and the place at which a device was expected, also where it
   * throws. Throws ReasonError.
   */
  static async begin(connection: Connection, compiled: Compiled, ctx: DriverContext, peer?: ExpectedPeer): Promise<ProfileSession> {
    const link = new ProfileLink(connection, ctx.tap, compiled, timingOf(compiled.profile));
    try {
      for (const name of compiled.profile.connect) {
        const request = compiled.requests.get(name);
        const answer = request && (await link.begin(ctx, request));
        if (answer && "error" in answer)
          throw new ReasonError(
            answer.error.answer.reason ?? "UNKNOWN",
            `${describeRequest({ name, args: [] })}: ${answer.error.answer.meaning}`,
          );
      }
      return new ProfileSession(compiled, link, peer);
    } catch (error) {
      void link.close();
      peer?.release();
      throw error;
    }
  }

  async read(request: ProfileRequest, ctx: DriverContext): Promise<readonly Reading[]> {
    const { name, args, points } = request;
    const compiled = this.#compiled.requests.get(name);
    if (!compiled) throw new FaultError("address_invalid", `the profile has no request ${name}`);
    const answer: Answer = await this.#link.ask(ctx, compiled, args);
    if ("error" in answer) return errorReadings(answer.error, request);
    return points.map(({ address }) => readingOf(address.variable, answer.body, address.raw));
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

  warnings(): readonly string[] {
    return [...this.#link.warnings(), ...(this.#peer?.warnings() ?? [])];
  }

  alive(): boolean {
    return this.#link.alive();
  }

  close(): Promise<void> {
    this.#peer?.release();
    return this.#link.close();
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
