import { describe, expect, it } from "vitest";
import { collectGarbage } from "../../test/support/collect-garbage.ts";
import { bounded, clip, MAX_WORDS } from "./bounded-failure.ts";
import { FaultError, PartialRefusal } from "./fault.ts";
import { ReasonError } from "./reason.ts";

const LONG = "\u001b[2J\u202e\n".repeat(400_000);
const CUT = LONG.slice(0, MAX_WORDS);
const cause = new Error(LONG);

describe("bounded", () => {
  it("gives a failure back as it is where its words have an end", () => {
    const words = "w".repeat(MAX_WORDS);
    const refusal = new FaultError("not_found", words);
    for (const failure of [refusal, new ReasonError("TIMEOUT", words), new PartialRefusal([], [{ places: [0], refusal }])])
      expect(bounded(failure)).toBe(failure);
  });

  it("cuts the words of a fault, and keeps what is decided by", () => {
    const cut = bounded(new FaultError("access_denied", LONG, { scope: "everything", cause }));
    expect(cut).toBeInstanceOf(FaultError);
    expect(cut).toMatchObject({ fault: "access_denied", scope: "everything", message: CUT });
    expect(cut.cause).toBeUndefined();
  });

  it("cuts the words of a reason, those of a device's own among them", () => {
    const reason = { type: "OPC_UA_ERROR_RESPONSE", code: 0x80000000, name: LONG, description: null, reason: LONG } as const;
    const options = { condition: "protocol_violation", retryAfterMs: 7, sessionLost: true, cause } as const;
    const cut = bounded(new ReasonError(reason, "short", options));
    expect(cut).toBeInstanceOf(ReasonError);
    expect(cut.reason).toEqual({ ...reason, name: CUT, reason: CUT });
    expect(cut).toMatchObject({ message: "short", condition: "protocol_violation", retryAfterMs: 7, sessionLost: true });
    expect(cut.cause).toBeUndefined();
    expect(bounded(new ReasonError("UNKNOWN", LONG))).toMatchObject({ message: CUT, condition: undefined, sessionLost: false });
  });

  it("cuts each refusal of a partial refusal once", () => {
    const [short, long] = [new FaultError("not_found", "short"), new FaultError("out_of_range", LONG)];
    const refused = new PartialRefusal(
      [{ quality: "good", value: 1 }],
      [
        { places: [1], refusal: short },
        { places: [2, 3], refusal: long },
        { places: [4], refusal: long },
      ],
    );
    const cut = bounded(refused);
    expect(cut).toBeInstanceOf(PartialRefusal);
    const { readings, items } = cut as PartialRefusal;
    expect(readings).toBe(refused.readings);
    expect(items.map(({ places }) => places)).toEqual([[1], [2, 3], [4]]);
    expect(items[0].refusal).toBe(short);
    expect(items[1]?.refusal).toMatchObject({ fault: "out_of_range", message: CUT });
    expect(items[2]?.refusal).toBe(items[1]?.refusal);
  });
});

it("keeps nothing of what is cut off", () => {
  const texts: string[] = [];
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  // Longer than what a string shares by itself, and each its own.
  for (let i = 0; i < 100; i++) texts.push(clip(`${i} ${"x".repeat(500_000)}`.toUpperCase()));
  collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
  expect(texts[99]).toBe(`99 ${"X".repeat(MAX_WORDS - 3)}`);
});
