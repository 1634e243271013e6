import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connectAsync } from "mqtt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { plainLayout } from "../../../src/buffer/testing/readouts.ts";
import { mqttSpec, type Rig, startRig } from "../../../src/delivery/testing/rig.ts";
import { portState } from "../../../src/os/machine.ts";
import { encoded } from "../../../src/sinks/mqtt/sparkplug/testing.ts";
import { TestHost } from "../../../src/sinks/mqtt/sparkplug/testing-host.ts";
import { freePort } from "../../support/free-port.ts";
import { startGate } from "../../support/gate.ts";
import { sourceReport } from "../../support/source-report.ts";

const MOSQUITTO = "/usr/sbin/mosquitto";
const VARIABLES = 4;
const WITHIN = { timeout: 30_000 };
const REBIRTH = encoded({ timestamp: 1, metrics: [{ name: "Node Control/Rebirth", booleanValue: true }] });

let port: number;
let rig: Rig;
let host: TestHost;
const undo: (() => unknown)[] = [];

/** Debian's broker, with a host application of MQTT 5 that sees retain flags as they were published. */
beforeEach(async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "sparkplug-"));
  undo.push(() => rm(folder, { recursive: true, force: true }));
  port = await freePort();
  const file = path.join(folder, "mosquitto.conf");
  await writeFile(file, ["user root", `listener ${port} 127.0.0.1`, "allow_anonymous true", "max_queued_messages 0"].join("\n"));
  const broker = spawn(MOSQUITTO, ["-c", file], { stdio: "ignore" });
  undo.push(() => broker.kill("SIGKILL"));
  await expect.poll(() => portState("127.0.0.1", port), WITHIN).toBe("taken");
  rig = await startRig();
  undo.push(() => rig.stop());
  host = new TestHost();
});
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function startHost() {
  const client = await connectAsync({ host: "127.0.0.1", port, reconnectPeriod: 50, protocolVersion: 5 });
  undo.push(() => client.endAsync(true));
  client.on("message", (topic, payload, { qos, retain }) => {
    if (/\/[ND](BIRTH|DATA|DEATH)\//.test(topic)) host.take(topic, payload, { qos, retain });
  });
  await client.subscribeAsync("spBv1.0/#", { qos: 1, rap: true });
  return client;
}

function startNode(at: number): void {
  rig.start(mqttSpec(at, { settings: { payload: "sparkplug", group_id: "plant", edge_node_id: "line-3" } }));
  const layout = plainLayout(VARIABLES, { scalar: "uint32" }, "press-1");
  rig.ask({ type: "sources", sources: [sourceReport("press-1", { uuid: "source-1", layout })] });
}

const verbs = (): readonly string[] => host.messages.map(({ verb }) => verb);
const numbers = (): readonly number[] => host.values.filter(({ name }) => name === "v0").map(({ value }) => Number(value));

test("mosquitto: connections that are cut again and again lose no value, and each ends with its own death", async () => {
  await startHost();
  const gate = await startGate(port);
  undo.push(() => gate.shut());
  startNode(gate.port);
  for (let cut = 0; cut < 5; cut++) {
    await gate.open();
    rig.append(10);
    await expect.poll(() => verbs().filter((verb) => verb === "NBIRTH").length, WITHIN).toBeGreaterThan(cut);
    rig.append(200);
    await delay(100);
    await gate.shut();
    rig.append(10);
  }
  await gate.open();
  await expect
    .poll(() => rig.sink(), WITHIN)
    .toMatchObject({ accepted: 1100 * VARIABLES, unconfirmed: 1100 * VARIABLES, pending: 0, dropped: {} });
  await expect.poll(() => new Set(numbers()).size, WITHIN).toBe(1100);
  expect(host.faults).toEqual([]);
  const births = host.messages.flatMap(({ verb, payload }) => (verb === "NBIRTH" ? [Number(payload.metrics[0]?.value)] : []));
  const deaths = host.messages.flatMap(({ verb, payload }) => (verb === "NDEATH" ? [Number(payload.metrics[0]?.value)] : []));
  expect(deaths).toEqual(births.slice(0, -1));
  console.log(`${numbers().length - 1100} of 1100 readouts came twice over ${births.length} connections`);
}, 120_000);

test("mosquitto: Rebirth, and an intentional end with a death of QoS 1 before DISCONNECT", async () => {
  const client = await startHost();
  startNode(port);
  rig.append(3);
  await expect.poll(() => host.values.length, WITHIN).toBe(3 * VARIABLES);
  await client.publishAsync("spBv1.0/plant/NCMD/line-3", REBIRTH);
  await expect.poll(() => verbs().filter((verb) => verb === "NBIRTH").length, WITHIN).toBe(2);
  await expect.poll(() => verbs().at(-1), WITHIN).toBe("DBIRTH");
  rig.ask({ type: "stop", uuid: "sink-1", removed: false });
  await expect.poll(() => verbs().at(-1), WITHIN).toBe("NDEATH");
  expect(host.faults).toEqual([]);
  expect(host.bdSeq).toBeUndefined();
}, 60_000);
