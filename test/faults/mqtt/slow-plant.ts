import { expect, type TestContext, vi } from "vitest";
import { mqttSpec, RIG_START_MS, type Rig, startRig } from "../../../src/delivery/testing/rig.ts";
import { freePort } from "../../support/free-port.ts";
import { topicOf } from "../../support/raw-broker.ts";
import { startRefusingBroker } from "../../support/refusing-broker.ts";
import { type SlowLink, startSlowLink } from "../../support/slow-link.ts";

/** A sink behind a link that carries little, with sources that make half of that, beside a backlog. */

export const PUBLISH_INTERVAL_MS = 1000;
/** Twice what is asked for, for a machine with other work; what was measured is printed. */
export const LATE_MS = 20_000;
export const RUN_MS = 30_000;
/** A large source is read seldom, a small one often; together half of what the link carries. */
export const LARGE_EVERY_MS = 5000;
export const SMALL_EVERY_MS = 1000;
/** About so many bytes of JSON: of a variable, and of what else a message of one readout has. */
const VARIABLE_BYTES = 12;
const MESSAGE_BYTES = 180;

const PUBLISH = 3;
/** MQTT 5.0, 3.3.2.1. */

const smallVariables = 4;
const largeVariables = (bytesPerS: number): number => {
  const smallBytesPerS = ((MESSAGE_BYTES + smallVariables * VARIABLE_BYTES) * 1000) / SMALL_EVERY_MS;
  return Math.floor((((bytesPerS / 2 - smallBytesPerS) * LARGE_EVERY_MS) / 1000 - MESSAGE_BYTES) / VARIABLE_BYTES);
};

export interface Arrived {
  /** Its topic. */
  readonly sink: string;
  /** Epoch ms. */
  readonly timeMs: number;
  readonly backlog: boolean;
  readonly atMs: number;
  readonly values: number;
  /** Names of the values: a readout may come in parts. */
  readonly key: string;
}

export type Undo = (step: () => unknown) => void;
export const undoOf = ({ onTestFinished }: TestContext): Undo => {
  const steps: (() => unknown)[] = [];
  onTestFinished(async () => {
    for (const step of steps.reverse()) await step();
  });
  return (step) => void steps.push(step);
};

/**
 * A sink with a backlog behind a link, and what the broker gets. `sinks`: so many of them, uuid and topic `sink-1`, `sink-2`, …; the live data of
 * all together are half of what the link carries.
 */
export async function plantOf(undo: Undo, bytesPerS: number, roundTripMs: number, sinks = 1) {
  const arrived: Arrived[] = [];
  let bytes = 0;
  const broker = await startRefusingBroker(5, (publish) => {
    const { backlog = false, readouts } = JSON.parse(publish.payload) as {
      backlog?: boolean;
      readouts: { ts: string; values: Record<string, unknown> }[];
    };
    bytes += publish.bytes;
    for (const { ts, values } of readouts) {
      const names = Object.keys(values);
      arrived.push({
        sink: publish.topic,
        timeMs: Date.parse(ts),
        backlog,
        atMs: Date.now(),
        values: names.length,
        key: `${ts}/${names[0]}`,
      });
    }
    return undefined;
  });
  undo(() => broker.stop());
  const port = await freePort();
  const rig = await startRig();
  undo(() => rig.stop());
  const uuids = Array.from({ length: sinks }, (_, n) => `sink-${n + 1}`);
  rig.start(...uuids.map((uuid) => mqttSpec(port, { uuid }, { publish_interval: PUBLISH_INTERVAL_MS, topic: uuid })));
  const variables = largeVariables(bytesPerS / sinks);
  const older = (4 * RUN_MS) / LARGE_EVERY_MS;
  rig.append(older, { source: "large", variables, timeOf: (number) => RIG_START_MS + number * LARGE_EVERY_MS });
  await vi.waitFor(() => expect(uuids.map((uuid) => rig.sink(uuid)?.pending)).toEqual(uuids.map(() => older * variables)), {
    timeout: 20_000,
  });
  const link = await startSlowLink(broker.port, { bytesPerS, roundTripMs, port });
  undo(() => link.stop());
  await vi.waitFor(() => expect(uuids.map((uuid) => rig.report(uuid)?.state)).toEqual(uuids.map(() => "OK")), { timeout: 30_000 });
  const topics = () => broker.packets.flatMap((packet) => (packet.type === PUBLISH ? [topicOf(packet)] : []));
  return { rig, link, arrived, variables, topics, bytes: () => bytes };
}

/** Appends live readouts; the times at which it did. */
export function goLive(undo: Undo, rig: Rig, variables: number): { readonly times: number[]; stop(): void } {
  const times: number[] = [];
  const append = (source: string, of: number) => {
    const time = Math.max(Date.now(), (times.at(-1) ?? 0) + 1);
    times.push(time);
    rig.append(1, { source, variables: of, timeOf: () => time });
  };
  const timers = [
    setInterval(() => append("large", variables), LARGE_EVERY_MS),
    setInterval(() => append("small", smallVariables), SMALL_EVERY_MS),
  ];
  const stop = () => timers.forEach(clearInterval);
  undo(stop);
  return { times, stop };
}

export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** ms from each readout to its last part, and values that came again of all that came. */
export function measure(arrived: readonly Arrived[], times: readonly number[]) {
  const last = new Map<number, { values: number; atMs: number }>();
  const seen = new Set<string>();
  let [again, all] = [0, 0];
  for (const { timeMs, atMs, values, key } of arrived) {
    all += values;
    if (seen.has(key)) again += values;
    else last.set(timeMs, { values: (last.get(timeMs)?.values ?? 0) + values, atMs });
    seen.add(key);
  }
  const lateMs = times.map((time) => (last.get(time)?.atMs ?? Number.POSITIVE_INFINITY) - time);
  return { lateMs: Math.max(...lateMs), twice: again / Math.max(1, all), older: arrived.filter(({ backlog }) => backlog).length };
}

export const say = (name: string, link: SlowLink, measured: ReturnType<typeof measure>, bytesPerS: number): void =>
  console.log(
    `${name}: ${link.accepted()} connections, live values at most ${measured.lateMs.toFixed(0)} ms late, ${(measured.twice * 100).toFixed(1)} % twice, ${measured.older} older readouts, ${bytesPerS.toFixed(0)} bytes/s`,
  );
