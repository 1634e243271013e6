import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { DemoMachine } from "../../simulators/machines/machine.ts";
import { startMachines } from "../../simulators/machines/machines.ts";
import { MOULDER_BINDINGS } from "../../simulators/machines/moulder.ts";
import { apiOf } from "../support/api.ts";
import { type CollectorProcess, type ServiceStatusJson, startCollector } from "../support/collector-process.ts";
import { INSPECTABLE, killWorker } from "../support/kill-worker.ts";
import { startBrokerProcess } from "./broker.ts";
import { BROKER_SINK, configure, FOLDER, PORTS, portsWithout, takenPorts } from "./configured.ts";
import { isExact, type Kill, killInTurn, type Victim } from "./kills.ts";
import { type Look, lookOf, Screen } from "./screen.ts";
import { createSubscriber } from "./subscriber.ts";
import { svgOf } from "./svg.ts";
import { draw, droppedOf, type Picture } from "./view.ts";

const HELP = `npm run demo [-- --for SECONDS] [-- --json] [-- --kill]

A whole plant on this computer: three simulated Modbus machines, one that speaks OPC UA, one with an S7 controller, one with an S7-1500
that is read by symbols, one with a CompactLogix, one with an Omron controller, one whose OPC DA server is read through a gateway, an MQTT
broker and the real collector as processes of their own, the collector with its embedded configuration API. Everything is configured over that API, as a person or a platform would.
The collector publishes to the broker, and hosts an OPC UA server with the same values.
Shows what arrives at the broker; now and then a machine is switched off, so that you see what the collector says of it.

Settings, keys and state are in the folder .demo while it runs; the page for a browser is at http://127.0.0.1:8090, the API at
http://127.0.0.1:8420, the broker at 127.0.0.1:1883, the hosted server at opc.tcp://127.0.0.1:4840/: docs/api/examples.md and the README's
commands work against it as printed. Where one of its ports is taken it takes another for that one, and says so; where it is the API's, a
folder of its own, too.

Colours are left out where NO_COLOR is set; without a terminal, or where TERM is dumb, it writes plain lines.

  --for SECONDS  end by itself and print what was read and delivered; without it: until Ctrl-C
  --json         print one JSON object at the end and nothing else
  --steady       leave every machine on
  --kill         leave every machine on and kill -9 the broker (aedes; it hands on before it acknowledges), the store worker, the delivery
                 worker and the collector in turn, each at least once; at the end machines stop, all drains, and the exit code is 1 unless
                 the ledger is exact and the subscriber got every accepted value
  --svg FILE     write the last picture into this file
`;

const OFF_AFTER_S = 8;
const OFF_FOR_S = 4;
const EVERY_S = 30;
const REFRESH_MS = 500;
const LINES_EVERY_MS = 2000;
const SETTLE_WITHIN_MS = 10_000;
const DRAIN_WITHIN_MS = 30_000;
/** How long a broker that was killed is away. */
const BROKER_AWAY_MS = 2000;
const SVG_COLUMNS = 152;

