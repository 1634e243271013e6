import { describe, expect, it } from "vitest";
import { type PlainReasonType, ReasonError } from "../../src/model/reason.ts";
import { deviceMemory } from "../../test/support/driver-context.ts";
import type { Transport } from "./target.ts";
import { KEPT_FOR_MS, overFirst, TransportChoice } from "./transport.ts";

/** Tries to connect where only these answer; the transports that were tried, and what came of it. */
async function tried(choice: TransportChoice, answering: readonly Transport[], reason: PlainReasonType = "TIMEOUT") {
  const order: string[] = [];
  const outcome = await overFirst(choice, new AbortController().signal, async (transport) => {
    order.push(transport);
    if (!answering.includes(transport)) throw new ReasonError(reason, `no ${transport}`);
    return transport;
  }).catch((error: ReasonError) => `${error.reason.type}: ${error.message}`);
  return `${order.join(", ")} > ${outcome}`;
}

describe("auto", () => {
  it("tries TCP, then UDP, and has the reason of TCP where both fail", async () => {
    const choice = new TransportChoice("auto", deviceMemory());
    expect(await tried(choice, [])).toBe("tcp, udp > TIMEOUT: over FINS/TCP: no tcp; over FINS/UDP: no udp");
    expect(await tried(choice, ["udp"])).toBe("tcp, udp > udp");
    expect(await tried(new TransportChoice("auto", deviceMemory()), ["tcp", "udp"])).toBe("tcp > tcp");
  });

  it("keeps what works, and after ten minutes without an answer tries the other too", async () => {
    let nowMs = 1000;
    const device = deviceMemory();
    const choice = () => new TransportChoice("auto", device, () => nowMs);
    expect(await tried(choice(), ["udp"])).toBe("tcp, udp > udp");
    expect(await tried(choice(), ["udp", "tcp"])).toBe("udp > udp");
    nowMs += KEPT_FOR_MS;
    expect(await tried(choice(), [])).toBe("udp > TIMEOUT: no udp");
    nowMs += KEPT_FOR_MS - 1;
    expect(await tried(choice(), [])).toBe("udp > TIMEOUT: no udp");
    nowMs += 1;
    // The reason is that of the one that worked last.
    expect(await tried(choice(), [])).toBe("udp, tcp > TIMEOUT: over FINS/UDP: no udp; over FINS/TCP: no tcp");
    expect(await tried(choice(), ["tcp"])).toBe("udp, tcp > tcp");
    expect(await tried(choice(), ["udp"])).toBe("tcp > TIMEOUT: no tcp");
  });

  it("counts the ten minutes again from the next failure once it has answered", async () => {
    let nowMs = 0;
    const device = deviceMemory();
    const choice = new TransportChoice("auto", device, () => nowMs);
    await tried(choice, ["tcp"]);
    await tried(choice, []);
    nowMs += KEPT_FOR_MS - 1;
    expect(await tried(choice, ["tcp"])).toBe("tcp > tcp");
    nowMs += 10;
    expect(await tried(choice, [])).toBe("tcp > TIMEOUT: no tcp");
    expect(await tried(choice, ["udp"])).toBe("tcp > TIMEOUT: no tcp");
  });

  it("does not try the other where both have the same trouble", async () => {
    const choice = new TransportChoice("auto", deviceMemory());
    expect(await tried(choice, [], "LOOKUP_ERROR")).toBe("tcp > LOOKUP_ERROR: no tcp");
    const stop = new AbortController();
    const order: string[] = [];
    await overFirst(choice, stop.signal, (transport) => {
      order.push(transport);
      stop.abort();
      throw new ReasonError("TIMEOUT", "stopped");
    }).catch(() => {});
    expect(order).toEqual(["tcp"]);
  });

  it("remembers nothing without a memory of the device", async () => {
    const choice = new TransportChoice("auto", undefined);
    expect(await tried(choice, ["udp"])).toBe("tcp, udp > udp");
    expect(await tried(choice, ["udp"])).toBe("tcp, udp > udp");
  });
});

it("takes the one that is set, whatever worked", async () => {
  const device = deviceMemory();
  await tried(new TransportChoice("auto", device), ["tcp"]);
  expect(await tried(new TransportChoice("udp", device), ["tcp"])).toBe("udp > TIMEOUT: no udp");
  expect(await tried(new TransportChoice("tcp", device), ["udp"])).toBe("tcp > TIMEOUT: no tcp");
  expect(await tried(new TransportChoice("auto", device), ["tcp"])).toBe("tcp > tcp");
});
