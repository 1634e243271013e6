import { connectAsync } from "mqtt";
import { expect, onTestFinished, test } from "vitest";
import { startBroker } from "./broker.ts";

const MESSAGES = 50;

test("a broker that hands on first: a subscriber has each message before its publisher has the acknowledgement, once", async () => {
  const broker = await startBroker({ handsOnFirst: true });
  onTestFinished(broker.stop);
  const [publisher, subscriber] = await Promise.all([1, 2].map(() => connectAsync(`mqtt://127.0.0.1:${broker.port}`)));
  if (!publisher || !subscriber) throw new Error("not connected");
  onTestFinished(() => Promise.all([publisher.endAsync(true), subscriber.endAsync(true)]).then(() => {}));
  const seen: string[] = [];
  subscriber.on("message", (topic, payload) => seen.push(`${topic} ${payload} handed on`));
  await subscriber.subscribeAsync("#");
  for (let n = 0; n < MESSAGES; n++) {
    await publisher.publishAsync("plant/a", String(n), { qos: 1, retain: n === MESSAGES - 1 });
    seen.push(`plant/a ${n} acknowledged`);
  }
  expect(seen).toEqual(Array.from({ length: MESSAGES }, (_, n) => [`plant/a ${n} handed on`, `plant/a ${n} acknowledged`]).flat());
  expect(broker.received.map(({ topic }) => topic)).toEqual(new Array(MESSAGES).fill("plant/a"));
  expect([...broker.retained]).toEqual([["plant/a", String(MESSAGES - 1)]]);
});
