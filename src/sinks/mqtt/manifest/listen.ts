import { randomBytes } from "node:crypto";
import * as zlib from "node:zlib";
import { sleep } from "../../../base/timer.ts";
import type { Context } from "../../../model/context.ts";
import { ReasonError } from "../../../model/reason.ts";
import { withDeadline } from "../../lib/dial.ts";
import { connectMqtt } from "../connect.ts";
import { openMemory } from "../memory.ts";
import { connectOptions, type Input, planOf } from "../sink.ts";
import { topicFilters } from "../topics.ts";

/** Longest message, and longest content of a compressed one. */
const MAX_MESSAGE_BYTES = 16 * 2 ** 20;
/** Retained messages follow the subscription: so long after the last one all have come. */
const QUIET_MS = 2000;
const RETAINED_WITHIN_MS = 60_000;
const ZSTD = Buffer.from("28b52ffd", "hex");

export interface Listening {
  /** Absent: the retained manifests alone, as soon as all have come. */
  readonly forMs?: number;
  readonly take: (payload: Buffer) => void;
  /** The subscription is granted. */
  readonly begun?: () => void;
}

/**
 * Subscribes to what a sink publishes at its broker, under a client identifier of its own, and gives each payload, decompressed. Resolves
 * once the time is over. Throws ReasonError where the broker cannot be reached, does not grant it, or ends the connection before.
 */
export async function listenToSink(input: Input, { forMs, take, begun }: Listening, ctx: Context): Promise<void> {
  const { host, port } = input.details;
  const { data, manifests } = topicFilters(planOf(input));
  const memory = openMemory({ folder: undefined, uuid: input.uuid, endpoint: `${host}:${port}`, log: ctx.log });
  const clientId = `collector-verify-${randomBytes(4).toString("hex")}`;
  const connection = await connectMqtt(
    { ...connectOptions(input, memory), clientId, leastQos: 0, maxIncomingBytes: MAX_MESSAGE_BYTES },
    ctx,
  );
  const ended = new AbortController();
  try {
    let lastMs = performance.now();
    let failure: unknown;
    const lost = connection.lost.then((reason) => {
      throw reason;
    });
    lost.catch(() => {});
    const taken = (payload: Buffer): void => {
      lastMs = performance.now();
      try {
        take(decompressed(payload));
      } catch (error) {
        failure ??= error;
        ended.abort();
      }
    };
    const filters = [...manifests, ...(forMs === undefined ? [] : [data])];
    const timeoutMs = input.settings.connect_timeout;
    const refused = await withDeadline(
      connection.subscribe(filters, (_, payload) => taken(payload)),
      timeoutMs,
      ctx.signal,
      () => {
        return new ReasonError("TIMEOUT", `the broker did not answer the subscription within ${timeoutMs} ms`);
      },
    );
    if (refused.length > 0) throw new ReasonError("UNKNOWN", `the broker does not grant the subscription to ${refused.join(", ")}`);
    begun?.();
    lastMs = performance.now();
    const signal = AbortSignal.any([ctx.signal, ended.signal]);
    const endMs = performance.now() + (forMs ?? RETAINED_WITHIN_MS);
    const restMs = (): number => (forMs === undefined ? Math.min(endMs, lastMs + QUIET_MS) : endMs) - performance.now();
    while (restMs() > 0) if (!(await Promise.race([sleep(Math.ceil(restMs()), signal), lost]))) break;
    if (failure !== undefined) throw failure;
  } finally {
    ended.abort();
    await connection.close();
  }
}

/** By its first bytes; what cannot be decompressed stays as it is, and is no JSON. */
function decompressed(payload: Buffer): Buffer {
  const limit = { maxOutputLength: MAX_MESSAGE_BYTES };
  try {
    if (payload[0] === 0x1f && payload[1] === 0x8b) return zlib.gunzipSync(payload, limit);
    return payload.subarray(0, 4).equals(ZSTD) ? zlib.zstdDecompressSync(payload, limit) : payload;
  } catch {
    return payload;
  }
}
