import { expect, it } from "vitest";
import type { PublishAnswer } from "./answers.ts";
import type { Channel } from "./client.ts";
import { requestFailure } from "./failure.ts";
import { Publishing } from "./publishing.ts";
import { STATUS } from "./status-codes.ts";
import { statusOf } from "./statuses.ts";

/** A server that holds at most `most` requests for a message and refuses the others. */
function setUp(most: number) {
  const held: ((answer: PublishAnswer) => void)[] = [];
  let asked = 0;
  const lost: string[] = [];
  const taken: number[] = [];
  const call = ((service: "Publish") => {
    asked++;
    if (held.length >= most) return Promise.reject(requestFailure(statusOf(STATUS.BadTooManyPublishRequests, null), service, true));
    return new Promise<PublishAnswer>((done) => void held.push(done));
  }) as unknown as Channel["call"];
  const publishing = new Publishing({
    call,
    alive: () => true,
    take: ({ sequenceNumber }) => void taken.push(sequenceNumber),
    onMissing: () => {},
    onLost: (words) => void lost.push(words),
    onSilent: (words) => void lost.push(words),
  });
  const answer = (sequenceNumber: number) => held.shift()?.({ subscriptionId: 1, sequenceNumber, notifications: [] });
  return { publishing, held, lost, taken, answer, asked: () => asked };
}
const settle = () => new Promise((done) => setImmediate(done));

it("has one request fewer with a server that refuses the second, and never none", async () => {
  const { publishing, held, lost, taken, answer, asked } = setUp(1);
  publishing.begin(1, 10_000);
  await settle();
  expect([held.length, asked()]).toEqual([1, 2]);
  for (const sequenceNumber of [1, 2, 3]) {
    answer(sequenceNumber);
    await settle();
    expect(held).toHaveLength(1);
  }
  // The next subscription begins with as many as the server takes.
  publishing.end();
  publishing.begin(1, 10_000);
  await settle();
  expect([asked(), taken, lost]).toEqual([5, [1, 2, 3], []]);
  publishing.stop();
});

it("keeps a subscription whose only request is refused, and asks again after a pause", async () => {
  const { publishing, held, lost, asked } = setUp(0);
  publishing.begin(1, 10_000);
  await settle();
  expect([held.length, asked(), lost]).toEqual([0, 2, []]);
  publishing.stop();
  await settle();
  expect(asked()).toBe(2);
});
