import { expect, test } from "vitest";
import { parseNeighbour, parseRoute, routeTo } from "./route.ts";

test("what ip route get prints", () => {
  expect(parseRoute("10.1.2.3 via 192.0.2.1 dev eth0 src 192.0.2.2 uid 0 \n    cache \n")).toEqual({
    device: "eth0",
    via: "192.0.2.1",
    from: "192.0.2.2",
    isLocal: false,
  });
  expect(parseRoute("192.0.2.7 dev eth0 src 192.0.2.2 uid 0")).toMatchObject({ via: undefined, isLocal: false });
  expect(parseRoute("local 127.0.0.1 dev lo src 127.0.0.1 uid 0")).toMatchObject({ isLocal: true });
  expect(parseRoute("unreachable 10.9.9.9 from :: dev lo table unspec")).toBe("none");
  expect(parseRoute("")).toBeUndefined();
});

test("what ip neigh show prints", () => {
  expect(parseNeighbour("192.0.2.1 dev eth0 lladdr 02:fc:00:00:00:05 STALE \n")).toEqual({ mac: "02:fc:00:00:00:05", state: "STALE" });
  expect(parseNeighbour("192.0.2.9 dev eth0 FAILED \n")).toEqual({ mac: undefined, state: "FAILED" });
  expect(parseNeighbour("")).toBeUndefined();
});

test("what is no address is never given to ip", async () => {
  const { signal } = new AbortController();
  expect(await routeTo("-batch", signal)).toBeUndefined();
  expect(await routeTo("10.0.0.1; reboot", signal)).toBeUndefined();
});
