import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import {
  AttributeIds,
  type ClientSession,
  MessageSecurityMode,
  type OPCUAClient,
  SecurityPolicy,
  TimestampsToReturn,
} from "node-opcua-client";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { userSecretName } from "../../../src/model/sink-details.ts";
import { textsOf } from "../../../src/model/testing/warnings.ts";
import {
  getEndpointsBody,
  itemsBody,
  type RawClient,
  rawClient,
  readBody,
  subscriptionBody,
  TYPE,
  u32,
  writeBody,
} from "../../../src/sinks/opcua/testing/raw-client.ts";
import { ANONYMOUS, createRig, type Rig, user } from "../../../src/sinks/opcua/testing/rig.ts";
import type { HostReady, HostStanding } from "./host.ts";

/** As src/threads/delivery/host.ts has it, and what of a program is no data of its own. */
const MEMORY_LIMIT_MIB = 512 + 64;
/** The place where the body of a MSG chunk begins (OPC 10000-6, 6.7.2). */
const BODY_AT = 24;
/** As ./host.ts has it. */
const EVERY_MS = 200;

/** The hosted server as the service runs it, against clients that mean it harm; what is around it in a process of the test's. */

const OPEN = { security_modes: ["None"], security_policies: ["None"], anonymous: true };
const WIDE = ["v-wide-0", "v-wide-1", "v-wide-2", "v-wide-3"];
const MIB = 2 ** 20;
const LONG_MS = 120_000;

interface Host extends HostReady {
  standing(): Promise<HostStanding>;
  /** All it wrote, log and other. */
  written(): string;
}

/** Makes the process of the hosted server, and no other, take memory without end when it gets a signal: JavaScript objects, or buffers. */
const GREED = `data:text/javascript,${encodeURIComponent(`
  if (process.argv[1]?.includes("/serving/")) {
    const kept = [];
    process.on("SIGUSR2", () => { for (;;) kept.push(Array(131_072).fill(kept.length)); });
    process.on("SIGALRM", () => { for (;;) kept.push(Buffer.alloc(1_048_576, 1)); });
  }
`)}`;

let rig: Rig;
let child: ChildProcess | undefined;
const raws: RawClient[] = [];
beforeAll(async () => {
  rig = await createRig();
});
afterEach(async () => {
  for (const raw of raws.splice(0)) raw.end();
  const ended = child && new Promise((done) => child?.once("exit", done));
  child?.kill("SIGTERM");
  await ended;
  child = undefined;
});
afterAll(() => rig.end());

async function host(details: object, users: Readonly<Record<string, string>> = {}): Promise<Host> {
  const named = { ...details, users: Object.keys(users).map((username) => ({ username })) };
  const secrets = Object.fromEntries(Object.entries(users).map(([name, password]) => [userSecretName(name), password]));
  const entry = new URL("./host.ts", import.meta.url).pathname;
  const started = spawn("bin/collector-node", [entry, JSON.stringify({ details: named, secrets })], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: { ...process.env, NODE_OPTIONS: `--import=${GREED}` },
  });
  child = started;
  let written = "";
  const keep = (data: Buffer): void => {
    written += data.toString();
  };
  for (const stream of [started.stdout, started.stderr]) stream?.on("data", keep);
  const next = <T>(): Promise<T> =>
    new Promise((done, reject) => {
      const onExit = (code: number | null): void => reject(new Error(`the host ended with code ${code}: ${written.slice(-2000)}`));
      started.once("exit", onExit);
      started.once("message", (message) => {
        started.off("exit", onExit);
        done(message as T);
      });
    });
  const ready = await next<HostReady>();
  return {
    ...ready,
    written: () => written,
    standing() {
      const answer = next<HostStanding>();
      started.send("standing");
      return answer;
    },
  };
}

async function raw(port: number): Promise<RawClient> {
  const client = await rawClient(port);
  raws.push(client);
  return client;
}

/** A raw client on a channel, with a session. */
async function loggedIn(port: number): Promise<RawClient> {
  const client = await raw(port);
  await client.open();
  await client.login();
  return client;
}

