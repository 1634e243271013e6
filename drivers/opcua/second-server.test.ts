import { describe, expect, it } from "vitest";
import { ReasonError } from "../../src/model/reason.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import { detailsOf } from "../../test/support/opcua.ts";
import { AWAY_MS, type Candidate, openPreferred, ReturnWatch, secondOf, secondProblem } from "./second-server.ts";
import { settingsSchema } from "./settings.ts";

const settings = settingsSchema.parse({ second_endpoint_url: "opc.tcp://b:4840/x" });
const details = detailsOf(4840, { host: "a", endpoint_url: "opc.tcp://a:4840" });
const first: Candidate = { input: { details, settings, secrets: {} }, endpoint: { host: "a", port: 4840, transport: "tcp" } };
const second = secondOf(first.input, first.endpoint);
if (!second) throw new Error("no second server");

const refused = (words = "connect ECONNREFUSED a:4840") => new ReasonError("CONNECTION_REFUSED", words);
/** Chooses between servers that have these levels, or fail so. */
async function choose(levels: Record<string, number | ReasonError | undefined>, awayUntilMs = Number.NEGATIVE_INFINITY) {
  const [opened, closed]: [string[], string[]] = [[], []];
  const away: number[] = [];
  const choice = await openPreferred({
    first,
    second: second as Candidate,
    awayUntilMs,
    async open({ endpoint: { host } }) {
      opened.push(host);
      const level = levels[host];
      if (level instanceof ReasonError) throw level;
      return { host, serviceLevel: level, close: async () => void closed.push(host) };
    },
    onAway: (untilMs) => void away.push(untilMs),
  }).catch((error: unknown) => error);
  if (choice instanceof ReasonError) return { failure: choice.message, opened, closed, away };
  const { session, why } = choice as { session: { host: string }; why: { code: string; text: string } | undefined };
  return { host: session.host, why: why && `${why.code}: ${why.text}`, opened, closed, away };
}

describe("one of two servers", () => {
  it("is the first where it is healthy, and the second is not asked", async () => {
    for (const level of [255, 200, undefined]) expect(await choose({ a: level, b: 255 })).toMatchObject({ host: "a", opened: ["a"] });
  });

  it("is the second where the first is away, which is not waited for again so soon", async () => {
    const found = await choose({ a: refused(), b: 255 });
    expect(found).toMatchObject({ host: "b", opened: ["a", "b"] });
    expect(found.why).toContain(
      "second_endpoint_in_use: values are read at opc.tcp://b:4840/x, because opc.tcp://a:4840 is away: connect ECONN",
    );
    expect(found.away?.[0]).toBeGreaterThan(performance.now() + AWAY_MS / 2);
    expect(await choose({ a: 255, b: 255 }, performance.now() + 1000)).toMatchObject({ host: "b", opened: ["b"] });
    expect(await choose({ a: 255, b: refused() }, performance.now() + 1000)).toMatchObject({ host: "a", opened: ["b", "a"] });
  });

  it.each([
    [10, 250, "b", ["a"]],
    [10, 10, "a", ["b"]],
    [10, 2, "a", ["b"]],
    [10, undefined, "b", ["a"]],
    [10, refused(), "a", []],
  ])("is the one with the higher ServiceLevel where the first says %s and the second %s", async (a, b, host, closed) => {
    expect(await choose({ a, b })).toMatchObject({ host, closed, opened: ["a", "b"] });
  });

  it("tells both failures, and leaves to a person what another server does not mend", async () => {
    expect((await choose({ a: refused("a is off"), b: refused("b is off") })).failure).toBe(
      "a is off; the second server opc.tcp://b:4840/x: b is off",
    );
    const untrusted = new ReasonError("UNKNOWN", "not trusted", { condition: "certificate_refused" });
    expect(await choose({ a: untrusted, b: 255 })).toMatchObject({ failure: "not trusted", opened: ["a"] });
    const forbidden = new ReasonError("CONNECTION_REFUSED", "closed by policy.yaml", { condition: "forbidden_by_policy" });
    expect(await choose({ a: forbidden, b: 255 })).toMatchObject({ opened: ["a"] });
  });

  it("has a URL of its own at the port of the first", () => {
    expect(second).toMatchObject({
      endpoint: { host: "b", port: 4840 },
      input: { details: { host: "b", endpoint_url: "opc.tcp://b:4840/x" } },
    });
    expect(secondProblem(details, settings)).toBeUndefined();
    expect(secondProblem(details, settingsSchema.parse({}))).toBeUndefined();
    expect(secondProblem(details, { ...settings, second_endpoint_url: "opc.tcp://b:4841" })).toContain("it must be 4840");
    expect(secondProblem(details, { ...settings, second_endpoint_url: details.endpoint_url })).toContain("name another server");
    expect(settingsSchema.safeParse({ second_endpoint_url: "http://b" }).success).toBe(false);
  });
});

it("looks now and then whether the first server is back", async () => {
  let now = 0;
  let isUp = false;
  let looks = 0;
  const watch = new ReturnWatch(
    async () => {
      looks++;
      if (!isUp) throw refused();
    },
    () => now,
  );
  const ctx = driverContext();
  watch.look(ctx);
  expect(looks).toBe(0);
  now = AWAY_MS;
  watch.look(ctx);
  watch.look(ctx);
  await new Promise(setImmediate);
  expect([looks, watch.isBack]).toEqual([1, false]);
  isUp = true;
  now += AWAY_MS;
  watch.look(ctx);
  await new Promise(setImmediate);
  expect([looks, watch.isBack]).toEqual([2, true]);
});
