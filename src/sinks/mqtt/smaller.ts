import type { BatchPart, SinkBatch } from "../sink.ts";

/** Bytes of payload that the broker takes, as far as its refusals over one connection show. */
export interface SizeLimit {
  bytes(): number;
  /** A message with a payload of so many bytes, and more than one value, was too large. */
  tooLarge(bytes: number): void;
}

/** Messages are not made smaller than this for the refusal of another one. */
const LEAST_BYTES = 1024;
/** After so long without such a refusal messages twice as large are tried: the broker may have been given a higher limit. */
const RAISE_MS = 600_000;

/** `mostBytes`: where nothing was refused. */
export function createSizeLimit(mostBytes: number, nowMs: () => number = () => performance.now()): SizeLimit {
  let bytes = mostBytes;
  let changedMs = 0;
  return {
    bytes() {
      if (bytes < mostBytes && nowMs() - changedMs >= RAISE_MS) {
        bytes = Math.min(mostBytes, bytes * 2);
        changedMs = nowMs();
      }
      return bytes;
    },
    tooLarge(refusedBytes) {
      bytes = Math.max(LEAST_BYTES, Math.min(bytes, refusedBytes >> 1));
      changedMs = nowMs();
    },
  };
}

/** All of a batch, by its readouts. */
export function wholeOf({ readouts, layout }: SinkBatch): readonly BatchPart[] {
  const parts: BatchPart[] = [];
  for (const _ of readouts) parts.push({ readout: parts.length, from: 0, to: layout.variables.length });
  return parts;
}

/** A batch with only these parts, in messages of `maxMessageBytes` at most. The places of its readouts stay the same. Pure. */
export function partOf(batch: SinkBatch, parts: readonly BatchPart[], id: string, maxMessageBytes: number): SinkBatch {
  const readouts = {
    *[Symbol.iterator]() {
      let number = 0;
      for (const readout of batch.readouts) {
        const own = parts.filter((part) => part.readout === number);
        number++;
        const isIn = (place: number) => own.some(({ from, to }) => place >= from && place < to);
        yield { ...readout, readings: readout.readings.map((reading, place) => (isIn(place) ? reading : undefined)) };
      }
    },
  };
  return { ...batch, id, readouts, maxMessageBytes };
}

/** The values in both. Pure. */
export const partsWithin = (parts: readonly BatchPart[], outer: readonly BatchPart[]): readonly BatchPart[] =>
  parts.flatMap(({ readout, from, to }) =>
    outer.flatMap((one): BatchPart[] => {
      const both = { readout, from: Math.max(from, one.from), to: Math.min(to, one.to) };
      return one.readout === readout && both.from < both.to ? [both] : [];
    }),
  );
