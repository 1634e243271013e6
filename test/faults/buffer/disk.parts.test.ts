import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MessageChannel, Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import type { Ledger, StoredBatch } from "../../../src/buffer/buffer.ts";
import type { DeliveryToStore, FromStore, StoreToDelivery, StoreWorkerData, ToStore } from "../../../src/buffer/messages.ts";
import { openBuffer } from "../../../src/buffer/open.ts";
import { openReader } from "../../../src/buffer/reader.ts";
import { Store } from "../../../src/buffer/store.ts";
import { A, append, batch, taken } from "../../../src/buffer/testing/file.ts";
import { temporaryFolder } from "../../../src/buffer/testing/folder.ts";
import { deafListener } from "../../../src/buffer/testing/listener.ts";
import { plainLayout, plainReadout } from "../../../src/buffer/testing/readouts.ts";
import { errorCode } from "../../../src/model/failure.ts";
import type { Warning } from "../../../src/model/warning.ts";
import { StoreClient } from "../../../src/threads/store/host.ts";

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** True: this process may mount; where parts are required, the mount says why not. */
function canMount(): boolean {
  if (process.env["COLLECTOR_REQUIRE_PARTS"]) return true;
  using folder = temporaryFolder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder.path], { stdio: "ignore" });
    execFileSync("umount", [folder.path]);
    return true;
  } catch {
    return false;
  }
}

function mountSmall(bytes: number): string {
  const folder = temporaryFolder();
  const point = join(folder.path, "disk");
  mkdirSync(point);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", point]);
  undo.push(() => folder[Symbol.dispose]());
  undo.push(() => execFileSync("umount", ["-l", point]));
  return point;
}

/** The store in its worker, a client that appends, and a delivery that takes all and acknowledges nothing. */
function start(file: string) {
  const layout = plainLayout(200, { scalar: "float64" });
  const options: StoreWorkerData = { file, run: "r1", maxBytes: 2 ** 26, maxAgeMs: 1e12, ledgerIntervalMs: 50, unstoredAfterMs: 1000 };
  const worker = new Worker(new URL("../../../src/threads/store/worker.ts", import.meta.url), { workerData: options });
  undo.push(() => worker.terminate());
  const alarms: string[] = [];
  const stored: StoredBatch[] = [];
  const unstored: StoredBatch[] = [];
  let ledger: Ledger | undefined;
  const client = new StoreClient({
    run: "r1",
    onLedger: (told) => {
      ledger = told;
    },
    onAlarm: ({ text }) => alarms.push(text),
  });
  worker.on("message", (message: FromStore) => {
    client.onMessage(message);
    if (message.type !== "ready") return;
    const { port1, port2 } = new MessageChannel();
    port2.on("message", (said: StoreToDelivery) => {
      if (said.type !== "committed" && said.type !== "unstored") return;
      (said.type === "committed" ? stored : unstored).push(...said.batches);
      port2.postMessage({ type: "received" } satisfies DeliveryToStore);
    });
    undo.push(() => port2.close());
    worker.postMessage({ type: "delivery", port: port1, of: "every" } satisfies ToStore, [port1]);
  });
  client.attach((message) => worker.postMessage(message));
  client.setSinks([{ id: "a", takesExploration: false }]);
  let appended = 0;
  const timer = setInterval(() => {
    for (let i = 0; i < 4; i++) if (client.append(layout, { ...plainReadout(200, appended), time: Date.now() })) appended++;
  }, 10);
  undo.push(() => clearInterval(timer));
  return {
    alarms,
    stored,
    unstored,
    ledger: () => ledger,
    appended: () => appended,
    client,
    stopAppending: () => clearInterval(timer),
  };
}

const look = <T>(what: () => T) => expect.poll(what, { timeout: 20_000, interval: 50 });

async function expectNormalAgain(store: ReturnType<typeof start>, sinceMs: number): Promise<void> {
  const before = store.stored.length;
  await look(() => store.stored.length).toBeGreaterThan(before);
  const backMs = performance.now() - sinceMs;
  await look(() => store.alarms.at(-1)).toMatch(/takes values again/);
  const saidMs = performance.now() - sinceMs;
  console.log(`stored again ${Math.round(backMs)} ms after there was room, said so after ${Math.round(saidMs)} ms`);
  expect(saidMs).toBeLessThan(10_000);
  store.stopAppending();
  await look(() => store.client.unanswered().batches).toBe(0);
  await look(() => store.ledger()?.sinks[0]?.accepted).toBe(store.stored.length * 200);
  // Each readout went one way and no other; what was not stored comes by another port than the ledger, and may come after it.
  await look(() => store.stored.length + store.unstored.length).toBe(store.appended());
  expect(store.ledger()).toMatchObject({ rejected: { not_stored: store.unstored.length * 200 }, lost: null });
}

