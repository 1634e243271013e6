import { expect, it } from "vitest";
import { plant, running, source, variable } from "../../test/support/agent.ts";

const poll = <T>(look: () => T) => expect.poll(look, { timeout: 20_000 });
const VARIABLES = 20_000;
const registers = new Map(Array.from({ length: VARIABLES }, (_, n) => [n, n]));
const variables = (name: string) => Array.from({ length: VARIABLES }, (_, n) => variable(1, n, `holding:${n}`, { name: `${name}${n}` }));
const seldom = { local: { interval: "1h" } };

it("ends with the newest of configurations that come while an older one is taken in, and reads it once", async () => {
  const { port, accepted } = await plant({ units: new Map([[1, { holding: registers }]]) });
  const { agent, of } = running();
  const a = source(1, port, { ...seldom, variables: variables("a") });
  const b = source(1, port, { ...seldom, variables: variables("b") });
  const c = source(1, port, { ...seldom, variables: variables("c") });
  const small = source(2, port, { variables: [variable(2, 1, "holding:5")] });
  const first = agent.apply([a, small]);
  // While it is digested, while it starts, and while the one before stops.
  void agent.apply([b, small]);
  await first;
  void agent.apply([a, small]);
  await new Promise(setImmediate);
  const last = agent.apply([c, small]);
  await last;
  await poll(() => of("machine-1").at(-1)?.layout.variables[7]?.name).toBe("c7");
  const counted = of("machine-1").filter(({ layout }) => layout.variables[7]?.name === "c7");
  expect(counted).toHaveLength(1);
  expect(counted[0]?.readout.readings[19_999]).toMatchObject({ quality: "good", value: 19_999 });
  await poll(() => of("machine-2").length).toBeGreaterThan(2);
  expect(accepted()).toBeLessThan(10);
  // Well again: the same as after a fresh start.
  expect(agent.reports().map(({ status }) => status.configured_variables)).toEqual([VARIABLES, 1]);
});

it("is taken away and stopped in the middle of being taken in, and nothing of it is left", async () => {
  const { port, connections } = await plant({ units: new Map([[1, { holding: registers }]]) });
  const { agent, of } = running();
  void agent.apply([source(1, port, { ...seldom, variables: variables("a") })]);
  await new Promise(setImmediate);
  await agent.apply([]);
  expect(agent.reports()).toEqual([]);
  void agent.apply([source(1, port, { ...seldom, variables: variables("b") })]);
  await new Promise(setImmediate);
  await agent.stop();
  const emitted = of("machine-1").length;
  await poll(connections).toBe(0);
  expect(of("machine-1")).toHaveLength(emitted);
});