const { values: args } = parseArgs({
  options: {
    for: { type: "string" },
    json: { type: "boolean", default: false },
    steady: { type: "boolean", default: false },
    kill: { type: "boolean", default: false },
    svg: { type: "string" },
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
process.exit(await demo({ ...args, seconds }));

interface Options {
  readonly seconds: number;
  readonly json: boolean;
  readonly steady: boolean;
  readonly kill: boolean;
  readonly svg?: string | undefined;
}

async function demo({ seconds, json, steady, kill, svg }: Options): Promise<number> {
  const say = (line: string) => json || console.log(line);
  let isUnread = false;
  let stopped = false;
  // Whoever reads may leave: then this ends.
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", () => {
      isUnread = true;
      stopped = true;
    });
  const taken = await takenPorts();
  const ports = await portsWithout(taken);
  if (taken.length > 0)
    say(`port ${taken.join(", ")} is taken: the demo has another in its place, and examples with it do not work as printed`);
  // What a demo that was killed has left is nobody's: one that runs has the port of the API.
  const isUsual = !taken.includes(PORTS.api);
  if (isUsual) rmSync(FOLDER, { recursive: true, force: true });
  const dir = isUsual ? FOLDER : mkdtempSync(path.join(os.tmpdir(), "collector-demo-"));
  const machines = await startMachines(ports.machines);
  say(`simulated machines: ${machines.map((m) => `${m.name} at 127.0.0.1:${m.port()}`).join(", ")}`);
  let broker = await startBrokerProcess(ports.broker);
  say(`MQTT broker: 127.0.0.1:${broker.port}, a process of its own`);
  const start = () =>
    startCollector({
      dir,
      ports,
      pagePort: ports.page,
      ownGroup: true,
      settings: { bindings: MOULDER_BINDINGS },
      ...(kill && { env: INSPECTABLE }),
    });
  const pageUrl = `http://127.0.0.1:${ports.page}`;
  let collector = await start();
  say(`collector: process ${collector.pid}, configuration API ${collector.apiUrl}, settings ${path.relative("", collector.settingsFile)}`);
  const subscriber = await createSubscriber(broker.port, "plant/#");
  broker.take();
  try {
    const variables = machines.reduce((sum, machine) => sum + machine.variables.length, 0);
    const sinks = { broker: broker.port, opcua: ports.opcua };
    await configure(apiOf(collector.apiUrl, await collector.adminKey()), machines, sinks, (await collector.status()).collector);
    say(`configured over the API: ${machines.length} data sources, ${variables} variables, 2 data sinks`);
    say(`OPC UA server: opc.tcp://127.0.0.1:${ports.opcua}/`);
    say(`page for a browser: ${pageUrl}/\n`);
    const began = performance.now();
    const elapsedS = () => (performance.now() - began) / 1000;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => {
        // Asked twice, it does not wait for what is under way.
        if (stopped) process.exit(130);
        stopped = true;
      });
    const news: string[] = [];
    let killing = kill;
    const killOne = async (what: Victim): Promise<void> => {
      if (what === "store worker") return killWorker(collector, "store");
      if (what === "delivery worker") return killWorker(collector, "delivery");
      if (what === "collector") {
        await collector.kill();
        collector = await start();
        return;
      }
      const subscriptions = subscriber.subscriptions();
      await broker.kill();
      await delay(BROKER_AWAY_MS);
      broker = await startBrokerProcess(broker.port);
      const deadline = performance.now() + SETTLE_WITHIN_MS;
      while (subscriber.subscriptions() === subscriptions && performance.now() < deadline) await delay(20);
      broker.take();
    };
    const kills = !kill
      ? Promise.resolve([])
      : killInTurn({
          kill: killOne,
          newest: () => machines.map(({ name }) => subscriber.newest(name)),
          elapsedS,
          over: () => elapsedS() >= seconds,
          stopped: () => stopped,
          tell: (line) => news.push(line),
        }).finally(() => {
          killing = false;
        });
    // Awaited below; what fails before that is no rejection without a listener.
    kills.catch(() => {});
    let off = false;
    let last: ServiceStatusJson | undefined;
    let picture: Picture | undefined;
    const look = lookOf(process.stdout.isTTY, process.env);
    const screen = new Screen(process.stdout);
    while (!stopped && (elapsedS() < seconds || killing)) {
      off = steady || kill ? false : await switchMachine(machines[1], elapsedS(), off, news);
      last = (await statusOf(collector)) ?? last;
      picture = {
        elapsedS: elapsedS(),
        pageUrl,
        apiUrl: collector.apiUrl,
        brokerUrl: `mqtt://127.0.0.1:${broker.port}`,
        opcuaUrl: `opc.tcp://127.0.0.1:${ports.opcua}/`,
        status: last,
        values: subscriber.values(),
        messages: subscriber.messages(),
        news: news.slice(-2),
        log: collector.log,
      };
      if (!json) show(picture, look, screen);
      const leftMs = (killing ? Number.POSITIVE_INFINITY : seconds - elapsedS()) * 1000;
      await delay(Math.max(0, Math.min(look.isScreen && !json ? REFRESH_MS : LINES_EVERY_MS, leftMs, stopped ? 0 : leftMs)));
    }
    screen.leave();
    if (svg !== undefined && picture) writeFileSync(svg, svgOf(draw(picture, { columns: SVG_COLUMNS }, true), SVG_COLUMNS));
    if (isUnread) return 0;
    if (off) await machines[1]?.switchOn();
    const done = await kills;
    last = (await settled(collector)) ?? last;
    if (!last) throw new Error(`the collector ended before it said anything:\n${collector.log.join("\n")}`);
    const result = await account(last);
    if (json) console.log(JSON.stringify(result, null, 2));
    else tell(result, collector);
    return result.ok ? 0 : 1;

    /** The summary once the machines are off and all that was read has been delivered: the states of before, and numbers that add up. */
    async function account(before: ServiceStatusJson): Promise<Summary> {
      for (const machine of machines) await machine.switchOff();
      const { sinks, sources, buffer } = await drained(collector);
      const after = new Map(sources.map(({ uuid, counters }) => [uuid, counters]));
      const counted = before.sources.map((source) => ({ ...source, counters: after.get(source.uuid) ?? source.counters }));
      const ledger_exact = isExact({ sinks, buffer }, BROKER_SINK, subscriber.distinct());
      const seen = { messages: subscriber.messages(), received: subscriber.received(), elapsedS: elapsedS() };
      const all = summary({ ...before, sources: counted, sinks, buffer }, seen);
      const broker = { ...all.broker, distinct_values: subscriber.distinct(), gaps: subscriber.gaps() };
      if (!kill) return { ...all, ok: all.ok && ledger_exact, broker, ledger_exact };
      return {
        ...all,
        ok: all.ok && ledger_exact && (done.length > 0 || stopped) && done.every(({ back_ms }) => back_ms !== null),
        broker,
        kills: done,
        ledger_exact,
      };
    }
  } finally {
    await subscriber.close();
    await collector.stop();
    await broker.kill();
    for (const machine of machines) await machine.switchOff();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Undefined: it cannot be asked, because it was ended. */
async function statusOf(collector: CollectorProcess): Promise<ServiceStatusJson | undefined> {
  try {
    return await collector.status();
  } catch (error) {
    const { exitCode, signalCode } = collector.child;
    if (exitCode === 0 || signalCode !== null) return undefined;
    throw error;
  }
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

/** The status once every source is well and everything read is being delivered, or after the time for it; undefined: the collector has ended. */
async function settled(collector: CollectorProcess): Promise<ServiceStatusJson | undefined> {
  const deadline = performance.now() + SETTLE_WITHIN_MS;
  for (;;) {
    const status = await statusOf(collector);
    if (!status) return undefined;
    const well =
      status.sources.every((s) => s.status.state.type === "OK") &&
      status.sinks.every((s) => s.state === "OK" && (s.ledger === null || s.ledger.delivered > 0));
    if (well || performance.now() > deadline) return status;
    await delay(200);
  }
}

/** The status once nothing waits any more and nothing is added, or after the time for it. */
async function drained(collector: CollectorProcess): Promise<ServiceStatusJson> {
  const deadline = performance.now() + DRAIN_WITHIN_MS;
  let before = -1;
  for (;;) {
    const status = await collector.status();
    const { accepted, pending } = status.sinks.find(({ name }) => name === BROKER_SINK)?.ledger ?? { accepted: 0, pending: 0 };
    if ((pending === 0 && accepted === before) || performance.now() > deadline) return status;
    before = accepted;
    await delay(1000);
  }
}

interface Summary extends ReturnType<typeof summary> {
  readonly broker: {
    readonly messages: number;
    readonly values_received: number;
    readonly distinct_values: number;
    readonly gaps: number;
  };
  readonly ledger_exact: boolean;
  /** With --kill only. */
  readonly kills?: readonly Kill[];
}

function summary(
  status: ServiceStatusJson,
  { messages, received, elapsedS }: { readonly messages: number; readonly received: number; readonly elapsedS: number },
) {
  const sources = status.sources.map(({ name, type, status: { state }, counters, faults }) => ({
    name,
    type,
    state: state.type,
    ...(state.reason && { reason: state.reason }),
    readouts: counters.readouts,
    values_read: counters.values_read,
    values_faulted: counters.values_faulted,
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
      unconfirmed: ledger.unconfirmed,
      filtered: ledger.filtered,
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

function show(picture: Picture, look: Look, screen: Screen): void {
  const { columns = 160, rows } = process.stdout;
  if (look.isScreen) screen.show(draw(picture, { columns, rows }, look.hasColour));
  else process.stdout.write(`${draw(picture, { columns }, false).join("\n")}\n\n`);
}

function tell(result: Summary, collector: CollectorProcess): void {
  for (const s of result.sources)
    console.log(
      `${s.name}: ${s.state}, ${s.values_read} values${s.values_faulted > 0 ? ` and ${s.values_faulted} faults` : ""} in ${s.readouts} readouts${s.faulted_now.length > 0 ? ` (faulted: ${s.faulted_now.join(", ")})` : ""}`,
    );
  for (const s of result.sinks)
    console.log(
      s.accepted === undefined
        ? `${s.name}: ${s.state}, current values only`
        : `${s.name}: ${s.accepted} values accepted = ${s.delivered} delivered + ${s.unconfirmed} unconfirmed + ${s.filtered} filtered + ${s.pending} pending + ${s.dropped} dropped`,
    );
  const { values_received, distinct_values, messages } = result.broker;
  const twice = values_received === distinct_values ? "" : ` (${values_received - distinct_values} of them twice)`;
  console.log(`the broker passed on ${distinct_values} values in ${messages} messages${twice}`);
  for (const { what, at_s, back_ms } of result.kills ?? [])
    console.log(
      `kill -9 of the ${what} at ${at_s} s: ${back_ms === null ? "no values after it" : `values read after it ${back_ms} ms later`}`,
    );
  if (result.kills || !result.ledger_exact)
    console.log(`the ledger is ${result.ledger_exact ? "exact" : "NOT EXACT"}: the subscriber has ${distinct_values} different values`);
  if (!result.ok) console.log(`something is missing; the collector's log:\n${collector.log.join("\n")}`);
}
