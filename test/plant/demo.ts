import { rmSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { type Api, apiOf } from "../support/api.ts";
import { startBroker } from "../support/broker.ts";
import { type CollectorProcess, type ServiceStatusJson, startCollector } from "../support/collector-process.ts";
import { freePort, isFree } from "../support/free-port.ts";
import { type DemoMachine, startMachines } from "./machines.ts";
import { createSubscriber } from "./subscriber.ts";
import { draw, droppedOf } from "./view.ts";

const HELP = `npm run demo [-- --for SECONDS] [-- --json]

A whole plant on this computer: three simulated Modbus machines, one that speaks OPC UA, an MQTT broker, and the real collector as its own
process with its embedded configuration API. Everything is configured over that API, as a person or a platform would.
The collector publishes to the broker, and hosts an OPC UA server with the same values.
Shows what arrives at the broker; now and then a machine is switched off, so that you see what the collector says of it.

Settings, keys and state are in the folder .demo while it runs; the API is at http://127.0.0.1:8420, the broker at
127.0.0.1:1883, the hosted server at opc.tcp://127.0.0.1:4840/: docs/api/examples.md and the README's commands work against it as printed. Where one of its ports is
taken it takes others, and a folder of its own, and says so.

  --for SECONDS  end by itself and print what was read and delivered; without it: until Ctrl-C
  --json         print one JSON object at the end and nothing else
  --steady       leave every machine on
`;

/** Where the demo is, all on 127.0.0.1; the documents name these. */
const PORTS = { api: 8420, http: 9420, broker: 1883, machines: [1502, 1503, 1504, 4841], opcua: 4840 } as const;
const FOLDER = path.resolve(".demo");

const OFF_AFTER_S = 8;
const OFF_FOR_S = 4;
const EVERY_S = 30;
const REFRESH_MS = 500;
const DRAIN_WITHIN_MS = 10_000;

const { values: args } = parseArgs({
  options: {
    for: { type: "string" },
    json: { type: "boolean", default: false },
    steady: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (args.help) {
  console.log(HELP);
  process.exit(0);
}
const seconds = args.for === undefined ? Number.POSITIVE_INFINITY : Number(args.for);
if (!(seconds > 0)) {
  console.error(`--for ${args.for}: expected a number of seconds above zero`);
  process.exit(2);
}
process.exit(await demo(seconds, args.json, args.steady));

async function demo(forSeconds: number, json: boolean, steady: boolean): Promise<number> {
  const say = (line: string) => json || console.log(line);
  const taken = await takenPorts();
  const usual = taken.length === 0;
  if (!usual) say(`port ${taken.join(", ")} is taken: this demo is elsewhere, and examples do not work with it as printed`);
  const machines = await startMachines(usual ? PORTS.machines : [0, 0, 0, 0]);
  say(`simulated machines: ${machines.map((m) => `${m.name} at 127.0.0.1:${m.port()}`).join(", ")}`);
  const broker = await startBroker({ port: usual ? PORTS.broker : 0 });
  say(`MQTT broker: 127.0.0.1:${broker.port}`);
  // What a demo that was killed has left is nobody's: its ports are free.
  if (usual) rmSync(FOLDER, { recursive: true, force: true });
  const collector = await startCollector(usual ? { dir: FOLDER, ports: PORTS } : {});
  say(`collector: process ${collector.pid}, configuration API ${collector.apiUrl}, settings ${path.relative("", collector.settingsFile)}`);
  const subscriber = await createSubscriber(broker.port, "plant/#");
  try {
    const opcuaPort = usual ? PORTS.opcua : await freePort();
    const variables = machines.reduce((sum, machine) => sum + machine.variables.length, 0);
    const sinks = { broker: broker.port, opcua: opcuaPort };
    await configure(apiOf(collector.apiUrl, await collector.adminKey()), machines, sinks, await collectorUuid(collector));
    say(`configured over the API: ${machines.length} data sources, ${variables} variables, 2 data sinks`);
    say(`OPC UA server: opc.tcp://127.0.0.1:${opcuaPort}/\n`);
    const began = performance.now();
    const elapsedS = () => (performance.now() - began) / 1000;
    let stopped = false;
    process.once("SIGINT", () => {
      stopped = true;
    });
    const news: string[] = [];
    let off = false;
    let status: ServiceStatusJson | undefined;
    const screen = !json && process.stdout.isTTY;
    while (!stopped && elapsedS() < forSeconds) {
      off = steady ? false : await switchMachine(machines[1], elapsedS(), off, news);
      status = await collector.status();
      if (!json)
        show(
          {
            elapsedS: elapsedS(),
            apiUrl: collector.apiUrl,
            brokerUrl: `mqtt://127.0.0.1:${broker.port}`,
            opcuaUrl: `opc.tcp://127.0.0.1:${opcuaPort}/`,
            status,
            values: subscriber.values(),
            messages: subscriber.messages(),
            news: news.slice(-2),
            log: collector.log,
          },
          screen,
        );
      await new Promise((done) => setTimeout(done, Math.max(0, Math.min(screen ? REFRESH_MS : 2000, (forSeconds - elapsedS()) * 1000))));
    }
    if (off) await machines[1]?.switchOn();
    const last = await settled(collector);
    const result = summary(last, subscriber.messages(), subscriber.received(), elapsedS());
    if (json) console.log(JSON.stringify(result, null, 2));
    else tell(result, collector, screen);
    return result.ok ? 0 : 1;
  } finally {
    await subscriber.close();
    await collector.stop();
    await broker.stop();
    for (const machine of machines) await machine.switchOff();
    if (usual) rmSync(FOLDER, { recursive: true, force: true });
  }
}

async function takenPorts(): Promise<readonly number[]> {
  const taken: number[] = [];
  for (const port of [PORTS.api, PORTS.http, PORTS.broker, PORTS.opcua, ...PORTS.machines]) if (!(await isFree(port))) taken.push(port);
  return taken;
}

async function configure(
  api: Api,
  machines: readonly DemoMachine[],
  sinks: { readonly broker: number; readonly opcua: number },
  collector: string,
): Promise<void> {
  await api.post("/v2/data-sinks", {
    name: "plant broker",
    collector,
    details: { type: "mqtt", host: "127.0.0.1", port: sinks.broker, topic: "plant/{source}" },
  });
  // Open to any client of this computer, so that one can be tried at once; a sink that is not told so asks for users and certificates.
  await api.post("/v2/data-sinks", {
    name: "plant server",
    collector,
    details: { type: "opcua", port: sinks.opcua, security_modes: ["None", "Sign", "SignAndEncrypt"], anonymous: true },
  });
  for (const [i, machine] of machines.entries()) {
    const source = await api.post("/v2/data-sources", {
      name: machine.name,
      collector,
      machine: `00000000-0000-4000-8000-00000000000${i + 1}`,
      details: machine.details,
    });
    await api.patch(`/v2/data-sources/${source.uuid}`, { readout_interval: machine.readoutIntervalS });
    for (const variable of machine.variables) await api.post("/ext/v1/variables", { data_source: source.uuid, ...variable });
  }
}

async function collectorUuid(collector: CollectorProcess): Promise<string> {
  return (await collector.status()).collector;
}

/** One machine is off for a few seconds of every half minute. */
async function switchMachine(machine: DemoMachine | undefined, elapsedS: number, off: boolean, news: string[]): Promise<boolean> {
  const moment = elapsedS % EVERY_S;
  const shouldBeOff = moment >= OFF_AFTER_S && moment < OFF_AFTER_S + OFF_FOR_S;
  if (!machine || shouldBeOff === off) return off;
  await (shouldBeOff ? machine.switchOff() : machine.switchOn());
  news.push(`${elapsedS.toFixed(0)} s: ${machine.name} was switched ${shouldBeOff ? "off" : "on again"}`);
  return shouldBeOff;
}

/** The status once every source is well again and everything read is delivered, or after the time for it has passed. */
async function settled(collector: CollectorProcess): Promise<ServiceStatusJson> {
  const deadline = performance.now() + DRAIN_WITHIN_MS;
  for (;;) {
    const status = await collector.status();
    const well =
      status.sources.every((s) => s.status.state.type === "OK") &&
      status.sinks.every((s) => s.state === "OK" && (s.ledger === null || s.ledger.delivered > 0));
    if (well || performance.now() > deadline) return status;
    await new Promise((done) => setTimeout(done, 200));
  }
}

function summary(status: ServiceStatusJson, messages: number, received: number, elapsedS: number) {
  const sources = status.sources.map(({ name, type, status: { state }, counters, faults }) => ({
    name,
    type,
    state: state.type,
    ...(state.reason && { reason: state.reason }),
    readouts: counters.readouts,
    values_read: counters.values_read,
    faulted_now: faults.map((f) => `${f.variable}: ${f.fault}`),
  }));
  // A sink that serves current values only has no ledger.
  const sinks = status.sinks.map(({ name, type, state, ledger }) => ({
    name,
    type,
    state,
    ...(ledger && {
      accepted: ledger.accepted,
      delivered: ledger.delivered,
      pending: ledger.pending,
      dropped: droppedOf(ledger.dropped),
    }),
  }));
  const ok =
    sources.length > 0 &&
    sources.every((s) => s.values_read > 0) &&
    sinks.length > 0 &&
    sinks.every((s) => s.state === "OK" && (s.delivered === undefined || (s.delivered > 0 && s.dropped === 0)));
  return { ok, seconds: Math.round(elapsedS), sources, sinks, broker: { messages, values_received: received } };
}

function show(picture: Parameters<typeof draw>[0], screen: boolean): void {
  const lines = draw(picture, process.stdout.columns ?? 160, screen);
  process.stdout.write(screen ? `\x1b[H\x1b[J${lines.join("\n")}\n` : `${lines.join("\n")}\n\n`);
}

function tell(result: ReturnType<typeof summary>, collector: CollectorProcess, screen: boolean): void {
  if (screen) process.stdout.write("\n");
  for (const s of result.sources)
    console.log(
      `${s.name}: ${s.state}, ${s.values_read} values in ${s.readouts} readouts${s.faulted_now.length > 0 ? ` (faulted: ${s.faulted_now.join(", ")})` : ""}`,
    );
  for (const s of result.sinks)
    console.log(
      s.accepted === undefined
        ? `${s.name}: ${s.state}, current values only`
        : `${s.name}: delivered ${s.delivered}, pending ${s.pending}, dropped ${s.dropped} of ${s.accepted} accepted`,
    );
  console.log(`the broker passed on ${result.broker.values_received} values in ${result.broker.messages} messages`);
  if (!result.ok) console.log(`something is missing; the collector's log:\n${collector.log.join("\n")}`);
}
