import { expect, test } from "vitest";
import { isExact } from "./kills.ts";

const ledger = { accepted: 100, delivered: 100, unconfirmed: 0, filtered: 0, pending: 0, dropped: {}, delivered_unstored: 0 };
const status = (changed: object = {}, buffer: object = {}) => ({
  sinks: [
    { uuid: "", name: "server", type: "opcua", state: "OK", ledger: null },
    { uuid: "", name: "broker", type: "mqtt", state: "OK", ledger: { ...ledger, ...changed } },
  ],
  buffer: { rejected: {}, suppressed: 0, lost: null, ...buffer },
});

test("an account is exact only where all that was accepted was delivered and has come", () => {
  expect(isExact(status(), "broker", 100)).toBe(true);
  expect(isExact(status(), "broker", 99)).toBe(false);
  expect(isExact(status(), "broker", 101)).toBe(false);
  expect(isExact(status(), "server", 100)).toBe(false);
  expect(isExact(status(), "nobody", 0)).toBe(false);
});

test.each([
  [{ accepted: 0, delivered: 0 }, {}, 0],
  [{ delivered: 99 }, {}, 100],
  [{ delivered: 99, pending: 1 }, {}, 100],
  [{ delivered: 99, dropped: { too_old: 1 } }, {}, 100],
  [{ delivered_unstored: 1 }, {}, 100],
  [{}, { rejected: { overflow: 1 } }, 100],
  [{}, { lost: { since: 1 } }, 100],
])("%o with %o is not exact", (changed, buffer, distinct) => {
  expect(isExact(status(changed, buffer), "broker", distinct)).toBe(false);
});
