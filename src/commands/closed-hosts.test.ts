import { expect, test } from "vitest";
import { policySchema } from "../model/policy.ts";
import { settingsSchema } from "../model/settings.ts";
import { type FoundHost, foundHosts, hostsOf, openingLines } from "./closed-hosts.ts";

const source = (host: string, port: number, ...addresses: readonly string[]): FoundHost => ({
  host,
  port,
  of: "sources",
  who: host,
  addresses: addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
});

test("a port that is closed names no networks, which would close all others", () => {
  const policy = policySchema.parse({ sources: { ports: [502] } });
  const lines = openingLines(policy, [source("10.0.0.5", 4840, "10.0.0.5"), source("10.0.0.6", 502, "10.0.0.6")]);
  expect(lines).toEqual(["sources:", "  ports: [502, 4840]"]);
});

test("an address is named once, where a network has it already not at all", () => {
  const policy = policySchema.parse({ sources: { networks: ["10.0.0.0/8"], ports: [502] } });
  expect(openingLines(policy, [source("10.0.0.5", 4840, "10.0.0.5")])).toEqual([
    "sources:",
    "  networks: [10.0.0.0/8]",
    "  ports: [502, 4840]",
  ]);
});

test("a section that begins to name networks names all addresses of what is open, and tells which names have none", () => {
  const policy = policySchema.parse({});
  const away = { ...source("away.plant", 502), addresses: "ENOTFOUND" };
  const lines = openingLines(policy, [source("169.254.7.7", 502, "169.254.7.7"), source("two.plant", 502, "10.0.0.1", "10.0.0.2"), away]);
  expect(lines).toEqual([
    "sources:",
    "  # closed by these networks until its address is among them: away.plant",
    "  networks: [10.0.0.1, 10.0.0.2, 169.254.7.7]",
  ]);
});

test("names an address without its zone, which policy.yaml refuses", () => {
  const lines = openingLines(policySchema.parse({}), [source("fe80::1%eth0", 502, "fe80::1%eth0")]);
  expect(lines).toEqual(["sources:", '  networks: ["fe80::1"]']);
});

test("addresses are judged however many there are", async () => {
  const hosts = Array.from({ length: 60 }, (_, i) => ({ host: `10.0.0.${i}`, port: 502, of: "sources", who: `${i}` }) as const);
  const found = await foundHosts(hosts, 100, AbortSignal.timeout(1000));
  expect(found.map(({ addresses }) => typeof addresses === "string" || addresses[0]?.address)).toEqual(hosts.map(({ host }) => host));
});

test("the second server of an OPC UA source is a host, too", () => {
  const settings = settingsSchema.parse({ state_dir: "/nowhere", sources: { press: { second_endpoint_url: "opc.tcp://10.0.0.8:4841" } } });
  const press = { uuid: "a", name: "press", details: { host: "10.0.0.7", port: 4840 } };
  expect(hostsOf([press], [], settings).map(({ host, port }) => [host, port])).toEqual([
    ["10.0.0.7", 4840],
    ["10.0.0.8", 4841],
  ]);
});
