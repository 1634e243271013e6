import { describe, expect, it } from "vitest";
import { type Address, createResolver, type LookUp, permittedResolve } from "./resolve.ts";

const forever = new AbortController().signal;
const v4 = (address: string): Address => ({ address, family: 4 });
const failure = (code: string) => Object.assign(new Error(code), { code, syscall: "queryA" });

function rig() {
  let now = 0;
  let asked = 0;
  let answer: LookUp = async () => [v4("10.0.0.1")];
  const stale: string[] = [];
  const resolver = createResolver({
    lookUp: (host, signal) => {
      asked++;
      return answer(host, signal);
    },
    now: () => now,
    onStale: (host, address, ageMs) => void stale.push(`${host} ${address} ${ageMs}`),
  });
  return {
    resolver,
    stale,
    asked: () => asked,
    wait: (ms: number) => {
      now += ms;
    },
    answers: (next: LookUp) => {
      answer = next;
    },
  };
}

describe("the resolver", () => {
  it("asks once for callers at the same time, and not again within ten seconds", async () => {
    const { resolver, asked, wait } = rig();
    expect(await Promise.all([1, 2, 3].map(() => resolver.resolve("plc", forever)))).toMatchObject([1, 2, 3].map(() => [v4("10.0.0.1")]));
    wait(9999);
    await resolver.resolve("plc", forever);
    expect(asked()).toBe(1);
    wait(1);
    await resolver.resolve("plc", forever);
    expect(asked()).toBe(2);
  });

  it.each([
    ["answers nothing", () => new Promise<never>(() => {})],
    ["fails", () => Promise.reject(failure("ESERVFAIL"))],
  ])("goes on with the last good address when the name server %s, and says so once", async (_, lookUp) => {
    const { resolver, stale, wait, answers } = rig();
    await resolver.resolve("plc", forever);
    answers(lookUp);
    wait(60_000);
    for (let i = 0; i < 3; i++) expect(await resolver.resolve("plc", forever)).toEqual([v4("10.0.0.1")]);
    expect(stale).toEqual(["plc 10.0.0.1 60000"]);
    answers(async () => [v4("10.0.0.9")]);
  });

  it("takes a name server's word that the name does not exist", async () => {
    const { resolver, wait, answers } = rig();
    await resolver.resolve("plc", forever);
    answers(() => Promise.reject(failure("ENOTFOUND")));
    wait(60_000);
    await expect(resolver.resolve("plc", forever)).rejects.toMatchObject({ code: "ENOTFOUND" });
  });

  it("passes a failure on where there is no good address, and asks again the next time", async () => {
    const { resolver, answers } = rig();
    answers(() => Promise.reject(failure("ETIMEOUT")));
    await expect(resolver.resolve("plc", forever)).rejects.toMatchObject({ code: "ETIMEOUT", syscall: "queryA" });
    answers(async () => [v4("10.0.0.2")]);
    expect(await resolver.resolve("plc", forever)).toEqual([v4("10.0.0.2")]);
  });

  it("gives every address; the one that took the connection first, until opening a session there fails: then last", async () => {
    const { resolver, asked, answers, wait } = rig();
    const order = async () => (await resolver.resolve("PLC", forever)).map(({ address }) => address.slice(-1)).join("");
    answers(async () => ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(v4));
    expect(await order()).toBe("123");
    resolver.connected("plc", "10.0.0.3");
    expect(await order()).toBe("312");
    wait(60_000);
    expect(await order()).toBe("312");
    resolver.connected("plc", "10.9.9.9");
    resolver.connected("never-asked", "10.0.0.1");
    expect(await order()).toBe("312");
    expect(asked()).toBe(2);
    resolver.suspect("plc");
    expect(await order()).toBe("123");
    expect(asked()).toBe(3);
    resolver.suspect("plc");
    expect(await order()).toBe("231");
    resolver.connected("plc", "10.0.0.1");
    expect(await order()).toBe("123");
  });

  it("keeps no more of a name's addresses than a device may have", async () => {
    const { resolver, answers } = rig();
    answers(async () => Array.from({ length: 10_000 }, (_, i) => v4(`10.0.${i >> 8}.${i & 255}`)));
    expect(await resolver.resolve("plc", forever)).toHaveLength(16);
  });

  it("knows one device by two names once it has looked them up", async () => {
    const { resolver, answers } = rig();
    answers(async (host) => [v4("10.0.0.1"), v4(host === "a" ? "10.0.0.2" : "10.0.0.3")]);
    expect(resolver.deviceKey("A.")).toBe("a");
    expect(resolver.deviceKey("127.1")).toBe("127.0.0.1");
    await resolver.resolve("a", forever);
    await resolver.resolve("b", forever);
    expect([resolver.deviceKey("A"), resolver.deviceKey("b"), resolver.deviceKey("10.0.0.1")]).toEqual(Array(3).fill("10.0.0.1"));
    resolver.connected("b", "10.0.0.3");
    expect(resolver.deviceKey("b")).toBe("10.0.0.3");
  });

  it("is not held up by names that never answer", async () => {
    const { resolver, answers } = rig();
    answers((host) => (host === "good" ? Promise.resolve([v4("10.0.0.1")]) : new Promise(() => {})));
    for (let i = 0; i < 100; i++) void resolver.resolve(`dead-${i}`, forever).catch(() => {});
    expect(await resolver.resolve("good", forever)).toEqual([v4("10.0.0.1")]);
  });
});

describe("what a driver resolves with", () => {
  const permit = (address: string) => (address.startsWith("10.") ? undefined : `${address} is closed`);
  const resolver = { resolve: async () => ["192.0.2.1", "10.0.0.1", "10.0.0.2"].map(v4) };

  it("leaves out what the policy closes, and says so where nothing is left", async () => {
    expect(await permittedResolve(resolver, permit, 502)("plc", forever)).toEqual([v4("10.0.0.1"), v4("10.0.0.2")]);
    expect(await permittedResolve(resolver, undefined, 502)("plc", forever)).toHaveLength(3);
    const closed = permittedResolve({ resolve: async () => [v4("192.0.2.1"), v4("192.0.2.2")] }, permit, 502);
    await expect(closed("plc", forever)).rejects.toMatchObject({
      condition: "forbidden_by_policy",
      message: "plc: 192.0.2.1 is closed",
    });
  });

  it.each([
    ["127.1", "127.0.0.1 is closed"],
    ["::ffff:192.0.2.1", "192.0.2.1 is closed"],
    ["[::1]", "::1 is closed"],
  ])("judges the address that %s is, without a look-up", async (host, words) => {
    await expect(permittedResolve(resolver, permit, 502)(host, forever)).rejects.toMatchObject({ message: words });
    expect(await permittedResolve(resolver, permit, 502)("10.1", forever)).toEqual([v4("10.0.0.1")]);
  });
});
