import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { decodeReadout } from "../../buffer/codec.ts";
import type { ToStore } from "../../buffer/messages.ts";
import { plainLayout, plainReadout } from "../../buffer/testing/readouts.ts";
import type { Layout } from "../../model/layout.ts";
import { warning } from "../../model/warning.ts";
import { StoreClient } from "./host.ts";

/** A margin for machines under load; nothing here takes a second. */
const poll = <T>(look: () => T) => expect.poll(look, { timeout: 10_000 });

const layout = plainLayout(10);

function setUp(maxUnansweredBytes?: number) {
  const posted: ToStore[] = [];
  const alarms: string[] = [];
  const client = new StoreClient({
    run: "r1",
    ...(maxUnansweredBytes !== undefined && { maxUnansweredBytes }),
    onLedger: () => {},
    onAlarm: ({ text }) => alarms.push(text),
  });
  const seqs = (): number[] => posted.flatMap((message) => (message.type === "append" ? message.batches.map(({ seq }) => seq) : []));
  const kinds = (): string[] => posted.map(({ type }) => type);
  return { client, posted, alarms, seqs, kinds, post: (message: ToStore) => void posted.push(message) };
}

describe("store client", () => {
  it("takes a readout larger than the bound of memory when nothing else waits for the store", () => {
    const { client, alarms } = setUp(1);
    expect([client.append(layout, plainReadout(10, 1)), client.append(layout, plainReadout(10, 2))]).toEqual([true, false]);
    expect(alarms).toHaveLength(1);
    client.onMessage({ type: "committed", upTo: 1 });
    expect(client.append(layout, plainReadout(10, 3))).toBe(true);
    expect(client.rejected().readouts).toBe(1);
  });

  it("waits for the store to be ready, then sends sinks, each layout once, and the batches in order", async () => {
    const { client, posted, post, seqs, kinds } = setUp();
    client.setSinks([{ id: "a", takesExploration: false }]);
    for (let n = 1; n <= 3; n++) expect(client.append(layout, plainReadout(10, n))).toBe(true);
    client.attach(post);
    expect(posted).toEqual([]);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    expect(kinds()).toEqual(["begin", "sinks", "layout", "append"]);
    expect(seqs()).toEqual([1, 2, 3]);
    client.append(layout, plainReadout(10, 4));
    client.append(plainLayout(5), plainReadout(5, 5));
    await poll(kinds).toEqual(["begin", "sinks", "layout", "append", "layout", "append"]);
    expect(seqs()).toEqual([1, 2, 3, 4, 5]);
    const first = posted.find((message) => message.type === "append")?.batches[0];
    expect(first && decodeReadout(layout, first.payload)).toEqual(plainReadout(10, 1));
  });

  it("knows for how long nothing is stored: while the store is away, answers nothing or rejects; a commit ends it", () => {
    const { client, post } = setUp();
    const isUnstored = (): boolean => client.unstoredForMs() > 0;
    expect(isUnstored()).toBe(false);
    client.append(layout, plainReadout(10, 1));
    expect(isUnstored()).toBe(true);
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    expect(isUnstored()).toBe(true);
    client.onMessage({ type: "committed", upTo: 1 });
    expect(isUnstored()).toBe(false);
    client.append(layout, plainReadout(10, 2));
    client.onMessage({ type: "rejected", upTo: 2 });
    expect(isUnstored()).toBe(true);
    client.append(layout, plainReadout(10, 3));
    client.onMessage({ type: "committed", upTo: 3 });
    expect(isUnstored()).toBe(false);
    // A store that was restarted has all of it.
    client.append(layout, plainReadout(10, 4));
    client.onMessage({ type: "ready", life: 2, epoch: "e", lastSeq: 4 });
    expect(isUnstored()).toBe(false);
  });

  it("sends a layout again that the store has forgotten over two newer ones of its source", () => {
    const { client, posted, post } = setUp();
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    for (const variables of [10, 5, 10, 6, 5, 10]) {
      client.append(plainLayout(variables), plainReadout(variables, 1));
      client.setSinks([]);
    }
    const sent = posted.flatMap((message) => (message.type === "layout" ? [message.layout.variables.length] : []));
    expect(sent).toEqual([10, 5, 6, 10]);
  });

  it("posts to a restarted store what no store has answered, without what was committed all the same", () => {
    const { client, posted, post, seqs, kinds } = setUp();
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    for (let n = 1; n <= 5; n++) client.append(layout, plainReadout(10, n));
    client.setSinks([]);
    client.onMessage({ type: "committed", upTo: 2 });
    expect(client.unanswered().batches).toBe(3);
    posted.length = 0;
    client.attach(post);
    client.append(layout, plainReadout(10, 6));
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 3 });
    expect(kinds()).toEqual(["begin", "sinks", "layout", "append"]);
    expect(seqs()).toEqual([4, 5, 6]);
    client.onMessage({ type: "committed", upTo: 6 });
    expect(client.unanswered()).toEqual({ batches: 0, bytes: 0 });
  });

  it("sends a large layout in parts, with turns of the event loop between them; what was appended follows in order", async () => {
    const { client, posted, post, seqs, kinds } = setUp();
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    const large = plainLayout(5001);
    client.append(layout, plainReadout(10, 1));
    client.append(large, plainReadout(5001, 2));
    client.append(layout, plainReadout(10, 3));
    client.setSinks([{ id: "a", takesExploration: false }]);
    client.append(layout, plainReadout(10, 4));
    client.setSinks([{ id: "b", takesExploration: false }]);
    expect(kinds()).toEqual(["begin", "layout", "append"]);
    await poll(seqs).toEqual([1, 2, 3, 4]);
    const parts = new Array<string>(10).fill("layout_part");
    expect(kinds()).toEqual(["begin", "layout", "append", ...parts, "layout", "append", "sinks", "append", "sinks"]);
    const crossed = posted.slice(3).flatMap((message) => {
      if (message.type === "layout_part") return message.variables;
      return message.type === "layout" ? message.layout.variables : [];
    });
    expect(crossed).toEqual(large.variables);
    client.append(large, plainReadout(5001, 5));
    client.setSinks([]);
    expect(seqs()).toEqual([1, 2, 3, 4, 5]);
  });

  it("numbers a readout that is encoded by slices when it is encoded, among those that came meanwhile", async () => {
    const { client, posted, post, seqs } = setUp();
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    const large = plainLayout(12_000);
    const taken = client.appendInSlices(large, plainReadout(12_000, 7));
    expect(client.append(layout, plainReadout(10, 1))).toBe(true);
    expect(await taken).toBe(true);
    client.setSinks([]);
    await poll(seqs).toEqual([1, 2]);
    const batches = posted.flatMap((message) => (message.type === "append" ? message.batches : []));
    expect(decodeReadout(large, batches[1]?.payload ?? new Uint8Array())).toEqual(plainReadout(12_000, 7));
    const late = client.appendInSlices(large, plainReadout(12_000, 8));
    void client.close(10_000);
    expect(await late).toBe(false);
    expect(client.rejected()).toEqual({ readouts: 1, values: 12_000 });
  });

  it("sends no more variables in a turn than one part has, of however many small layouts", async () => {
    const { client, posted, post, seqs } = setUp();
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    let most = 0;
    let seen = 0;
    const look = (): void => {
      const sent = posted.slice(seen).reduce((sum, message) => sum + (message.type === "layout" ? message.layout.variables.length : 0), 0);
      seen = posted.length;
      most = Math.max(most, sent);
    };
    for (let n = 1; n <= 20; n++) {
      const own: Layout = { ...plainLayout(300), source: { uuid: String(n), name: String(n) } };
      client.append(own, plainReadout(300, n));
    }
    client.setSinks([]);
    while (seqs().length < 20) {
      look();
      await nextTurn();
    }
    look();
    expect(most).toBeLessThanOrEqual(600);
  });

  it("sends a layout ahead, and again to a store that was restarted in the middle of it", async () => {
    const { client, posted, post, seqs, kinds } = setUp();
    const large = plainLayout(3000);
    expect(client.prepare(layout)).toBeUndefined();
    // There is no store yet.
    await client.prepare(large);
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    const ahead = client.prepare(large);
    client.append(large, plainReadout(3000, 1));
    client.setSinks([]);
    await poll(kinds).toContain("layout_part");
    client.attach(post);
    posted.length = 0;
    client.onMessage({ type: "ready", life: 2, epoch: "e", lastSeq: 0 });
    await ahead;
    await poll(seqs).toEqual([1]);
    expect(kinds()).toEqual(["begin", "sinks", ...new Array<string>(5).fill("layout_part"), "layout", "append"]);
    await client.prepare(large);
    expect(kinds().filter((kind) => kind === "layout")).toHaveLength(1);
  });

  it("rejects and counts what exceeds its bound, and takes again once the store has answered", () => {
    const { client, post, seqs } = setUp(2000);
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    const taken = Array.from({ length: 10 }, (_, n) => client.append(layout, plainReadout(10, n)));
    const accepted = taken.filter(Boolean).length;
    expect(accepted).toBeGreaterThan(1);
    expect(accepted).toBeLessThan(10);
    expect(client.unanswered().bytes).toBeLessThanOrEqual(2000);
    expect(client.rejected()).toEqual({ readouts: 10 - accepted, values: 10 * (10 - accepted) });
    client.onMessage({ type: "committed", upTo: accepted });
    expect(client.append(layout, plainReadout(10, 99))).toBe(true);
    client.setSinks([]);
    expect(seqs().at(-1)).toBe(accepted + 1);
  });

  it("closes once all is answered, or says that it is not", async () => {
    const { client, post } = setUp();
    client.attach(post);
    client.onMessage({ type: "ready", life: 1, epoch: "e", lastSeq: 0 });
    client.append(layout, plainReadout(10, 1));
    expect(await client.close(20)).toBe(false);
    expect(client.append(layout, plainReadout(10, 2))).toBe(false);
    const closing = client.close(10_000);
    client.onMessage({ type: "committed", upTo: 1 });
    expect(await closing).toBe(true);
    expect(await client.close(0)).toBe(true);
    expect(client.rejected()).toEqual({ readouts: 1, values: 10 });
  });

  it("reports an alarm that comes again and again once", () => {
    const { client, alarms } = setUp();
    for (const text of ["disk full", "disk full", "disk well", "disk full"])
      client.onMessage({ type: "alarm", alarm: warning("buffer_refuses", text), isOver: false });
    expect(alarms).toEqual(["disk full", "disk well", "disk full"]);
  });
});
