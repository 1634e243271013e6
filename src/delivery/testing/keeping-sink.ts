import * as z from "zod";
import type { SinkEntry } from "../../sinks/index.ts";
import { defineSink, type SinkBatch, type WriteResult } from "../../sinks/sink.ts";

/** Sinks under the type `mqtt` that keep in memory what they are given. */
export interface KeepingSinks {
  readonly registry: Readonly<Record<string, SinkEntry>>;
  /** The times of the readouts that the sink with this uuid has, in the order in which it got them. */
  written(uuid: string): readonly number[];
}

export interface KeepingHooks {
  /** Before the kind is loaded. */
  readonly loading?: () => Promise<void>;
  /** `lose` ends this opening. */
  readonly opened?: (uuid: string, lose: (reason: Error) => void) => void;
  /** Instead of a result of its own; undefined: the sink takes all. */
  readonly writing?: (uuid: string, batch: SinkBatch) => Promise<WriteResult | undefined>;
  /** The sink has the readout of this time. */
  readonly written?: (uuid: string, time: number) => void;
}

export function keepingSinks({ loading, opened, writing, written }: KeepingHooks = {}): KeepingSinks {
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
    async open({ uuid }) {
      const lost = new Promise<Error>((lose) => opened?.(uuid, lose));
      return {
        inFlight: 4,
        warnings: [],
        async write(batch: SinkBatch) {
          const result = await writing?.(uuid, batch);
          if (result) return result;
          const mine = times.get(uuid) ?? [];
          times.set(uuid, mine);
          for (const { time } of batch.readouts) {
            mine.push(time);
            written?.(uuid, time);
          }
          return { refused: 0 };
        },
        lost,
        close: async () => {},
      };
    },
  });
  const load = async () => {
    await loading?.();
    return { default: kind };
  };
  return {
    registry: { mqtt: { delivery: "every", takesExploration: false, kind: load } },
    written: (uuid) => times.get(uuid) ?? [],
  };
}
