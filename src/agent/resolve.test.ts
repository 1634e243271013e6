import { describe, expect, it } from "vitest";
import { type Address, createResolver, type LookUp } from "./resolve.ts";

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
    expect(await Promise.all([1, 2, 3].map(() => resolver.resolve("plc", forever)))).toMatchObject([1, 2, 3].map(() => v4("10.0.0.1")));
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
    for (let i = 0; i < 3; i++) expect(await resolver.resolve("plc", forever)).toMatchObject(v4("10.0.0.1"));
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

  it("passes a failure on where there is no good address, and asks anew the next time", async () => {
    const { resolver, answers } = rig();
    answers(() => Promise.reject(failure("ETIMEOUT")));
    await expect(resolver.resolve("plc", forever)).rejects.toMatchObject({ code: "ETIMEOUT", syscall: "queryA" });
    answers(async () => [v4("10.0.0.2")]);
    expect(await resolver.resolve("plc", forever)).toMatchObject(v4("10.0.0.2"));
  });

  it("looks anew after a failed connect, and tries another of the addresses", async () => {
    const { resolver, asked, answers } = rig();
    answers(async () => [v4("10.0.0.1"), v4("10.0.0.2")]);
    expect(await resolver.resolve("plc", forever)).toMatchObject(v4("10.0.0.1"));
    resolver.suspect("plc");
    expect(await resolver.resolve("plc", forever)).toMatchObject(v4("10.0.0.2"));
    expect(asked()).toBe(2);
  });

  it("is not held up by names that never answer", async () => {
    const { resolver, answers } = rig();
    answers((host) => (host === "good" ? Promise.resolve([v4("10.0.0.1")]) : new Promise(() => {})));
    for (let i = 0; i < 100; i++) void resolver.resolve(`dead-${i}`, forever).catch(() => {});
    expect(await resolver.resolve("good", forever)).toMatchObject(v4("10.0.0.1"));
  });
});
