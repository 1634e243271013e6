import { FinsMemory, startFinsPlc } from "../../drivers/fins/simulator.ts";
import type { DemoMachine } from "./machine.ts";
import { type Place, switchable } from "./switchable.ts";

/** Another device has the access right. */
const LOCKED = 0x3001;
const SECONDS_PER_FILLING = 4;

/** Before each command: bottles go by, the temperature drifts, and a timer runs down with each filling. */
function update(memory: FinsMemory, ms: number): void {
  const isRunning = Math.floor(ms / 7000) % 6 !== 5;
  const filling = (ms / 1000) % SECONDS_PER_FILLING;
  memory.put("D", 100, "UINT", isRunning ? 210 + Math.round(5 * Math.sin(ms / 4000)) : 0);
  memory.put("D", 102, "UDINT", 1_204_000 + Math.floor(ms / 290));
  memory.put("D", 104, "REAL", 8.5 + 0.75 * Math.sin(ms / 9000));
  memory.putBit("W", 10, 3, isRunning);
  // In tenths of a second, as a timer counts down.
  memory.put("T", 5, "BCD", Math.floor(10 * (SECONDS_PER_FILLING - filling)));
}

/** A filler with an Omron controller at node 10, at this place. */
export async function startFiller(at: Place): Promise<DemoMachine> {
  const { first, current, ...power } = await switchable(at, (place) => {
    const memory = new FinsMemory();
    memory.create("D", 200);
    memory.create("W", 20);
    memory.create("T", 10);
    memory.put("D", 110, "STRING[12]", "Lemonade 7");
    update(memory, 0);
    return startFinsPlc({ ...place, memory, update });
  });
  return {
    name: "filler-8",
    readoutIntervalS: 1,
    details: {
      type: "fins",
      host: "127.0.0.1",
      port: first.port,
      target_plc: "Cs1OrNewer",
      local_address: "0.0.0",
      remote_address: "0.10.0",
    },
    variables: [
      { name: "speed", address: "D100", type: "UINT", unit: "1/min" },
      { name: "bottles", address: "D102", type: "UDINT", unit: null },
      { name: "temperature", address: "D104", type: "REAL", unit: "°C" },
      { name: "product", address: "D110", type: "STRING[12]", unit: null },
      { name: "running", address: "W10.03", type: "BOOL", unit: null },
      { name: "filling", address: "T5", type: "BCD", unit: "0.1 s" },
    ],
    refuseReads(is) {
      const plc = current();
      if (plc) plc.readError = is ? LOCKED : undefined;
    },
    ...power,
  };
}
