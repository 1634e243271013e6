import { expect, it } from "vitest";
import { addressesIn, portsIn } from "./network.ts";

it.each([
  ["10.0.0.0/24", 254, "10.0.0.1", "10.0.0.254"],
  ["10.0.0.77/24", 254, "10.0.0.1", "10.0.0.254"],
  ["192.168.4.0/22", 1022, "192.168.4.1", "192.168.7.254"],
  ["10.0.0.4/30", 2, "10.0.0.5", "10.0.0.6"],
  ["10.0.0.4/31", 2, "10.0.0.4", "10.0.0.5"],
  ["255.255.255.255", 1, "255.255.255.255", "255.255.255.255"],
])("%s has %i addresses of devices", (network, count, first, last) => {
  const addresses = addressesIn(network);
  expect([addresses.length, addresses[0], addresses.at(-1)]).toEqual([count, first, last]);
});

it.each(["10.0.0.0/21", "10.0.0.0/0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/24", "fd00::/120", "plc-1", "", "10.0.0.0/24/24", "010.0.0.1"])(
  "refuses the network %j",
  (network) => expect(addressesIn(network)).toEqual(expect.stringContaining(network)),
);

it("takes ports once each, and 16 at most", () => {
  expect(portsIn("502, 102,502")).toEqual([502, 102]);
  for (const list of ["", "0", "65536", "502-510", "a", "1,,2"]) expect(portsIn(list)).toEqual(expect.stringContaining("expected ports"));
  expect(portsIn(Array.from({ length: 17 }, (_, i) => i + 1).join(","))).toEqual(expect.stringContaining("at most 16"));
});
