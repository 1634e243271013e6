import { startModbusPlant } from "../../../drivers/modbus_tcp/simulator.ts";

/** A Modbus device in the lab's device host; its port is the argument. Prints `ready`; ends with its input, as at a power failure: without a word. */
await startModbusPlant({
  host: "0.0.0.0",
  port: Number(process.argv[2]),
  units: new Map([[1, { holding: new Map([[0, 42]]) }]]),
});
console.log("ready");
process.stdin.resume().on("end", () => process.exit(0));
