import type { Socket } from "node:net";
import { DeviceServer } from "../../simulators/kit/device-server.ts";
import { type Cut, FramedConnection } from "../../simulators/kit/framed-connection.ts";
import type { Value } from "../../src/model/value.ts";
import type { Listening, Simulator } from "../simulator.ts";

/**
 * A device of our own making, which the example profile beside this file describes. It says nothing of the protocol of plastcontrol, which is
 * not public; it shares nothing with the driver.
 */
export interface ExampleSimulator extends Simulator {
  isLocked: boolean;
  isBusy: boolean;
}

const STATE = "STATE AUTO;48231;cushion=4.25 mm;OK";
const VALUES = new Map([
  ["ZONE1", "215.5"],
  ["ZONE2", " 220.0 "],
  ["MOULD.ID", "A-17"],
  ["SCREW", "-1e2"],
]);

const VARIABLES: readonly { readonly address: string; readonly type: string; readonly value: Value }[] = [
  { address: "mode", type: "string", value: "AUTO" },
  { address: "shots", type: "uint32", value: 48_231 },
  { address: "cushion", type: "float64", value: 4.25 },
  { address: "is_alarm", type: "bool", value: false },
  { address: "value/ZONE1", type: "float64", value: 215.5 },
  { address: "value/ZONE2", type: "float32", value: 220 },
  { address: "value/MOULD.ID", type: "string", value: "A-17" },
  { address: "value/SCREW", type: "float64", value: -100 },
];

export async function startSimulator(listening: Listening = {}): Promise<ExampleSimulator> {
  const state = { isLocked: false, isBusy: false };
  const answerTo = (line: string): string => {
    if (state.isLocked) return "!LOCKED";
    if (state.isBusy) return "!BUSY 1";
    if (line === "?STATE") return STATE;
    const name = /^\?VALUE ([A-Za-z0-9_.]{1,12})$/.exec(line)?.[1] ?? "";
    const value = VALUES.get(name);
    return value === undefined ? "!NAME" : `${name}=${value}`;
  };
  const server = new DeviceServer((socket) => new LineConnection(socket, answerTo));
  await server.listen(listening);
  return Object.assign(state, {
    port: server.port,
    details: (host: string, port: number) => ({ type: "plastcontrol", host, port, readout_mode: { type: "active" } }),
    variables: VARIABLES,
    missing: { address: "value/NONE", type: "float64" },
    malformed: ["", "value", "value/", "value/A B", "value/A;B", "value/A\r\n", "value/ABCDEFGHIJKLM", "mode/1", "Mode", "über"],
    connections: () => server.connections.size,
    close: () => server.close(),
  });
}

const cutLine: Cut = (bytes) => {
  const end = bytes.indexOf("\r\n");
  return end < 0 ? "more" : end + 2;
};

class LineConnection extends FramedConnection {
  readonly #answerTo: (line: string) => string;

  constructor(socket: Socket, answerTo: (line: string) => string) {
    super(socket, cutLine);
    this.#answerTo = answerTo;
  }

  protected override onFrame(line: Buffer): void {
    this.write(Buffer.from(`${this.#answerTo(line.toString("latin1", 0, line.length - 2))}\r\n`));
  }
}
