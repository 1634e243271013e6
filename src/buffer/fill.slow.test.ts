import { join } from "node:path";
import { expect, it } from "vitest";
import { A, acknowledge, append, batch, layouts, open, taken } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";

const MAX_BYTES = 2 ** 20;

it.each([20, 300, 1500, 2500, 4100, 9000])("counts what readouts of %s bytes take in the file, whatever leaves it", (payloadBytes) => {
  using folder = temporaryFolder();
  using buffer = open(join(folder.path, "buffer.db"));
  buffer.setSinks([A]);
  const before = buffer.fill();
  const batches = Array.from({ length: 400 }, (_, i) => ({ ...batch(i + 1), payload: new Uint8Array(payloadBytes + (i % 5)) }));
  buffer.commit({ run: "r1", layouts, batches, acknowledgements: [] });
  const { usedBytes, addedBytes } = buffer.fill();
  const grown = usedBytes - before.usedBytes;
  // The tables beside the batches take a few pages.
  expect(Math.abs(addedBytes - grown)).toBeLessThan(0.1 * grown + 16 * 4096);
  acknowledge(
    buffer,
    taken(
      "a",
      Array.from({ length: 400 }, (_, i) => i + 1),
      3200,
    ),
  );
  buffer.maintain();
  expect(buffer.fill().usedBytes).toBeLessThan(usedBytes);
  expect(buffer.fill().addedBytes).toBe(addedBytes);
});

it("is full where it drops, not where its file has the size of the settings", () => {
  using folder = temporaryFolder();
  using buffer = open(join(folder.path, "buffer.db"), { maxBytes: MAX_BYTES });
  buffer.setSinks([A]);
  let fullest = 0;
  for (let seq = 1; (buffer.ledger().sinks[0]?.dropped.buffer_full ?? 0) === 0; seq++) {
    const { usedBytes, dropAtBytes } = buffer.fill();
    fullest = usedBytes / dropAtBytes;
    append(buffer, { ...batch(seq), payload: new Uint8Array(12_000) });
  }
  expect(fullest).toBeGreaterThan(0.95);
  expect(buffer.fill().dropAtBytes).toBeLessThan(MAX_BYTES);
});

it("knows until when the oldest readout is not too old", () => {
  using folder = temporaryFolder();
  let atMs = 0;
  using buffer = open(join(folder.path, "buffer.db"), { maxAgeMs: 500_000, monotonicMs: () => atMs, now: () => 1_800_000_000_000 + atMs });
  buffer.setSinks([A]);
  expect(buffer.fill().ageLeftMs).toBe(500_000);
  append(buffer, batch(1));
  for (; atMs < 100_000; atMs += 2000) buffer.maintain();
  append(buffer, batch(2));
  expect(buffer.fill().ageLeftMs).toBeGreaterThan(397_000);
  expect(buffer.fill().ageLeftMs).toBeLessThan(403_000);
  acknowledge(buffer, taken("a", [1, 2], 16));
  expect(buffer.fill().ageLeftMs).toBe(500_000);
});