interface Watcher {
  readonly client: OPCUAClient;
  readonly session: ClientSession;
  /** What it was told of a variable that counts by one. */
  readonly seen: readonly number[];
  leave(): Promise<void>;
}

/** A client that means well, and reads on. */
async function watch({ port, pkiDir }: Host, isOpen = true): Promise<Watcher> {
  mkdirSync(path.join(pkiDir, "trusted"), { recursive: true });
  writeFileSync(path.join(pkiDir, "trusted", `${rig.client.own.thumbprint}.der`), rig.client.own.certificate);
  const client = await rig.clientOf(isOpen ? { securityMode: MessageSecurityMode.None, securityPolicy: SecurityPolicy.None } : {});
  await client.connect(`opc.tcp://127.0.0.1:${port}`);
  const session = await client.createSession(isOpen ? ANONYMOUS : user("op", "correct horse"));
  const subscription = await session.createSubscription2({ publishingEnabled: true, requestedPublishingInterval: 100 });
  const item = await subscription.monitor(
    { nodeId: "ns=1;s=v-count", attributeId: AttributeIds.Value },
    { samplingInterval: 0, queueSize: 10, discardOldest: true },
    TimestampsToReturn.Both,
  );
  const seen: number[] = [];
  item.on("changed", ({ value }: { value: { value: number } }) => void (typeof value.value === "number" && seen.push(value.value)));
  await expect.poll(() => seen.length, { timeout: 30_000 }).toBeGreaterThan(2);
  return {
    client,
    session,
    seen,
    async leave() {
      await session.close();
      await client.disconnect();
    },
  };
}

/** It saw each value once and in order, and goes on to. */
async function expectNothingMissed({ seen }: Watcher): Promise<void> {
  const before = seen.length;
  await expect.poll(() => seen.length, { timeout: 30_000 }).toBeGreaterThan(before + 3);
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, i) => (seen[0] ?? 0) + i));
}

/** The worker is the one that was started, and little was written. */
function expectCalm(served: Host, maxBytes = 128 * 1024): void {
  const written = served.written();
  console.log(`written by the host: ${written.length} bytes`);
  expect(written).not.toContain("worker died");
  expect(written.split("\n").filter((line) => line !== "" && !line.startsWith("{"))).toEqual([]);
  expect(written.length).toBeLessThan(maxBytes);
}

/** Greatest growth of the host's memory while `work` runs, MiB. */
async function growth(served: Host, attack: () => Promise<unknown>): Promise<number> {
  // What a readout of the wide variables takes for a moment is no growth.
  let rssBytes = 0;
  for (let i = 0; i < 50; i++) {
    rssBytes = Math.max(rssBytes, (await served.standing()).rssBytes);
    await pause(100);
  }
  let most = rssBytes;
  let isDone = false;
  const end = attack().finally(() => {
    isDone = true;
  });
  while (!isDone) {
    most = Math.max(most, (await served.standing()).rssBytes);
    await new Promise((done) => setTimeout(done, 100));
  }
  await end;
  console.log(`memory of the host: ${(rssBytes / MIB).toFixed(0)} MiB before, ${(most / MIB).toFixed(0)} MiB at most`);
  return (most - rssBytes) / MIB;
}

/** The wide variables are served, and have been read a few times. */
async function warmUp(port: number): Promise<void> {
  const client = await loggedIn(port);
  const read = async () => (await client.answer(client.send(TYPE.read, readBody(WIDE)))).rest.length;
  await expect.poll(read, { timeout: 30_000 }).toBeGreaterThan(2_000_000);
  for (let i = 0; i < 5; i++) await read();
  client.end();
}

function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

