import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, test } from "vitest";
import { connack4, connack5, puback, type RawPacket, startRawBroker, topicOf, versionOf } from "../../../test/support/raw-broker.ts";
import { sourceReport } from "../../../test/support/source-report.ts";
import { plainLayout } from "../../buffer/testing/readouts.ts";
import { mqttSpec, startRig } from "../../delivery/testing/rig.ts";
import { ReasonError } from "../../model/reason.ts";
import type { SourceReport } from "../../model/report.ts";
import { textsOf } from "../../model/testing/warnings.ts";
import { LinkWindow } from "../lib/link-window.ts";
import type { Connection } from "./connect.ts";
import { StatusChannel, type SuspensionMemory } from "./status-channel.ts";

const CONNECT = 1;
const PUBLISH = 3;
const NOT_AUTHORIZED = 135;
const TAKEN_OVER = 142;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

describe("StatusChannel", () => {
  let memory: SuspensionMemory;
  beforeEach(() => {
    memory = {};
  });

  /** One connection; `answer` undefined: no publish is acknowledged. */
  function opened({ answer, endCode, values = 0 }: { answer?: string; endCode?: number; values?: number } = {}) {
    let lose: (reason: ReasonError) => void = () => {};
    const lost = new Promise<ReasonError>((done) => {
      lose = done;
    });
    const failed = lost.then((reason) => {
      throw reason;
    });
    failed.catch(() => {});
    const connection: Connection = {
      version: 4,
      window: 16,
      maxPacketBytes: 1e6,
      canRetain: true,
      link: new LinkWindow(),
      feed: () => {},
      lost,
      endCode: () => endCode,
      publish: () =>
        answer === undefined ? failed : Promise.resolve(answer === "" ? { type: "accepted" } : { type: "of_topic", detail: answer }),
      subscribe: () => Promise.resolve([]),
      close: () => Promise.resolve(),
    };
    const channel = new StatusChannel(connection, memory, () => values);
    const close = async (type: "CONNECTION_CLOSED" | "TIMEOUT" = "CONNECTION_CLOSED"): Promise<string> => {
      lose(new ReasonError(type, "the broker closed the connection"));
      return (await channel.lost).message;
    };
    return { channel, close };
  }

  /** Publishes, is closed before it is acknowledged, and gives the suspension of the next opening. */
  async function closedOn(topic: string, how: Parameters<typeof opened>[0] = {}): Promise<string | undefined> {
    const { channel, close } = opened(how);
    const published = channel.publish(topic, "", true).catch((error: Error) => error.message);
    expect(await close()).toBe(`the broker closed the connection, before it acknowledged a publish to ${topic}`);
    await published;
    return opened().channel.suspended;
  }

  it("is suspended after two closes in a row on a status publish, and not after one", async () => {
    expect(await closedOn("a/status")).toBeUndefined();
    expect(await closedOn("a/status/press")).toMatch(/publishing to a\/status\/press, twice in a row; .* right to it; .*only values/);
  });

  it("forgets an earlier close once everything is published", async () => {
    await closedOn("a/status");
    const { channel } = opened({ answer: "" });
    await channel.publish("a/status", "", true);
    channel.published();
    expect(await closedOn("a/status")).toBeUndefined();
  });

  it("is not suspended for a close while values are under way, or with another cause in the words of the broker", async () => {
    for (let i = 0; i < 3; i++) expect(await closedOn("a/status", { values: 1 })).toBeUndefined();
    for (let i = 0; i < 3; i++) expect(await closedOn("a/status", { endCode: TAKEN_OVER })).toBeUndefined();
    await closedOn("a/status", { endCode: NOT_AUTHORIZED });
    expect(await closedOn("a/status", { endCode: NOT_AUTHORIZED })).toBeDefined();
  });

  it("is suspended at once where the broker refused a publish and closed right after", async () => {
    const { channel, close } = opened({ answer: "the broker refuses a publish to a/status: Not authorized (code 135)" });
    await channel.publish("a/status", "", true);
    expect(await close()).toBe("the broker closed the connection");
    expect(opened().channel.suspended).toMatch(/Not authorized \(code 135\); over connections of the next 10 min/);
    await opened().close();
    expect(opened().channel.suspended).toBeDefined();
  });

  it("takes a guess back where the broker closes also while it is suspended", async () => {
    await closedOn("a/status");
    expect(await closedOn("a/status")).toBeDefined();
    await opened({ values: 1 }).close();
    expect(opened().channel.suspended).toBeDefined();
    await opened().close("TIMEOUT");
    expect(opened().channel.suspended).toBeDefined();
    await opened().close();
    expect(opened().channel.suspended).toBeUndefined();
  });
});

/** Closes on each publish to a topic of `denied` instead of acknowledging it, as EMQX with `deny_action = disconnect` does. */
async function closingOn(denied: RegExp, version: 4 | 5) {
  const values: string[] = [];
  const broker = await startRawBroker((packet: RawPacket, socket: Socket) => {
    if (packet.type === CONNECT) {
      if (version === 5) socket.write(connack5(0));
      else if (versionOf(packet) === 5) socket.end(connack4(1));
      else socket.write(connack4(0));
    }
    if (packet.type !== PUBLISH || socket.writableEnded) return;
    if (denied.test(topicOf(packet))) {
      if (version === 5) socket.end(Buffer.from([0xe0, 2, NOT_AUTHORIZED, 0]));
      else socket.end();
      return;
    }
    if (topicOf(packet) === "plant/values") values.push(packet.body.toString());
    socket.write(version === 5 ? puback(packet, 0) : puback(packet));
  });
  undo.push(() => broker.stop());
  return { ...broker, values };
}

const source = (name: string): SourceReport => sourceReport(name, { layout: plainLayout(4, { scalar: "uint32" }, name) });

test.each([
  ["3.1.1", "its own status", 4, /\/status$/],
  ["3.1.1", "the status of sources", 4, /\/status\/press-1$/],
  ["3.1.1", "metadata", 4, /\/meta\/press-1$/],
  ["5", "the status of sources", 5, /\/status\/press-1$/],
] as const)(
  "a broker that speaks MQTT %s and closes on %s %s: values alone go on, and the warnings say why",
  async (_name, _what, version, denied) => {
    const broker = await closingOn(denied, version);
    const rig = await startRig();
    undo.push(() => rig.stop());
    rig.ask({ type: "sources", sources: [source("press-1")] });
    rig.start(mqttSpec(broker.port));
    rig.append(20);
    const reading = setInterval(() => rig.append(1), 50);
    undo.push(() => clearInterval(reading));
    await expect.poll(() => broker.values.length, { timeout: 25_000 }).toBeGreaterThan(10);
    clearInterval(reading);
    await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ pending: 0, dropped: {} });
    expect(rig.report()).toMatchObject({ state: "OK", error: null });
    expect(textsOf(rig.report()?.warnings).join()).toMatch(/publishing to plant\/values\/(status|meta).*only values are published/);
    const details = rig.told.flatMap((told) => (told.type === "report" ? told.sinks.map(({ error }) => error?.detail ?? "") : []));
    expect(details.some((detail) => /before it acknowledged a publish to plant\/values\/(status|meta)/.test(detail))).toBe(true);
    expect(details.some((detail) => detail.includes("same client_id"))).toBe(false);
  },
  60_000,
);
