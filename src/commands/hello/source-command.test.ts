import { expect, it } from "vitest";
import { DETAILS } from "../../model/details.ts";
import { sourceDetails } from "../configuration/source-details.ts";
import { sourceCommand } from "./source-command.ts";

it.each([
  ["vendor_a", 44_818, [], "vendor_a host=10.0.0.5"],
  ["vendor_a", 44_819, [], "vendor_a host=10.0.0.5 port=44819"],
  ["modbus_tcp", 502, [], "modbus_tcp host=10.0.0.5 port=502"],
  ["s7", 102, ["slot=1"], "s7 host=10.0.0.5 slot=1"],
  ["s7plus", 102, [], "s7plus host=10.0.0.5 port=102"],
  ["fins", 9600, ["local_address=0.0.0", "remote_address=0.0.0"], "fins host=10.0.0.5 local_address=0.0.0 remote_address=0.0.0"],
  ["opcua", 4840, [], "opcua endpoint_url=opc.tcp://10.0.0.5:4840"],
] as const)("%s at port %i is added with what the API asks for", (type, port, fields, words) => {
  const command = sourceCommand({ protocol: "", type, fields }, "10.0.0.5", port) ?? "";
  const [, ...given] = words.split(" ");
  expect(DETAILS[type].create.safeParse(sourceDetails(type, given, undefined)).error).toBeUndefined();
  expect(command.replace(" port=502", "")).toBe(`collector source add NAME ${words}`.replace(" port=502", ""));
});

it("keeps an IPv6 address in brackets, and has no command for what is not read", () => {
  expect(sourceCommand({ protocol: "OPC UA", type: "opcua" }, "fd00::5", 4840)).toContain("endpoint_url=opc.tcp://[fd00::5]:4840");
  expect(sourceCommand({ protocol: "HTTP" }, "10.0.0.5", 80)).toBeUndefined();
});
