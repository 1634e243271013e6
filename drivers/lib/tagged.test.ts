import { expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import type { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "./connection.ts";
import { TaggedExchange } from "./tagged.ts";

/** Frames of two bytes, a tag and a value; a value above 0x7f breaks the protocol, and one of 0x7f is thrown. */
function opened() {
  let failure: ReasonError | undefined;
  let receive: (chunk: Buffer) => void = () => {};
  const lost: ((failure: ReasonError) => void)[] = [];
  const written: number[][] = [];
  const nothing = () => {};
  const connection: Connection = {
    where: "plc:102",
    failure: () => failure,
    alive: () => failure === undefined,
    write: (bytes) => written.push([...bytes]) > 0,
    withhold: nothing,
    gather: nothing,
    drained: async () => {},
    pause: nothing,
    resume: nothing,
    onBytes: (receiver) => {
      receive = receiver ?? nothing;
    },
    onLost: (listener) => void lost.push(listener),
    fail(reason) {
      failure ??= reason;
      for (const listener of lost.splice(0)) listener(reason);
    },
    close: async () => {},
  };
  const exchange: TaggedExchange<number> = new TaggedExchange(
    connection,
    { log: silentLog },
    {
      fence: () => true,
      frameLength: () => 2,
      maxFrameBytes: 2,
      maxInFlight: 3,
      unmatchedWords: "values that answer nothing",
      onFrame: ([tag = 0, value = 0]) =>
        tag === 0 ? exchange.answered(undefined, value, () => "a tag of 0") : exchange.answered(tag, value),
    },
  );
  const stop = new AbortController();
  const ctx: DriverContext = {
    signal: stop.signal,
    log: silentLog,
    timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 60_000 },
  };
  const ask = (tag: number) =>
    exchange.ask<number>(
      ctx,
      () => `value ${tag}`,
      () => ({ tag, frame: Buffer.of(tag) }),
      (value, done) => {
        if (value > 0x7f) return `a value of ${value}`;
        if (value === 0x7f) throw new RangeError("127");
        done(value);
        return undefined;
      },
    );
  return { ask, stop, written, receive: (...bytes: number[]) => receive(Buffer.from(bytes)) };
}

it("gives each answer to the request with its tag, in any order", async () => {
  const { ask, receive, written } = opened();
  const values = Promise.all([ask(1), ask(2), ask(3)]);
  receive(3, 30, 1, 10);
  receive(2, 20);
  expect(await values).toEqual([10, 20, 30]);
  expect(written).toEqual([[1], [2], [3]]);
});

it("ignores a second answer and one with an unknown tag, and counts them for the message of a request without an answer", async () => {
  const { ask, receive, stop } = opened();
  const first = ask(1);
  receive(1, 10, 1, 11, 9, 90);
  expect(await first).toBe(10);
  const second = ask(2);
  stop.abort();
  await expect(second).rejects.toThrow(/waiting for the answer to value 2 \(values that answer nothing: 2\)$/);
});

it("ends only the request whose answer is thrown at", async () => {
  const { ask, receive } = opened();
  const [bad, good] = [ask(1), ask(2)];
  receive(1, 0x7f, 2, 20);
  await expect(bad).rejects.toThrow(RangeError);
  expect(await good).toBe(20);
});

it.each([
  ["an answer", [1, 0x80], "a value of 128"],
  ["what `otherwise` judges", [0, 1], "a tag of 0"],
] as const)("closes the connection where %s breaks the protocol", async (_what, bytes, words) => {
  const { ask, receive } = opened();
  const both = [ask(1), ask(2)];
  receive(...bytes);
  for (const one of both) await expect(one).rejects.toThrow(`plc:102 broke the protocol: ${words}`);
});
