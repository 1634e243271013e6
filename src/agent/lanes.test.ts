import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnySession } from "../../drivers/driver.ts";
import { createLanes } from "./lanes.ts";

function connection(open: Set<AnySession>): AnySession {
  const session = {
    alive: () => open.has(session),
    async close() {
      await Promise.resolve();
      open.delete(session);
    },
  } as unknown as AnySession;
  open.add(session);
  return session;
}

const forever = new AbortController().signal;

describe("lanes", () => {
  it("hands a kept connection to the next of the same key, and closes it for another key when the maximum is reached", async () => {
    const lanes = createLanes();
    const open = new Set<AnySession>();
    const first = await lanes.acquire("d", "a", 1, forever);
    const session = connection(open);
    first?.release(session);
    const second = await lanes.acquire("d", "a", 1, forever);
    expect(second?.session).toBe(session);
    second?.release(session);
    const other = await lanes.acquire("d", "b", 1, forever);
    expect(other?.session).toBeUndefined();
    expect(open.size).toBe(0);
    other?.release(undefined);
  });

  it("does not hand out a connection that the far side has dropped", async () => {
    const lanes = createLanes();
    const open = new Set<AnySession>();
    const session = connection(open);
    (await lanes.acquire("d", "a", 1, forever))?.release(session);
    open.clear();
    expect((await lanes.acquire("d", "a", 1, forever))?.session).toBeUndefined();
  });

  it("gives up waiting when the signal aborts, and those behind go on", async () => {
    const lanes = createLanes();
    const held = await lanes.acquire("d", "a", 1, forever);
    const stop = new AbortController();
    const givenUp = lanes.acquire("d", "b", 1, stop.signal);
    const behind = lanes.acquire("d", "c", 1, forever);
    stop.abort();
    expect(await givenUp).toBeUndefined();
    held?.release(undefined);
    expect(await behind).toBeDefined();
  });

  it("drops idle connections of a key whose last source has gone", async () => {
    const lanes = createLanes();
    const open = new Set<AnySession>();
    (await lanes.acquire("d", "a", 2, forever))?.release(connection(open));
    await lanes.drop("d", "a");
    expect(open.size).toBe(0);
  });

  it("serves every asker once, in order, and never has more connections than the maximum", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ key: fc.constantFrom("a", "b", "c"), keep: fc.boolean() }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 3 }),
        async (askers, max) => {
          const lanes = createLanes();
          const open = new Set<AnySession>();
          const served: number[] = [];
          await Promise.all(
            askers.map(async ({ key, keep }, i) => {
              const turn = await lanes.acquire("d", key, max, forever);
              served.push(i);
              const session = turn?.session ?? connection(open);
              expect(open.size).toBeLessThanOrEqual(max);
              await Promise.resolve();
              if (!keep) await session.close();
              turn?.release(keep ? session : undefined);
            }),
          );
          expect(served).toEqual(askers.map((_, i) => i));
        },
      ),
    );
  });
});
