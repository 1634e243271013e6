import fc from "fast-check";
import { expect, test } from "vitest";
import { uuidSchema } from "./uuid.ts";

test("a UUID in either case becomes one in lower case, whatever its version", () => {
  fc.assert(
    fc.property(fc.uuid({ version: [1, 2, 3, 4, 5, 6, 7, 8] }), (uuid) => {
      expect(uuidSchema.parse(uuid.toUpperCase())).toBe(uuid);
    }),
  );
  for (const uuid of ["00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"])
    expect(uuidSchema.parse(uuid)).toBe(uuid);
});

test.each([
  "",
  "press-1",
  "0d4ae1f66c4a4f0e9b660c3c6ad1f0a1",
  "{0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1}",
  "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1\n",
])("%j is refused with an example", (text) => {
  expect(uuidSchema.safeParse(text).error?.issues[0]?.message).toMatch(/^expected a UUID such as [0-9a-f-]{36}$/);
});
