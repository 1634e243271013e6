import { JOB_ERRORS, S7Memory, startS7Plc } from "../../drivers/s7/simulator.ts";
import type { DemoMachine } from "./machine.ts";
import { type Place, switchable } from "./switchable.ts";

/** Before each read: the level and the speed drift, a batch is done now and then, and the mixer rests in between. */
function update(memory: S7Memory, ms: number): void {
  const isRunning = Math.floor(ms / 6000) % 5 !== 4;
  memory.put("DB1", 4, "REAL", 62 + 6 * Math.sin(ms / 2300));
  memory.put("DB1", 8, "UDINT", 480 + Math.floor(ms / 30_000));
  memory.putBit("DB10", 0, 1, isRunning);
  memory.put("M", 20, "INT", isRunning ? 133 + Math.round(4 * Math.sin(ms / 5000)) : 0);
}

/** A mixer with an S7 controller, at this place. */
export async function startMixer(at: Place): Promise<DemoMachine> {
  const { first, current, ...power } = await switchable(at, (place) => {
    const memory = new S7Memory();
    memory.create("DB1", 64);
    memory.create("DB10", 2);
    memory.create("M", 64);
    memory.put("DB1", 12, "STRING[20]", "Lemonade 7");
    update(memory, 0);
    return startS7Plc({ ...place, memory, update });
  });
  return {
    name: "mixer-5",
    readoutIntervalS: 1,
    details: { type: "s7", host: "127.0.0.1", port: first.port, rack: 0, slot: 1 },
    variables: [
      { name: "level", address: "DB1.DBD4", type: "REAL", unit: "%" },
      { name: "batches", address: "DB1.DBD8", type: "UDINT", unit: null },
      { name: "product", address: "DB1.DBB12", type: "STRING[20]", unit: null },
      { name: "running", address: "DB10.DBX0.1", type: "BOOL", unit: null },
      { name: "speed", address: "MW20", type: "INT", unit: "1/min" },
    ],
    refuseReads(is) {
      const plc = current();
      if (plc) plc.readError = is ? JOB_ERRORS.serviceForbidden : undefined;
    },
    ...power,
  };
}
