import { PassThrough } from "node:stream";
import mqttPacket, { type IPublishPacket, type Packet } from "mqtt-packet";
import { expect, test } from "vitest";
import { type Qos1Answer, Qos1Sender } from "./qos1-sender.ts";

function opened(version: 4 | 5) {
  const stream = new PassThrough();
  const sent: IPublishPacket[] = [];
  const parser = mqttPacket.parser({ protocolVersion: version });
  parser.on("packet", (packet) => sent.push(packet as IPublishPacket));
  stream.on("data", (bytes: Buffer) => parser.parse(bytes));
  const sender = new Qos1Sender(stream, version);
  const answers: [name: string, Qos1Answer][] = [];
  const send = (name: string) =>
    sender.send({ topic: name, payload: Buffer.from(name), retain: false, userProperties: { unit: "°C" } }, (answer) =>
      answers.push([name, answer]),
    );
  return { stream, sender, sent, answers, send };
}
const turn = () => new Promise((done) => setImmediate(done));
const puback = (messageId: number, reasonCode?: number): Packet => ({
  cmd: "puback",
  messageId,
  ...(reasonCode !== undefined && { reasonCode }),
});

test.each([[4], [5]] as const)("MQTT %i: each publish has an identifier of its own, and the answer with it goes to it", async (version) => {
  const { sender, sent, answers, send } = opened(version);
  for (const name of ["a", "b", "c"]) send(name);
  await turn();
  expect(sent.map(({ topic, payload, qos, dup, retain }) => [topic, String(payload), qos, dup, retain])).toEqual(
    ["a", "b", "c"].map((name) => [name, name, 1, false, false]),
  );
  expect(sent[0]?.properties?.userProperties).toEqual(version === 5 ? { unit: "°C" } : undefined);
  const ids = sent.map(({ messageId }) => messageId as number);
  expect(new Set(ids).size).toBe(3);
  sender.take(puback(ids[1] ?? 0, 135));
  sender.take(puback(ids[0] ?? 0));
  expect(answers).toEqual([
    ["b", { type: "puback", code: 135 }],
    ["a", { type: "puback", code: 0 }],
  ]);
});

test("what answers no publish is nothing: another identifier, one that is answered, other packets", async () => {
  const { sender, sent, answers, send } = opened(5);
  send("a");
  await turn();
  const messageId = sent[0]?.messageId as number;
  sender.take(puback(messageId + 1));
  sender.take({ cmd: "suback", messageId, granted: [0] });
  sender.take({ cmd: "pingresp" });
  expect(answers).toEqual([]);
  sender.take(puback(messageId));
  sender.take(puback(messageId));
  expect(answers).toHaveLength(1);
});

test("an answer to a publish of QoS 2 violates the protocol", async () => {
  const { sender, sent, answers, send } = opened(5);
  send("a");
  await turn();
  sender.take({ cmd: "pubrec", messageId: sent[0]?.messageId as number });
  expect(answers).toEqual([["a", { type: "violation", cmd: "pubrec" }]]);
});

test("an identifier is used again when all others were, and never while it is unanswered", () => {
  const { stream, sender, answers, send } = opened(5);
  stream.write = () => true;
  send("first");
  for (let i = 2; i <= 65_535; i++) send("other");
  expect(() => send("one more")).toThrow(RangeError);
  sender.take(puback(7));
  send("again");
  sender.take(puback(7, 16));
  expect(answers).toEqual([
    ["other", { type: "puback", code: 0 }],
    ["again", { type: "puback", code: 16 }],
  ]);
});

test("the payload is not copied", () => {
  const written: unknown[] = [];
  const stream = new PassThrough();
  stream.write = (chunk: unknown) => written.push(chunk) > 0;
  const payload = Buffer.alloc(100_000);
  new Qos1Sender(stream, 5).send({ topic: "a", payload, retain: false }, () => {});
  expect(written.at(-1)).toBe(payload);
});
