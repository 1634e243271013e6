import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect as connectTcp, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "mqtt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mqttSpec, type Rig, startRig } from "../../../src/delivery/testing/rig.ts";
import { textsOf } from "../../../src/model/testing/warnings.ts";
import { freePort } from "../../support/free-port.ts";
import { startGate } from "../../support/gate.ts";
import { connack4 } from "../../support/raw-broker.ts";

const MOSQUITTO = "/usr/sbin/mosquitto";
const hasMosquitto = spawnSync(MOSQUITTO, ["-h"]).error === undefined;
/** Behavioural deadlines are asserted with this margin; what was measured is printed. */
const MARGIN = 3;
const LATE_MS = 2000;
const VARIABLES = 4;

interface Arrived {
  readonly number: number;
  readonly backlog: boolean;
  readonly atMs: number;
}

let folder: string;
let port: number;
let arrived: Arrived[];
const undo: (() => unknown)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "mosquitto-"));
  undo.push(() => rm(folder, { recursive: true, force: true }));
  port = await freePort();
  arrived = [];
});
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** As many as come wait for whoever listens. */
const UNBOUNDED = "max_queued_messages 0";

/** Debian's broker, and somebody who listens to it. */
async function startMosquitto(more: readonly string[] = [UNBOUNDED]): Promise<ChildProcess> {
  const file = path.join(folder, "mosquitto.conf");
  await writeFile(file, ["user root", `listener ${port} 127.0.0.1`, "allow_anonymous true", ...more].join("\n"));
  const child = spawn(MOSQUITTO, ["-c", file], { stdio: "ignore" });
  undo.push(() => child.kill("SIGKILL"));
  return child;
}

/** Gives how often it has subscribed. */
async function listen(): Promise<() => number> {
  let subscribed = 0;
  const client = connect({ host: "127.0.0.1", port, reconnectPeriod: 20 });
  client.on("error", () => {});
  undo.push(() => client.endAsync(true));
  client.on("connect", () => {
    const count = () => {
      subscribed++;
    };
    void client.subscribeAsync("plant/values", { qos: 1 }).then(count, () => {});
  });
  client.on("message", (_topic, payload) => {
    const { readouts, backlog = false } = JSON.parse(payload.toString()) as { readouts: { values: { v0: number } }[]; backlog?: boolean };
    for (const { values } of readouts) arrived.push({ number: values.v0, backlog, atMs: Date.now() });
  });
  await expect.poll(() => subscribed).toBe(1);
  return () => subscribed;
}

async function rigOf(settings: object = {}, at = port): Promise<Rig> {
  const rig = await startRig();
  undo.push(() => rig.stop());
  rig.start(mqttSpec(at, { settings }));
  return rig;
}

const rises = (numbers: readonly number[]): boolean => numbers.every((n, i) => i === 0 || n > (numbers[i - 1] ?? n));
const firstsOf = (backlog: boolean): number[] => [...new Set(arrived.filter((one) => one.backlog === backlog).map(({ number }) => number))];
const expectDelivered = (rig: Rig, readouts: number) =>
  expect
    .poll(() => rig.sink(), { timeout: 20_000 })
    .toMatchObject({ accepted: readouts * VARIABLES, delivered: readouts * VARIABLES, pending: 0, dropped: {} });

