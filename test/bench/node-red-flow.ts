/** Pinned: a figure beside Node-RED is of these. */
export const NODE_RED_PACKAGES = ["node-red@5.0.7", "node-red-contrib-modbus@5.23.3"] as const;

const MAX_READ = 125;

interface FlowPlan {
  readonly brokerPort: number;
  readonly ports: readonly number[];
  readonly registers: number;
  readonly intervalMs: number;
}

/**
 * Flow as a person draws it: an inject node per device gives the tick, a function asks for its blocks of registers, a getter reads them, a
 * function gathers them by name, and once a second a message goes to the broker, QoS 1. Pure.
 */
export function nodeRedFlow({ brokerPort, ports, registers, intervalMs }: FlowPlan): readonly object[] {
  const blocks = Math.ceil(registers / MAX_READ);
  const broker = {
    id: "broker",
    type: "mqtt-broker",
    broker: "127.0.0.1",
    port: String(brokerPort),
    clientid: "node-red",
    protocolVersion: "4",
    keepalive: "60",
    cleansession: true,
    autoConnect: true,
  };
  return [
    { id: "tab", type: "tab", label: "bench" },
    broker,
    ...ports.flatMap((port) => deviceFlow(port, { registers, blocks, intervalMs })),
  ];
}

function deviceFlow(
  port: number,
  { registers, blocks, intervalMs }: { registers: number; blocks: number; intervalMs: number },
): readonly object[] {
  const id = (part: string) => `${part}${port}`;
  const node = (part: string, type: string, more: object) => ({ id: id(part), z: "tab", type, x: 100, y: 100, ...more });
  const inject = (part: string, repeatMs: number, to: string) =>
    node(part, "inject", {
      props: [{ p: "topic", v: part, vt: "str" }],
      repeat: String(repeatMs / 1000),
      once: true,
      onceDelay: 0.5,
      wires: [[id(to)]],
    });
  const work = (part: string, func: string, wires: readonly (readonly string[])[]) =>
    node(part, "function", { func, outputs: wires.length, wires });
  return [
    {
      id: id("client"),
      type: "modbus-client",
      clienttype: "tcp",
      bufferCommands: true,
      queueLogEnabled: false,
      failureLogEnabled: false,
      tcpHost: "127.0.0.1",
      tcpPort: String(port),
      tcpType: "DEFAULT",
      unit_id: "1",
      commandDelay: "0",
      clientTimeout: "3000",
      reconnectOnTimeout: true,
      reconnectTimeout: "2000",
      parallelUnitIdsAllowed: true,
    },
    inject("tick", intervalMs, "ask"),
    inject("second", 1000, "gather"),
    work(
      "ask",
      `if (Date.now() - (flow.get("since${port}") || 0) < 3000) return null;
       flow.set("since${port}", Date.now());
       const ts = new Date().toISOString();
       return [Array.from({ length: ${blocks} }, (_, i) => ({ topic: ts, payload: { value: 0, fc: 3, unitid: 1, address: i * ${MAX_READ}, quantity: Math.min(${MAX_READ}, ${registers} - i * ${MAX_READ}) } }))];`,
      [[id("read")]],
    ),
    node("read", "modbus-flex-getter", {
      server: id("client"),
      keepMsgProperties: true,
      showStatusActivities: false,
      showErrors: false,
      useIOFile: false,
      wires: [[id("gather")], []],
    }),
    work(
      "gather",
      `const state = context.get("state") || { values: {}, blocks: 0, readouts: [] };
       context.set("state", state);
       if (msg.topic === "second") {
         const readouts = state.readouts;
         state.readouts = [];
         return readouts.length === 0 ? null : { topic: "node-red/machine-${port}", payload: JSON.stringify({ v: 1, source: "machine-${port}", readouts }) };
       }
       const start = msg.modbusRequest.address;
       for (let i = 0; i < msg.payload.length; i++) state.values["r" + (start + i)] = msg.payload[i];
       if (++state.blocks < ${blocks}) return null;
       state.readouts.push({ ts: msg.topic, values: state.values });
       [state.values, state.blocks] = [{}, 0];
       flow.set("since${port}", 0);
       return null;`,
      [[id("send")]],
    ),
    node("send", "mqtt out", { broker: "broker", topic: "", qos: "1", retain: "false", wires: [] }),
  ];
}
