import { toJson } from "../../../src/base/json.ts";
import type { Reading, Readout } from "../../../src/model/value.ts";
import type { PublishedLoss, SinkBatch } from "../../../src/sinks/sink.ts";

/** One line to the receiver, without its end. */
export interface Message {
  readonly id: string;
  readonly text: string;
  /** Values in it, for the count of what the receiver refuses. */
  readonly values: number;
}

const fieldsOf = (reading: Reading): object =>
  reading.quality === "bad" ? { fault: reading.fault } : { value: reading.value, quality: reading.quality };

// cut: messages
/** Messages of a batch, each of at most `maxMessageBytes`, but for one of a single value. Pure. */
export function* messagesOf(batch: SinkBatch): Generator<Message> {
  const { variables, source } = batch.layout;
  const most = batch.maxMessageBytes ?? Number.POSITIVE_INFINITY;
  let part = 0;
  let values: string[] = [];
  let bytes = 0;
  const messageOf = (texts: readonly string[]): Message => {
    // A part has an identifier of its own, so that one identifier never has two contents.
    const id = part === 0 ? batch.id : `${batch.id}/${part}`;
    return { id, text: `{"id":${toJson(id)},"source":${toJson(source.name)},"values":[${texts.join(",")}]}`, values: texts.length };
  };
  for (const readout of batch.readouts)
    for (const value of valuesOf(readout, variables)) {
      // Each value has a comma.
      const more = Buffer.byteLength(value) + 1;
      if (values.length > 0 && bytes + more > most) {
        yield messageOf(values);
        part++;
        values = [];
      }
      if (values.length === 0) bytes = Buffer.byteLength(messageOf([]).text);
      values.push(value);
      bytes += more;
    }
  if (values.length > 0) yield messageOf(values);
}

/** The readings of a readout as JSON; a variable that was not asked for has none. */
function* valuesOf({ time, readings }: Readout, variables: readonly { readonly name: string }[]): Generator<string> {
  for (const [place, reading] of readings.entries())
    if (reading) yield toJson({ variable: variables[place]?.name, time: new Date(time).toISOString(), ...fieldsOf(reading) });
}
// cut: end

export const lossMessage = ({ id, reason, from, to, values }: PublishedLoss): Message => ({
  id,
  text: toJson({ id, loss: reason, from, to, count: values }),
  values: 0,
});

/** What the receiver says of one message; undefined: the line is not an answer. Pure. */
export function answerOf(line: string): { readonly id: string; readonly refusal: string | undefined } | undefined {
  const [, word, id, words = ""] = /^(ok|no) (\S{1,200})(?: (.{0,200}))?$/.exec(line) ?? [];
  return id === undefined ? undefined : { id, refusal: word === "no" ? words : undefined };
}
