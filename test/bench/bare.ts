import { createRequire } from "node:module";
import mqtt from "mqtt";

/**
 * What a person would write in an afternoon: modbus-serial and mqtt, no buffer, no status, no reconnecting.
 * Reads REGISTERS holding registers of each device every INTERVAL_MS and publishes one message per device and second, QoS 1,
 * with the same content as the collector's. Arguments: broker port, registers, interval in ms, device ports.
 */
const ModbusRTU = (createRequire(import.meta.url)("modbus-serial") as { default: new () => import("modbus-serial").default }).default;

const [brokerPort = 0, registers = 0, intervalMs = 0, ...ports] = process.argv.slice(2).map(Number);
const MAX_READ = 125;
const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${brokerPort}`, { protocolVersion: 4, clientId: "bare" });

async function device(port: number): Promise<void> {
  const source = `machine-${port}`;
  const modbus = new ModbusRTU();
  await modbus.connectTCP("127.0.0.1", { port });
  modbus.setID(1);
  modbus.setTimeout(3000);
  let readouts: { ts: string; values: Record<string, number> }[] = [];
  let busy = false;
  setInterval(async () => {
    if (busy) return;
    busy = true;
    const ts = new Date().toISOString();
    const values: Record<string, number> = {};
    for (let start = 0; start < registers; start += MAX_READ) {
      const { data } = await modbus.readHoldingRegisters(start, Math.min(MAX_READ, registers - start));
      for (let i = 0; i < data.length; i++) values[`r${start + i}`] = data[i] ?? 0;
    }
    readouts.push({ ts, values });
    busy = false;
  }, intervalMs);
  setInterval(() => {
    const message = JSON.stringify({ v: 1, source, readouts });
    readouts = [];
    void client.publishAsync(`bare/${source}`, message, { qos: 1 });
  }, 1000);
}

await Promise.all(ports.map(device));
console.log("ready");