test("a matrix of -2 x -3 ends no server: it is served as an array, and all other clients go on", { timeout: LONG_MS }, async () => {
  const served = await host(OPEN);
  const watcher = await watch(served);
  const stranger = await loggedIn(served.port);
  for (let i = 0; i < 20; i++) {
    const { type, result } = await stranger.answer(stranger.send(TYPE.read, readBody(["v-matrix", "v-count"])));
    expect([type, result]).toEqual([634, 0]);
  }
  for (const attributeId of [AttributeIds.Value, AttributeIds.ArrayDimensions, AttributeIds.ValueRank]) {
    const { value, statusCode } = await watcher.session.read({ nodeId: "ns=1;s=v-matrix", attributeId });
    expect(statusCode.name, `attribute ${attributeId}`).toBe("Good");
    if (attributeId === AttributeIds.Value) expect([...value.value]).toEqual([0, 1, 2, 3, 4, 5]);
  }
  await expectNothingMissed(watcher);
  await watcher.leave();
  expectCalm(served);
});

test("a request of 2.7 MB over the discovery channel is refused unread: no 12 MB of log, no value missed", {
  timeout: LONG_MS,
}, async () => {
  const served = await host({}, { op: "correct horse" });
  const watcher = await watch(served, false);
  const { serving } = await served.standing();
  for (const shown of ["cmdline", "environ"]) expect(readFileSync(`/proc/${serving}/${shown}`, "latin1")).not.toContain("correct horse");
  const body = writeBody(180_000);
  expect(body.length).toBe(2_700_004);
  for (let i = 0; i < 10; i++) {
    const stranger = await raw(served.port);
    await stranger.open();
    await expect(stranger.answer(stranger.send(TYPE.write, body))).rejects.toThrow("only GetEndpoints and FindServers");
    await expect.poll(() => stranger.isClosed, { timeout: 10_000 }).toBe(true);
  }
  for (const [type, huge] of [
    [TYPE.createSession, Buffer.alloc(2000, 0xff)],
    [TYPE.read, readBody(["v-count"])],
    [TYPE.publish, u32(0xffff_ffff)],
    [TYPE.getEndpoints, Buffer.concat([getEndpointsBody("x"), Buffer.alloc(2_700_000)])],
  ] as const) {
    const stranger = await raw(served.port);
    await stranger.open();
    await expect(stranger.answer(stranger.send(type, huge))).rejects.toThrow("ERRF");
  }
  const finder = await raw(served.port);
  await finder.open();
  expect((await finder.answer(finder.send(TYPE.getEndpoints, getEndpointsBody("opc.tcp://x:4840")))).result).toBe(0);
  expect((await finder.answer(finder.send(TYPE.findServers, getEndpointsBody("opc.tcp://x:4840")))).result).toBe(0);
  await expectNothingMissed(watcher);
  await expect
    .poll(async () => textsOf((await served.standing()).warnings).join(), { timeout: 10_000 })
    .toContain("14 times a client was refused");
  await watcher.leave();
  expectCalm(served);
});

test("a client with 400 unread answers of 2 MB costs the server little memory, and no other client a value", {
  timeout: LONG_MS,
}, async () => {
  const served = await host(OPEN);
  const watcher = await watch(served);
  await warmUp(served.port);
  const greedy = await loggedIn(served.port);
  greedy.forget();
  greedy.stopReading();
  const before = greedy.messages;
  const grown = await growth(served, async () => {
    greedy.socket.write(Buffer.concat(Array.from({ length: 400 }, () => greedy.encode(TYPE.read, readBody(WIDE)))));
    await pause(10_000);
  });
  console.log(`400 unread answers of 2 MB: the host grew by ${grown.toFixed(0)} MiB`);
  expect(grown).toBeLessThan(100);
  await expectNothingMissed(watcher);
  // It reads after all: what it asked for comes, as far as it goes.
  greedy.resumeReading();
  await expect.poll(() => greedy.messages - before, { timeout: 90_000 }).toBe(400);
  expect(greedy.results).toEqual(new Set([0]));
  await expectNothingMissed(watcher);
  await watcher.leave();
  expectCalm(served);
});

