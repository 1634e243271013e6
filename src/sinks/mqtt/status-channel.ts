import { HEALTHY_MS } from "../../lib/backoff.ts";
import { ReasonError } from "../../model/reason.ts";
import { isClose } from "../lib/in-flight-window.ts";
import type { Unwelcome } from "../sink.ts";
import type { Connection } from "./connect.ts";
import { isOfPublish } from "./refusal.ts";

/**
 * What is told beside the values: status, metadata and gaps. A broker may end the session over it, and the values would never come through:
 * mosquitto 2.0 with max_queued_messages 0 does after each publish that it refuses; others close on one without a word, which is all that
 * MQTT 3.1.1 knows. Then only values are published for a while.
 */
export interface Beside {
  /** Why only values are published over this connection, in words; undefined: all is. */
  readonly barred: string | undefined;
  /** With nothing when the broker has it, with its words when it refuses it. Throws ReasonError when the connection is lost. */
  publish(topic: string, payload: string, retain: boolean): Promise<string | undefined>;
  /** All that there was to tell is told. */
  told(): void;
  /** The connection's, with what it may have been lost for. */
  readonly lost: Promise<ReasonError>;
}

/** By key in `unwelcome`: what the next openings are spared, and what one close in a row was laid to. */
const BARRED = "beside";
const SUSPECTED = "beside, once";
/** The close that follows a refusal so soon is for it. */
const CLOSED_ON_REFUSAL_MS = 2000;
const VALUES_ALONE_MS = 600_000;

/** `valuesUnderWay`: publishes of values that are not acknowledged. */
export function createBeside(connection: Connection, unwelcome: Map<string, Unwelcome>, valuesUnderWay: () => number): Beside {
  const openedMs = performance.now();
  const known = unwelcome.get(BARRED);
  const barred = known && openedMs < known.untilMs ? known : undefined;
  /** Topics of what is not acknowledged. */
  const unanswered = new Set<string>();
  let refused: { readonly detail: string; readonly atMs: number } | undefined;

  const bar = (detail: string, isGuess: boolean): void => {
    unwelcome.delete(SUSPECTED);
    unwelcome.set(BARRED, { detail, isGuess, untilMs: performance.now() + VALUES_ALONE_MS });
  };

  /** Why the connection was closed, as far as it can be told. */
  const learn = (): void => {
    const nowMs = performance.now();
    const [topic] = unanswered;
    if (refused && nowMs - refused.atMs <= CLOSED_ON_REFUSAL_MS) bar(refused.detail, false);
    else if (topic !== undefined && valuesUnderWay() === 0 && isOfPublish(connection.endCode())) {
      // Once may be chance: another client under the same name, a broker that restarts.
      const detail = `publishing to ${topic}, twice in a row; this user or client_id may not have the right to it`;
      if (unwelcome.has(SUSPECTED)) bar(detail, true);
      else unwelcome.set(SUSPECTED, { detail, untilMs: 0 });
    } else if (topic === undefined && valuesUnderWay() === 0) {
      unwelcome.delete(SUSPECTED);
      // It goes on without: it was not that.
      if (barred?.isGuess && !refused && nowMs - openedMs < HEALTHY_MS) unwelcome.delete(BARRED);
    }
  };

  const named = (reason: ReasonError): ReasonError => {
    const [topic] = unanswered;
    if (topic === undefined || !isClose(reason.reason.type)) return reason;
    return new ReasonError(reason.reason, `${reason.message}, before it acknowledged a publish to ${topic}`, { cause: reason });
  };
  const lost = connection.lost.then((reason) => {
    if (isClose(reason.reason.type)) learn();
    return named(reason);
  });

  return {
    barred:
      barred &&
      `the broker ended the session after this: ${barred.detail}; connected anew within ${VALUES_ALONE_MS / 60_000} min of that, only values are published, and no status, metadata and gaps`,
    lost,
    async publish(topic, payload, retain) {
      unanswered.add(topic);
      try {
        const outcome = await connection.publish(topic, payload, retain);
        if (outcome.type === "accepted") return undefined;
        refused = { detail: outcome.detail, atMs: performance.now() };
        return outcome.detail;
      } catch (error) {
        throw error instanceof ReasonError ? named(error) : error;
      } finally {
        unanswered.delete(topic);
      }
    },
    told() {
      if (unanswered.size === 0) unwelcome.delete(SUSPECTED);
    },
  };
}
