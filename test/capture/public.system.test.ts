import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, settingsFile } from "../../src/commands/testing.ts";
import { CaptureReader } from "../../workbench/capture/read.ts";
import { workbench } from "../../workbench/main.ts";
import { DeviceMemory } from "../../workbench/replay/memory.ts";
import { type RecordedDevice, Recording } from "../../workbench/replay/recording.ts";

/** Captures of foreign devices that others published; they are not part of this project. */
const FOLDER = path.resolve(import.meta.dirname, "../../../shared/captures");
const FILES = globSync("*.{pcap,pcapng}", { cwd: FOLDER }).toSorted();
const hasCaptures = existsSync(FOLDER);

function devicesIn(file: string): readonly RecordedDevice[] {
  const recording = new Recording({});
  const reader = new CaptureReader();
  recording.add(reader.push(readFileSync(path.join(FOLDER, file))));
  recording.add(reader.end());
  recording.end();
  return recording.devices;
}

const bitsWords = ({ area, from, count, bytes }: { area: string; from: number; count: number; bytes: Buffer }): string =>
  `${area} ${from} ${count} ${bytes.toString("hex")}`;

/** Answers of the memory to requests of the recording that told it something, each at the moment of the recorded answer. */
function answersOfMemory({ protocol, script }: RecordedDevice): readonly { readonly told: string[]; readonly again: string[] }[] {
  const { memory: form } = protocol;
  if (!form) return [];
  const pairs = [...script.asked()].flatMap(({ request, answers }) =>
    answers.flatMap(({ parts, moments }) => parts.map((part) => ({ request, part, moment: moments[0] ?? 0 }))),
  );
  const memory = new DeviceMemory(form, script.asked());
  return pairs
    .toSorted((a, b) => a.moment - b.moment)
    .map(({ request, part, moment }) => {
      memory.moveTo(moment);
      const made = form.told(request, part).length > 0 ? memory.answer(request) : undefined;
      return { told: form.told(request, part).map(bitsWords), again: made ? form.told(request, made.message).map(bitsWords) : [] };
    })
    .filter(({ told }) => told.length > 0);
}

(hasCaptures ? describe : describe.skip)("public captures as memory", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), "public-captures-"));
    settingsFile(folder, {});
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Values of addresses that the project's driver reads of the one device of a type in a capture. */
  async function read(file: string, type: string, address: string, ...words: readonly string[]): Promise<unknown> {
    const recording = await workbench.readRecording(path.join(FOLDER, file), { address });
    if ("problem" in recording) throw new Error(recording.problem);
    const device = recording.devices.find((one) => one.type === type);
    const served = await device?.serve({ host: "127.0.0.1", port: 0, onUnknown: () => {} });
    const config = path.join(folder, "collector.yaml");
    const { out, err } = await runCommand(
      "read",
      type,
      ...words.map((word) => word.replace("PORT", `${served?.port}`)),
      "--json",
      "--config",
      config,
    );
    await served?.close();
    expect(out, err).toContain("values");
    return Object.fromEntries(
      (JSON.parse(out).values as { address: string; value: unknown; fault?: string }[]).map((one) => [one.address, one.fault ?? one.value]),
    );
  }

  it.each(FILES)("%s answers its own reads from memory with what they told", (file) => {
    for (const device of devicesIn(file)) for (const { told, again } of answersOfMemory(device)) expect(again).toEqual(told);
  });

  it("tell so many ranges", () => {
    const ranges = FILES.flatMap((file) =>
      devicesIn(file).map(({ protocol, transport, script }) => {
        const memory = protocol.memory && new DeviceMemory(protocol.memory, script.asked());
        return [`${file} ${protocol.type} ${transport}`, memory?.facts.ranges ?? 0] as const;
      }),
    );
    expect(Object.fromEntries(ranges.filter(([, count]) => count > 0))).toMatchInlineSnapshot(`
      {
        "enip_cip_example.pcap vendor_a tcp": 15,
        "modbus_example.pcap modbus_tcp tcp": 8,
        "opcua_with-gap.pcap opcua tcp": 46,
        "open62541_browse_next.pcap opcua tcp": 1,
        "open62541_client-server_mainloop.pcap opcua tcp": 1,
        "open62541_read_service_test_data.pcap opcua tcp": 86,
        "s7ident.pcap s7 tcp": 1,
        "snap7.pcap s7 tcp": 7,
      }
    `);
  });

  it("are devices for the drivers, in other requests than theirs", async () => {
    // The bytes of the capture: function 3 of unit 5 from 1 on has 00aa 00aa 00bb 00cc ef84, function 1 e9, function 4 8e2b.
    const modbus = [
      "host=127.0.0.1",
      "port=PORT",
      "5/holding:3",
      "5/holding:5:int16",
      "5/holding:2:uint32",
      "5/coil:1",
      "5/coil:2",
      "5/input:1",
      "5/holding:9",
    ];
    expect(await read("modbus_example.pcap", "modbus_tcp", "127.0.0.1", ...modbus)).toMatchInlineSnapshot(`
      {
        "5/coil:1": true,
        "5/coil:2": false,
        "5/holding:2": 11141307,
        "5/holding:3": 187,
        "5/holding:5": -4220,
        "5/holding:9": "not_found",
        "5/input:1": 36395,
      }
    `);
    // MB0 on has acde 000d adde, IB0 aa, QB0 bb, C1 0011.
    const s7 = ["host=127.0.0.1", "port=PORT", "slot=1", "MW4", "MB1", "M0.2", "MW14", "IB3", "QB7", "MB17", "MW15", "DB1.DBW0"];
    expect(await read("snap7.pcap", "s7", "134.217.61.211", ...s7)).toMatchInlineSnapshot(`
      {
        "DB1.DBW0": "not_found",
        "IB3": 170,
        "M0.2": true,
        "MB1": 222,
        "MB17": 0,
        "MW14": 44510,
        "MW15": 56832,
        "MW4": 44510,
        "QB7": 187,
      }
    `);
    // Matrices of this server say 2 by 2, and have three elements.
    const opcua = ["endpoint_url=opc.tcp://127.0.0.1:PORT", "security_mode=None"];
    const nodes = ["Int64.Array", "Byte", "String", "Int16.Matrix", "Nothing"].map((name) => `ns=1;s=${name}.Variable`);
    expect(await read("open62541_read_service_test_data.pcap", "opcua", "127.0.0.1", ...opcua, ...nodes)).toMatchInlineSnapshot(`
      {
        "ns=1;s=Byte.Variable": 255,
        "ns=1;s=Int16.Matrix.Variable": "device_error",
        "ns=1;s=Int64.Array.Variable": [
          0,
          9223372036854776000,
        ],
        "ns=1;s=Nothing.Variable": "not_found",
        "ns=1;s=String.Variable": "This is a string variable",
      }
    `);
  });
});

if (!hasCaptures) it.skip(`public captures are not at ${FOLDER}: nothing of them was tested`);
