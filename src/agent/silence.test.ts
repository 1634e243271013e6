import { expect, it } from "vitest";
import { ReasonError } from "../model/reason.ts";
import { explainReason } from "../model/words/catalogue.ts";
import { type Evidence, namedSilence, silenceOf } from "./silence.ts";

const EVIDENCE: Evidence = { hasConnected: true, isHeard: true, hasAnsweredOthers: false, slowestMs: 5, answerMs: 3000 };

it.each<[string, Partial<Evidence>, ReturnType<typeof silenceOf>, RegExp]>([
  ["no connection, or one that was open before", { hasConnected: false }, null, /did not answer in time/],
  ["another protocol, or a wrong unit alone on its port", { isHeard: false }, "never_answered", /takes the connection and gives no answer/],
  ["a device that was read before", {}, "answers_no_more", /does not answer any more/],
  [
    "a wrong unit beside others that answer",
    { isHeard: false, hasAnsweredOthers: true },
    "unit_silent",
    /answers other data sources, and not this one/,
  ],
  ["a device that became slower", { slowestMs: 1600 }, "answers_too_slow", /too slowly/],
])("%s has a sentence of its own", (_, change, condition, sentence) => {
  const evidence = { ...EVIDENCE, ...change };
  expect(silenceOf(evidence)).toBe(condition);
  const named = namedSilence(new ReasonError("TIMEOUT", "no answer within 3000 ms"), evidence, "press-1");
  expect(named.reason).toEqual({ type: "TIMEOUT" });
  expect(explainReason(named.reason, named.condition ?? null, { endpoint: "10.0.0.1:502" }).sentence).toMatch(sentence);
});

it("leaves every other reason, and a time-out that is named already, as it is", () => {
  for (const failure of [
    new ReasonError("CONNECTION_RESET", "reset"),
    new ReasonError("TIMEOUT", "no answer", { condition: "server_refuses" }),
  ])
    expect(namedSilence(failure, EVIDENCE, "press-1")).toBe(failure);
});

it.each([
  [3000, "Wait longer for it: `collector source set press-1 answer_timeout=6s`; or ask it for less or more seldom."],
  [50_000, undefined],
])("a slow device is given twice the %i ms, and a minute at most", (answerMs, nextStep) => {
  const evidence = { ...EVIDENCE, answerMs, slowestMs: answerMs };
  expect(namedSilence(new ReasonError("TIMEOUT", "no answer"), evidence, "press-1").nextStep).toBe(nextStep);
});
