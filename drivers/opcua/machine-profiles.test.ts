import { describe, expect, it } from "vitest";
import type { Discovered } from "../driver.ts";
import { parseAddress } from "./address.ts";
import { MACHINE_PROFILES, machineProfile } from "./machine-profiles.ts";

const EM77 = "nsu=http://opcfoundation.org/UA/PlasticsRubber/IMM2MES/";
const EM83 = "nsu=http://opcfoundation.org/UA/PlasticsRubber/GeneralTypes/";
const PACKML = "nsu=http://opcfoundation.org/UA/PackML/";
const at = (browsePath: string): Discovered => ({ address: "ns=4;i=7", name: "x", type: { scalar: "uint64" }, unit: "1", browsePath });

describe("a profile of machines", () => {
  it("takes what the published model names, wherever the machine is, and keeps the browse path", () => {
    const browsePath = `/Objects/nsu=urn:maker;IMM_1/${EM77};Jobs/${EM83};ActiveJobValues/${EM83};JobPartsCounter`;
    expect(machineProfile("euromap77")?.(at(browsePath))).toEqual({
      address: browsePath,
      name: "Jobs.ActiveJobValues.JobPartsCounter",
      type: { scalar: "uint64" },
      unit: "1",
      browsePath,
    });
    expect(machineProfile("euromap83")?.(at(browsePath))).toBeDefined();
    expect(parseAddress(browsePath, undefined).address).toMatchObject({ kind: "path", text: browsePath });
  });

  it("reads a part of a value where the model has it in a structure", () => {
    const found = machineProfile("packml")?.(at(`/Objects/nsu=urn:maker;Line/${PACKML};Admin/${PACKML};ProdProcessedCount`));
    expect(found?.address).toMatch(/;ProdProcessedCount#\[0\]\.AccCount$/);
    expect(found?.type).toEqual({ scalar: "auto" });
    expect(parseAddress(found?.address ?? "", undefined).address.select).toHaveLength(2);
  });

  it.each([
    ["the name of another namespace", `/Objects/${EM77};Jobs/${EM83};ActiveJobValues/nsu=urn:maker;JobPartsCounter`],
    ["another folder", `/Objects/${EM77};Jobs/${EM83};ActiveJob/${EM83};JobPartsCounter`],
    ["a longer name", `/Objects/${EM77};Jobs/${EM83};ActiveJobValues/${EM83};JobPartsCounter2`],
  ])("leaves out %s", (_, path) => expect(machineProfile("euromap77")?.(at(path))).toBeUndefined());

  it("leaves out folders, and knows no other profile", () => {
    const folder = { ...at(`/Objects/${PACKML};Status/${PACKML};MachSpeed`), type: undefined };
    expect(machineProfile("packml")?.(folder)).toBeUndefined();
    for (const name of MACHINE_PROFILES) expect(machineProfile(name)).toBeDefined();
    for (const name of ["", "constructor", "__proto__"]) expect(machineProfile(name)).toBeUndefined();
  });
});
