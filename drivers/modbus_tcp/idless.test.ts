import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ReasonError } from "../../src/model/reason.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import { requestFrame } from "./frames.ts";
import { type Once, otherAnswer, Proof } from "./idless.ts";
import { settingsSchema } from "./settings.ts";

const settings = settingsSchema.parse({});
const registers = (start: number, unit = 1) => requestFrame(0, { unit, functionCode: 3, start, count: 1 });
const answers = (request: Buffer, value: number): Once<number> => ({ result: value, request, bytes: Buffer.of(value) });

describe("an answer without an id", () => {
  it("is not the request that came back, whatever its bytes would say", () => {
    const coils = requestFrame(0, { unit: 1, functionCode: 1, start: 0x0305, count: 20 });
    for (const framing of ["rtu", "tcp_without_ids"] as const)
      expect(otherAnswer(framing, coils, Buffer.from(coils), false)).toBe("the request itself came back");
  });

  it("has as many bytes as were asked for, by their width", () => {
    const answer = Buffer.from([0, 0, 0, 0, 0, 7, 1, 3, 4, 0, 0, 0, 9]);
    expect(otherAnswer("rtu", registers(0), answer, false)).toBe("the device sent 4 bytes for 1 holding registers, it must be 2");
    expect(otherAnswer("rtu", registers(0), answer, true)).toBeUndefined();
  });
});

describe("the proof of an answer", () => {
  const FULL_MS = 100;
  const proofOf = (where: string, doubles = false) => new Proof(where, "rtu", settings, driverContext({ answerMs: FULL_MS }), doubles);
  const giveUp = (sent: () => void): Promise<never> => {
    sent();
    return Promise.reject(new ReasonError("TIMEOUT", "no answer"));
  };

  it("waits as long again as it had waited, where a request was given up", async () => {
    const proof = proofOf("probed:502");
    const began = performance.now();
    const late = async (sent: () => void) => {
      await delay(40);
      return giveUp(sent);
    };
    await expect(proof.ask(driverContext({ answerMs: 40 }), registers(0), late)).rejects.toThrow("no answer");
    await proof.ask(driverContext({ answerMs: FULL_MS }), registers(1), async () => answers(registers(1), 7));
    expect(performance.now() - began).toBeGreaterThanOrEqual(75);
  });

  it("lets another unit be asked at once, and all of them where the request never left", async () => {
    const proof = proofOf("units:502");
    const began = performance.now();
    await expect(proof.ask(driverContext({ answerMs: 10 }), registers(0), giveUp)).rejects.toThrow("no answer");
    expect(await proof.ask(driverContext(), registers(0, 2), async () => answers(registers(0, 2), 7))).toBe(7);
    await expect(proof.ask(driverContext(), registers(0, 3), () => Promise.reject(new Error("lost before")))).rejects.toThrow(
      "lost before",
    );
    expect(await proof.ask(driverContext(), registers(0, 3), async () => answers(registers(0, 3), 8))).toBe(8);
    expect(performance.now() - began).toBeLessThan(FULL_MS);
  });

  it("asks again for bytes that another request had, once nothing more comes", async () => {
    const proof = proofOf("doubling:502", true);
    const times: number[] = [];
    const ask = (start: number, values: number[]) =>
      proof.ask(driverContext({ answerMs: FULL_MS }), registers(start), async () => {
        await delay(5);
        times.push(performance.now());
        return answers(registers(start), values.shift() ?? 0);
      });
    expect(await ask(0, [5])).toBe(5);
    expect(await ask(0, [5])).toBe(5);
    expect(times).toHaveLength(2);
    expect(await ask(1, [5, 6])).toBe(6);
    expect(times).toHaveLength(4);
    // The answer to the first question had its time to come, and was dropped.
    expect((times[3] ?? 0) - (times[2] ?? 0)).toBeGreaterThanOrEqual(20);
  });

  it("asks once where the transport brings nothing twice, until an answer comes unasked", async () => {
    const proof = proofOf("steady:502");
    let asked = 0;
    const ask = (start: number) =>
      proof.ask(driverContext(), registers(start), async () => {
        asked++;
        return answers(registers(start), 5);
      });
    for (let start = 0; start < 3; start++) await ask(start);
    expect([asked, proof.warnings()]).toEqual([3, []]);
    proof.unasked();
    await ask(3);
    expect(asked).toBe(5);
    expect(proof.warnings()).toMatchObject([{ code: "answers_unasked" }]);
    expect(proofOf("steady:502").warnings()).toHaveLength(1);
  });

  it("takes what comes late for late, and not for unasked", async () => {
    const proof = proofOf("late:502");
    await expect(proof.ask(driverContext({ answerMs: 10 }), registers(0), giveUp)).rejects.toThrow("no answer");
    proof.unasked();
    expect(proof.warnings()).toEqual([]);
  });
});
