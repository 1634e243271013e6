import { Writable } from "node:stream";
import { setImmediate as soon } from "node:timers/promises";
import mqttPacket, { type Packet } from "mqtt-packet";
import { expect, it } from "vitest";
import { Qos0Sender } from "./qos0-sender.ts";

const PINGRESP: Packet = { cmd: "pingresp" };

function sending() {
  const parser = mqttPacket.parser({ protocolVersion: 5 });
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      parser.parse(chunk);
      done();
    },
  });
  const sender = new Qos0Sender(stream, 5);
  const sent: string[] = [];
  parser.on("packet", (packet: Packet) =>
    sent.push(packet.cmd === "publish" ? `${packet.topic} ${packet.qos} ${packet.payload}` : packet.cmd),
  );
  const read: string[] = [];
  const send = (topic: string): void => sender.send({ topic, payload: "1", retain: false }, () => read.push(topic));
  return { sender, sent, read, send };
}

it("takes a publish for read once a ping behind it is answered, and none before", async () => {
  const { sender, sent, read, send } = sending();
  send("a");
  send("b");
  send("c");
  await soon();
  expect(sent).toEqual(["a 0 1", "pingreq", "b 0 1", "c 0 1"]);
  expect(read).toEqual([]);
  sender.take({ cmd: "puback", messageId: 1 });
  expect(read).toEqual([]);
  sender.take(PINGRESP);
  expect(read).toEqual(["a"]);
  await soon();
  expect(sent.slice(4)).toEqual(["pingreq"]);
  send("d");
  sender.take(PINGRESP);
  expect(read).toEqual(["a", "b", "c"]);
  sender.take(PINGRESP);
  expect(read).toEqual(["a", "b", "c", "d"]);
  await soon();
  expect(sent.filter((one) => one === "pingreq")).toHaveLength(3);
  // Nothing is left to ask for.
  sender.take(PINGRESP);
  await soon();
  expect(sent).toHaveLength(7);
});

it("tells an answer to the client's own ping from one to its own", () => {
  const { sender, read, send } = sending();
  sender.sent({ cmd: "pingreq" });
  // Behind the client's ping: its answer says nothing of this one.
  send("a");
  sender.take(PINGRESP);
  expect(read).toEqual([]);
  send("b");
  sender.sent({ cmd: "pingreq" });
  sender.take(PINGRESP);
  expect(read).toEqual(["a"]);
  sender.take(PINGRESP);
  expect(read).toEqual(["a", "b"]);
});
