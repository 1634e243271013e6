import { createPrivateKey } from "node:crypto";
import net, { type AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { parseCertificate } from "../../src/os/pki/certificate.ts";
import { testCertificate } from "../../src/os/pki/testing.ts";
import { connect, context, detailsOf, readTexts, type TestPki, testPki } from "../../test/support/opcua.ts";
import { all, dataValue, double, str, u32 } from "../../test/support/opcua-wire/bytes.ts";
import { WireServer } from "../../test/support/opcua-wire/server.ts";
import type { AnySession } from "../driver.ts";
import { makeCertificate, type OpcuaSimulator, PLANT_NAMESPACE, startOpcuaSimulator } from "./simulator.ts";

const SECURE = {
  security_mode: "SignAndEncrypt",
  endpoint_security_policy: "Basic256Sha256",
  token_security_policy: "Basic256Sha256",
} as const;
const NODE = `nsu=${PLANT_NAMESPACE};s=Double`;
/** How a server says that it takes no channel without security; undefined: it hangs up. */
const REFUSALS = [0x8055_0000, undefined] as const;

let simulator: OpcuaSimulator;
let pki: TestPki;
let port: number;
let refusal: number | undefined;
/** Connections on which a channel without security was tried. */
let plain = 0;
const sessions: AnySession[] = [];
const sockets = new Set<net.Socket>();

/** Before the simulator: a channel without security does not come through. */
const gate = net.createServer((socket) => {
  const upstream = net.connect(simulator.port, "127.0.0.1");
  for (const one of [socket, upstream]) {
    sockets.add(one);
    one.on("error", () => {});
    one.on("close", () => sockets.delete(one));
  }
  socket.on("data", (bytes) => {
    if (bytes.toString("latin1", 0, 3) !== "OPN" || !bytes.includes("SecurityPolicy#None")) return void upstream.write(bytes);
    plain++;
    const words = str("only with security");
    if (refusal === undefined) socket.destroy();
    else socket.end(all(Buffer.from("ERRF"), u32(12 + words.length), u32(refusal), words));
    upstream.destroy();
    return undefined;
  });
  upstream.on("data", (bytes) => void socket.write(bytes));
  upstream.on("close", () => socket.destroy());
  socket.on("close", () => upstream.destroy());
});

beforeAll(async () => {
  simulator = await startOpcuaSimulator({ bulk: 1 });
  await new Promise<void>((ready) => gate.listen(0, "127.0.0.1", ready));
  port = (gate.address() as AddressInfo).port;
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((done) => gate.close(done));
  await simulator.close();
});
beforeEach(() => {
  pki = testPki();
  plain = 0;
});
afterEach(async () => {
  for (const session of sessions.splice(0)) await session.close();
  pki.remove();
});

async function open(): Promise<AnySession> {
  const session = await connect(detailsOf(port, { security_settings: SECURE }), context({ pki }));
  sessions.push(session);
  return session;
}

it.each(REFUSALS)("reads a server that refuses a channel without security (%s), once its certificate is trusted", async (given) => {
  refusal = given;
  await expect(open()).rejects.toMatchObject({
    reason: { type: given === undefined ? expect.stringMatching(/^CONNECTION_/) : "OPC_UA_ERROR_RESPONSE" },
    message: expect.stringContaining("sudo collector pki trust FILE"),
  });
  // Others, that are not its own: they are tried where they can be, and not believed.
  const other = await makeCertificate({ applicationUri: "urn:example:other", freshKey: true });
  for (const { der } of [await testCertificate("elliptic"), other]) pki.trust.trust(parseCertificate(der));
  await expect(open()).rejects.toThrow();
  pki.trust.trust(parseCertificate(simulator.certificate.der));
  const session = await open();
  expect(await readTexts(session, [NODE], context())).toMatchObject([{ quality: "good" }]);
  // From then on nobody asks without security.
  const before = plain;
  expect(await readTexts(await open(), [NODE], context())).toMatchObject([{ quality: "good" }]);
  expect(plain).toBe(before);
});

it.each([
  ["an abort chunk keeps its code and words", { abort: 0x8080_0000, words: "no room", chunks: 2 }, /BadTcpMessageTooLarge.*"no room"/],
  ["what is too large is refused by itself", { large: 200_000 }, /max_answer_bytes/],
] as const)("%s on an encrypted channel too, which goes on", async (_, answer, words) => {
  const { privateKey, der } = await makeCertificate({ applicationUri: "urn:wire:secure" });
  const server = new WireServer({ certificate: Buffer.from(der), key: createPrivateKey(privateKey), applicationUri: "urn:wire:secure" });
  await server.start();
  server.nodes.set("ns=2;s=good", dataValue({ value: double(1.5) }));
  pki.trust.trust(parseCertificate(der));
  const settings = { max_answer_bytes: 65_536 };
  const session = await connect(detailsOf(server.port, { security_settings: SECURE }), context({ pki }), { settings });
  sessions.push(session);
  expect(await readTexts(session, ["ns=2;s=good"], context())).toMatchObject([{ value: 1.5 }]);
  server.answers.set("Read", () => answer);
  await expect(readTexts(session, ["ns=2;s=good", "i=2259"], context())).rejects.toMatchObject({
    scope: "points",
    message: expect.stringMatching(words),
  });
  server.answers.delete("Read");
  expect(await readTexts(session, ["ns=2;s=good"], context())).toMatchObject([{ value: 1.5 }]);
  expect(session.alive()).toBe(true);
  await session.close();
  await server.close();
});
