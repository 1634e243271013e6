import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { connack4, connack5, puback, type RawPacket, startRawBroker } from "../../../test/support/raw-broker.ts";
import { EXIT } from "../io.ts";

const [CONNECT, PUBLISH] = [1, 3];

async function brokerWith(answer: (packet: RawPacket) => Buffer | undefined) {
  const broker = await startRawBroker((packet, socket) => {
    const bytes = answer(packet);
    if (bytes) socket.write(bytes);
  });
  onTestFinished(() => broker.stop());
  return broker;
}

async function withSink(port: number, ...words: readonly string[]) {
  const { well, run, folder } = await commandLine();
  writeFileSync(join(folder, "policy.yaml"), "sinks: {loopback: true}\n");
  await well("sink", "add", "plant", "mqtt", "host=127.0.0.1", `port=${port}`, "topic=hall/{source}", "client_id=of-the-service", ...words);
  return () => run("probe", "plant", "--timeout", "5s");
}

const clientOf = ({ body }: RawPacket): string => {
  const at = 10 + 1 + (body[10] ?? 0);
  return body.toString("utf8", at + 2, at + 2 + body.readUInt16BE(at));
};

test("walks to the right to publish as a client of its own, with an empty message that nothing keeps", async () => {
  const broker = await brokerWith((packet) =>
    packet.type === CONNECT ? connack5(0) : packet.type === PUBLISH ? puback(packet, 0) : undefined,
  );
  const probe = await withSink(broker.port);
  const { code, out, err } = await probe();
  expect([code, err]).toEqual([EXIT.good, ""]);
  expect(out).toMatch(
    / {2}connection +ok .*\n {2}log-in +ok .*MQTT 5: the broker lets the collector in.*\n {2}publish +ok .*hall\/status\/collector-probe is taken\n/,
  );
  expect(out).toMatch(/\nThe way is open\. The server takes this sink\.\n$/);
  const [connect] = broker.packets.filter(({ type }) => type === CONNECT);
  expect(connect && clientOf(connect)).toMatch(/^collector-probe-[0-9a-f]{8}$/);
  const published = broker.packets.filter(({ type }) => type === PUBLISH);
  expect(published.map(({ flags }) => flags & 1)).toEqual([0]);
  expect(published[0]?.body.toString("latin1")).toContain("hall/status/collector-probe");
});

test.for([
  ["a wrong password", (packet: RawPacket) => (packet.type === CONNECT ? connack5(134) : undefined), /log-in +FAILED .*134/],
  [
    "no right to publish",
    (packet: RawPacket) => (packet.type === CONNECT ? connack5(0) : packet.type === PUBLISH ? puback(packet, 135) : undefined),
    /publish +FAILED .*hall\/status\/collector-probe is refused: .*\n(.*\n)* {2}Next step: Give the user of this sink the right to publish on hall\/status\/#/,
  ],
  ["a broker that is silent", () => undefined, /log-in +FAILED .*did not answer CONNECT/],
] as const)("ends at %s, and with the code of a failure", async ([_, answer, says]) => {
  const broker = await brokerWith(answer);
  const { code, out } = await (await withSink(broker.port, "connect_timeout=500ms"))();
  expect([code, out]).toEqual([EXIT.sourceFailed, expect.stringMatching(says)]);
});

test("says that MQTT 3.1.1 does not tell whether a message is taken", async () => {
  const broker = await brokerWith((packet) =>
    packet.type === CONNECT ? (packet.body[6] === 5 ? connack4(1) : connack4(0)) : packet.type === PUBLISH ? puback(packet) : undefined,
  );
  const { code, out } = await (await withSink(broker.port))();
  expect([code, out]).toEqual([EXIT.good, expect.stringMatching(/log-in +ok .*MQTT 3\.1\.1.*\n {2}publish +\? .*does not say/)]);
});

/** A server that answers anything with these bytes, and keeps the connection. */
async function serverOf(answer: string | Buffer): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write(answer));
    onTestFinished(() => void socket.destroy());
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === "object" && address ? address.port : 0;
}

test.for([
  ["HTTP", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"],
  ["noise", Buffer.from(Array.from({ length: 400 }, (_, i) => (i * 73 + 41) % 256))],
  ["a text", "220 ready\r\n"],
] as const)("says that a server that answers with %s does not follow MQTT", async ([_, answer]) => {
  const { code, out } = await (await withSink(await serverOf(answer), "connect_timeout=500ms"))();
  expect([code, out]).toEqual([EXIT.sourceFailed, expect.stringMatching(/log-in +FAILED .*(does not follow MQTT|speaks)/)]);
  expect(out).not.toContain("The collector itself failed");
});

test("ends at TLS where the port has none", async () => {
  const plain = createServer((socket) => void socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  await new Promise<void>((done) => plain.listen(0, "127.0.0.1", done));
  onTestFinished(() => void plain.close());
  const address = plain.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const { code, out } = await (await withSink(port, "tls=true"))();
  expect([code, out]).toEqual([EXIT.sourceFailed, expect.stringMatching(/connection +ok .*\n {2}tls +FAILED .*does not speak TLS/)]);
});
