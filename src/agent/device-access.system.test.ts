import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type AnyDriver, defineDriver, type Limits, type Request } from "../../drivers/driver.ts";
import { clock, running, source, variable } from "../../test/support/agent.ts";
import { createResolver, type LookUp } from "../lib/resolver.ts";
import { ReasonError } from "../model/reason.ts";

interface Details {
  readonly host: string;
  readonly port: number;
  readonly transport: "tcp" | "udp";
}

/**
 * Devices at addresses, which take any number of connections and tell how many there were at once. Those that do not live take them and
 * answer nothing.
 */
function plant(names: Record<string, readonly string[] | "fails" | "silent">) {
  const living = new Set<string>();
  const opened: string[] = [];
  const open = new Map<string, number>();
  const most = new Map<string, number>();
  let readMs = 0;
  const driver = defineDriver<Details, Record<string, never>, number, Request<number>, Limits>({
    type: "modbus_tcp",
    title: "Addresses",
    details: z.object({ host: z.string(), port: z.int(), transport: z.enum(["tcp", "udp"]).default("tcp") }),
    settings: z.strictObject({}) as unknown as z.ZodType<Record<string, never>>,
    maxConnections: 1,
    endpoint: ({ host, port, transport }) => ({ host, port, transport }),
    keepsConnection: () => true,
    parseAddress: (text) => ({ address: text === "silent" ? 0 : 1, type: { scalar: "uint16" } }),
    plan: (points) => points.map((point) => ({ points: [point] })),
    async connect({ details: { host, port, transport } }, ctx) {
      const [first] = (await ctx.resolve?.(host, ctx.signal)) ?? [];
      const address = first?.address ?? "";
      const where = `${address}:${port}`;
      ctx.connected?.(host, address);
      opened.push(address);
      open.set(where, (open.get(where) ?? 0) + 1);
      most.set(where, Math.max(most.get(where) ?? 0, open.get(where) ?? 0));
      let isOpen = true;
      return {
        limits: { maxPoints: 1, maxBytes: 2, inFlight: 1 },
        async read({ points }) {
          await sleep(readMs);
          if (living.has(address) && points[0]?.address === 1)
            return points.map(() => ({ quality: "good" as const, value: transport === "tcp" ? 6 : 17 }));
          throw new ReasonError("TIMEOUT", "no answer");
        },
        alive: () => isOpen,
        async close() {
          if (isOpen) open.set(where, (open.get(where) ?? 1) - 1);
          isOpen = false;
        },
      };
    },
  }) as AnyDriver;
  const lookUp: LookUp = async (host) => {
    const found = names[host] ?? [];
    if (found === "silent") return new Promise<never>(() => {});
    if (found === "fails") throw Object.assign(new Error("no name server"), { code: "ESERVFAIL", syscall: "queryA" });
    return found.map((address) => ({ address, family: 4 }));
  };
  const resolver = createResolver({ lookUp, now: clock.monotonicMs });
  return {
    ...running({ resolver, drivers: { modbus_tcp: { driver: async () => ({ default: driver }) } } }),
    living,
    opened,
    most: (where: string) => most.get(where),
    /** What was is counted no more. */
    settle: () => {
      most.clear();
      for (const [where, now] of open) most.set(where, now);
    },
    takes: (ms: number) => {
      readMs = ms;
    },
  };
}

const device = (n: number, details: Partial<Details>) => source(n, 502, { variables: [variable(n, 1, "a")] }, { ...details });

describe("of a name's addresses", () => {
  it("the third is found where connections to the others bring no answer", async () => {
    const { agent, of, living, opened } = plant({ press: ["10.0.0.1", "10.0.0.2", "10.0.0.3"] });
    living.add("10.0.0.3");
    await agent.apply([device(1, { host: "press" })]);
    await expect.poll(() => of("machine-1").length, { timeout: 8000 }).toBeGreaterThan(0);
    expect([...new Set(opened)]).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
  });

  it("another is used when that of the open connection answers no more, and the first again in its turn", async () => {
    const { agent, of, living } = plant({ press: ["10.0.0.1", "10.0.0.2"] });
    await agent.apply([device(1, { host: "press" })]);
    for (const address of ["10.0.0.1", "10.0.0.2", "10.0.0.1"]) {
      living.clear();
      living.add(address);
      const before = of("machine-1").length;
      await expect.poll(() => of("machine-1").length, { timeout: 8000 }).toBeGreaterThan(before + 2);
    }
  });

  it("the one that answers others is kept to by a source without an answer", async () => {
    const { agent, of, report, living, opened } = plant({ press: ["10.0.0.1", "10.0.0.2"] });
    living.add("10.0.0.1");
    await agent.apply([device(1, { host: "press" })]);
    await expect.poll(() => of("machine-1").length).toBeGreaterThan(0);
    await agent.apply([device(1, { host: "press" }), { ...device(2, { host: "press" }), variables: [variable(2, 1, "silent")] }]);
    await expect.poll(() => report(2)?.counters.failed_readouts, { timeout: 8000 }).toBeGreaterThan(2);
    expect(new Set(opened)).toEqual(new Set(["10.0.0.1"]));
    expect(report(1)?.counters.failed_readouts).toBe(0);
  });
});

