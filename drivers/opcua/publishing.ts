import { sleep } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { PublishAnswer } from "./answers.ts";
import type { Channel } from "./client.ts";
import { ServerRefusal } from "./failure.ts";
import { makeRequest } from "./services.ts";
import { codeOf, STATUS } from "./status-codes.ts";

export interface PublishingDeps {
  /** A call of the session. */
  readonly call: Channel["call"];
  alive(): boolean;
  take(answer: PublishAnswer): void;
  /** Messages were lost on the way. */
  onMissing(): void;
  /** The server has no such subscription any more, or answers in a way that is of no use; in words. */
  onLost(words: string): void;
  /** The server says nothing, in words. */
  onSilent(words: string): void;
}

/** Requests that the server holds, so that one is there while the other is answered. */
export const OUTSTANDING = 2;
const RETRY_MS = 1000;
const LAST_SEQUENCE_NUMBER = 0xffff_ffff;
/** A server that numbers its messages in another way is not held to it. */
const MAX_MISNUMBERED = 3;

interface Current {
  readonly subscriptionId: number;
  /** Without an answer within this the server is silent. */
  readonly silentMs: number;
  expected: number;
}

/**
 * Takes the messages of a session's subscription (OPC 10000-4, 5.14.5). Requests that a server holds belong to the session: those of a
 * subscription that has ended bring what the next one has to say.
 */
export class Publishing {
  readonly #deps: PublishingDeps;
  readonly #stopped = new AbortController();
  #current: Current | undefined;
  /** Requests that the server takes at once, as far as is known. */
  #outstanding = OUTSTANDING;
  #running = 0;
  #acknowledged: { subscriptionId: number; sequenceNumber: number }[] = [];
  #misnumbered = 0;

  constructor(deps: PublishingDeps) {
    this.#deps = deps;
  }

  /** From now on it takes what this subscription brings. */
  begin(subscriptionId: number, silentMs: number): void {
    this.#current = { subscriptionId, silentMs, expected: 1 };
    while (this.#running < this.#outstanding) {
      this.#running++;
      void this.#run().finally(() => this.#running--);
    }
  }

  /** The subscription is not wanted any more. */
  end(): void {
    this.#current = undefined;
    this.#acknowledged = [];
  }

  /** The session ends. */
  stop(): void {
    this.end();
    this.#stopped.abort();
  }

  async #run(): Promise<void> {
    while (this.#current && this.#deps.alive()) {
      const asked = this.#current;
      try {
        this.#take(await this.#ask(asked.silentMs));
      } catch (error) {
        // The channel is lost for everything else, and the reads say why.
        if (!this.#current || !(error instanceof FaultError)) return;
        const code = error instanceof ServerRefusal ? codeOf(error.code) : undefined;
        if (code === STATUS.BadTooManyPublishRequests && this.#running > 1) {
          this.#outstanding = Math.max(1, Math.min(this.#outstanding, this.#running - 1));
          return;
        }
        if (error.scope === "silent") return this.#deps.onSilent(error.message);
        // It was said of the subscription before this one.
        if (code === STATUS.BadNoSubscription && this.#current !== asked) continue;
        if (code !== STATUS.BadTooManyPublishRequests && error.scope !== "busy") return this.#deps.onLost(error.message);
        await sleep(RETRY_MS, this.#stopped.signal);
      }
    }
  }

  #ask(answerMs: number): Promise<PublishAnswer> {
    const request = makeRequest("Publish", {
      requestHeader: { timeoutHint: Math.ceil(answerMs) + 10_000 },
      subscriptionAcknowledgements: this.#acknowledged.splice(0),
    });
    // Not the signal of `stop`: a request that is given up costs the channel, which has to take the end of the session.
    const bound = { signal: NEVER, timeouts: { answerMs }, isAside: true };
    return this.#deps.call("Publish", request, bound);
  }

  #take(answer: PublishAnswer): void {
    const current = this.#current;
    const { subscriptionId, sequenceNumber, notifications } = answer;
    if (subscriptionId !== current?.subscriptionId) return;
    this.#number(current, sequenceNumber, notifications.length > 0);
    if (notifications.length > 0) this.#acknowledged.push({ subscriptionId, sequenceNumber });
    this.#deps.take(answer);
  }

  /** A message without notifications has the number of the next one that has some (OPC 10000-4, 5.14.1.1). */
  #number(current: Current, sequenceNumber: number, isUsed: boolean): void {
    if (sequenceNumber > current.expected && this.#misnumbered < MAX_MISNUMBERED) {
      this.#misnumbered++;
      this.#deps.onMissing();
    }
    const next = sequenceNumber === LAST_SEQUENCE_NUMBER ? 1 : sequenceNumber + 1;
    current.expected = isUsed ? next : Math.max(current.expected, sequenceNumber);
  }
}

const NEVER = new AbortController().signal;
