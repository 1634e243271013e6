import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type AnyDriver, defineDriver, type Limits, type Request } from "../../drivers/driver.ts";
import { clock, running, source, variable } from "../../test/support/agent.ts";
import { ReasonError } from "../model/reason.ts";
import { createResolver } from "./resolve.ts";

interface Details {
  readonly host: string;
  readonly port: number;
  readonly transport: "tcp" | "udp";
}

/**
 * Devices at addresses, which all take connections; those that do not live answer nothing.
 */
function plant(names: Record<string, readonly string[]>) {
  const living = new Set<string>();
  const opened: string[] = [];
  const driver = defineDriver<Details, Record<string, never>, number, Request<number>, Limits>({
    type: "modbus_tcp",
    title: "Addresses",
    details: z.object({ host: z.string(), port: z.int(), transport: z.enum(["tcp", "udp"]).default("tcp") }),
    settings: z.strictObject({}) as unknown as z.ZodType<Record<string, never>>,
    maxConnections: 1,
    endpoint: ({ host, port, transport }) => ({ host, port, transport }),
    keepsConnection: () => true,
    parseAddress: () => ({ address: 0, type: { scalar: "uint16" } }),
    plan: (points) => points.map((point) => ({ points: [point] })),
    async connect({ details: { host } }, ctx) {
      const [first] = (await ctx.resolve?.(host, ctx.signal)) ?? [];
      const address = first?.address ?? "";
      ctx.connected?.(host, address);
      opened.push(address);
      let isOpen = true;
      return {
        limits: { maxPoints: 1, maxBytes: 2, inFlight: 1 },
        async read({ points }) {
          if (living.has(address)) return points.map(() => ({ quality: "good" as const, value: 1 }));
          throw new ReasonError("TIMEOUT", "no answer");
        },
        alive: () => isOpen,
        async close() {
          isOpen = false;
        },
      };
    },
  }) as AnyDriver;
  const lookUp = async (host: string) => (names[host] ?? []).map((address) => ({ address, family: 4 as const }));
  const resolver = createResolver({ lookUp, now: clock.monotonicMs });
  return {
    ...running({ resolver, drivers: { modbus_tcp: { driver: async () => ({ default: driver }) } } }),
    living,
    opened,
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
});
