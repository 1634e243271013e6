import { expect, test } from "vitest";
import type { SinkSpec } from "../../src/delivery/messages.ts";
import { prepareSink } from "../../src/delivery/prepare-sink.ts";
import type { Context } from "../../src/model/context.ts";
import type { ReasonError } from "../../src/model/reason.ts";
import { SINKS, type SinkEntry } from "../../src/sinks/index.ts";
import type { Sink, SinkBatch } from "../../src/sinks/sink.ts";

/** Kinds that send to a receiver, which acknowledges what it takes: sink.test.ts. */
export const OUTGOING = ["mqtt", "platform"] as const;
/** Kinds that others connect to: nothing acknowledges, holds or drops what they take: hosted-sink.test.ts. */
export const HOSTED = ["opcua"] as const;

/** What a kind of sink must refuse, and by which field. */
export interface Refusals {
  readonly settings: object;
  /** Details that must be refused, with the field that the error names. */
  readonly wrong: readonly (readonly [field: string, change: object])[];
  readonly wrongSettings: readonly (readonly [field: string, value: unknown])[];
}

type Registry = Readonly<Record<string, SinkEntry>>;

/** One sink of a kind under test, as its suite makes it. */
export interface Rig {
  /** The place where the kind is registered. */
  readonly registry: Registry;
  readonly spec: (change?: object, settings?: object) => SinkSpec;
  readonly ctx: (change?: Partial<Context>) => Context;
  /** Opens one that the suite closes. */
  readonly open: (change?: Partial<Context>, settings?: object) => Promise<Sink>;
  readonly batch: (number: number) => SinkBatch;
}

/** The ReasonError with which it fails; it must. */
export async function failure(work: Promise<unknown>): Promise<ReasonError> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toHaveProperty("reason.type");
  return thrown as ReasonError;
}

/** Opens a sink by its specification, as the delivery does. */
export async function openSink(spec: SinkSpec, ctx: Context, registry: Registry = SINKS): Promise<Sink> {
  const { kind, details, settings } = await prepareSink(spec, registry);
  const { uuid, name, secrets } = spec;
  return kind.open({ uuid, name, details, settings, secrets }, ctx);
}

/** Adds the tests that hold for every kind, whoever connects to whom. */
export function checkEveryKind(
  type: string,
  { settings, wrong, wrongSettings }: Refusals,
  { registry, spec, ctx, open, batch }: Rig,
): void {
  test("registry entry equals the kind", async () => {
    const kind = (await registry[type]?.kind())?.default;
    expect(kind?.type).toBe(type);
    expect(registry[type]).toMatchObject({ delivery: kind?.delivery, takesExploration: kind?.takesExploration });
  });

  test("stops opening when the signal aborts, and opens afterwards", async () => {
    await failure(open({ signal: AbortSignal.abort() }));
    expect((await open()).inFlight).toBeGreaterThan(0);
  });

  test("close is idempotent, settles lost, and nothing can be written after it", async () => {
    const sink = await open();
    await Promise.all([sink.close(), sink.close()]);
    await sink.close();
    expect(await sink.lost).toHaveProperty("reason.type");
    await failure(sink.write(batch(1), ctx()));
  });

  test.each(wrong)("refuses details with a wrong %s by name", async (field, change) => {
    const error = await failure(prepareSink(spec(change), registry));
    expect(error.message).toContain(field);
    expect(error.condition).toBe(field === "publish_interval" ? "interval_invalid" : "configuration_invalid");
  });

  test.each(wrongSettings)("refuses settings with a wrong %s by name: %j", async (field, value) => {
    const error = await failure(prepareSink(spec({}, { ...settings, [field]: value }), registry));
    expect(error.message).toContain(field);
    expect(error.condition).toBe("configuration_invalid");
  });
}
