import { describe, expect, it } from "vitest";
import type { S7Details } from "../../src/model/details.ts";
import type { Limits } from "../driver.ts";
import driver from "./driver.ts";
import { jobRefusal } from "./refusals.ts";
import type { S7Settings } from "./settings.ts";
import { adviceOn, targetOf } from "./target.ts";

const key = (details: object, local: object = {}): string | undefined =>
  driver.connectionKey?.(driver.details.parse({ type: "s7", host: "plc", ...details }), driver.settings.parse(local));

describe("sources share a connection", () => {
  it("where rack, slot, kind of connection and message size are the same", () => {
    expect(key({ slot: 1 })).toBe(key({ slot: 1 }, { max_gap: 0, max_items: 5, in_flight: 1, local_tsap: "10.00" }));
    const others = [
      key({ slot: 1 }),
      key({ slot: 2 }),
      key({ rack: 1, slot: 1 }),
      key({ slot: 1 }, { connection_type: "basic" }),
      key({ slot: 1 }, { pdu_size: 240 }),
      key({ slot: 1 }, { connection_type: "raw" }),
      key({ slot: 1 }, { connection_type: "raw", remote_tsap: "03.00" }),
    ];
    expect(new Set(others).size).toBe(others.length);
    expect(key({ slot: 1 }, { connection_type: "raw" })).toBe(key({ slot: 7 }, { connection_type: "raw" }));
  });

  it("and each asks by its own settings, within what the controller grants", () => {
    const granted = { maxPoints: 1000, maxBytes: 462, inFlight: 3, pduBytes: 480, maxItems: 12, maxGap: 64 } as Limits;
    const own = (local: object) => driver.limits?.(granted, driver.settings.parse(local));
    expect(own({})).toEqual({ ...granted, maxGap: 64 });
    expect(own({ max_items: 20, in_flight: 8, max_gap: 0 })).toEqual({ ...granted, maxGap: 0 });
    expect(own({ max_items: 5, in_flight: 1 })).toEqual({ ...granted, maxItems: 5, inFlight: 1 });
  });
});

it("keeps its connection, and takes one of the few that a controller has", () => {
  const details = driver.details.parse({ type: "s7", host: "plc" });
  const settings = driver.settings.parse({});
  expect(driver.endpoint(details, settings)).toEqual({ host: "plc", port: 102, transport: "tcp" });
  expect(driver.keepsConnection(details, settings)).toBe(true);
  expect(driver.maxConnections).toBe(1);
});

describe("controllers without rack and slot", () => {
  const waysTo = (local: object) => {
    const details = driver.details.parse({ type: "s7", host: "plc" });
    const settings = driver.settings.parse(local) as S7Settings;
    const target = targetOf(details as S7Details, settings);
    if (typeof target === "string") throw new Error(target);
    return {
      tsaps: [target.callingTsap, target.calledTsap].map((tsap) => Buffer.from(tsap).toString("hex")),
      others: (driver.otherWays?.(details, settings) ?? []).map(({ fields }) => fields),
      advice: adviceOn(details as S7Details, settings),
    };
  };

  it("have the usual TSAPs by name", () => {
    expect(waysTo({ connection_type: "logo" }).tsaps).toEqual(["0200", "0200"]);
    expect(waysTo({ connection_type: "s7_200" }).tsaps).toEqual(["4d57", "4d57"]);
    expect(waysTo({ connection_type: "raw", local_tsap: "10.00", remote_tsap: "20.00" }).tsaps).toEqual(["1000", "2000"]);
  });

  it("have advice about TSAPs instead of slots, and a LOGO! the other usual ones", () => {
    expect(waysTo({ connection_type: "s7_200" })).toMatchObject({
      others: [],
      advice: expect.stringMatching(/local 4D\.57, remote 4D\.57/),
    });
    expect(waysTo({ connection_type: "logo" }).others).toEqual([["connection_type=raw", "local_tsap=10.00", "remote_tsap=20.00"]]);
  });

  it("share a connection with none of the other kind", () => {
    expect(key({ slot: 1 }, { connection_type: "logo" })).toBe(key({ slot: 2 }, { connection_type: "logo", local_tsap: "10.00" }));
    expect(key({ slot: 1 }, { connection_type: "logo" })).not.toBe(key({ slot: 1 }, { connection_type: "s7_200" }));
  });
});

it("names three causes of 0x8104", () => {
  const { message } = jobRefusal(0x8104, "DB1");
  for (const cause of [/PUT\/GET/, /protection level/, /hardware configuration loaded.*firmware of the CPU not below/])
    expect(message).toMatch(cause);
});
