import { prepareSink } from "../../src/delivery/prepare-sink.ts";
import { silentLog } from "../../src/model/context.ts";
import type { Layout, LayoutVariable } from "../../src/model/layout.ts";
import { type DataType, parseDataType, type Reading } from "../../src/model/value.ts";
import { SINKS } from "../../src/sinks/index.ts";

/**
 * Publishes to 127.0.0.1:1883 through the MQTT sink, with the settings and the topic of its arguments, until it is ended: every 50 ms a readout
 * whose values follow from its time, each twice, as after a lost connection.
 */
const [payload, topic] = process.argv.slice(2);
const START = Date.parse("2026-11-20T09:00:00.123Z");
const EVERY_MS = 50;

const variable = (name: string, type: string, unit: string | null = null): LayoutVariable => {
  const parsed = parseDataType(type);
  if (typeof parsed === "string") throw new Error(parsed);
  return { uuid: name, name, address: "", type: parsed as DataType, unit, comment: null, exploration: false };
};
const layout: Layout = {
  source: { uuid: "8d5a7c5e-0000-4000-8000-000000000001", name: `press's "1"` },
  variables: [
    variable("temp, ö=1", "float64", "°C"),
    variable("count", "int64"),
    variable("on", "bool"),
    variable("text", "string"),
    variable("speed", "float32", "1/min"),
  ],
};

/** Readings of the readout with this number. */
function readingsOf(n: number): readonly Reading[] {
  const good = (value: number | bigint | boolean | string): Reading => ({ quality: "good", value });
  return [
    good(n / 2),
    good(2n ** 60n + BigInt(n)),
    good(n % 2 === 0),
    good(`it's "${n}"; \\ a, b=c`),
    { quality: "bad", fault: "not_found", detail: "exception 2" },
  ];
}

const details = { type: "mqtt", host: "127.0.0.1", port: 1883, topic };
const spec = {
  uuid: "7e0d3c5a-0000-4000-8000-000000000001",
  name: "broker",
  type: "mqtt",
  details,
  settings: { payload },
  secrets: {},
  publishIntervalUnit: "seconds" as const,
};
const prepared = await prepareSink(spec, SINKS);
const ctx = { signal: new AbortController().signal, log: silentLog };
const sink = await prepared.kind.open({ ...spec, details: prepared.details, settings: prepared.settings }, ctx);
for (let n = 0; ; n++) {
  const readout = { time: START + n * 1000, spanMs: 1, clockSynced: true, readings: readingsOf(n) };
  const batch = { id: `e-${n}`, layout, readouts: [readout], backlog: false };
  await sink.write(batch, ctx);
  await sink.write(batch, ctx);
  await new Promise((done) => setTimeout(done, EVERY_MS));
}
