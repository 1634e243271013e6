import { expect, it } from "vitest";
import { plant, running, source } from "../../test/support/agent.ts";
import type { Layout } from "../model/layout.ts";

const poll = <T>(look: () => T) => expect.poll(look, { timeout: 10_000 });

it("makes ready for a layout before its first readout is emitted, once, while other sources go on", async () => {
  const { port } = await plant({ maxConnections: 8 });
  const prepared: Layout[] = [];
  const waiting = Promise.withResolvers<void>();
  const prepare = (layout: Layout) => {
    prepared.push(layout);
    return layout.source.name === "machine-1" ? waiting.promise : undefined;
  };
  const { agent, of } = running({ prepare });
  const alone = { host: "127.0.0.1", ephemeral_connections: true };
  await agent.apply([source(1, port, {}, alone), source(2, port, {}, alone)]);
  await poll(() => of("machine-2").length).toBeGreaterThan(3);
  expect(prepared.map(({ source: { name } }) => name).sort()).toEqual(["machine-1", "machine-2"]);
  expect(of("machine-1")).toEqual([]);
  waiting.resolve();
  await poll(() => of("machine-1").length).toBeGreaterThan(3);
  expect(prepared).toHaveLength(2);
  expect(of("machine-1")[0]?.layout).toBe(prepared.find(({ source: { name } }) => name === "machine-1"));
  await agent.apply([source(1, port, { local: { answer_timeout: "200ms" } }, alone)]);
  await poll(() => prepared.length).toBe(3);
});

it("emits what was read where the source is stopped meanwhile", async () => {
  const { port } = await plant();
  const waiting = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const prepare = () => {
    asked.resolve();
    return waiting.promise;
  };
  const { agent, of } = running({ prepare });
  await agent.apply([source(1, port)]);
  await asked.promise;
  const gone = agent.apply([]);
  waiting.resolve();
  await gone;
  expect(of("machine-1")).toHaveLength(1);
});
