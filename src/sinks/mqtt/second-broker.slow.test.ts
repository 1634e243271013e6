import { afterEach, describe, expect, test, vi } from "vitest";
import { ReasonError } from "../../model/reason.ts";
import { newPreference, openPreferred, type PreferenceMemory, SecondBroker } from "./second-broker.ts";
import { brokerIn } from "./settings.ts";

const refused = (what: string) => new ReasonError("CONNECTION_REFUSED", `${what} refused`);

describe("two brokers in order of preference", () => {
  /** Opens where the broker is up; the order of the tries is kept. */
  const rig = (memory: PreferenceMemory = newPreference()) => {
    const up = { first: true, second: true };
    const tries: string[] = [];
    const stop = new AbortController();
    const openAt = async (which: "first" | "second"): Promise<string> => {
      tries.push(which);
      if (!up[which]) throw refused(which);
      return which;
    };
    const open = () =>
      openPreferred({
        memory,
        second: "b:1883",
        openFirst: () => openAt("first"),
        openSecond: () => openAt("second"),
        signal: stop.signal,
      });
    return { up, tries, open, memory, stop };
  };

  test("the first is opened where it can be, and the second is not touched", async () => {
    const { open, tries } = rig();
    expect([await open(), tries]).toEqual(["first", ["first"]]);
  });

  test("the second is opened where the first cannot be, and first where the first failed just before", async () => {
    const { open, tries, up, memory } = rig();
    up.first = false;
    expect([await open(), tries, memory.failure?.why]).toEqual(["second", ["first", "second"], "first refused"]);
    expect(await open()).toBe("second");
    expect(tries.slice(2)).toEqual(["second"]);
    up.first = true;
    up.second = false;
    expect(await open()).toBe("first");
    expect(memory).toEqual(newPreference());
  });

  test("the first is tried again a minute later, and at once where it was seen", async () => {
    const { open, up, tries, memory } = rig();
    up.first = false;
    await open();
    memory.isReturning = true;
    up.first = true;
    expect([await open(), tries.at(-1)]).toEqual(["first", "first"]);
    memory.failure = { atMs: performance.now() - 61_000, why: "x" };
    expect([await open(), tries.at(-1)]).toEqual(["first", "first"]);
  });

  test("the failure names both where neither opens, with the reason of the first in either order", async () => {
    const { open, up } = rig();
    up.first = false;
    up.second = false;
    for (let n = 0; n < 2; n++)
      await expect(open()).rejects.toMatchObject({
        reason: { type: "CONNECTION_REFUSED" },
        message: "first refused; the second broker b:1883: second refused",
      });
  });

  test("a sink that stops meanwhile opens neither", async () => {
    const { open, up, stop, tries } = rig();
    up.first = false;
    stop.abort();
    await expect(open()).rejects.toThrow("first refused");
    expect(tries).toEqual(["first"]);
  });
});

describe("the second broker, in a virtual time", () => {
  const undo: (() => void)[] = [];
  afterEach(() => {
    for (const step of undo.splice(0)) step();
    vi.useRealTimers();
  });

  test("looks at the first until it can be reached, more seldom after fruitless returns, and stops with the sink", async () => {
    vi.useFakeTimers();
    const memory = newPreference();
    let isUp = false;
    const looks: number[] = [];
    const look = async () => {
      looks.push(Date.now() - beganMs);
      if (!isUp) throw refused("first");
    };
    const start = () => {
      const second = new SecondBroker({ first: "a:1883", second: "b:1883", memory, returnAfterMs: 1000, look });
      undo.push(() => second.stop());
      return second;
    };
    let beganMs = Date.now();
    const second = start();
    await vi.advanceTimersByTimeAsync(2500);
    expect(looks).toEqual([1000, 2000]);
    expect(second.warning()).toMatchObject({
      code: "second_broker_in_use",
      about: "b:1883",
      text: "values go to the second broker b:1883, because a:1883 cannot be opened: first refused; it is tried again every 1 s",
    });
    isUp = true;
    await vi.advanceTimersByTimeAsync(1000);
    expect(await second.returned).toMatchObject({ message: "the first broker a:1883 can be reached again: reconnecting to it" });
    expect(memory.isReturning).toBe(true);
    memory.fruitless = 2;
    looks.length = 0;
    beganMs = Date.now();
    start();
    await vi.advanceTimersByTimeAsync(4500);
    expect(looks).toEqual([4000]);
    looks.length = 0;
    start().stop();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(looks).toEqual([]);
  });
});

test.each([
  ["broker.example:8883", { host: "broker.example", port: 8883 }],
  ["[fd00::7]:1883", { host: "fd00::7", port: 1883 }],
  ["broker.example", undefined],
  ["broker.example:0", undefined],
  ["broker.example:70000", undefined],
  ["mqtt://broker.example:1883", undefined],
  ["user@broker.example:1883", undefined],
  ["fd00::7:1883", undefined],
])("%s names the broker %j", (text, broker) => expect(brokerIn(text)).toEqual(broker));