test("several hostile clients at once, then none: who means well misses nothing, and all is as after a start", {
  timeout: 2 * LONG_MS,
}, async () => {
  const served = await host(OPEN);
  const watcher = await watch(served);
  await warmUp(served.port);

  const attack = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      const greedy = await loggedIn(served.port);
      greedy.stopReading();
      greedy.socket.write(Buffer.concat(Array.from({ length: 200 }, () => greedy.encode(TYPE.read, readBody(WIDE)))));
    }
    const listener = await loggedIn(served.port);
    const subscription = (await listener.answer(listener.send(TYPE.createSubscription, subscriptionBody()))).rest.readUInt32LE(0);
    await listener.answer(listener.send(TYPE.createMonitoredItems, itemsBody(subscription, WIDE)));
    listener.stopReading();
    for (let i = 0; i < 90; i++) listener.send(TYPE.publish, u32(0xffff_ffff));
    const writer = await loggedIn(served.port);
    for (let i = 0; i < 3; i++) expect((await writer.answer(writer.send(TYPE.write, writeBody(65_000)))).type).toBe(TYPE.serviceFault);
    writer.send(TYPE.write, writeBody(180_000));
    const puzzled = await loggedIn(served.port);
    for (let i = 0; i < 50; i++) puzzled.send(TYPE.read, readBody(["v-matrix"]));
    for (let i = 0; i < 20; i++) {
      const stranger = await raw(served.port);
      if (i % 2 === 0) await stranger.open();
      stranger.socket.write(
        i % 4 === 0 ? stranger.encode(TYPE.write, writeBody(180_000)) : Buffer.from("MSGF\xff\xff\xff\x7f no chunk", "latin1"),
      );
    }
    const slow = await raw(served.port);
    slow.socket.write("HEL");
    await pause(8000);
  };
  const grown = await growth(served, attack);
  console.log(`hostile clients together: the host grew by ${grown.toFixed(0)} MiB`);
  expect(grown).toBeLessThan(200);
  await expectNothingMissed(watcher);

  for (const hostile of raws.splice(0)) hostile.end();
  await pause(2000);
  const fresh = await watch(served);
  const again = await loggedIn(served.port);
  expect((await again.answer(again.send(TYPE.read, readBody(WIDE)))).rest.length).toBeGreaterThan(2_000_000);
  await expectNothingMissed(fresh);
  await expectNothingMissed(watcher);
  await fresh.leave();
  await watcher.leave();
  expectCalm(served, 256 * 1024);
});

/** A pseudo-random number below `limit`, always the same ones (mulberry32). */
function numbers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

/** Requests that a client may send, with some bytes of their header and body altered, cut off or repeated. */
function alteredRequest(client: RawClient, pick: (limit: number) => number): Buffer {
  const bodies: readonly (readonly [number, Buffer])[] = [
    [TYPE.read, readBody(["v-count", "v-matrix"])],
    [
      TYPE.browse,
      Buffer.concat([Buffer.alloc(14), u32(10), u32(1), Buffer.from([0, 85]), u32(0), Buffer.from([0, 33, 1]), u32(0), u32(63)]),
    ],
    [TYPE.createSubscription, subscriptionBody()],
    [TYPE.createMonitoredItems, itemsBody(1 + pick(3), ["v-count"])],
    [TYPE.publish, u32(0xffff_ffff)],
    [TYPE.write, writeBody(3)],
    [TYPE.getEndpoints, getEndpointsBody("opc.tcp://x:4840")],
  ];
  // Now and then any service, with bytes that mean nothing to it: mostly the end of the connection.
  const noise = [pick(1000), Buffer.from(Array.from({ length: pick(200) }, () => pick(256)))] as const;
  const [type, body] = (pick(100) > 0 && bodies[pick(bodies.length)]) || noise;
  const cut = pick(4) === 0 ? body.subarray(0, pick(body.length + 1)) : pick(6) === 0 ? Buffer.concat([body, body, body]) : body;
  const request = client.encode(type, cut);
  const EXTREMES = [0, 1, 0x7f, 0x80, 0xff];
  for (let times = pick(4); times > 0; times--) {
    const at = BODY_AT + 4 + pick(request.length - BODY_AT - 4);
    if (pick(3) === 0 && at + 4 <= request.length)
      request.writeUInt32LE([0xffff_ffff, 0x7fff_ffff, 0x8000_0000, 0x00ff_ffff][pick(4)] ?? 0, at);
    else request[at] = pick(2) === 0 ? pick(256) : (EXTREMES[pick(EXTREMES.length)] ?? 0);
  }
  return request;
}

