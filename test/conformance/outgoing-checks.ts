import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { plainLayout, plainReadout } from "../../src/buffer/testing/readouts.ts";
import type { SinkSpec } from "../../src/delivery/messages.ts";
import { type Context, silentLog } from "../../src/model/context.ts";
import type { Layout } from "../../src/model/layout.ts";
import type { SinkEntry } from "../../src/sinks/index.ts";
import type { PublishedLoss, Sink, SinkBatch } from "../../src/sinks/sink.ts";
import { checkEveryKind, failure, openSink, type Refusals } from "./sink-checks.ts";

/** The real receiver of a kind of sink, as this suite needs it. */
export interface Receiver {
  readonly details: unknown;
  /** Of the batches that it is sent, where it looks at more than their ids. */
  readonly layout?: Layout;
  /** Ids of the batches that it holds, in order of arrival. */
  readonly ids: () => readonly string[];
  /** The messages with values that it holds, each with all its bytes. */
  readonly messages: () => readonly { readonly bytes: number; readonly values: number }[];
  /** Losses that it holds, in order of arrival; absent: nothing there takes any. */
  readonly losses?: () => readonly { readonly id: string; readonly count: number | null }[];
  /** While true it takes nothing. */
  readonly hold: (on: boolean) => void;
  readonly held: () => number;
  readonly drop: () => void;
  /** Nothing listens there any more, for what is needed of it to be asked; absent: stop. */
  readonly leave?: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export interface Harness extends Refusals {
  /**
   * Its connection lasts and carries the batches one after the other: it is lost without a write, and the order is kept. Else each write is a
   * request of its own: they may overtake each other, and the receiver sorts by time.
   */
  readonly lasts: boolean;
  /** The details name its server, for which the policy is asked. False: its address is one of the settings' own. */
  readonly asksPolicy?: boolean;
  /** Its receiver takes losses: Receiver.losses is there. */
  readonly takesLosses: boolean;
  readonly start: () => Promise<Receiver>;
}

const LAYOUT = plainLayout(3);

/** Adds the suite of a kind that sends to a receiver, which acknowledges what it takes. */
export function checkOutgoing(type: string, harness: Harness, registry: Readonly<Record<string, SinkEntry>>): void {
  describe(`the sink ${type}`, () => {
    let far: Receiver;
    let opened: Sink[];

    const batch = (number: number): SinkBatch => ({
      id: `e-${number}`,
      layout: far.layout ?? LAYOUT,
      readouts: [plainReadout(3, number)],
      backlog: false,
    });
    const spec = (change: object = {}, settings: object = harness.settings): SinkSpec => ({
      uuid: "7e0d3c5a-0000-4000-8000-000000000001",
      name: "sink",
      type,
      details: { ...(far.details as object), ...change },
      settings,
      secrets: {},
      publishIntervalUnit: "seconds",
    });
    const ctx = (change: Partial<Context> = {}): Context => ({ signal: new AbortController().signal, log: silentLog, ...change });
    const open = async (change: Partial<Context> = {}, settings: object = harness.settings): Promise<Sink> => {
      const sink = await openSink(spec({}, settings), ctx(change), registry);
      opened.push(sink);
      return sink;
    };

    beforeEach(async () => {
      far = await harness.start();
      opened = [];
    });
    afterEach(async () => {
      for (const sink of opened) await sink.close();
      await far.stop();
    });

    checkEveryKind(type, harness, { registry, spec, ctx, open, batch });

    if (harness.asksPolicy !== false)
      test("sends no packet to an address that the policy closes", async () => {
        let connections = 0;
        const server = net.createServer((socket) => {
          connections++;
          socket.destroy();
        });
        await once(server.listen(0, "127.0.0.1"), "listening");
        onTestFinished(() => void server.close());
        const { port } = server.address() as AddressInfo;
        const permit = (address: string, at: number) => (at === port ? `${address} port ${at} is closed` : undefined);
        for (const host of ["127.0.0.1", "localhost"]) {
          const error = await failure(openSink(spec({ host, port }), ctx({ permit }), registry));
          expect([error.condition, connections]).toEqual(["forbidden_by_policy", 0]);
        }
        // The server would have seen it.
        const sink = await openSink(spec({ host: "127.0.0.1", port }), ctx(), registry).catch(() => undefined);
        await sink?.close();
        await expect.poll(() => connections).toBeGreaterThan(0);
      });

    test("holds a batch once write has resolved, and never before", async () => {
      const sink = await open();
      expect(await sink.write(batch(1), ctx())).toEqual({ refused: 0 });
      await expect.poll(far.ids).toEqual(["e-1"]);
      far.hold(true);
      let resolved = false;
      const writing = sink.write(batch(2), ctx()).then(() => {
        resolved = true;
      });
      await expect.poll(far.held).toBe(1);
      expect(resolved).toBe(false);
      far.hold(false);
      await writing;
      await expect.poll(far.ids).toEqual(["e-1", "e-2"]);
    });

    test("keeps the order of what is written at once, and never has more than inFlight under way", async () => {
      const sink = await open();
      far.hold(true);
      const numbers = Array.from({ length: sink.inFlight * 4 }, (_, i) => i);
      const writing = Promise.all(numbers.map((number) => sink.write(batch(number), ctx())));
      // A sink may begin with less, and send more ahead once it knows what its server takes.
      let held = 0;
      const stands = (): boolean => {
        const before = held;
        held = far.held();
        return held > 0 && held === before;
      };
      await expect.poll(stands).toBe(true);
      expect(held).toBeLessThanOrEqual(sink.inFlight);
      expect(far.ids()).toEqual([]);
      far.hold(false);
      await writing;
      const wanted = numbers.map((number) => `e-${number}`);
      if (harness.lasts) await expect.poll(far.ids).toEqual(wanted);
      else expect([...far.ids()].sort()).toEqual(wanted.sort());
    });

    test("throws what is under way and settles lost when the connection is lost", async () => {
      const sink = await open();
      far.hold(true);
      const writing = failure(sink.write(batch(1), ctx()));
      await expect.poll(far.held).toBe(1);
      far.drop();
      await writing;
      expect(await sink.lost).toHaveProperty("reason.type");
      await failure(sink.write(batch(2), ctx()));
    });

    test.each([700, 1])("makes no message above the %i bytes that a batch allows, but for single values", async (maxMessageBytes) => {
      const sink = await open();
      const readouts = Array.from({ length: 40 }, (_, number) => plainReadout(3, number));
      expect(await sink.write({ ...batch(1), readouts, maxMessageBytes }, ctx())).toEqual({ refused: 0 });
      await expect.poll(() => far.messages().reduce((sum, { values }) => sum + values, 0)).toBe(120);
      for (const { bytes, values } of far.messages()) if (values > 1) expect(bytes).toBeLessThanOrEqual(maxMessageBytes);
      if (maxMessageBytes > 1) expect(far.messages().length).toBeLessThan(120);
      expect(new Set(far.ids()).size).toBe(far.messages().length);
    });

    if (!harness.takesLosses)
      test("tells of no loss, which its receiver does not take", async () => {
        expect(far.losses).toBeUndefined();
        expect((await open()).publishLoss).toBeUndefined();
      });
    else
      test("tells of a loss: held once it has resolved, and never before", async () => {
        const sink = await open();
        const { losses } = far;
        const tell = sink.publishLoss?.bind(sink);
        if (!tell || !losses) throw new Error("it tells of no losses, or its receiver takes none");
        const loss = (values: number | null): PublishedLoss => ({ id: "e-too_old-1", reason: "too_old", from: 1, to: 2, values });
        expect(await tell(loss(5), ctx())).toBe(true);
        await expect.poll(losses).toMatchObject([{ id: "e-too_old-1", count: 5 }]);
        far.hold(true);
        let resolved = false;
        const telling = tell(loss(null), ctx()).then(() => {
          resolved = true;
        });
        await expect.poll(far.held).toBe(1);
        expect(resolved).toBe(false);
        far.hold(false);
        await telling;
        await expect.poll(() => losses().at(-1)).toMatchObject({ id: "e-too_old-1", count: null });
        expect(far.ids()).toEqual([]);
        far.hold(true);
        const lost = failure(tell(loss(6), ctx()));
        await expect.poll(far.held).toBe(1);
        far.drop();
        await lost;
      });

    test("opened again it takes the same batch under the same id", async () => {
      const first = await open();
      await first.write(batch(7), ctx());
      far.drop();
      if (harness.lasts) await first.lost;
      else await first.close();
      const second = await open();
      await second.write(batch(7), ctx());
      await expect.poll(far.ids).toEqual(["e-7", "e-7"]);
    });

    test("cannot be opened while nothing is there: a reason, in time", async () => {
      await (far.leave ?? far.stop)();
      const error = await failure(open());
      expect(error.reason).toEqual({ type: "CONNECTION_REFUSED" });
      if (far.leave) await far.stop();
      far = await harness.start();
    });
  });
}
