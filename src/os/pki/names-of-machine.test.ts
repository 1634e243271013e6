import { expect, it } from "vitest";
import { namesOfMachine } from "./names-of-machine.ts";

it("names each address once, and none that only this machine or this link has", () => {
  const at = (address: string, internal = false) => ({ address, internal });
  const interfaces = {
    lo: [at("127.0.0.1", true)],
    a: [at("10.0.0.7"), at("fe80::1"), at("fd00::7%a")],
    b: [at("10.0.0.7"), at("169.254.1.2")],
  };
  expect(namesOfMachine("plant-7", interfaces)).toEqual({ dns: ["plant-7"], ip: ["10.0.0.7", "fd00::7"] });
  expect(namesOfMachine("plant_7", {})).toEqual({ dns: [], ip: [] });
});
