import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import { json, scripted } from "../../src/api/server/testing-scripted.ts";
import { variable } from "../../src/buffer/testing/readouts.ts";
import type { ApiAccess } from "../../src/model/api-access.ts";
import { type Context, silentLog } from "../../src/model/context.ts";
import type { Layout } from "../../src/model/layout.ts";
import type { ReasonError } from "../../src/model/reason.ts";
import type { Value } from "../../src/model/value.ts";
import platform from "../../src/sinks/platform/sink.ts";
import type { Sink, SinkBatch } from "../../src/sinks/sink.ts";

/** An API whose answers to values are written by the test, and a platform sink that is opened to it. */

export const KEY = "k-1234567890";
export const EXTENSION = { extension: "collector", version: 1 };
const SOURCE = "8d5a7c5e-0000-4000-8000-000000000001";
const TIME = Date.parse("2026-11-20T09:00:00.000Z");

export interface Posted {
  readonly id: string;
  readonly data_source: string;
  readonly values: readonly { readonly time: string; readonly variable: string; readonly value: unknown; readonly clock?: string }[];
}
export type Answer = (response: ServerResponse, posted: Posted, bytes: number) => void;
export const taken: Answer = (response, { values }) => json(response, { accepted: values.length, duplicate: false });

/** `probe` answers `GET /ext/v1`; `posted` is what came in, `most` how much of it was under way at once. */
export async function scriptedPlatform(answer: Answer, probe = (response: ServerResponse): void => json(response, EXTENSION)) {
  const posted: Posted[] = [];
  let underWay = 0;
  let most = 0;
  const server = await scripted((request, response, at) => {
    if (at === "/api/ext/v1") return probe(response);
    if (at !== "/api/ext/v1/values") return json(response, { detail: "no such path" }, 404);
    let text = "";
    underWay++;
    most = Math.max(most, underWay);
    response.on("close", () => underWay--);
    request.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      const body = JSON.parse(text) as Posted;
      posted.push(body);
      answer(response, body, Buffer.byteLength(text));
    });
  });
  return { ...server, posted, most: () => most };
}

/** A folder with the file of the key in it; both are gone when the test ends. */
export async function keyFolder(key = KEY): Promise<{ readonly folder: string; readonly keyFile: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), "platform-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const keyFile = path.join(folder, "key");
  await writeFile(keyFile, `${key}\n`);
  return { folder, keyFile };
}

export const untilAborted = (signal: AbortSignal): Context => ({ signal, log: silentLog });
export const anyTime = (): Context => untilAborted(new AbortController().signal);

/** A sink to the API, closed when the test ends. */
export async function openPlatform(api: Pick<ApiAccess, "url" | "keyFile"> & Partial<ApiAccess>, settings: object = {}, ctx = anyTime()) {
  const sink: Sink = await platform.open(
    {
      uuid: "7e0d3c5a-0000-4000-8000-000000000001",
      name: "platform",
      details: platform.details.parse({ type: "platform", api: { insecure: false, embedded: false, ...api } }),
      settings: platform.settings.parse(settings),
      secrets: {},
    },
    ctx,
  );
  onTestFinished(() => sink.close());
  return sink;
}

export async function failureOf(work: Promise<unknown>): Promise<ReasonError> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof Error && "reason" in thrown)) throw new Error(`expected a ReasonError and got ${String(thrown)}`);
  return thrown as ReasonError;
}

export const stringLayout = (count: number, source = SOURCE): Layout => ({
  source: { uuid: source, name: "press-1" },
  variables: Array.from({ length: count }, (_, i) => ({
    ...variable(i, { scalar: "string" }),
    uuid: `5b1c0000-0000-4000-8000-${String(i).padStart(12, "0")}`,
  })),
});

/** One readout of good values. */
export const batchOf = (id: string, values: readonly Value[], more: Partial<SinkBatch> = {}): SinkBatch => ({
  id,
  layout: stringLayout(values.length),
  readouts: [{ time: TIME, spanMs: 1, clockSynced: true, readings: values.map((value) => ({ quality: "good", value })) }],
  backlog: false,
  ...more,
});