describe("one device under two spellings", () => {
  it.each([
    ["press", "10.0.0.1"],
    ["press", "mill"],
    ["press", "PRESS."],
    ["::ffff:10.0.0.1", "10.0.0.1"],
  ])("has one connection from the start: %s and %s", async (one, other) => {
    const { agent, of, living, most, takes } = plant({ press: ["10.0.0.1"], mill: ["10.0.0.1"], "PRESS.": ["10.0.0.1"] });
    living.add("10.0.0.1");
    takes(20);
    await agent.apply([device(1, { host: one }), device(2, { host: other })]);
    await expect.poll(() => Math.min(of("machine-1").length, of("machine-2").length), { timeout: 8000 }).toBeGreaterThan(5);
    expect(most("10.0.0.1:502")).toBe(1);
  });

  it("keeps them apart by the transport: TCP and UDP of one port wait for each other no more than two devices do", async () => {
    const { agent, of, living, most, takes } = plant({});
    living.add("10.0.0.1");
    takes(100);
    const details = { host: "10.0.0.1" };
    await agent.apply([device(1, { ...details, transport: "tcp" }), device(2, { ...details, transport: "udp" }), device(3, details)]);
    await expect.poll(() => Math.min(...[1, 2, 3].map((n) => of(`machine-${n}`).length)), { timeout: 8000 }).toBeGreaterThan(3);
    // One of TCP, which two sources share, and one of UDP.
    expect(most("10.0.0.1:502")).toBe(2);
  });

  it("has one connection where the name can be looked up later, and nobody waits for it until then", async () => {
    const names: Record<string, readonly string[] | "fails" | "silent"> = { press: "silent", mill: "fails" };
    const { agent, of, report, living, most, takes } = plant(names);
    living.add("10.0.0.1");
    takes(20);
    const late = device(1, { host: "press" });
    const began = performance.now();
    await agent.apply([{ ...late, local: { name_timeout: "2s" } }, device(2, { host: "mill" }), device(3, { host: "10.0.0.1" })]);
    await expect.poll(() => report(1)?.error?.reason.type, { timeout: 8000 }).toBe("LOOKUP_ERROR");
    // Not once more in its turn.
    expect(performance.now() - began).toBeLessThan(3500);
    expect(report(1)?.error?.detail).toBe("no answer for the name press within 2000 ms");
    expect(report(2)?.error).toMatchObject({ reason: { type: "LOOKUP_ERROR" }, detail: expect.stringContaining("no name server") });
    expect(of("machine-3").length).toBeGreaterThan(5);
    names["mill"] = ["10.0.0.1"];
    await expect.poll(() => of("machine-2").length, { timeout: 8000 }).toBeGreaterThan(3);
    expect(most("10.0.0.1:502")).toBe(1);
    expect(report(3)?.counters.failed_readouts).toBe(0);
  });

  it("has one connection where the name's third address is the one that lives", async () => {
    const { agent, of, living, most, takes, settle } = plant({ press: ["10.0.0.1", "10.0.0.2", "10.0.0.3"] });
    living.add("10.0.0.3");
    takes(20);
    await agent.apply([device(1, { host: "press" }), device(2, { host: "press" }), device(3, { host: "10.0.0.3" })]);
    await expect.poll(() => Math.min(of("machine-1").length, of("machine-2").length), { timeout: 12_000 }).toBeGreaterThan(2);
    settle();
    const before = of("machine-1").length;
    await expect.poll(() => of("machine-1").length, { timeout: 8000 }).toBeGreaterThan(before + 5);
    expect(most("10.0.0.3:502")).toBe(1);
  });

  it("keeps no connection for a source that comes only in a minute to where the device was looked for first", async () => {
    const { agent, of, living, most } = plant({ press: ["10.0.0.1", "10.0.0.2"] });
    living.add("10.0.0.2");
    const rare = device(2, { host: "press" });
    await agent.apply([device(1, { host: "press" }), { ...rare, record: { ...rare.record, readout_interval: 60_000 } }]);
    await expect.poll(() => Math.min(of("machine-1").length, 5 * of("machine-2").length), { timeout: 8000 }).toBeGreaterThan(4);
    expect(most("10.0.0.2:502")).toBe(1);
  });
});
