import { expect } from "vitest";
import type { Reading } from "../../src/model/value.ts";
import type { Fault, Rig, Transport } from "./rig.ts";

/** One promise of every driver. Rejects where it is broken. */
export interface Check {
  readonly name: string;
  /** The only transport of which it tells something, and why. Absent: it tells something of each. */
  readonly only?: { readonly transport: Transport; readonly why: string };
  /** Why it tells nothing of this driver; undefined: it does. */
  unasked?(rig: Rig): Promise<string | undefined>;
  run(rig: Rig): Promise<void>;
  readonly timeoutMs?: number;
}

/** Why a check is not run with a driver; undefined: it is. */
export async function whyUnasked(check: Check, rig: Rig): Promise<string | undefined> {
  if (check.only && check.only.transport !== rig.transport) return check.only.why;
  return check.unasked?.(rig);
}

export function expectAllGood({ simulator }: Rig, readings: ReadonlyMap<number, Reading>): void {
  for (const [index, variable] of simulator.variables.entries())
    expect(readings.get(index), `${variable.address} ${variable.type}`).toMatchObject({ quality: "good", value: variable.value });
}

/** Whatever happens, the next check finds a proxy that behaves. */
export async function misbehaving<T>({ proxy }: Rig, fault: Fault, work: () => Promise<T>): Promise<T> {
  await proxy.misbehave(fault);
  try {
    return await work();
  } finally {
    await proxy.misbehave("none");
  }
}
