import { expect, test } from "vitest";
import { SINKS } from "../../src/sinks/index.ts";
import { facts as lines } from "../example/lines/facts.ts";
import { startReceiver } from "../example/lines/receiver.ts";
import { startBroker } from "../support/broker.ts";
import { startPlatform } from "../support/platform.ts";
import { checkOutgoing, type Harness } from "./outgoing-checks.ts";
import { HOSTED, OUTGOING } from "./sink-checks.ts";

const HARNESSES: Readonly<Record<(typeof OUTGOING)[number], Harness>> = {
  mqtt: {
    lasts: true,
    takesLosses: true,
    async start() {
      const broker = await startBroker();
      const topic = "plant/values";
      return {
        details: { type: "mqtt", host: "127.0.0.1", port: broker.port, topic },
        ids: () => broker.received.filter((m) => m.topic === topic).map((m) => JSON.parse(m.payload).id),
        messages: () =>
          broker.received
            .filter((m) => m.topic === topic)
            .map(({ payload }) => ({ bytes: Buffer.byteLength(payload), values: valuesOf(JSON.parse(payload)) })),
        losses: () => broker.received.filter((m) => m.topic === `${topic}/gap`).map((m) => JSON.parse(m.payload)),
        hold: (on) => broker.hold(on),
        held: broker.held,
        drop: () => broker.drop(),
        stop: () => broker.stop(),
      };
    },
    wrong: [
      ["host", { host: "" }],
      ["topic", { topic: "plant/#" }],
      ["port", { port: "1883" }],
      ["publish_interval", { publish_interval: -1 }],
    ],
    settings: { in_flight: 3, publish_timeout: "2s" },
    wrongSettings: [
      ["in_flight", 0],
      ["in_flight", 65],
      ["int64", "hex"],
      ["payload", "xml"],
      ["payload", "value"],
      ["payload", "raw"],
      ["retain", "yes"],
      ["retain", true],
      ["keepalive", "0s"],
      ["publish_timeout", "soon"],
      ["no_such_setting", 1],
    ],
  },
  platform: {
    asksPolicy: false,
    lasts: false,
    takesLosses: true,
    async start() {
      const platform = await startPlatform();
      return {
        details: { type: "platform", api: { url: platform.url, keyFile: platform.keyFile, insecure: false, embedded: false } },
        layout: platform.layout(3),
        ids: platform.ids,
        messages: platform.messages,
        losses: platform.losses,
        hold: platform.hold,
        held: platform.held,
        drop: platform.drop,
        leave: platform.leave,
        stop: platform.stop,
      };
    },
    wrong: [
      ["publish_interval", { publish_interval: -1 }],
      ["api", { api: undefined }],
    ],
    settings: { in_flight: 3, request_timeout: "2s" },
    wrongSettings: [
      ["in_flight", 0],
      ["in_flight", 5],
      ["request_timeout", "soon"],
      ["connect_timeout", "0s"],
      ["no_such_setting", 1],
    ],
  },
};

const valuesOf = ({ readouts }: { readonly readouts: readonly { readonly values: object }[] }): number =>
  readouts.reduce((sum, { values }) => sum + Object.keys(values).length, 0);

test("there is no kind of sink that neither this suite nor the one of hosted sinks tests", () => {
  expect([...OUTGOING, ...HOSTED].sort()).toEqual(Object.keys(SINKS).sort());
});

for (const type of OUTGOING) checkOutgoing(type, HARNESSES[type], SINKS);

// The sink of docs/write-a-sink.md.
checkOutgoing(
  "lines",
  {
    lasts: true,
    takesLosses: true,
    async start() {
      const receiver = await startReceiver();
      const { port, received, held, hold, drop, stop } = receiver;
      return {
        details: { type: "lines", host: "127.0.0.1", port },
        ids: () => received.filter(({ count }) => count === undefined).map(({ id }) => id),
        messages: () => received.filter(({ count }) => count === undefined),
        losses: () => received.flatMap(({ id, count }) => (count === undefined ? [] : [{ id, count }])),
        held,
        hold,
        drop,
        stop,
      };
    },
    wrong: [
      ["host", { host: "" }],
      ["port", { port: 0 }],
      ["publish_interval", { publish_interval: -1 }],
    ],
    settings: { in_flight: 3, answer_ms: 2000 },
    wrongSettings: [
      ["in_flight", 0],
      ["answer_ms", 50],
      ["no_such_setting", 1],
    ],
  },
  { lines: { ...lines, kind: () => import("../example/lines/sink.ts") } },
);
