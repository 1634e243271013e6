import { describe, expect, it } from "vitest";
import { textsOf } from "../../src/model/testing/warnings.ts";
import type { Limits } from "../driver.ts";
import driver from "./driver.ts";
import { nodesOf } from "./target.ts";

const detailsOf = (more: object = {}) =>
  driver.details.parse({ type: "fins", host: "plc", local_address: "0.0.0", remote_address: "0.10.0", ...more });
const key = (details: object, local: object = {}) => driver.connectionKey?.(detailsOf(details), driver.settings.parse(local));

describe("sources share a connection", () => {
  it("where nodes, memory and transport are the same", () => {
    expect(key({})).toBe(key({}, { max_gap: 0, max_words: 5, max_items: 3, in_flight: 1 }));
    const others = [
      key({}),
      key({ remote_address: "0.11.0" }),
      key({ local_address: "0.1.0" }),
      key({ target_plc: "Classic" }),
      key({ target_plc: "Classic" }, { plc_series: "c" }),
      key({}, { transport: "tcp" }),
      key({}, { transport: "udp" }),
      key({}, { local_port: 9600 }),
      key({}, { retransmissions: 0 }),
    ];
    expect(new Set(others).size).toBe(others.length);
  });

  it("and each asks by its own settings, within what is granted", () => {
    const granted = { maxPoints: 1000, maxBytes: 1400, inFlight: 8, maxWords: 700, maxItems: 128, maxGap: 999 } as Limits;
    const own = (local: object) => driver.limits?.(granted, driver.settings.parse(local));
    expect(own({})).toEqual({ ...granted, inFlight: 2, maxGap: 998 });
    expect(own({ max_words: 999, max_items: 167, in_flight: 8 })).toEqual({ ...granted, maxGap: 998 });
    expect(own({ max_words: 5, max_items: 0, max_gap: 0, in_flight: 1 })).toEqual({
      ...granted,
      ...{ maxWords: 5, maxItems: 0, maxGap: 0, inFlight: 1 },
    });
  });
});

it("shares its place with sources over the same transport; what may be either counts as TCP", () => {
  const transportOf = (local: object) => driver.endpoint(detailsOf(), driver.settings.parse(local));
  expect(transportOf({})).toEqual({ host: "plc", port: 9600, transport: "tcp" });
  expect(transportOf({ transport: "tcp" }).transport).toBe("tcp");
  expect(transportOf({ transport: "udp" }).transport).toBe("udp");
  expect(driver.keepsConnection(detailsOf(), driver.settings.parse({}))).toBe(true);
  expect(driver.maxConnections).toBe(1);
});

it("warns of settings that have no effect", () => {
  const warnings = (details: object, local: object) => textsOf(driver.warningsOf?.(detailsOf(details), driver.settings.parse(local)));
  expect(warnings({}, {})).toEqual([]);
  expect(warnings({ target_plc: "Classic" }, { plc_series: "cv", local_port: 9600 })).toEqual([]);
  expect(warnings({}, { plc_series: "cv", transport: "tcp", local_port: 9600 })).toEqual([
    "plc_series cv has no effect: target_plc is Cs1OrNewer",
    "local_port 9600 has no effect: it is for UDP",
  ]);
});

describe("nodes", () => {
  const nodes = (local: string, remote: string) =>
    nodesOf({ type: "fins", host: "plc", port: 9600, target_plc: "Cs1OrNewer", local_address: local, remote_address: remote });
  it("are read part by part", () =>
    expect(nodes("1.50.0", "127.254.255")).toEqual({
      local: { network: 1, node: 50, unit: 0 },
      remote: { network: 127, node: 254, unit: 255 },
    }));
  it.each(["128.1.0", "0.255.0", "0.1.256", "0.1", "0.1.0.0", "a.b.c", ""])("are not %s", (text) => {
    expect(() => nodes("0.1.0", text)).toThrow(/is not NETWORK.NODE.UNIT/);
    expect(driver.details.safeParse({ type: "fins", host: "plc", local_address: text, remote_address: "0.1.0" }).success).toBe(false);
  });
  it("are two", () => {
    expect(() => nodes("0.10.0", "0.10.0")).toThrow(/are both node 10 of network 0/);
    expect(nodes("0.10.0", "1.10.0").remote.node).toBe(10);
    expect(nodes("0.0.0", "0.0.0").local.node).toBe(0);
  });
});
