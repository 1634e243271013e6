import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { sleep } from "../../src/base/timer.ts";
import { silentLog } from "../../src/model/context.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { fakeConnection } from "../../test/support/fake-connection.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "./connection.ts";
import { Exchange, type Framing } from "./exchange.ts";

function connected() {
  const fake = fakeConnection("plc:502");
  return { ...fake, receive: (...bytes: number[]) => fake.receive(Buffer.from(bytes)) };
}

/** Frames of one length byte and as many more; 0xee in a frame is wrong, 0 or above 8 is out of sync, only 'r' (0x72) reads. */
const framing = (frames: number[][], onFrame: (frame: Buffer) => void = () => {}): Framing => ({
  fence: (frame) => frame[0] === 0x72 || `function ${frame[0]}`,
  frameLength: (bytes, start) => {
    const length = bytes[start] ?? 0;
    return length === 0 || length > 8 ? `length ${length}` : 1 + length;
  },
  maxFrameBytes: 9,
  progressBytes: 1,
  onFrame(frame) {
    if (frame.includes(0xee)) return "a byte ee";
    frames.push([...frame]);
    onFrame(frame);
    return undefined;
  },
  maxInFlight: 2,
});

const context = (signal: AbortSignal = new AbortController().signal, answerMs = 60_000): DriverContext => ({
  signal,
  log: silentLog,
  timeouts: { nameMs: 1, connectMs: 1, answerMs },
});
const what = () => "register 7";

describe("fence", () => {
  it("lets a request that reads pass and refuses all else: nothing is written, the connection is destroyed", () => {
    const { connection, written, how } = connected();
    const exchange = new Exchange(connection, undefined, framing([]));
    exchange.send(Buffer.of(0x72, 1));
    expect(written).toEqual([Buffer.of(0x72, 1)]);
    expect(() => exchange.send(Buffer.of(6, 1))).toThrow(
      expect.objectContaining({ condition: "internal_error", message: expect.stringContaining("function 6") }),
    );
    expect(written).toHaveLength(1);
    expect(how).toEqual(["destroy"]);
    expect(() => exchange.send(Buffer.of(0x72))).toThrow("function 6");
  });
});

describe("frames", () => {
  it("takes frames split and joined at any place", () => {
    const stream = [2, 10, 11, 1, 12, 3, 13, 14, 15];
    for (let a = 0; a <= stream.length; a++)
      for (let b = a; b <= stream.length; b++) {
        const { connection, receive } = connected();
        const frames: number[][] = [];
        new Exchange(connection, undefined, framing(frames));
        for (const part of [stream.slice(0, a), stream.slice(a, b), stream.slice(b)]) receive(...part);
        expect(frames).toEqual([
          [2, 10, 11],
          [1, 12],
          [3, 13, 14, 15],
        ]);
      }
  });

  it("keeps nothing of the buffer that it was given", () => {
    const { connection } = connected();
    const frames: number[][] = [];
    let receive: (chunk: Buffer) => void = () => {};
    const onBytes: Connection["onBytes"] = (take) => {
      receive = take ?? receive;
    };
    new Exchange({ ...connection, onBytes }, undefined, framing(frames));
    const shared = Buffer.of(2, 10);
    receive(shared);
    shared.fill(0x99);
    receive(Buffer.of(11));
    expect(frames).toEqual([[2, 10, 11]]);
  });

  it.each([
    [[1, 5, 0], "length 0"],
    [[1, 5, 200], "length 200"],
    [[2, 5, 0xee, 1, 7], "a byte ee"],
  ])("says at once that %j is out of sync, and takes nothing after it", async (bytes, why) => {
    const { connection, how, receive } = connected();
    const frames: number[][] = [];
    const exchange = new Exchange(connection, undefined, framing(frames));
    const request = exchange.request(context(), what, () => {});
    receive(...bytes);
    receive(1, 9);
    await expect(request).rejects.toMatchObject({
      reason: { type: "UNKNOWN" },
      condition: "protocol_violation",
      message: expect.stringContaining(why),
    });
    expect(how).toEqual(["destroy"]);
    expect(frames).not.toContainEqual([1, 9]);
  });

  const withBug = () => {
    const { connection, receive } = connected();
    const exchange = new Exchange(
      connection,
      undefined,
      framing([], () => {
        throw new TypeError("a bug");
      }),
    );
    return { connection, receive, ask: () => exchange.request(context(), what, () => {}) };
  };

  it("ends the one request under way with an exception while its answer is taken, and not the connection", async () => {
    const { connection, receive, ask } = withBug();
    const request = ask();
    receive(1, 5);
    await expect(request).rejects.toThrow(new TypeError("a bug"));
    expect(connection.alive()).toBe(true);
  });

  it("turns a failure of ours while taking one of several answers into the source's, not the process'", async () => {
    const { receive, ask } = withBug();
    const requests = [ask(), ask()];
    receive(1, 5);
    for (const request of requests)
      await expect(request).rejects.toMatchObject({ condition: "internal_error", message: expect.stringContaining("a bug") });
  });

  it("hands the stream over with what it has of the next frame", () => {
    const { connection, receive } = connected();
    const frames: number[][] = [];
    const exchange = new Exchange(connection, undefined, framing(frames));
    receive(1, 5, 3, 16, 3);
    expect(exchange.release()).toEqual(Buffer.of(3, 16, 3));
    receive(1, 5);
    expect(frames).toEqual([[1, 5]]);
  });

  it("hands over from within the frame that ends its part, and takes nothing after it", () => {
    const { connection, receive } = connected();
    const frames: number[][] = [];
    let rest: Buffer | undefined;
    const exchange = new Exchange(
      connection,
      undefined,
      framing(frames, () => {
        rest = exchange.release();
      }),
    );
    receive(1, 5, 1, 6, 2);
    expect(frames).toEqual([[1, 5]]);
    expect(rest).toEqual(Buffer.of(1, 6, 2));
  });

  it("gives copies of every frame to the tap, both ways", () => {
    const { connection, receive } = connected();
    const tapped: [string, number[]][] = [];
    const exchange = new Exchange(connection, (direction, frame) => tapped.push([direction, [...frame]]), framing([]));
    exchange.send(Buffer.of(0x72, 1));
    receive(1, 5, 1);
    receive(6);
    expect(tapped).toEqual([
      ["out", [0x72, 1]],
      ["in", [1, 5]],
      ["in", [1, 6]],
    ]);
  });
});

