import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { networkOf } from "../../lib/client-network.ts";
import { type Attempt, createLockout, type Lockout } from "./lockout.ts";

const LIMITS = { perPair: 3, perAddress: 5, windowMs: 1000, maxKeys: 100 };
const from = (address: string, user = "op") => ({ user, address });

/** Tries with a wrong password; whether it was looked at. */
function tryWrong(lockout: Lockout, attempt: Attempt, nowMs: number): boolean {
  if (!lockout.isOpen(attempt, nowMs)) return false;
  lockout.failed(attempt, nowMs);
  return true;
}

describe("createLockout", () => {
  test("gives a user and address so many chances in any window", () => {
    const lockout = createLockout(LIMITS);
    expect([0, 1, 2, 3, 4].map((ms) => tryWrong(lockout, from("10.0.0.1"), ms))).toEqual([true, true, true, false, false]);
    expect(tryWrong(lockout, from("10.0.0.2"), 5)).toBe(true);
    expect(tryWrong(lockout, from("10.0.0.1", "other"), 5)).toBe(true);
    expect(tryWrong(lockout, from("10.0.0.1"), 999)).toBe(false);
    expect(tryWrong(lockout, from("10.0.0.1"), 1000)).toBe(true);
  });

  test("trying many names is bounded by the address", () => {
    const lockout = createLockout(LIMITS);
    const tried = Array.from({ length: 20 }, (_, i) => tryWrong(lockout, from("10.0.0.1", `name ${i}`), 0));
    expect(tried.filter(Boolean)).toHaveLength(LIMITS.perAddress);
  });

  test("forgets the longest untouched, and no other", () => {
    const lockout = createLockout({ ...LIMITS, maxKeys: 4 });
    for (const address of ["10.0.0.1", "10.0.0.2", "10.0.0.3"]) for (let i = 0; i < 3; i++) lockout.failed(from(address), 0);
    expect(["10.0.0.1", "10.0.0.2", "10.0.0.3"].map((address) => lockout.isOpen(from(address), 0))).toEqual([true, false, false]);
  });

  test("never more than the limit in a window, whatever the times", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 100 }), (gaps) => {
        const lockout = createLockout(LIMITS);
        let ms = 0;
        const taken: number[] = [];
        for (const gap of gaps) {
          ms += gap;
          if (tryWrong(lockout, from("10.0.0.1"), ms)) taken.push(ms);
        }
        for (const start of taken) {
          const within = taken.filter((at) => at >= start && at < start + LIMITS.windowMs);
          expect(within.length).toBeLessThanOrEqual(LIMITS.perPair);
        }
      }),
    );
  });
});

test.each([
  ["192.168.1.7", "192.168.1.7"],
  ["::ffff:192.168.1.7", "192.168.1.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::6", "2001:db8:1:2::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
])("%s counts as %s", (address, network) => expect(networkOf(address)).toBe(network));
