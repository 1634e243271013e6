import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ring, recordIn, ringMemory } from "../../src/lib/capture/ring.ts";
import { CaptureWriter } from "../../src/lib/capture/write.ts";
import type { RecordingWish } from "../../src/model/workbench.ts";
import { pcap, RecordedConnection, tcpPacket, udpPacket } from "../../test/support/capture-file.ts";
import { CaptureReader } from "../capture/read.ts";
import { messageIn, protocolOf } from "./protocols.ts";
import { type RecordedDevice, Recording } from "./recording.ts";
import { MAX_KEPT_BYTES, Script } from "./script.ts";

function recordingOf(file: Buffer, wish: RecordingWish = {}): Recording {
  const reader = new CaptureReader();
  const recording = new Recording(wish);
  recording.add(reader.push(file));
  recording.add(reader.end());
  recording.end();
  return recording;
}

const modbus = (transaction: number, at: number): Buffer => Buffer.from([0, transaction, 0, 0, 0, 6, 1, 3, 0, at, 0, 1]);
const register = (transaction: number, value: number): Buffer => Buffer.from([0, transaction, 0, 0, 0, 5, 1, 3, 2, 0, value]);

/** What a request gets, as hex; its kind where that is no answer. */
function ask({ script }: Pick<RecordedDevice, "script">, request: Buffer): string {
  const found = script.find(request, new Map());
  return found.kind === "answer" ? Buffer.concat([...found.parts]).toString("hex") : found.kind;
}

