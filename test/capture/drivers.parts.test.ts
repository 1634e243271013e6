import { describe, expect, it } from "vitest";
import type { AnyDriver, DriverContext } from "../../drivers/driver.ts";
import { DRIVERS } from "../../drivers/index.ts";
import { Ring, ringMemory } from "../../src/lib/capture/ring.ts";
import { SECRET, startRig, within } from "../conformance/rig.ts";
import { readAll } from "../conformance/support/read-all.ts";
import { captureOf, formsOf } from "./captured.ts";
import { isMissing, look } from "./tshark.ts";

/** What tshark calls the protocol of each driver; undefined: it knows none, and takes it for data. OPC UA: see secrets.test.ts. */
const NAMES: Readonly<Record<string, string | undefined>> = {
  modbus_tcp: "modbus",
  s7: "s7comm",
  // What follows the ISO connection is inside TLS, and Debian's tshark does not know S7CommPlus.
  s7plus: "cotp",
  fins: "omron",
  fins_udp: "omron",
  vendor_a: "enip",
  vendor_gateway: undefined,
  odac: undefined,
  plastcontrol: undefined,
  vendor_b: undefined,
};

/** Reads all that a driver's simulator has, and gives the memory of what passed. */
async function recordOf(name: string): Promise<{ readonly memory: SharedArrayBuffer; readonly driver: AnyDriver; readonly port: number }> {
  const memory = ringMemory(1024 * 1024);
  const rig = await startRig(name);
  const ctx: DriverContext = { ...within(30_000), wire: new Ring(memory) };
  try {
    const session = await rig.connect(ctx, rig.simulator.port);
    await readAll(rig.driver, session, rig.pointsOf(rig.simulator.variables), ctx);
    await session.close();
    return { memory, driver: rig.driver, port: rig.simulator.port };
  } finally {
    await rig.close();
  }
}

it("knows each type", () => expect(Object.keys(DRIVERS).filter((type) => !Object.hasOwn(NAMES, type))).toEqual(["opcua"]));

describe.skipIf(isMissing && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")("tshark", () => {
  it.each(Object.entries(NAMES))("names what the driver of %s exchanged (%s)", async (name, protocol) => {
    const { memory, driver, port } = await recordOf(name);
    const isUdp = name === "fins_udp";
    const capture = captureOf(memory, { type: name, standardPort: driver.standardPort, secrets: [SECRET] });
    const packets = look(capture);
    expect(packets.filter(({ trouble }) => trouble !== "")).toEqual([]);
    expect(packets.length).toBeGreaterThan(isUdp ? 1 : 6);
    expect(packets.every(({ ports }) => ports.includes(String(driver.standardPort ?? port)))).toBe(true);
    const named = packets.filter(({ protocols }) => protocols.split(":").includes(protocol ?? "data"));
    expect(named.length, packets.map(({ protocols }) => protocols).join("\n")).toBeGreaterThan(1);
    for (const form of formsOf(SECRET)) expect(capture.includes(form)).toBe(false);
    if (isUdp) return;
    expect(packets.slice(0, 3).map(({ flags }) => flags)).toEqual(["0x0002", "0x0012", "0x0010"]);
    expect(packets.filter(({ flags }) => (Number(flags) & 1) === 1).length).toBeGreaterThanOrEqual(1);
  });

  it("would see a wrong checksum", async () => {
    const { memory } = await recordOf("modbus_tcp");
    const capture = captureOf(memory, { type: "modbus_tcp", standardPort: 502 });
    // The transaction id of the first request: whole in one packet, behind headers of 40 bytes.
    const at = capture.indexOf(Buffer.of(0x45, 0, 0, 40 + 12));
    capture.writeUInt16BE(0xbeef, at + 40);
    expect(look(capture).filter(({ trouble }) => trouble !== "")).toMatchObject([{ trouble: expect.stringContaining("checksum") }]);
  });
});
