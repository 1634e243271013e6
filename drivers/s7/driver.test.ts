import { describe, expect, it } from "vitest";
import type { Limits } from "../driver.ts";
import driver from "./driver.ts";

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
