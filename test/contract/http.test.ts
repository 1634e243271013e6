import { expect, test } from "vitest";
import { startTestServer } from "../../src/api/server/testing.ts";
import { GENERAL_TESTS } from "./sections/general.ts";
import { OPERATION_TESTS } from "./sections/operations.ts";
import { RESOURCE_TESTS } from "./sections/resources.ts";
import type { StatementTests } from "./sections/support.ts";
import { STATEMENTS } from "./statements.ts";

/** Every statement of API-V2 against the server itself, by the section that makes it. */
const TESTS: StatementTests = { ...RESOURCE_TESTS, ...OPERATION_TESTS, ...GENERAL_TESTS };

test("each statement has a test, and each test a statement", () => {
  expect(STATEMENTS.filter((statement) => !Object.hasOwn(TESTS, statement))).toEqual([]);
  expect(Object.keys(TESTS).filter((name) => !STATEMENTS.includes(name))).toEqual([]);
  expect(new Set(STATEMENTS).size).toBe(STATEMENTS.length);
});

test.each(Object.entries(TESTS))("%s", async (_, statement) => {
  await statement(await startTestServer());
});
