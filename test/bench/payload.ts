import { writeBatch } from "../../src/sinks/mqtt/message.ts";
import { PayloadPool } from "../../src/sinks/mqtt/payload-pool.ts";
import { batchOf, good, layoutOf, readoutOf, TIME, variableOf } from "../../src/sinks/mqtt/testing.ts";

const VARIABLES = 1000;
const READOUTS = 10;
const ROUNDS = 200;
const BATCHES_A_ROUND = 3;
const BUDGET = 0.6;
/** One message holds the batch. */
const BYTES = 16 * 2 ** 20;

/** Writing of one batch as envelope and as columns, in turns; the fastest round of each counts. */
export async function benchPayload(): Promise<void> {
  for (const [type, numberOf] of [
    ["uint16", (n: number) => (n * 7919) & 0xffff],
    ["float32", (n: number) => Math.fround(20 + ((n * 7919) % 1000) / 97)],
  ] as const) {
    const layout = layoutOf(...Array.from({ length: VARIABLES }, (_, i) => variableOf(`machine/part_${i}/temperature`, type)));
    const readings = (at: number) => Array.from({ length: VARIABLES }, (_, i) => good(numberOf(i + at)));
    const batch = batchOf(layout, ...Array.from({ length: READOUTS }, (_, at) => readoutOf(readings(at), { time: TIME + 100 * at })));
    const pool = new PayloadPool();
    const write = (hasColumns: boolean): number => {
      const { messages } = writeBatch(batch, { int64: "number", maxBytes: BYTES, partBytes: BYTES, splitBytes: BYTES, hasColumns }, pool);
      const bytes = messages.reduce((sum, { payload }) => sum + payload.length, 0);
      for (const { payload } of messages) pool.giveBack(payload);
      return bytes;
    };
    const cpuOf = (hasColumns: boolean): number => {
      const before = process.cpuUsage();
      for (let i = 0; i < BATCHES_A_ROUND; i++) write(hasColumns);
      const { user, system } = process.cpuUsage(before);
      return ((user + system) * 1000) / (BATCHES_A_ROUND * VARIABLES * READOUTS);
    };
    const least = { envelope: Number.POSITIVE_INFINITY, columns: Number.POSITIVE_INFINITY };
    for (let round = 0; round < ROUNDS; round++) {
      least.envelope = Math.min(least.envelope, cpuOf(false));
      least.columns = Math.min(least.columns, cpuOf(true));
    }
    const perValue = (hasColumns: boolean): number => write(hasColumns) / (VARIABLES * READOUTS);
    const [envelope, columns] = [perValue(false), perValue(true)];
    const what = `MQTT messages of ${READOUTS} readouts of ${VARIABLES.toLocaleString("en")} ${type} with names of 23 to 26 characters, payload columns`;
    const [cpu, bytes] = [least.columns / least.envelope, columns / envelope];
    console.log(
      `${what}: CPU of writing ${cpu.toFixed(2)} times the envelope's, ${least.columns.toFixed(0)} and ${least.envelope.toFixed(0)} ns a value (budget ${budget(cpu)})`,
    );
    console.log(
      `${what}: ${bytes.toFixed(2)} times the envelope's bytes, ${columns.toFixed(1)} and ${envelope.toFixed(1)} a value (budget ${budget(bytes)})`,
    );
  }
}

const budget = (figure: number): string => (figure <= BUDGET ? `${BUDGET}` : `${BUDGET}, not met`);