describe.skipIf(!canMount())("a real file system", () => {
  it("is full: live values go on, the rest is rejected and counted, and it is as before once there is room", async () => {
    const disk = mountSmall(16 * 2 ** 20);
    const store = start(join(disk, "buffer.db"));
    await look(() => store.stored.length).toBeGreaterThan(10);
    const ballast = join(disk, "ballast");
    const { bavail, bsize } = statfsSync(disk);
    // The store writes beside it, and may leave less room than there was.
    try {
      writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 64 * 1024)));
    } catch (error) {
      expect(errorCode(error)).toBe("ENOSPC");
    }
    await look(() => store.unstored.length).toBeGreaterThan(200);
    expect(store.alarms[0]).toMatch(/takes no values: (database or disk is full|disk I\/O error|ENOSPC)/);
    const more = store.unstored.length;
    await look(() => store.unstored.length).toBeGreaterThan(more);
    rmSync(ballast);
    await expectNormalAgain(store, performance.now());
  }, 90_000);

  it("is read-only when the store starts, and writable later", async () => {
    const disk = mountSmall(32 * 2 ** 20);
    const file = join(disk, "buffer.db");
    openBuffer(file, { maxBytes: 2 ** 26, maxAgeMs: 1e12, onAlarm: () => {} }).close();
    execFileSync("mount", ["-o", "remount,ro", disk]);
    const store = start(file);
    await look(() => store.unstored.length).toBeGreaterThan(50);
    expect(store.alarms[0]).toMatch(/takes no values: it cannot be opened for writing/);
    execFileSync("mount", ["-o", "remount,rw", disk]);
    await expectNormalAgain(store, performance.now());
  }, 90_000);
});

describe.skipIf(!canMount())("a start on a full disk", () => {
  it("is told of before: a bound above the room of the disk, at the start and where it is changed", () => {
    const disk = mountSmall(8_000_000);
    const alarms: string[] = [];
    const store = new Store(
      { file: join(disk, "buffer.db"), run: "r1", maxBytes: 2 ** 30, maxAgeMs: 1e12, looksAtDisk: true },
      { ...deafListener, ready: () => {}, alarm: ({ text }) => alarms.push(text) },
    );
    store.start();
    expect(alarms).toEqual([
      expect.stringMatching(/^buffer\.max_bytes lets the buffer take 1023 MiB more, and the disk of .* has 7 MiB free/),
    ]);
    store.setBounds({ maxBytes: 2 ** 20, maxAgeMs: 1e12 });
    expect(alarms).toHaveLength(1);
    store.setBounds({ maxBytes: 2 ** 29, maxAgeMs: 1e12 });
    expect(alarms[1]).toContain("511 MiB more");
    store.stop();
  });

  it("delivers what waits in the file, counts it, and takes new values where that made room", () => {
    const disk = mountSmall(1_600_000);
    const file = join(disk, "state", "buffer.db");
    const limits = { maxBytes: 2 ** 30, maxAgeMs: 1e12, onAlarm: ({ text }: Warning) => expect.fail(text) };
    const first = openBuffer(file, limits);
    first.setSinks([A]);
    append(first, ...Array.from({ length: 1000 }, (_, i) => batch(i + 1)));
    first.close();
    fillUp(disk);
    const buffer = openBuffer(file, limits);
    expect(buffer.ledger().sinks[0]).toMatchObject({ pending: 8000 });
    const reader = openReader(file);
    const ids = reader.read(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER).map(({ id }) => id);
    reader.close();
    expect(ids).toHaveLength(1000);
    let retries = 0;
    for (let i = 0; i < ids.length; i += 20) {
      const work = { run: "r2", layouts: [], batches: [], acknowledgements: [taken("a", ids.slice(i, i + 20), 160)] };
      try {
        buffer.commit(work);
      } catch {
        retries++;
        buffer.commit(work);
      }
    }
    expect(retries).toBeLessThan(25);
    expect(append(buffer, { ...batch(2000), seq: 2000 })).toHaveLength(1);
    expect(buffer.ledger().sinks[0]).toMatchObject({ accepted: 8008, delivered: 8000, pending: 8 });
    buffer.close();
    // And at the next start again.
    fillUp(disk);
    const again = openBuffer(file, limits);
    expect(again.ledger().sinks[0]).toMatchObject({ pending: 8 });
    again.close();
  });
});

/** Not a byte is left. */
function fillUp(disk: string): void {
  try {
    for (;;) writeFileSync(join(disk, "fill"), Buffer.alloc(4096), { flag: "a" });
  } catch {}
}