test("many altered requests with a session open cost no other client a value, and the server little", {
  timeout: 2 * LONG_MS,
}, async () => {
  const served = await host(OPEN);
  const watcher = await watch(served);
  const pick = numbers(22);
  const AT_ONCE = 10;
  let [sent, lost] = [0, 0];
  const began = performance.now();
  let fuzzer = await loggedIn(served.port);
  const grown = await growth(served, async () => {
    while (sent < 800) {
      fuzzer.socket.write(Buffer.concat(Array.from({ length: AT_ONCE }, () => alteredRequest(fuzzer, pick))));
      sent += AT_ONCE;
      // Whatever it was: what comes after it is answered, or the connection has ended.
      const isOpen = await fuzzer.answer(fuzzer.send(TYPE.read, readBody(["v-count"]))).then(
        ({ result }) => result === 0,
        (error: Error) => !error.message.includes("closed") && Promise.reject(error),
      );
      if (isOpen) continue;
      lost++;
      fuzzer.end();
      fuzzer = await loggedIn(served.port);
    }
  });
  console.log(
    `${sent} altered requests in ${((performance.now() - began) / 1000).toFixed(1)} s, ${lost} connections ended; ${grown.toFixed(0)} MiB more`,
  );
  expect(grown).toBeLessThan(100);
  await expectNothingMissed(watcher);
  const fresh = await watch(served);
  await expectNothingMissed(fresh);
  await fresh.leave();
  await watcher.leave();
  expectCalm(served, 256 * 1024);
});

test.each([
  ["objects", "SIGUSR2"],
  ["buffers", "SIGALRM"],
] as const)(
  "a hosted server that takes memory without end dies of it alone, and is there again: %s",
  { timeout: 2 * LONG_MS },
  async (_of, signal) => {
    const served = await host(OPEN);
    const watcher = await watch(served);
    await warmUp(served.port);
    const before = await served.standing();
    const pid = before.serving ?? 0;
    expect(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim()).toBe("1000");
    let mostMiB = 0;
    process.kill(pid, signal);
    while (existsSync(`/proc/${pid}/status`)) {
      mostMiB = Math.max(mostMiB, Number(/^VmHWM:\s+(\d+) kB/m.exec(readStatus(pid))?.[1] ?? 0) / 1024);
      await pause(5);
    }
    console.log(`the process of the hosted server had ${mostMiB.toFixed(0)} MiB at most`);
    expect(mostMiB).toBeLessThan(MEMORY_LIMIT_MIB);
    await expect.poll(async () => (await served.standing()).states, { timeout: LONG_MS }).toEqual(["OK"]);
    const after = await served.standing();
    expect(after.serving).not.toBe(pid);
    expect(textsOf(after.warnings).join()).toMatch(
      /the process of the hosted servers ended at .* without any effect on what is read: it needed more than the \d+ MiB/,
    );
    const again = await watch(served);
    await expectNothingMissed(again);
    const { longestMs } = await served.standing();
    console.log(`longest time between two readouts of every ${EVERY_MS} ms: ${Math.max(longestMs, after.longestMs).toFixed(0)} ms`);
    await again.leave();
    watcher.client.disconnect().catch(() => undefined);
    expect(
      served
        .written()
        .split("\n")
        .filter((line) => line.includes("worker died")),
    ).toHaveLength(1);
  },
);

test("the process of the hosted server ends with the one that started it", { timeout: LONG_MS }, async () => {
  const served = await host(OPEN);
  const pid = (await served.standing()).serving ?? 0;
  expect(readStatus(pid)).toContain("Name:");
  child?.kill("SIGKILL");
  child = undefined;
  await expect.poll(() => readStatus(pid), { timeout: 10_000 }).toBe("");
});
