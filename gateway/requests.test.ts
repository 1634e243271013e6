import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError, REQUEST_ERRORS } from "./errors.ts";
import { idOf, objectOf, requestOf } from "./requests.ts";

const GOOD = [
  { id: 1, request: "hello", versions: [1], client: "c", max_line_bytes: 65_536 },
  { id: 2, request: "servers", within_ms: 100 },
  { id: 3, request: "open", target: { protocol: "PVI", path: "p" } },
  { id: 4, request: "browse", path: [], max: 5, after: "x" },
  { id: 5, request: "resolve", items: ["a"] },
  { id: 6, request: "read", epoch: "1", items: ["a"] },
] as const;

/** What it refuses with; undefined: it takes the line. Anything but GatewayError is passed on. */
function refusalOf(line: Uint8Array): string | undefined {
  try {
    const fields = objectOf(line);
    idOf(fields);
    requestOf(fields, 10);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error.code;
    throw error;
  }
}

describe("requests", () => {
  it.each(GOOD)("takes %j", (line) => expect(refusalOf(Buffer.from(JSON.stringify(line)))).toBeUndefined());

  it("takes or refuses whatever comes, with a code, and never fails otherwise", () => {
    const changed = fc
      .tuple(fc.constantFrom(...GOOD), fc.string(), fc.jsonValue())
      .chain(([line, name, value]) =>
        fc.constantFrom(...Object.keys(line), name).map((key) => Buffer.from(JSON.stringify({ ...line, [key]: value }))),
      );
    const anything = fc.oneof(
      changed,
      fc.uint8Array({ maxLength: 200 }),
      fc.json().map((text) => Buffer.from(text)),
    );
    fc.assert(
      fc.property(anything, (line) => {
        const refusal = refusalOf(line);
        if (refusal !== undefined) expect(REQUEST_ERRORS).toContain(refusal);
      }),
      { numRuns: 3000 },
    );
  });

  it("waits no longer than ten minutes, whatever a client says", () => {
    const within = (within_ms?: number) => requestOf({ id: 1, request: "servers", within_ms }, 10).withinMs;
    expect([within(), within(50), within(1e12)]).toEqual([600_000, 50, 600_000]);
  });

  it.each([0, 0.5, -1, "1", null])("refuses a request that waits %j ms, and names the field", (within_ms) => {
    expect(() => requestOf({ id: 1, request: "servers", within_ms }, 10)).toThrow(/within_ms/);
  });
});