describe("request", () => {
  it("ends with its answer or refusal, whichever is first", async () => {
    const exchange = new Exchange(connected().connection, undefined, framing([]));
    const answered = exchange.request<number>(context(), what, (answer, refuse) => {
      answer(1);
      refuse(new Error("too late"));
      answer(2);
    });
    expect(await answered).toBe(1);
    await expect(exchange.request(context(), what, (_, refuse) => refuse(new Error("no")))).rejects.toThrow("no");
    await expect(
      exchange.request(context(), what, () => {
        throw new Error("cannot start");
      }),
    ).rejects.toThrow("cannot start");
  });

  it("ends without an answer in time: TIMEOUT names the request, the connection is closed", async () => {
    const { connection, how } = connected();
    const exchange = new Exchange(connection, undefined, framing([]));
    const ctx = context(undefined, 20);
    await expect(exchange.request(ctx, what, () => {})).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: "no answer within 20 ms to register 7",
    });
    expect(how).toEqual(["close"]);
    await expect(exchange.request(context(), what, () => {})).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  });

  it("has its time again with each part of an answer that arrives, and no more than that", async () => {
    const { connection, receive } = connected();
    let settle: (value: number) => void = () => {};
    const exchange = new Exchange(
      connection,
      undefined,
      framing([], (frame) => settle(frame.length)),
    );
    const ctx = context(undefined, 300);
    const answered = exchange.request<number>(ctx, what, (answer) => {
      settle = answer;
    });
    for (const byte of [4, 1, 2, 3]) {
      receive(byte);
      await sleep(180);
    }
    receive(4);
    expect(await answered).toBe(5);
    const stalled = exchange.request(ctx, what, () => {});
    const began = performance.now();
    receive(4, 1);
    await expect(stalled).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(performance.now() - began).toBeLessThan(3 * 300);
  });

  it("has its time again where the driver says that what came is a part of the answer; other frames give it none", async () => {
    const { connection, receive } = connected();
    const frames: number[][] = [];
    const exchange = new Exchange(
      connection,
      undefined,
      framing(frames, (frame) => {
        if (frame[1] === 7) exchange.progress();
      }),
    );
    const began = performance.now();
    const request = exchange.request(context(undefined, 300), what, () => {});
    const parts = setInterval(() => receive(1, frames.length < 3 ? 7 : 8), 150);
    await expect(request).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    clearInterval(parts);
    expect(performance.now() - began).toBeGreaterThanOrEqual(450 + 290);
    expect(performance.now() - began).toBeLessThan(3 * 750);
  });

  it("gives no more time to a device that dribbles", async () => {
    const { connection, receive } = connected();
    const exchange = new Exchange(connection, undefined, { ...framing([]), progressBytes: 4, frameLength: () => 9 });
    const began = performance.now();
    const request = exchange.request(context(undefined, 500), what, () => {});
    const dribble = setInterval(() => receive(0), 220);
    await expect(request).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    clearInterval(dribble);
    expect(performance.now() - began).toBeLessThan(3 * 500);
  });

  it("is not prolonged beyond the signal by parts that never end", async () => {
    const { connection, receive } = connected();
    const exchange = new Exchange(connection, undefined, { ...framing([]), frameLength: () => 9 });
    const request = exchange.request(context(AbortSignal.timeout(300), 200), what, () => {});
    const dribble = setInterval(() => receive(0), 50);
    await expect(request).rejects.toMatchObject({ message: expect.stringContaining("deadline") });
    clearInterval(dribble);
  });

  it("ends with the connection's loss, all at once", async () => {
    const { connection } = connected();
    const exchange = new Exchange(connection, undefined, framing([]));
    const both = [exchange.request(context(), what, () => {}), exchange.request(context(), what, () => {})];
    const reset = new ReasonError("CONNECTION_RESET", "read ECONNRESET");
    connection.fail(reset, "destroy");
    for (const request of both) await expect(request).rejects.toBe(reset);
  });

  it("ends with the signal; one that aborts between requests hurts nothing", async () => {
    const { connection, how } = connected();
    const exchange = new Exchange(connection, undefined, framing([]));
    const stop = new AbortController();
    await exchange.request<number>(context(stop.signal), what, (answer) => answer(1));
    stop.abort();
    expect(how).toEqual([]);
    await expect(exchange.request(context(stop.signal), what, () => {})).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(how).toEqual([]);
    const deadline = new AbortController();
    const request = exchange.request(context(deadline.signal), what, () => {});
    deadline.abort(new Error("the deadline"));
    await expect(request).rejects.toMatchObject({ reason: { type: "TIMEOUT" }, message: expect.stringContaining("register 7") });
    expect(how).toEqual(["close"]);
  });

  it("leaves the end of the connection to a protocol that ends it in its own way, which may still send", async () => {
    const { connection, written } = connected();
    const stop = new AbortController();
    let last: Promise<void> | undefined;
    const exchange: Exchange = new Exchange(connection, undefined, {
      ...framing([]),
      close() {
        last = exchange.request<void>(context(), what, (answer) => {
          exchange.send(Buffer.of(0x72, 9));
          answer();
        });
      },
    });
    const requests = [1, 2].map(() => exchange.request(context(stop.signal), what, () => {}));
    stop.abort();
    for (const request of requests) await expect(request).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    await last;
    expect(written).toEqual([Buffer.of(0x72, 9)]);
    expect(connection.alive()).toBe(true);
  });

  it("listens once to a signal for all its requests, and to no signal it has left", async () => {
    const { connection } = connected();
    const exchange = new Exchange(connection, undefined, framing([]));
    const [first, second] = [new AbortController().signal, new AbortController().signal];
    for (let i = 0; i < 5; i++) await exchange.request<number>(context(first), what, (answer) => answer(1));
    expect(getEventListeners(first, "abort")).toHaveLength(1);
    await exchange.request<number>(context(second), what, (answer) => answer(1));
    expect(getEventListeners(first, "abort")).toHaveLength(0);
    connection.fail(new ReasonError("CONNECTION_CLOSED", "gone"), "close");
    expect(getEventListeners(second, "abort")).toHaveLength(0);
  });

  it("allows no more in flight than the framing says", async () => {
    const { connection } = connected();
    const exchange = new Exchange(connection, undefined, framing([]));
    for (let i = 0; i < 2; i++) exchange.request(context(), what, () => {}).catch(() => {});
    await expect(exchange.request(context(), what, () => {})).rejects.toMatchObject({
      condition: "internal_error",
      message: expect.stringContaining("more than 2"),
    });
    expect(connection.alive()).toBe(true);
  });
});
