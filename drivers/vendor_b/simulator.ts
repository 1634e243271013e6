import type { Socket } from "node:net";
import { DeviceServer } from "../../simulators/kit/device-server.ts";
import { type Cut, FramedConnection } from "../../simulators/kit/framed-connection.ts";
import type { Value } from "../../src/model/value.ts";
import type { Listening, Simulator } from "../simulator.ts";

/**
 * A device of our own making, which the example profile beside this file describes. It says nothing of the protocol of vendor_b, which is not
 * public; it shares nothing with the driver.
 */
export interface ExampleSimulator extends Simulator {
  /** Machine and mode of each start-up. */
  readonly begun: readonly string[];
  isLocked: boolean;
  isBusy: boolean;
}

const VARIABLES: readonly { readonly address: string; readonly type: string; readonly value: Value }[] = [
  { address: "cycle_time", type: "float64", value: 12.34 },
  { address: "parts", type: "uint32", value: 70_000 },
  { address: "pressure", type: "float32", value: 1.5 },
  { address: "is_heating", type: "bool", value: true },
  { address: "is_open", type: "bool", value: false },
  { address: "total", type: "uint64", value: 9_007_199_254_740_993n },
  { address: "level/3", type: "int16", value: -3 },
  { address: "level/7", type: "int16", value: -7 },
];

/** 12.34 s, 70,000 parts, 1.5 bar, heating, and the total. */
const CYCLE = [0x04, 0xd2, 0, 1, 0x11, 0x70, 0, 0, 0xc0, 0x3f, 0x01, 0, 0x20, 0, 0, 0, 0, 0, 1];

export async function startSimulator(listening: Listening = {}): Promise<ExampleSimulator> {
  const begun: string[] = [];
  const state = { isLocked: false, isBusy: false };
  const answerTo = (request: Buffer): Buffer => {
    const [kind, block = 0] = request;
    if (kind === 1) {
      begun.push(`C${block} ${request[2] === 1 ? "Extended" : "Default"}`);
      return Buffer.from([0x81, 1]);
    }
    if (kind !== 2) return Buffer.from([0xee, 1]);
    if (state.isLocked) return Buffer.from([0xee, 3]);
    if (state.isBusy) return Buffer.from([0xee, 4]);
    if (block === 1) return Buffer.from([0x82, 1, ...CYCLE]);
    if (block !== 3 && block !== 7) return Buffer.from([0xee, 2]);
    const level = Buffer.alloc(2);
    level.writeInt16BE(-block);
    return Buffer.concat([Buffer.from([0x82, block]), level]);
  };
  const server = new DeviceServer((socket) => new BlockConnection(socket, answerTo));
  await server.listen(listening);
  return Object.assign(state, {
    port: server.port,
    details: (host: string, port: number) => ({ type: "vendor_b", host, port, machine: "C5", initialization_mode: "Extended" }),
    begun,
    variables: VARIABLES,
    missing: { address: "spare", type: "uint16" },
    malformed: ["", "level", "level/", "level/256", "level/-1", "level/x", "parts/1", "cycle time", "Parts", "toString", "parts\n"],
    connections: () => server.connections.size,
    close: () => server.close(),
  });
}

/** AA, length, content, and a CRC of all before it. */
const cutFrame: Cut = (bytes) => (bytes.length < 2 ? "more" : 2 + bytes.readUInt8(1));

class BlockConnection extends FramedConnection {
  readonly #answerTo: (request: Buffer) => Buffer;

  constructor(socket: Socket, answerTo: (request: Buffer) => Buffer) {
    super(socket, cutFrame);
    this.#answerTo = answerTo;
  }

  protected override onFrame(frame: Buffer): void {
    const end = frame.length;
    const isGood = frame[0] === 0xaa && end >= 4 && frame.readUInt16LE(end - 2) === crcOf(frame.subarray(0, end - 2));
    if (isGood) this.#send(this.#answerTo(frame.subarray(2, end - 2)));
    else this.socket.destroy();
  }

  #send(content: Buffer): void {
    const frame = Buffer.concat([Buffer.from([0xaa, content.length + 2]), content, Buffer.alloc(2)]);
    frame.writeUInt16LE(crcOf(frame.subarray(0, -2)), frame.length - 2);
    this.write(frame);
  }
}

/** MODBUS over Serial Line V1.02, 6.2.2, by division in one register. */
function crcOf(bytes: Uint8Array): number {
  let register = 0xffff;
  for (const byte of bytes)
    for (let bit = 0; bit < 8; bit++) {
      const isSet = ((register ^ (byte >> bit)) & 1) === 1;
      register = (register >> 1) ^ (isSet ? 0xa001 : 0);
    }
  return register;
}
