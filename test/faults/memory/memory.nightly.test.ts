import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { STARTING_MS } from "../../../src/lib/heap.ts";
import { startDrainingBroker } from "../../support/draining-broker.ts";
import { freePort } from "../../support/free-port.ts";
import { figuresOf } from "../../support/process-figures.ts";
import type { Shape } from "./host.ts";

const NODE = path.resolve(import.meta.dirname, "../../../bin/collector-node");
const MAX_ABOVE_IDLE_MIB = 60;
/** Heaps grow as V8 has it until then. */
const STARTED_AFTER_MS = STARTING_MS + 1000;

type Case = Omit<Shape, "port"> & { readonly readouts: number };

/** What waits through an outage: small as it is stored, and many times as large as it is written. */
const SHAPES: readonly Case[] = [
  { name: "16,000 bools with long names", type: { scalar: "bool" }, variables: 16_000, sources: 1, value: "bool", readouts: 100 },
  { name: "matrices", type: { scalar: "float64", count: 10_000 }, variables: 4, sources: 4, value: "numbers", readouts: 12 },
  { name: "strings", type: { scalar: "string" }, variables: 1000, sources: 2, value: "text", readouts: 40 },
  { name: "small readouts of many sources", type: { scalar: "bool" }, variables: 1, sources: 500, value: "bool", readouts: 80 },
];

async function startHost(shape: Shape) {
  const child = spawn(NODE, [path.join(import.meta.dirname, "host.ts"), JSON.stringify(shape)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [ready] = await once(child, "message");
  expect(ready).toBe("ready");
  const ask = async (question: number | "pending"): Promise<unknown> => {
    child.send(question);
    const [answer] = await once(child, "message");
    return answer;
  };
  return { ask, figures: () => figuresOf(child.pid ?? 0) };
}

test.for(SHAPES)(
  "memory stays within its bound through an outage and its end: $name",
  { timeout: 120_000 },
  async ({ readouts, ...shape }) => {
    const port = await freePort();
    const { ask, figures } = await startHost({ ...shape, port });
    await ask(1);
    await delay(STARTED_AFTER_MS);
    const idleMiB = figures().rssMiB;
    await ask(readouts);
    const waitingMiB = figures().peakRssMiB - idleMiB;
    const broker = await startDrainingBroker(port);
    onTestFinished(() => broker.stop());
    await expect.poll(() => ask("pending"), { timeout: 90_000, interval: 100 }).toBe(0);
    const drainedMiB = figures().peakRssMiB - idleMiB;
    console.log(`${shape.name}: idle ${idleMiB.toFixed(0)} MiB, waiting +${waitingMiB.toFixed(0)}, drained +${drainedMiB.toFixed(0)}`);
    expect(drainedMiB).toBeLessThanOrEqual(MAX_ABOVE_IDLE_MIB);
  },
);
