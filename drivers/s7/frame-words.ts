import { isConnectRequest, messageIn } from "../lib/iso.ts";
import { bytesOf, fence, firstItem, GOOD, parseAnswer, rangesIn } from "./frames.ts";
import { describeRead } from "./plan.ts";
import { itemWords, jobRefusal } from "./refusals.ts";

/** See `Driver.frameWords`. */
export function frameWords(frame: Buffer, direction: "out" | "in"): string | undefined {
  const packets = messageIn(frame);
  const message = packets && Buffer.from(packets);
  if (direction === "out") {
    if (isConnectRequest(frame)) return "connect request (COTP)";
    if (!message || fence(frame) !== true) return undefined;
    const ranges = rangesIn(message);
    return ranges
      ? `read ${describeRead({ items: ranges.map((range) => ({ ...range, bytes: bytesOf(range) })) })}`
      : "set-up of messages and jobs";
  }
  const answer = message && parseAnswer(message);
  if (typeof answer !== "object") return undefined;
  if (answer.error !== 0) return jobRefusal(answer.error, "the job").message;
  const first = firstItem(answer);
  if (!first) return "set-up granted";
  return first.code === GOOD ? `${first.items} items read` : `${first.items} items, the first with ${itemWords(first.code)}`;
}
