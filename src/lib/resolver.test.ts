import { describe, expect, it } from "vitest";
import { type Address, createResolver, type LookUp, permittedResolve } from "./resolver.ts";

const forever = new AbortController().signal;
const v4 = (address: string): Address => ({ address, family: 4 });
const at = (host: string, port = 502) => ({ host, port });
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
    expect(await Promise.all([1, 2, 3].map(() => resolver.resolve(at("plc"), forever)))).toMatchObject(
      [1, 2, 3].map(() => [v4("10.0.0.1")]),
    );
    wait(9999);
    await resolver.resolve(at("plc"), forever);
    expect(asked()).toBe(1);
    wait(1);
    await resolver.resolve(at("plc"), forever);
    expect(asked()).toBe(2);
  });

  it.each([
    ["answers nothing", () => new Promise<never>(() => {})],
    ["fails", () => Promise.reject(failure("ESERVFAIL"))],
  ])("goes on with the last good address when the name server %s, and says so once", async (_, lookUp) => {
    const { resolver, stale, wait, answers } = rig();
    await resolver.resolve(at("plc"), forever);
    answers(lookUp);
    wait(60_000);
    for (let i = 0; i < 3; i++) expect(await resolver.resolve(at("plc"), forever)).toEqual([v4("10.0.0.1")]);
    expect(stale).toEqual(["plc 10.0.0.1 60000"]);
    answers(async () => [v4("10.0.0.9")]);
  });

  it("takes a name server's word that the name does not exist", async () => {
    const { resolver, wait, answers } = rig();
    await resolver.resolve(at("plc"), forever);
    answers(() => Promise.reject(failure("ENOTFOUND")));
    wait(60_000);
    await expect(resolver.resolve(at("plc"), forever)).rejects.toMatchObject({ code: "ENOTFOUND" });
  });

  it("passes a failure on where there is no good address, and asks again the next time", async () => {
    const { resolver, answers } = rig();
    answers(() => Promise.reject(failure("ETIMEOUT")));
    await expect(resolver.resolve(at("plc"), forever)).rejects.toMatchObject({ code: "ETIMEOUT", syscall: "queryA" });
    answers(async () => [v4("10.0.0.2")]);
    expect(await resolver.resolve(at("plc"), forever)).toEqual([v4("10.0.0.2")]);
  });

  it("gives every address; the one that took the connection first, until opening a session there fails: then last", async () => {
    const { resolver, asked, answers, wait } = rig();
    const order = async () => (await resolver.resolve(at("PLC"), forever)).map(({ address }) => address.slice(-1)).join("");
    answers(async () => ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(v4));
    expect(await order()).toBe("123");
    resolver.connected(at("plc"), "10.0.0.3");
    expect(await order()).toBe("312");
    wait(60_000);
    expect(await order()).toBe("312");
    resolver.connected(at("plc"), "10.9.9.9");
    resolver.connected(at("never-asked"), "10.0.0.1");
    expect(await order()).toBe("312");
    expect(asked()).toBe(2);
    resolver.suspect(at("plc"));
    expect(await order()).toBe("123");
    expect(asked()).toBe(3);
    resolver.suspect(at("plc"));
    expect(await order()).toBe("231");
    resolver.suspect(at("plc"));
    expect(await order()).toBe("312");
    resolver.connected(at("plc"), "10.0.0.1");
    expect(await order()).toBe("132");
  });

  it("gives each of many addresses its turn, the one that failed longest ago first, and one that is well again too", async () => {
    const { resolver, answers } = rig();
    const addresses = Array.from({ length: 16 }, (_, i) => `10.0.0.${i + 1}`);
    answers(async () => addresses.map(v4));
    const tried: string[] = [];
    for (let i = 0; i < 32; i++) {
      const [first] = await resolver.resolve(at("plc"), forever);
      tried.push(first?.address ?? "");
      if (i % 2 === 0) resolver.suspect(at("plc"), first?.address);
      else resolver.unanswered(at("plc"), first?.address);
    }
    expect(tried).toEqual([...addresses, ...addresses]);
  });

  it("blames the address that was tried, whatever comes first by then, at this port alone", async () => {
    const { resolver, answers } = rig();
    const order = async (port?: number) =>
      (await resolver.resolve(at("plc", port), forever)).map(({ address }) => address.slice(-1)).join("");
    answers(async () => ["10.0.0.1", "10.0.0.2"].map(v4));
    expect(await order()).toBe("12");
    // Two readouts that began together.
    resolver.suspect(at("plc"), "10.0.0.1");
    resolver.suspect(at("plc"), "10.0.0.1");
    expect(await order()).toBe("21");
    expect(await order(102)).toBe("12");
    resolver.connected(at("plc", 102), "10.0.0.1");
    expect(await order()).toBe("21");
  });

  it("does not look a name with one address up again before its time because nothing answers there", async () => {
    const { resolver, asked } = rig();
    resolver.unanswered(at("plc"));
    await resolver.resolve(at("plc"), forever);
    resolver.connected(at("plc"), "10.0.0.1");
    resolver.unanswered(at("plc"), "10.0.0.1");
    await resolver.resolve(at("plc"), forever);
    expect(resolver.addressesInUse(at("plc"))).toEqual([v4("10.0.0.1")]);
    expect(asked()).toBe(1);
  });

  it("keeps no more of a name's addresses than a device may have", async () => {
    const { resolver, answers } = rig();
    answers(async () => Array.from({ length: 10_000 }, (_, i) => v4(`10.0.${i >> 8}.${i & 255}`)));
    expect(await resolver.resolve(at("plc"), forever)).toHaveLength(16);
  });

  it("knows one device by two names once it has looked them up", async () => {
    const { resolver, answers } = rig();
    answers(async (host) => [v4("10.0.0.1"), v4(host === "a" ? "10.0.0.2" : "10.0.0.3")]);
    expect(resolver.deviceKey(at("A."))).toBe("a");
    expect(resolver.deviceKey(at("127.1"))).toBe("127.0.0.1");
    await resolver.resolve(at("a"), forever);
    await resolver.resolve(at("b"), forever);
    expect([resolver.deviceKey(at("A")), resolver.deviceKey(at("b")), resolver.deviceKey(at("10.0.0.1"))]).toEqual(
      Array(3).fill("10.0.0.1"),
    );
    // That it takes a connection does not say that it is the device.
    resolver.connected(at("b"), "10.0.0.3");
    resolver.suspect(at("b"), "10.0.0.1");
    expect(resolver.deviceKey(at("b"))).toBe("10.0.0.1");
    resolver.answered(at("b"), "10.0.0.3");
    resolver.suspect(at("b"), "10.0.0.3");
    expect([resolver.deviceKey(at("b")), resolver.deviceKey(at("b", 102))]).toEqual(["10.0.0.3", "10.0.0.1"]);
  });

  it("is not held up by names that never answer", async () => {
    const { resolver, answers } = rig();
    answers((host) => (host === "good" ? Promise.resolve([v4("10.0.0.1")]) : new Promise(() => {})));
    for (let i = 0; i < 100; i++) void resolver.resolve(at(`dead-${i}`), forever).catch(() => {});
    expect(await resolver.resolve(at("good"), forever)).toEqual([v4("10.0.0.1")]);
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
