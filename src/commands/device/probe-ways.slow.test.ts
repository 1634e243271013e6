import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startSimulator as startFins } from "../../../drivers/fins/simulator.ts";
import { startModbusPlant } from "../../../drivers/modbus_tcp/simulator.ts";
import { startSimulator as startS7 } from "../../../drivers/s7/simulator.ts";
import { startCipDevice } from "../../../drivers/vendor_a/simulator.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { EXIT } from "../io.ts";
import { runCommandWith, settingsFile } from "../testing.ts";
import { setCommand } from "./probe-ways.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

interface Printed {
  readonly steps: readonly { readonly step: string; readonly detail: string }[];
  readonly next_step?: string;
  readonly granted: string | null;
}

/** `collector probe` of a device at this port, as JSON. */
async function probed(port: number, type: string, ...words: readonly string[]) {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  writeFileSync(join(folder, "policy.yaml"), "sources: {networks: [127.0.0.0/8]}\n");
  const at = [type, "host=127.0.0.1", `port=${port}`, "connect_timeout=500ms", "answer_timeout=200ms"];
  const { code, out } = await runCommandWith({ env: { HOME: folder } }, "probe", ...at, ...words, "--json", "--config", config);
  const printed = JSON.parse(out) as Printed;
  const last = printed.steps.at(-1);
  return { code, last: last && `${last.step}: ${last.detail}`, next: printed.next_step, granted: printed.granted };
}

async function s7() {
  const device = await startS7();
  cleanUp.push(() => device.close());
  return device;
}

describe("probe of a device that refuses the configured way", () => {
  it.each(["disconnect", "fin", "silent"] as const)("finds the slot of an S7 whose wrong slots end with: %s", async (how) => {
    const { plc, port } = await s7();
    plc.positions = new Set([1]);
    plc.wrongTsap = how;
    const { code, last, next } = await probed(port, "s7", "slot=2", "DB1.DBW8");
    expect([code, last]).toEqual([EXIT.sourceFailed, expect.stringMatching(/^handshake: .*; slot 1 answers$/)]);
    expect(next).toBe("Write slot=1.");
  });

  it("finds the connection type that an S7 has left, after its slots, and says which ways are refused", async () => {
    const { plc, port } = await s7();
    plc.positions = new Set([2]);
    plc.slots.op = 0;
    plc.slots.pg = 0;
    const { last, next } = await probed(port, "s7", "slot=2", "DB1.DBW8");
    expect([last, next]).toEqual([expect.stringMatching(/; connection type basic answers$/), "Write connection_type=basic."]);
    plc.slots.basic = 0;
    const none = await probed(port, "s7", "slot=2", "DB1.DBW8");
    const refused = "slot 1, slot 0, slot 3, connection type pg, connection type basic are refused or silent too";
    expect(none.last).toContain(refused);
    expect(none.next).not.toContain("Write");
  });

  it("asks only the configured way with --no-others", async () => {
    const { plc, port } = await s7();
    plc.positions = new Set([1]);
    const { last, next } = await probed(port, "s7", "slot=2", "DB1.DBW8", "--no-others");
    expect(last).not.toMatch(/answers|silent too/);
    expect(next).not.toContain("Write");
  });

  it("finds the node of a FINS controller", async () => {
    const device = await startFins();
    cleanUp.push(() => device.close());
    device.plc.node = 1;
    const at = ["target_plc=Cs1OrNewer", "local_address=0.7.0", "remote_address=0.33.0", "retransmissions=0", "D0"];
    const tcp = await probed(device.port, "fins", ...at, "transport=tcp");
    expect([tcp.last, tcp.next]).toEqual([
      expect.stringContaining("node 0.0.0 from the node 0.0.0 answers"),
      "Write local_address=0.0.0 remote_address=0.0.0.",
    ]);
  });

  it("names where the answers of a FINS controller come from, and what to set", async () => {
    const device = await startFins();
    cleanUp.push(() => device.close());
    device.plc.udpFrom = "127.0.0.2";
    const at = ["target_plc=Cs1OrNewer", "local_address=0.0.0", "remote_address=0.10.0", "transport=udp", "D0", "--no-others"];
    const { code, last, next } = await probed(device.port, "fins", ...at);
    expect([code, last]).toEqual([EXIT.sourceFailed, expect.stringMatching(/; \d+ answers came from 127\.0\.0\.2:\d+ instead/)]);
    expect(next).toMatch(/^Set host and port to 127\.0\.0\.2:\d+ if that is the controller/);
  });

  it("finds the controller of a chassis where the path has the wrong slot, and names it", async () => {
    const device = await startCipDevice({ layout: "bridge" });
    cleanUp.push(() => device.close());
    const { last, next } = await probed(device.port, "vendor_a", "path=1,5", "NoTag");
    expect(last).toMatch(/path auto answers \(the controller is 1756-.* \(slot 3\)\)$/);
    expect(next).toBe("Write path=auto.");
  });
});

describe("probe of a device that can be read", () => {
  it("says what it grants: sizes and jobs, nodes, a connection", async () => {
    const { plc, port } = await s7();
    plc.jobs = 3;
    expect((await probed(port, "s7", "slot=1", "DB1.DBW8")).granted).toBe(
      "messages (PDU) of 480 bytes of the 960 asked for, 3 jobs at once of 8",
    );
    const fins = await startFins();
    const cip = await startCipDevice({});
    const modbus = await startModbusPlant({ units: new Map([[1, { holding: new Map([[1, 22]]) }]]) });
    cleanUp.push(
      () => fins.close(),
      () => cip.close(),
      () => modbus.close(),
    );
    const nodes = ["target_plc=Cs1OrNewer", "local_address=0.0.0", "remote_address=0.0.0", "D0"];
    expect((await probed(fins.port, "fins", ...nodes)).granted).toMatch(
      /^node 0\.\d+\.0 for the collector, 0\.\d+\.0 for the controller, over TCP; reads of \d+ words, \d+ requests? at once$/,
    );
    expect((await probed(cip.port, "vendor_a", "NoTag")).granted).toBe("a connection with messages of 4000 bytes");
    expect((await probed(modbus.port, "modbus_tcp", "holding:1", "max_registers=60")).granted).toContain("reads of 60 registers");
  });
});

it("names the command where the source is a configured one", () => {
  expect(setCommand("press-1", ["rack=0", "slot=1"])).toBe("type `collector source set press-1 rack=0 slot=1`");
});