describe.skipIf(!hasMosquitto && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")("mosquitto", () => {
  test.each(["SIGTERM", "SIGKILL"] as const)(
    "that ends by %s and comes back: nothing is lost, the order is kept",
    async (signal) => {
      // What the broker acknowledges it has sent on: with a bound it would hold back what is lost with it.
      const settings = [UNBOUNDED, "max_inflight_messages 0"];
      const first = await startMosquitto(settings);
      const timesSubscribed = await listen();
      const gate = await startGate(port);
      undo.push(() => gate.shut());
      await gate.open();
      const rig = await rigOf({}, gate.port);
      await expect.poll(() => rig.report()?.state).toBe("OK");
      for (let i = 0; i < 10; i++) rig.append(10);
      await expect.poll(() => arrived.length).toBeGreaterThan(30);
      first.kill(signal);
      await once(first, "exit");
      await gate.shut();
      for (let i = 0; i < 10; i++) rig.append(10);
      await expect.poll(() => rig.report()?.state).toBe("ERROR");
      await startMosquitto(settings);
      // Before that a broker without a session acknowledges what goes to nobody.
      await expect.poll(timesSubscribed, { timeout: 20_000 }).toBe(2);
      await gate.open();
      rig.append(10);
      await expectDelivered(rig, 210);
      await expect.poll(() => new Set(arrived.map(({ number }) => number)).size).toBe(210);
      expect([rises(firstsOf(false)), rises(firstsOf(true))]).toEqual([true, true]);
      console.log(`${signal}: 210 readouts, ${arrived.length - 210} of them twice`);
    },
    40_000,
  );

  test("back after an hour without it: live values are not late while the backlog drains", async () => {
    const rig = await rigOf();
    // 3,600 readouts, one a second.
    for (let i = 0; i < 36; i++) rig.append(100);
    await expect.poll(() => rig.sink()?.pending, { timeout: 10_000 }).toBe(3600 * VARIABLES);
    await startMosquitto();
    await listen();
    await expect.poll(() => rig.report()?.state, { timeout: 20_000 }).toBe("OK");
    const openMs = performance.now();
    const sentAtMs = new Map<number, number>();
    let next = 3600;
    const live = setInterval(() => {
      sentAtMs.set(next++, Date.now());
      rig.append(1, { timeOf: () => Date.now() });
    }, 100);
    undo.push(() => clearInterval(live));
    await expect.poll(() => firstsOf(true).length, { timeout: 60_000, interval: 10 }).toBeGreaterThanOrEqual(3600);
    const drainS = (performance.now() - openMs) / 1000;
    await expect.poll(() => firstsOf(false).length).toBeGreaterThanOrEqual(10);
    clearInterval(live);
    await expectDelivered(rig, next);
    const lateMs = arrived.filter(({ number }) => sentAtMs.has(number)).map(({ number, atMs }) => atMs - (sentAtMs.get(number) ?? 0));
    console.log(`an hour of readouts drained in ${drainS.toFixed(1)} s; live ones at most ${Math.max(...lateMs)} ms late`);
    expect(Math.max(...lateMs)).toBeLessThan(LATE_MS * MARGIN);
    expect([rises(firstsOf(false)), rises(firstsOf(true))]).toEqual([true, true]);
  }, 120_000);

  test("that keeps no messages: values are delivered, and the warnings say what is not published", async () => {
    await startMosquitto([UNBOUNDED, "retain_available false"]);
    await listen();
    const rig = await rigOf();
    rig.ask({ type: "sources", sources: [] });
    rig.append(20);
    await expectDelivered(rig, 20);
    await expect.poll(() => new Set(arrived.map(({ number }) => number)).size).toBe(20);
    expect(rig.report()).toMatchObject({ state: "OK", warnings: [{ text: expect.stringMatching(/keeps no retained messages/) }] });
  }, 30_000);

  describe("that denies the topic", () => {
    const REFUSED = /plant\/values: Not authorized \(code 135\); give this user or client_id the right/;
    const deny = async (...more: readonly string[]): Promise<void> => {
      const acl = path.join(folder, "acl");
      await writeFile(acl, "topic write plant/values/status\ntopic read #\n", { mode: 0o600 });
      await startMosquitto([`acl_file ${acl}`, ...more]);
    };
    const logged = (rig: Rig): string[] => rig.told.flatMap((m) => (m.type === "log" && m.level !== "debug" ? [m.message] : []));

    test("under MQTT 5: held and then refused, topic and right named in the state, and the connection stays", async () => {
      await deny();
      const rig = await rigOf({ hold_refused: "1s" });
      await expect.poll(() => rig.report()?.state, { timeout: 10_000 }).toBe("OK");
      rig.append(50);
      await expect
        .poll(() => rig.sink(), { timeout: 10_000 })
        .toMatchObject({ delivered: 0, pending: 0, dropped: { refused: 50 * VARIABLES } });
      expect(rig.report()).toMatchObject({
        state: "ERROR",
        error: { reason: { type: "UNKNOWN" }, detail: expect.stringMatching(REFUSED) },
      });
      expect(logged(rig)).toEqual([
        "the sink is connected",
        "the sink fails on some values; they are kept and tried again in messages of their own",
        "the sink refuses values; they are dropped and counted",
      ]);
    }, 30_000);

    test("and has the right given while it runs: the values arrive, state and notes are well, without a reconnect", async () => {
      const acl = path.join(folder, "acl");
      await writeFile(acl, "topic read #\n", { mode: 0o600 });
      const broker = await startMosquitto([`acl_file ${acl}`]);
      const rig = await rigOf();
      rig.ask({ type: "sources", sources: [] });
      await expect.poll(() => rig.report()?.state, { timeout: 10_000 }).toBe("OK");
      rig.append(20);
      await expect.poll(() => rig.report()?.error?.detail, { timeout: 10_000 }).toMatch(REFUSED);
      expect(textsOf(rig.report()?.warnings)).toEqual([expect.stringMatching(/plant\/values\/status: Not authorized/)]);
      await writeFile(acl, "topic readwrite #\n", { mode: 0o600 });
      broker.kill("SIGHUP");
      await expectDelivered(rig, 20);
      const looked = () => {
        rig.append(1);
        rig.ask({ type: "sources", sources: [] });
        return rig.report();
      };
      await expect.poll(looked, { timeout: 40_000, interval: 200 }).toMatchObject({ state: "OK", error: null, warnings: [] });
      const since = rig.told.length;
      for (let i = 0; i < 5; i++) looked();
      await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ pending: 0, dropped: {} });
      const states = rig.told.slice(since).flatMap((told) => (told.type === "report" ? told.sinks.map(({ state }) => state) : []));
      expect(states.filter((state) => state !== "OK")).toEqual([]);
      expect(logged(rig).filter((message) => message.includes("cannot be reached"))).toEqual([]);
    }, 90_000);

    // mosquitto 2.0.11 compares what waits for this client, 0, with the bound, 0, after each publish that it denies.
    test("and ends the session after each refusal: the state says so and why, and each publish is settled", async () => {
      await deny(UNBOUNDED);
      const rig = await rigOf({ hold_refused: "5s" });
      await expect.poll(() => rig.report()?.state, { timeout: 10_000 }).toBe("OK");
      rig.append(1);
      await expect
        .poll(() => rig.report()?.error?.detail, { timeout: 10_000 })
        .toMatch(/closed the connection; right after this: .*Not authorized \(code 135\)/);
      rig.append(2);
      await expect
        .poll(() => rig.sink(), { timeout: 20_000 })
        .toMatchObject({ delivered: 0, pending: 0, dropped: { refused: 3 * VARIABLES } });
    }, 60_000);

    test.each([
      ["stays connected", []],
      ["ends the session after each refusal", [UNBOUNDED]],
    ])(
      "of status and metadata alone, and %s: values are delivered, and the warnings say so",
      async (_, more) => {
        const acl = path.join(folder, "acl");
        await writeFile(acl, "topic write plant/values\ntopic read #\n", { mode: 0o600 });
        await startMosquitto([`acl_file ${acl}`, ...more]);
        const rig = await rigOf();
        rig.ask({ type: "sources", sources: [] });
        await listen();
        rig.append(50);
        await expectDelivered(rig, 50);
        await expect.poll(() => new Set(arrived.map(({ number }) => number)).size).toBe(50);
        expect(rig.report()).toMatchObject({
          state: "OK",
          warnings: [{ text: expect.stringMatching(/plant\/values\/status: Not authorized \(code 135\)/) }],
        });
      },
      30_000,
    );

    test("under MQTT 3.1.1, where it acknowledges what it drops: delivered, and the status says that rights cannot be checked", async () => {
      await deny();
      const rig = await rigOf({}, await onlyVersion4());
      await expect.poll(() => rig.report()?.state, { timeout: 10_000 }).toBe("OK");
      await listen();
      rig.append(5);
      await expectDelivered(rig, 5);
      expect(arrived).toEqual([]);
      expect(rig.report()).toMatchObject({
        state: "OK",
        error: null,
        warnings: [{ text: expect.stringMatching(/3\.1\.1: it does not say when it drops a publish for missing rights/) }],
      });
    }, 30_000);
  });
});

/** Before the broker, and of the versions of MQTT it takes 3.1.1 only (MQTT 3.1.1, 3.1.2.2: return code 1). Its port. */
async function onlyVersion4(): Promise<number> {
  const server = createServer((near) => {
    near.on("error", () => {});
    near.once("data", (first) => {
      if (first[first.indexOf("MQTT") + 4] !== 4) {
        near.end(connack4(1));
        return;
      }
      const far = connectTcp(port, "127.0.0.1");
      far.on("error", () => near.destroy());
      far.write(first);
      near.pipe(far).pipe(near);
      near.on("close", () => far.destroy());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  undo.push(() => server.close());
  const address = server.address();
  return address !== null && typeof address === "object" ? address.port : 0;
}
