import * as z from "zod";
import type { SinkEntry } from "../../sinks/index.ts";
import { defineSink, type SinkBatch } from "../../sinks/sink.ts";

/** Sinks under the type `mqtt` that keep in memory what they are given. */
export interface KeepingSinks {
  readonly registry: Readonly<Record<string, SinkEntry>>;
  /** The times of the readouts that the sink with this uuid has, in the order in which it got them. */
  written(uuid: string): readonly number[];
}

/** `whenWritten` may refuse or delay a batch; it is called before the batch counts as written. */
export function keepingSinks(whenWritten: (uuid: string, batch: SinkBatch) => Promise<void> | void = () => {}): KeepingSinks {
  const times = new Map<string, number[]>();
  const kind = defineSink({
    type: "mqtt",
    title: "Keeps values in memory",
    details: z.looseObject({ publish_interval: z.number() }),
    settings: z.object({}),
    delivery: "every",
    takesExploration: false,
    publishIntervalMs: ({ publish_interval }) => publish_interval,
    endpoint: () => "memory",
    open: async ({ uuid }) => ({
      inFlight: 4,
      warnings: [],
      async write(batch: SinkBatch) {
        await whenWritten(uuid, batch);
        const mine = times.get(uuid) ?? [];
        times.set(uuid, mine);
        for (const { time } of batch.readouts) mine.push(time);
        return { refused: 0 };
      },
      lost: new Promise<Error>(() => {}),
      close: async () => {},
    }),
  });
  return {
    registry: { mqtt: { delivery: "every", takesExploration: false, kind: async () => ({ default: kind }) } },
    written: (uuid) => times.get(uuid) ?? [],
  };
}
