import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { textsOf } from "../model/testing/warnings.ts";
import { type Warning, warning } from "../model/warning.ts";
import { defineSink, type Sink } from "../sinks/sink.ts";
import { mqttSpec, startRig } from "./testing/rig.ts";

test("warnings that a sink says have changed are reported at once, although no value and no state of a source comes", async () => {
  let warnings: readonly Warning[] = [];
  let changed = (): void => {};
  const sink: Sink = {
    inFlight: 1,
    get warnings() {
      return warnings;
    },
    watchWarnings(listener) {
      changed = listener;
    },
    write: async () => ({ refused: 0 }),
    lost: new Promise(() => {}),
    close: async () => {},
  };
  const kind = defineSink({
    type: "mqtt",
    title: "a sink with warnings",
    details: z.unknown(),
    settings: z.unknown(),
    delivery: "every",
    takesExploration: false,
    publishIntervalMs: () => 100,
    endpoint: () => "here",
    open: async () => sink,
  });
  const rig = await startRig(
    {},
    { sinks: { mqtt: { delivery: "every", takesExploration: false, kind: async () => ({ default: kind }) } } },
  );
  onTestFinished(() => rig.stop());
  rig.start(mqttSpec(1));
  await expect.poll(() => rig.report()?.state, { timeout: 10_000 }).toBe("OK");
  for (const now of [["a certificate was refused"], ["a certificate was refused", "a user is locked out"], []]) {
    warnings = now.map((text) => warning("client_untrusted", text, text));
    changed();
    await expect.poll(() => textsOf(rig.report()?.warnings), { timeout: 10_000 }).toEqual(now);
  }
  const reports = rig.told.filter(({ type }) => type === "report").length;
  changed();
  await new Promise((done) => setTimeout(done, 100));
  expect(rig.told.filter(({ type }) => type === "report")).toHaveLength(reports);
});
