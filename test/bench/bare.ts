import { createRequire } from "node:module";
import Database from "better-sqlite3";
import mqtt from "mqtt";

/**
 * Script that a person writes in an afternoon: modbus-serial and mqtt, no status, no reconnecting; with a file, each readout is committed to
 * SQLite (WAL, synchronous=FULL) before it is published, and removed when the broker has confirmed it.
 * Reads REGISTERS holding registers of each device every INTERVAL_MS and publishes one message per device and second, QoS 1,
 * with the same content as the collector's. Arguments: broker port, registers, interval in ms,
 * requests in flight, file or -, device ports.
 */
const ModbusRTU = (createRequire(import.meta.url)("modbus-serial") as { default: new () => import("modbus-serial").default }).default;

const [numbers, file = "-", ports] = [process.argv.slice(2, 6).map(Number), process.argv[6], process.argv.slice(7).map(Number)];
const [brokerPort = 0, registers = 0, intervalMs = 0, inFlight = 1] = numbers;
const MAX_READ = 125;
const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${brokerPort}`, { protocolVersion: 4, clientId: "bare" });
const table = file === "-" ? undefined : durable(file);

async function device(port: number): Promise<void> {
  const source = `machine-${port}`;
  const modbus = new ModbusRTU();
  await modbus.connectTCP("127.0.0.1", { port });
  modbus.setID(1);
  modbus.setTimeout(3000);
  let readouts: { ts: string; values: Record<string, number> }[] = [];
  let rows: (number | bigint)[] = [];
  let busy = false;
  const starts = Array.from({ length: Math.ceil(registers / MAX_READ) }, (_, i) => i * MAX_READ);
  setInterval(async () => {
    if (busy) return;
    busy = true;
    const ts = new Date().toISOString();
    const values: Record<string, number> = {};
    for (let at = 0; at < starts.length; at += inFlight) {
      const some = starts.slice(at, at + inFlight);
      const read = (start: number) => modbus.readHoldingRegisters(start, Math.min(MAX_READ, registers - start));
      const answers = await Promise.all(some.map(read));
      for (const [n, { data }] of answers.entries()) for (let i = 0; i < data.length; i++) values[`r${(some[n] ?? 0) + i}`] = data[i] ?? 0;
    }
    if (table) rows.push(table.insert.run(source, JSON.stringify({ ts, values })).lastInsertRowid);
    else readouts.push({ ts, values });
    busy = false;
  }, intervalMs);
  setInterval(async () => {
    const sent = rows;
    const stored = table && sent.map((row) => (table.select.get(row) as { readonly readout: string }).readout);
    const message = stored
      ? `{"v":1,"source":${JSON.stringify(source)},"readouts":[${stored.join(",")}]}`
      : JSON.stringify({ v: 1, source, readouts });
    [readouts, rows] = [[], []];
    await client.publishAsync(`bare/${source}`, message, { qos: 1 });
    table?.remove(sent);
  }, 1000);
}

function durable(name: string) {
  const db = new Database(name);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("CREATE TABLE readouts (id INTEGER PRIMARY KEY, source TEXT, readout TEXT)");
  const remove = db.prepare("DELETE FROM readouts WHERE id = ?");
  return {
    insert: db.prepare("INSERT INTO readouts (source, readout) VALUES (?, ?)"),
    select: db.prepare("SELECT readout FROM readouts WHERE id = ?"),
    remove: db.transaction((rows: readonly (number | bigint)[]) => {
      for (const row of rows) remove.run(row);
    }),
  };
}

await Promise.all(ports.map(device));
console.log('"ready"');
