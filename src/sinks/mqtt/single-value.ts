import { clockStateOf } from "../../model/clock.ts";
import type { LayoutVariable } from "../../model/layout.ts";
import type { Reading, Readout } from "../../model/value.ts";
import type { SinkBatch } from "../sink.ts";
import { JsonBytes } from "./json-bytes.ts";
import type { Message } from "./message.ts";
import type { UserProperties } from "./publish-queue.ts";
import { faultOf, isoTime, isWritable, timeText, writeFault, writeValue } from "./value-json.ts";

/** How a message of one value is written: as JSON with its quality, or bare, with the quality as user properties (README.md in this folder). */
export type SinglePayload = "value" | "raw";

export interface SingleOptions {
  readonly payload: SinglePayload;
  /** Payload and user properties may have so many bytes; a value above it cannot be sent. */
  readonly maxBytes: number;
}

/** One reading. */
export interface SingleMessage extends Message {
  /** Of its variable in the layout. */
  readonly place: number;
  /** Of its readout, epoch ms. */
  readonly time: number;
  readonly fits: boolean;
  /** Of `raw`, for brokers that take them. */
  readonly userProperties?: UserProperties;
}

/** Of a user property (MQTT 5.0, 2.2.2.2): its identifier, and the lengths of name and value. */
const PROPERTY_OVERHEAD_BYTES = 5;
/** A device's words may be of any length, and a property has 65,535 bytes at most. */
const MAX_PROPERTY_CHARACTERS = 1000;

/** Used by one call at a time: nothing here waits. */
const out = new JsonBytes();

/** One message for each reading that is published, in the order of the readouts. */
export function* writeSingles(batch: SinkBatch, { payload, maxBytes }: SingleOptions): Generator<SingleMessage> {
  const { variables } = batch.layout;
  let number = 0;
  for (const readout of batch.readouts) {
    for (const [place, variable] of variables.entries()) {
      const reading = readout.readings[place];
      if (reading === undefined || variable.exploration) continue;
      out.start();
      const userProperties = payload === "raw" ? propertiesOf(reading, readout, variable, batch) : undefined;
      if (payload === "raw") writeRaw(reading, variable);
      else writeOne(reading, readout, variable, batch);
      const fits = out.length + (userProperties ? bytesOf(userProperties) : 0) <= maxBytes;
      const parts = [{ readout: number, from: place, to: place + 1 }];
      yield { payload: out.copy(), values: 1, parts, place, time: readout.time, fits, ...(userProperties && { userProperties }) };
    }
    number++;
  }
}

function writeOne(reading: Reading, readout: Readout, { type, unit }: LayoutVariable, { backlog }: SinkBatch): void {
  const hasValue = isWritable(reading);
  out.text('{"value":');
  if (hasValue) writeValue(out, reading.value, type.scalar === "float32", "string");
  else out.text("null");
  out.text(`,"ts":${timeText(readout.time)},"q":"${hasValue ? reading.quality : "bad"}","unit":${JSON.stringify(unit)}`);
  out.text(`,"clock":"${clockStateOf(readout)}"`);
  if (!hasValue || reading.doubt) {
    out.text(",");
    writeFault(out, reading);
  }
  const sourceTime = sourceTimeOf(reading, readout);
  if (sourceTime !== undefined) out.text(`,"source_ts":${timeText(sourceTime)}`);
  out.text(backlog ? ',"backlog":true}' : "}");
}

/** Texts as they are; all else as JSON. Nothing where there is no value. */
function writeRaw(reading: Reading, { type }: LayoutVariable): void {
  if (!isWritable(reading)) return;
  const { value } = reading;
  if (typeof value === "string") out.text(value);
  // The bare digits are a text already.
  else writeValue(out, value, type.scalar === "float32", typeof value === "object" ? "string" : "number");
}

function propertiesOf(reading: Reading, readout: Readout, { unit }: LayoutVariable, { backlog }: SinkBatch): UserProperties {
  const hasValue = isWritable(reading);
  const { fault, detail } = hasValue && !reading.doubt ? {} : faultOf(reading);
  const sourceTime = sourceTimeOf(reading, readout);
  const all: Readonly<Record<string, string | undefined>> = {
    ts: isoTime(readout.time),
    q: hasValue ? reading.quality : "bad",
    unit: unit ?? undefined,
    clock: clockStateOf(readout),
    fault,
    detail,
    source_ts: sourceTime === undefined ? undefined : isoTime(sourceTime),
    backlog: backlog ? "true" : undefined,
  };
  return Object.fromEntries(Object.entries(all).flatMap(([name, text]) => (text === undefined ? [] : [[name, propertyText(text)]])));
}

/** The device's own time, where it differs. */
const sourceTimeOf = (reading: Reading, { time }: Readout): number | undefined =>
  reading.quality === "bad" || reading.sourceTime === time ? undefined : reading.sourceTime;

/** MQTT 5.0, 1.5.4: well-formed UTF-8 without NUL, or the broker closes the connection. */
const propertyText = (text: string): string => text.slice(0, MAX_PROPERTY_CHARACTERS).toWellFormed().replaceAll("\0", "\u{fffd}");

const bytesOf = (properties: UserProperties): number =>
  Object.entries(properties).reduce((sum, [name, text]) => sum + PROPERTY_OVERHEAD_BYTES + name.length + Buffer.byteLength(text), 0);
