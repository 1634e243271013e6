import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import path from "node:path";
import type { SourceInput } from "../../src/agent/source-spec.ts";

/** Ports of devices.ts on 127.0.0.1, by what is wrong with the device. */
export type Ports = { readonly good: readonly number[] } & Readonly<Record<string, number | readonly number[]>>;

export interface Devices {
  readonly ports: Ports;
  stop(): void;
}

const NODE = path.resolve(import.meta.dirname, "../../node_modules/.bin/node");

/** This many healthy devices and one of each that misbehaves, in a process of their own. */
export async function startDevices(good: number): Promise<Devices> {
  const child = spawn(NODE, [path.join(import.meta.dirname, "devices.ts"), String(good)], { stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise<Buffer>((ready, failed) => {
    child.stdout.once("data", ready);
    child.once("exit", (code) => failed(new Error(`the devices ended with ${code}`)));
  });
  return { ports: JSON.parse(line.toString()) as Ports, stop: () => void child.kill() };
}

/** A Modbus data source of 20 variables as the agent takes it, read every `intervalMs`. */
export function sourceOf(
  name: string,
  host: string,
  port: number | string,
  intervalMs: number,
  change: Partial<SourceInput["record"]> = {},
): SourceInput {
  const uuid = randomUUID();
  return {
    record: {
      uuid,
      type: "modbus_tcp",
      name,
      collector: uuid,
      machine: uuid,
      manufacturer: null,
      device_model: null,
      note: null,
      readout_interval: intervalMs,
      readout_limit: null,
      // A port that is no number is one of the things that go wrong.
      details: { type: "modbus_tcp", host, port, ephemeral_connections: false } as SourceInput["record"]["details"],
      ...change,
    },
    variables: Array.from({ length: 20 }, (_, i) => ({
      uuid: randomUUID(),
      data_source: uuid,
      name: `v${i}`,
      address: `holding:${i}`,
      type: null,
      unit: null,
      scaling: null,
      comment: null,
      status: "ACTIVE" as const,
    })),
    warnings: [],
    local: {},
    secrets: {},
    missingSecret: undefined,
    readoutIntervalUnit: "milliseconds",
  };
}
