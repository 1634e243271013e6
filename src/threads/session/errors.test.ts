import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toFailure } from "../../model/failure.ts";
import { FaultError, PartialRefusal } from "../../model/fault.ts";
import { ReasonError } from "../../model/reason.ts";
import type { Reading } from "../../model/value.ts";
import { packError, unpackError } from "./errors.ts";

const cross = (error: unknown): Error => unpackError(structuredClone(packError(error)));

describe("packError", () => {
  it("keeps reason, condition, message and the words of the causes", () => {
    const reason = { type: "OPC_UA_ERROR_RESPONSE", code: 0x80560000, name: "BadTooManySessions", description: "d", reason: null } as const;
    const back = cross(
      new ReasonError(reason, "full", { condition: "internal_error", retryAfterMs: 7, cause: new Error("a", { cause: "b" }) }),
    );
    expect(back).toBeInstanceOf(ReasonError);
    expect(back).toMatchObject({
      reason,
      condition: "internal_error",
      retryAfterMs: 7,
      message: "full",
      cause: { message: "a", cause: { message: "b" } },
    });
    expect(cross(new ReasonError("TIMEOUT", "late"))).toMatchObject({ reason: { type: "TIMEOUT" }, condition: undefined });
    for (const sessionLost of [true, false])
      expect(cross(new ReasonError(reason, "ended", { sessionLost }))).toMatchObject({ sessionLost });
    expect(cross(new ReasonError("CONNECTION_RESET", "reset"))).toMatchObject({ sessionLost: true });
  });

  it("keeps fault and scope", () => {
    const back = cross(new FaultError("access_denied", "BadUserAccessDenied", { scope: "busy" }));
    expect(back).toBeInstanceOf(FaultError);
    expect(back).toMatchObject({ fault: "access_denied", scope: "busy", message: "BadUserAccessDenied" });
  });

  it("keeps a partial refusal, whatever of it was answered and refused", () => {
    const refusals = [new FaultError("access_denied", "no rights", { cause: new Error("why") }), new FaultError("out_of_range", "too far")];
    const reading = fc.constantFrom<Reading | undefined>(
      undefined,
      { quality: "good", value: 1n },
      { quality: "bad", fault: "stale", detail: "old" },
    );
    const item = fc.record({ places: fc.array(fc.nat(9), { minLength: 1 }), refusal: fc.constantFrom(...refusals) });
    fc.assert(
      fc.property(fc.array(reading), item, fc.array(item), (readings, first, others) => {
        const back = cross(new PartialRefusal(readings, [first, ...others]));
        expect(back).toBeInstanceOf(PartialRefusal);
        const { readings: got, items, message, fault, scope } = back as PartialRefusal;
        expect(Array.from({ length: readings.length }, (_, i) => got[i])).toEqual(readings);
        expect(items).toEqual([first, ...others]);
        expect({ message, fault, scope }).toEqual({ message: first.refusal.message, fault: first.refusal.fault, scope: "points" });
      }),
    );
  });

  it("keeps what a system error is judged by", () => {
    const look = Object.assign(new Error("queryA ENOTFOUND press"), { code: "ENOTFOUND", syscall: "queryA" });
    expect(toFailure(cross(look))).toMatchObject({ reason: { type: "LOOKUP_ERROR" } });
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect", errno: -111 });
    expect(toFailure(cross(refused))).toMatchObject({ reason: { type: "CONNECTION_REFUSED" } });
  });

  it("takes whatever is thrown, also what throws when it is looked at or never ends", () => {
    const ring = new Error("ring");
    ring.cause = ring;
    const evil = Object.defineProperty(new Error("evil"), "cause", {
      get() {
        throw new Error("looked at");
      },
    });
    for (const thrown of [ring, evil, null, undefined, () => 1, Object.create(null)]) expect(cross(thrown)).toBeInstanceOf(Error);
    expect(packError(ring).causes).toHaveLength(8);
    fc.assert(fc.property(fc.anything(), (thrown) => typeof cross(thrown).message === "string"));
  });

  it("bounds the words of a device", () => {
    expect(packError(new ReasonError("UNKNOWN", "x".repeat(1e6))).message).toHaveLength(8192);
  });
});
