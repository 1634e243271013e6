import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { ApiClient } from "../../../src/api/client.ts";
import type { Desired } from "../../../src/api/desired.ts";
import { type Ran, runCommand, settingsFile } from "../../../src/commands/testing.ts";
import { silentLog } from "../../../src/model/context.ts";
import { type DocumentPlatform, type JsonObject, KEY, sinkRecord, sourceRecord } from "../../platforms/document-platform.ts";

/** The collector as a client of the API: what it takes from a platform, and what its verbs send there. */
export interface Consumer {
  readonly platform: DocumentPlatform;
  /** A pull, on top of what was pulled before. */
  pull(): ReturnType<ApiClient["pull"]>;
  /** The configuration that is in force after a pull. */
  desired(): Promise<Desired>;
  readonly client: ApiClient;
  /** A verb with the platform's address in its settings. */
  run(...words: string[]): Promise<Ran>;
  /** A file for a verb; its path. */
  write(name: string, text: string): string;
}

export type ConsumerTest = (consumer: Consumer) => Promise<void>;
export type ConsumerTests = Readonly<Record<string, ConsumerTest>>;

export const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a02";
export const MACHINE = "00000000-0000-4000-8000-000000000001";

export function consumerOf(platform: DocumentPlatform, folder: string): Consumer {
  const client = new ApiClient({ url: platform.url, collector: COLLECTOR, readKey: () => KEY, log: silentLog });
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, `${KEY}\n`);
  const config = settingsFile(folder, { collector: COLLECTOR, api: { url: platform.url, key_file: keyFile } });
  let current: Desired | null = null;
  const pull = async () => {
    const result = await client.pull(current, new AbortController().signal);
    if (result.type === "configuration") current = result.configuration;
    return result;
  };
  return {
    platform,
    client,
    pull,
    async desired() {
      const result = await pull();
      if (result.type === "failed" || !current) throw new Error(JSON.stringify(result));
      return current;
    },
    run: (...words) => runCommand(...words, "--config", config),
    write(name, text) {
      const file = join(folder, name);
      writeFileSync(file, text);
      return file;
    },
  };
}

/** What a verb sent, which ended well. */
export async function sent(consumer: Consumer, ...words: string[]): Promise<JsonObject> {
  const before = consumer.platform.asked.length;
  const { code, err } = await consumer.run(...words);
  expect([code, err], words.join(" ")).toEqual([0, ""]);
  const body = consumer.platform.asked.slice(before).findLast(({ method, path }) => method !== "GET" && path.startsWith("/v2/"))?.body;
  return body === undefined || body === "" ? {} : (JSON.parse(body) as JsonObject);
}

export const aSource = (rest: JsonObject = {}): JsonObject => sourceRecord(COLLECTOR, "press-1", rest);
export const aSink = (rest: JsonObject = {}): JsonObject => sinkRecord(COLLECTOR, "broker", rest);
