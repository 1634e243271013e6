import modbus from "../../drivers/modbus_tcp/driver.ts";
import vendorA from "../../drivers/vendor_a/driver.ts";
import { openPlanned } from "../support/planned.ts";
import { openStEthernetIp } from "../support/st-ethernet-ip.ts";
import { benchTags } from "./cip-tags.ts";
import { type Scanner, serveScans } from "./scanning.ts";

/** Reads the tags of the CIP bench, or as many registers. Arguments: `vendor_a`, `st-ethernet-ip` or `modbus_tcp`, port. */
const [who = "", portText = "0"] = process.argv.slice(2);
const port = Number(portText);
const tags = benchTags("read");

async function openOurs(): Promise<Scanner> {
  const variables = tags.map(({ name }) => ({ address: name, type: "DINT" }));
  const details = { type: "vendor_a", host: "127.0.0.1", port };
  let sent = 0;
  const counted = await openPlanned(vendorA, details, {}, variables, (direction) => void (direction === "out" && sent++));
  sent = 0;
  await counted.scan();
  const packets = sent;
  await counted.session.close();
  return { ...(await openPlanned(vendorA, details, {}, variables)), about: { packets } };
}

async function openTheirs(): Promise<Scanner> {
  const client = await openStEthernetIp(port);
  const group = client.prepare(tags.map(({ name }) => name));
  const values = async () => {
    await group.read();
    return group.values();
  };
  return { scan: group.read, values, about: {} };
}

async function openModbus(): Promise<Scanner> {
  const variables = tags.map((_, i) => ({ address: `holding:${i}`, type: "uint16" }));
  const { scan, requests } = await openPlanned(modbus, { type: "modbus_tcp", host: "127.0.0.1", port }, {}, variables);
  return { scan, about: { packets: requests.length } };
}

const open = { vendor_a: openOurs, "st-ethernet-ip": openTheirs, modbus_tcp: openModbus }[who];
if (!open) throw new Error(`no reader is named ${who}`);
await serveScans(
  await open(),
  tags.reduce((sum, { value }) => sum + value, 0),
);