describe("a recording", () => {
  it("that the collector wrote itself: the device under its standard port, what is withheld left out", () => {
    const memory = ringMemory(1 << 16);
    let now = 0;
    const ring = new Ring(
      memory,
      () => now++,
      () => 1_700_000_000_000 + now,
    );
    const trace = ring.opening({ transport: "tcp", address: "192.168.7.12", port: 40_123 });
    trace.opened();
    trace.data("out", modbus(1, 5));
    trace.data("in", register(1, 7));
    trace.data("out", modbus(2, 99), "secret");
    trace.data("in", register(2, 99), "secret");
    trace.data("out", modbus(3, 6));
    trace.data("in", register(3, 8));
    trace.ended("fin_out");
    const { events, peers } = recordIn(memory);
    const writer = new CaptureWriter({ version: "1.0.0", source: "press-1", type: "modbus_tcp", standardPort: 502 });
    const file = Buffer.concat([writer.head(), ...events.map((event) => writer.take(event, peers.get(event.connection)))]);
    const [device, ...others] = recordingOf(file).devices;
    expect(others).toEqual([]);
    expect(device).toMatchObject({ end: { address: "192.168.7.12", port: 502 }, protocol: { type: "modbus_tcp" } });
    if (!device) return;
    expect(ask(device, modbus(50, 5))).toBe(register(50, 7).toString("hex"));
    expect(ask(device, modbus(51, 6))).toBe(register(51, 8).toString("hex"));
    expect(ask(device, modbus(52, 99))).toBe("unknown");
  });

  it("answers are paired by their numbers where several requests are under way, and without their beginning too", () => {
    const said = [
      tcpPacket({ fromPort: 50_000, toPort: 502, sequence: 1, payload: Buffer.concat([modbus(1, 1), modbus(2, 2), modbus(3, 3)]) }),
      tcpPacket({
        ...{ from: "10.0.0.2", to: "10.0.0.1", fromPort: 502, toPort: 50_000 },
        ...{ sequence: 1, acknowledged: 37, payload: Buffer.concat([register(3, 33), register(9, 99), register(1, 11)]) },
      }),
    ];
    for (const packets of [said, said.toReversed()]) {
      const [device] = recordingOf(pcap(packets)).devices;
      expect(device?.counts.requests).toBe(3);
      if (!device || packets !== said) continue;
      expect([1, 2, 3].map((at) => ask(device, modbus(0, at)))).toEqual([
        register(0, 11).toString("hex"),
        "silent",
        register(0, 33).toString("hex"),
      ]);
      expect(device.counts).toMatchObject({ answers: 2, unpaired: 1 });
    }
  });

  it("goes on behind a gap in the middle of a message", () => {
    const packets: Buffer[] = [];
    const connection = new RecordedConnection(packets, 502);
    connection.says("client", modbus(1, 1));
    connection.says("device", register(1, 11));
    connection.says("client", modbus(2, 2).subarray(0, 5));
    connection.says("client", modbus(2, 2).subarray(5));
    connection.says("client", modbus(3, 3));
    connection.says("device", register(3, 33));
    const [device] = recordingOf(pcap(packets.filter((_, i) => i !== 5))).devices;
    expect(device && [ask(device, modbus(7, 1)), ask(device, modbus(7, 3))]).toEqual([
      register(7, 11).toString("hex"),
      register(7, 33).toString("hex"),
    ]);
    expect(device?.counts.strayBytes).toBe(5);
  });

  it("a FINS node that asks from another address and number gets them back; one device over UDP and TCP is two to choose from", () => {
    const request = Buffer.from("80000200000a000001370101820064000001", "hex");
    const answer = Buffer.from("c00002000001000a00370101000007d0", "hex");
    const ends = { fromPort: 50_000, toPort: 9600 };
    const packets = [
      udpPacket({ ...ends, payload: request }),
      udpPacket({ from: "10.0.0.2", to: "10.0.0.1", fromPort: 9600, toPort: 50_000, payload: answer }),
    ];
    const [device] = recordingOf(pcap(packets)).devices;
    const other = Buffer.from("80000200000a000021440101820064000001", "hex");
    expect(device && ask(device, other)).toBe("c00002000021000a00440101000007d0");
    const both = [...packets];
    new RecordedConnection(both, 9600).says("client", Buffer.from("x"));
    expect(recordingOf(pcap(both)).devices.map(({ transport }) => transport)).toEqual(["udp", "tcp"]);
    expect(recordingOf(pcap(both), { transport: "tcp" }).devices.map(({ transport }) => transport)).toEqual(["tcp"]);
    expect(recordingOf(pcap(both), { address: "10.0.0.9" }).devices).toEqual([]);
  });

  it("of a connected EtherNet/IP message, the answer carries the connection that the client named when it opened one", () => {
    const header = (command: number, session: number, data: string): Buffer => {
      const body = Buffer.from(data, "hex");
      const head = Buffer.alloc(24);
      head.writeUInt16LE(command, 0);
      head.writeUInt16LE(body.length, 2);
      head.writeUInt32LE(session, 4);
      return Buffer.concat([head, body]);
    };
    const open = (id: string): string => `54022006240107ff00000000${id}1122334455667788`;
    const opened = (id: string): string => `d4000000aaaaaaaa${id}1122334455667788`;
    const items = (cip: string): string => `000000000000020000000000b200${Buffer.from([cip.length / 2, 0]).toString("hex")}${cip}`;
    const unit = (id: string, sequence: string, cip: string): string =>
      `00000000000002 00a10004 00${id}b100${Buffer.from([2 + cip.length / 2, 0]).toString("hex")}${sequence}${cip}`.replaceAll(" ", "");
    const packets: Buffer[] = [];
    const connection = new RecordedConnection(packets, 44_818);
    connection.says("client", header(0x6f, 7, items(open("01020304"))));
    connection.says("device", header(0x6f, 7, items(opened("01020304"))));
    connection.says("client", header(0x70, 7, unit("aaaaaaaa", "0100", "4c02")));
    connection.says("device", header(0x70, 7, unit("01020304", "0100", "cc00")));
    const [device] = recordingOf(pcap(packets)).devices;
    expect(device?.protocol.type).toBe("vendor_a");
    const memory = new Map<string, Buffer>();
    const answers = [header(0x6f, 9, items(open("99999999"))), header(0x70, 9, unit("aaaaaaaa", "4400", "4c02"))].map((request) => {
      const found = device?.script.find(request, memory);
      return found?.kind === "answer" ? Buffer.concat([...found.parts]).toString("hex") : found?.kind;
    });
    expect(answers).toEqual([
      header(0x6f, 9, items(opened("99999999"))).toString("hex"),
      header(0x70, 9, unit("99999999", "4400", "cc00")).toString("hex"),
    ]);
  });

  it("keeps a bounded part, and counts what there was no room for", () => {
    const room = { bytes: 0, notKept: 0 };
    const script = new Script(protocolOf("tcp", 502, Buffer.alloc(0), "modbus_tcp"), room);
    const asked = script.ask(modbus(1, 1));
    const big = Buffer.alloc(1 << 20);
    for (let i = 0; i < 100 && asked; i++) {
      big[20] = i;
      script.answer(asked, [big]);
    }
    expect(room.bytes).toBeLessThanOrEqual(MAX_KEPT_BYTES);
    expect(room.notKept).toBeGreaterThan(60);
    expect((asked?.answers.length ?? 0) + room.notKept).toBe(100);
  });

  it("any bytes of any protocol are messages, wait for more, or are none: never an error, never longer than what came", () => {
    const types = ["opcua", "modbus_tcp", "s7", "fins", "vendor_a", "vendor_gateway", "bytes"];
    fc.assert(
      fc.property(
        fc.constantFrom(...types),
        fc.constantFrom("tcp", "udp"),
        fc.uint8Array({ maxLength: 120 }),
        (type, transport, content) => {
          const bytes = Buffer.from(content);
          const protocol = protocolOf(transport, 1, bytes, type);
          const message = messageIn(protocol, bytes);
          expect(message === null || message === undefined || message.length <= bytes.length).toBe(true);
          const script = new Script(protocol, { bytes: 0, notKept: 0 });
          const asked = script.ask(bytes);
          if (asked) script.answer(asked, [bytes]);
          const found = script.find(bytes, new Map());
          expect(found.kind).toBe("answer");
          script.nearest(bytes.subarray(1));
        },
      ),
      { numRuns: 300 },
    );
  });
});
