import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Ledger } from "./buffer.ts";
import { Store, type StoreListener } from "./store.ts";
import { A, batch, layouts, open } from "./testing/file.ts";
import { temporaryFolder } from "./testing/folder.ts";
import { deafListener } from "./testing/listener.ts";
import { prepareUnsaved, writeUnsaved } from "./unsaved.ts";

const LOOK_MS = 5;

const poll = <T>(look: () => T) => expect.poll(look, { timeout: 10_000 });

function startStore(file: string, run: string) {
  const alarms: string[] = [];
  const state: { ledger: Ledger | undefined; lives: number } = { ledger: undefined, lives: 0 };
  const listener: StoreListener = {
    ...deafListener,
    ready(life) {
      state.lives = life;
      store.begin(life);
    },
    ledger: (ledger) => {
      state.ledger = ledger;
    },
    alarm: ({ text }) => alarms.push(text),
  };
  const options = {
    file,
    run,
    maxBytes: 2 ** 30,
    maxAgeMs: 1e9,
    commitDelayMs: 5,
    ledgerIntervalMs: LOOK_MS,
    retryMs: 20,
    unstoredAfterMs: 20,
  };
  const store = new Store(options, listener);
  store.start();
  store.setSinks([A]);
  return { store, alarms, lives: () => state.lives, rejected: () => state.ledger?.rejected };
}

it("what the last process has lost is counted also where the file cannot be opened at first, and values wait meanwhile", async () => {
  using folder = temporaryFolder();
  const file = join(folder.path, "buffer.db");
  const other = open(file);
  prepareUnsaved(file);
  expect(writeUnsaved(file, { run: "r0", waiting: 20, notStored: 7, overflow: 5 })).toBe(true);
  const { store, alarms, lives, rejected } = startStore(file, "r1");
  // Values are appended although no file is open.
  await poll(lives).toBe(1);
  expect(alarms.at(-1)).toMatch(/takes no values: /);
  for (const { key, layout } of layouts) store.addLayout(key, layout);
  store.append([batch(1)]);
  // It notes what waits with each look.
  await delay(20 * LOOK_MS);
  other.close();
  await poll(rejected).toEqual({ not_stored: 27, overflow: 5 });
  expect(alarms.filter((alarm) => alarm.includes("32 values of then are not stored"))).toHaveLength(1);
  store.stop();
  const next = startStore(file, "r2");
  await poll(next.rejected).toEqual({ not_stored: 27, overflow: 5 });
  expect(next.alarms).toEqual([]);
  next.store.stop();
});
