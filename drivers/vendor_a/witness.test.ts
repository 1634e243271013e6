import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStEthernetIp, type StEthernetIp } from "../../test/support/st-ethernet-ip.ts";
import { startSimulator, type VendorASimulator } from "./simulator.ts";

/*
 * Another implementation of the protocol, independent of ours: npm's st-ethernet-ip. It is not asked for what it gets wrong: it knows no
 * UDINT, ULINT and LREAL, takes text for UTF-8, and asks for elements of BOOL arrays with a path that it cannot write.
 */

let simulator: VendorASimulator;
let client: StEthernetIp;
beforeAll(async () => {
  simulator = await startSimulator();
  client = await openStEthernetIp(simulator.port);
});
afterAll(async () => {
  await client.close();
  await simulator.close();
});

const UNKNOWN_TO_IT = /^(Produced|Energy|Pressure|Mask|Product|Alarms|Recipe1\.Flags)\b/i;
const HOST_OF_BITS = /^(ZZZZZZZZZZ|CTL$)/;

/** A structure as text, without the hosts of bits that it shows. */
function textOf(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(textOf)}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([name]) => !HOST_OF_BITS.test(name));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`)}}`;
}

describe("st-ethernet-ip reads from the simulator", () => {
  it("every type and place that it knows", async () => {
    const known = simulator.variables.filter(({ address }) => !UNKNOWN_TO_IT.test(address));
    expect(known.length).toBeGreaterThan(35);
    for (const { address, value } of known) {
      const read = await client.read(address, Array.isArray(value) ? value.length : undefined);
      const flat = Array.isArray(read) && Array.isArray(value) ? read.slice(0, value.length) : read;
      expect(typeof flat === "object" && !Array.isArray(flat) ? textOf(flat) : flat, address).toEqual(value);
    }
  });

  it("an array in fragments, and several tags in a packet", async () => {
    const { fragments } = simulator.device.cpu.counts;
    const log = simulator.variables.find(({ address }) => address === "Log");
    expect(await client.read("Log", 1500)).toEqual(log?.value);
    expect(simulator.device.cpu.counts.fragments - fragments).toBeGreaterThan(10);
    const group = client.prepare(["Count", "Total", "NoSuchTag", "Temperature"]);
    await group.read();
    expect(group.values()).toEqual([-300, -2_000_000_000, null, 21.5]);
    expect(simulator.device.lastMessages.at(-1)).toMatchObject({ service: 0x0a, items: 4 });
  });

  it("who it is, every symbol, and why it may not read", async () => {
    expect(client.controller).toBe("1756-L83E/B");
    for (const { address } of simulator.variables) {
      const [name = ""] = address.replace(/^program:/i, "Program:").match(/^(Program:\w+\.)?\w+/) ?? [];
      expect(client.symbols.map((symbol) => symbol.toLowerCase())).toContain(name.toLowerCase());
    }
    await expect(client.read("NoSuchTag")).rejects.toMatchObject({ generalStatusCode: 4 });
    await expect(client.read("Hidden")).rejects.toMatchObject({ generalStatusCode: 15 });
    expect(simulator.device.violations).toEqual([]);
  });

  it("the same without a connection", async () => {
    const routed = await openStEthernetIp(simulator.port, { isConnected: false });
    const { connected } = simulator.device.counts;
    expect(await routed.read("Recipes[1].Steps[3]")).toBe(203);
    await routed.close();
    expect(simulator.device.counts.connected).toBe(connected);
  });
});
