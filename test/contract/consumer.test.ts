import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type DocumentPlatform, startDocumentPlatform } from "../platforms/document-platform.ts";
import { OPERATION_TESTS } from "./consumer/operations.ts";
import { PRODUCER_ONLY } from "./consumer/producer-only.ts";
import { RESOURCE_TESTS } from "./consumer/resources.ts";
import { type ConsumerTests, consumerOf } from "./consumer/support.ts";
import { STATEMENTS } from "./statements.ts";

/** Every statement of API-V2 that binds the collector as a client, against a platform that has only the document. */
const TESTS: ConsumerTests = { ...RESOURCE_TESTS, ...OPERATION_TESTS };

let folder: string;
let platform: DocumentPlatform;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "consumer-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

test("each statement has a test, or binds the platform alone", () => {
  const shown = [...Object.keys(TESTS), ...Object.keys(PRODUCER_ONLY)];
  expect([...shown].sort()).toEqual([...STATEMENTS].sort());
});

test.each(Object.entries(TESTS))("%s", async (_, statement) => {
  platform = await startDocumentPlatform();
  const consumer = consumerOf(platform, folder);
  onTestFinished(() => {
    consumer.client.close();
    return platform.close();
  });
  await statement(consumer);
});
