import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { CaptureError } from "../../workbench/capture/packets.ts";
import { CaptureReader } from "../../workbench/capture/read.ts";
import { Recording } from "../../workbench/replay/recording.ts";

/** Captures of foreign devices that others published; they are not part of this project. */
const FOLDER = path.resolve(import.meta.dirname, "../../../shared/captures");
const FILES = globSync("*.{pcap,pcapng}", { cwd: FOLDER }).toSorted();

/** The devices of a capture, a line each: protocol, requests and answers. */
function devicesIn(bytes: Buffer): readonly string[] {
  const recording = new Recording({});
  const reader = new CaptureReader();
  recording.add(reader.push(bytes));
  recording.add(reader.end());
  recording.end();
  return recording.devices.map(
    ({ transport, protocol, counts }) =>
      `${protocol.type} over ${transport}: ${counts.requests} requests, ${counts.answers} answers, ${counts.strayBytes} stray bytes`,
  );
}

const hasCaptures = existsSync(FOLDER);

(hasCaptures ? describe : describe.skip)("public captures", () => {
  let captures: ReadonlyMap<string, Buffer>;
  beforeAll(() => {
    captures = new Map(FILES.map((file) => [file, readFileSync(path.join(FOLDER, file))]));
  });

  it("show their devices, requests and answers", () => {
    expect(Object.fromEntries([...captures].map(([file, bytes]) => [file, devicesIn(bytes)]))).toMatchInlineSnapshot(`
      {
        "enip_cip_example.pcap": [
          "vendor_a over tcp: 134 requests, 133 answers, 0 stray bytes",
          "vendor_a over tcp: 1 requests, 1 answers, 0 stray bytes",
          "bytes over udp: 368 requests, 30 answers, 0 stray bytes",
        ],
        "modbus_example.pcap": [
          "modbus_tcp over tcp: 23 requests, 23 answers, 0 stray bytes",
          "modbus_tcp over tcp: 1 requests, 1 answers, 0 stray bytes",
        ],
        "multiple_service_packet_cip.pcapng": [
          "vendor_a over tcp: 1 requests, 0 answers, 0 stray bytes",
        ],
        "omron.pcap": [
          "fins over udp: 243 requests, 0 answers, 0 stray bytes",
        ],
        "omron_fins_tcp_commands_responses.pcap": [
          "fins over tcp: 8 requests, 4 answers, 0 stray bytes",
        ],
        "omron_test.pcap": [
          "fins over tcp: 2 requests, 1 answers, 0 stray bytes",
          "fins over udp: 3 requests, 1 answers, 0 stray bytes",
        ],
        "opcua_with-gap.pcap": [
          "opcua over tcp: 87 requests, 85 answers, 0 stray bytes",
        ],
        "open62541_browse_next.pcap": [
          "bytes over tcp: 1 requests, 0 answers, 0 stray bytes",
          "bytes over tcp: 2 requests, 1 answers, 0 stray bytes",
          "bytes over tcp: 14 requests, 13 answers, 0 stray bytes",
          "opcua over tcp: 20 requests, 20 answers, 0 stray bytes",
          "bytes over tcp: 2 requests, 1 answers, 0 stray bytes",
          "bytes over tcp: 44 requests, 43 answers, 0 stray bytes",
          "bytes over tcp: 1 requests, 0 answers, 0 stray bytes",
          "bytes over tcp: 20 requests, 19 answers, 0 stray bytes",
        ],
        "open62541_client-server_mainloop.pcap": [
          "bytes over udp: 1 requests, 0 answers, 0 stray bytes",
          "opcua over tcp: 35 requests, 33 answers, 0 stray bytes",
        ],
        "open62541_create_monitored_items.pcap": [
          "bytes over tcp: 2 requests, 1 answers, 0 stray bytes",
          "bytes over tcp: 13 requests, 12 answers, 0 stray bytes",
          "opcua over tcp: 14 requests, 14 answers, 0 stray bytes",
          "bytes over tcp: 1 requests, 0 answers, 0 stray bytes",
          "bytes over tcp: 13 requests, 12 answers, 0 stray bytes",
        ],
        "open62541_discover_getendpoints_discover_urls.pcap": [
          "bytes over udp: 1 requests, 0 answers, 0 stray bytes",
          "opcua over tcp: 13 requests, 10 answers, 0 stray bytes",
          "opcua over tcp: 4 requests, 3 answers, 0 stray bytes",
        ],
        "open62541_read_service_test_data.pcap": [
          "opcua over tcp: 93 requests, 92 answers, 0 stray bytes",
        ],
        "python_opcua-client-server_minimal.pcap": [
          "opcua over tcp: 9 requests, 8 answers, 0 stray bytes",
        ],
        "s7comm_plus.pcap": [
          "s7plus over tcp: 52 requests, 52 answers, 0 stray bytes",
        ],
        "s7ident.pcap": [
          "s7 over tcp: 12 requests, 12 answers, 0 stray bytes",
        ],
        "snap7.pcap": [
          "s7 over tcp: 32 requests, 32 answers, 0 stray bytes",
        ],
      }
    `);
  });

  it.each(FILES)("%s with damaged bytes, or cut, is read as far as it goes or refused as a capture", (file) => {
    const whole = captures.get(file)?.subarray(0, 256 * 1024) ?? Buffer.alloc(0);
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: whole.length }),
        fc.array(fc.record({ at: fc.nat(whole.length - 1), byte: fc.nat(255) }), { maxLength: 8 }),
        (length, flips) => {
          const bytes = Buffer.from(whole);
          for (const { at, byte } of flips) bytes[at] = byte;
          try {
            devicesIn(bytes.subarray(0, length));
          } catch (error) {
            expect(error).toBeInstanceOf(CaptureError);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});

if (!hasCaptures) it.skip(`public captures are not at ${FOLDER}: nothing of them was tested`);
