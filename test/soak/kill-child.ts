import { appendFileSync } from "node:fs";
import { MessageChannel, Worker } from "node:worker_threads";
import type { StoredBatch } from "../../src/buffer/buffer.ts";
import { decodeReadout } from "../../src/buffer/codec.ts";
import { openReader } from "../../src/buffer/reader.ts";
import { plainLayout, plainReadout } from "../../src/buffer/testing/readouts.ts";
import { StoreClient } from "../../src/threads/store/host.ts";
import type { DeliveryToStore, FromStore, StoreToDelivery, StoreWorkerData, ToStore } from "../../src/threads/store/messages.ts";

/**
 * One life of what is killed: readouts of one number go through the client and the store, and a delivery takes them live and from the file.
 * What was seen is told in the events file: `c <number>` up to this is committed, `d <number> <live|backlog>` delivered,
 * `l <accepted> <delivered> <pending>` a ledger, `r` ready, `e` everything is delivered (only where nothing is appended).
 * Arguments: file, events file, first number, name of the run, values per readout, window (readouts), append or drain.
 */
const [file = "", events = "", first = "1", run = "", values = "1", window = "1", task = "append"] = process.argv.slice(2);
const base = Number(first) - 1;
const count = Number(values);
const layout = plainLayout(count, { scalar: "uint32" });
const tell = (text: string): void => appendFileSync(events, `${text}\n`);

let delivered = 0;
let confirmed = 0;
const live: StoredBatch[] = [];
/** What is pending in the file, not read yet. */
let older: readonly { readonly from: number; readonly to: number }[] = [];
let backlog: StoredBatch[] = [];
const reader = { current: undefined as ReturnType<typeof openReader> | undefined };
const options: StoreWorkerData = { file, run, maxBytes: 2 ** 30, maxAgeMs: 1e12, commitDelayMs: 5, ledgerIntervalMs: 10 };
const store = new Worker(new URL("../../src/threads/store/worker.ts", import.meta.url), { workerData: options });
const post = (message: ToStore): void => store.postMessage(message);
const client = new StoreClient({
  run,
  postDelayMs: 1,
  onCommitted: (upTo) => tell(`c ${base + upTo}`),
  onLedger({ sinks }) {
    const [ledger] = sinks;
    if (!ledger) return;
    confirmed = ledger.delivered;
    startedAt ??= confirmed;
    tell(`l ${ledger.accepted} ${ledger.delivered} ${ledger.pending}`);
    if (task === "drain" && ledger.pending === 0) {
      tell("e");
      post({ type: "stop" });
    }
    pump();
  },
  onAlarm: (message) => tell(`! ${message}`),
});

const { port1, port2 } = new MessageChannel();
let startedAt: number | undefined;
port2.on("message", (message: StoreToDelivery) => {
  if (message.type === "committed") {
    port2.postMessage({ type: "received" } satisfies DeliveryToStore);
    live.push(...message.batches);
    pump();
  } else if (message.type === "sinks") attach();
});

/** What is pending in the file, once; what is committed from then on comes by itself. */
function attach(): void {
  if (reader.current) return;
  reader.current = openReader(file);
  const position = reader.current.position("sink");
  const nextId = reader.current.nextId();
  if (!position) return;
  older = [...position.older, { from: position.live, to: nextId }];
  pump();
}

/** The next of the older ones, read in short steps. */
function nextOlder(): StoredBatch | undefined {
  for (let [range, ...rest] = older; backlog.length === 0 && range; [range, ...rest] = older) {
    backlog = [...(reader.current?.read(range.from, range.to, 2 ** 16) ?? [])];
    const from = (backlog.at(-1)?.id ?? range.to) + 1;
    older = from < range.to ? [{ from, to: range.to }, ...rest] : rest;
  }
  return backlog.shift();
}

function pump(): void {
  const ids: number[] = [];
  if (startedAt === undefined) return;
  // Delivered and not known to be acknowledged in the file: what may come twice after a kill.
  while (delivered - (confirmed - startedAt) < Number(window) * count) {
    const old = live.length > 0 && Math.random() < 0.2 ? undefined : nextOlder();
    const batch = old ?? live.shift();
    if (!batch) break;
    const [reading] = decodeReadout(layout, batch.payload).readings;
    tell(`d ${reading?.quality === "good" ? reading.value : "?"} ${old ? "backlog" : "live"}`);
    ids.push(batch.id);
    delivered += count;
  }
  const acknowledgements = [{ sink: "sink", ids, delivered: ids.length * count, dropped: {} }];
  if (ids.length > 0) port2.postMessage({ type: "acknowledge", acknowledgements } satisfies DeliveryToStore);
}

store.on("message", (message: FromStore) => {
  client.onMessage(message);
  if (message.type === "stopped") process.exit(0);
  if (message.type !== "ready") return;
  store.postMessage({ type: "delivery", port: port1, of: "every" } satisfies ToStore, [port1]);
  tell("r");
});
client.attach(post);
client.setSinks([{ id: "sink", takesExploration: false }]);
if (task === "append") {
  let next = base + 1;
  setInterval(() => {
    for (let i = 0; i < 5; i++) client.append(layout, { ...plainReadout(count, 0), readings: readingsOf(next++) });
  }, 2);
}

function readingsOf(number: number) {
  return Array.from({ length: count }, () => ({ quality: "good", value: number }) as const);
}
