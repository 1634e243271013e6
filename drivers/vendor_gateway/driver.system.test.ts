import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Gateway, type GatewayOptions } from "../../gateway/server.ts";
import { SimulatedPlant, SimulatedServer } from "../../gateway/simulated-plant.ts";
import type { Log } from "../../src/model/context.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { ALLOWED } from "../../test/conformance/allowed.ts";
import { type CertificateFiles, createAuthority, type TestAuthority } from "../../test/support/certificates.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import { startFaultProxy } from "../../test/support/fault-proxy.ts";
import { connectGateway, type GatewayAsk, gatewayPoints, readGateway } from "../../test/support/gateway.ts";
import { type TestPki, testPki } from "../../test/support/opcua.ts";
import { greeting, type Script, scriptedGateway } from "../../test/support/scripted-gateway.ts";
import type { AnySession, Discovered, DriverContext, Point } from "../driver.ts";
import driver from "./driver.ts";

const KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const OTHER_KEY = KEY.replaceAll("0", "9");
const CANARY = "77".repeat(32);

const closing: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});
const later = <T extends { close(): unknown }>(one: T): T => {
  closing.push(one);
  return one;
};

async function start(options: Partial<GatewayOptions> = {}, items = [{ item: "Press.Force", type: "float64", value: 812.5 }]) {
  const plant = new SimulatedPlant();
  const server = plant.add({ protocol: "OPC_DA", server_name: "Plant.OpcDa.1" }, new SimulatedServer("Plant", items));
  const gateway = later(await Gateway.start({ backend: plant, ...options }));
  const open = async (ask: GatewayAsk = {}) => later(await connectGateway(gateway.port, ask));
  return { plant, server, gateway, port: gateway.port, open };
}

const scripted = async (script: Script) => later(await scriptedGateway(script));
const listed = async (session: AnySession, ctx = driverContext()): Promise<readonly Discovered[]> => {
  const found: Discovered[] = [];
  for await (const one of session.discover?.(ctx) ?? []) found.push(one);
  return found;
};
const itemsAnswer = (id: number, items: readonly object[]) => JSON.stringify({ id, answer: { items } });

describe("many variables", () => {
  it("100,000 items are looked up and read by their names, each with its own value, in bounded requests", async () => {
    const COUNT = 100_000;
    const nameOf = (i: number) => `Line ${i % 40}.Cell ${i % 997}.Value ${i}`;
    const { open, server } = await start(
      {},
      Array.from({ length: COUNT }, (_, i) => ({ item: nameOf(i), type: "float64", value: i / 8 })),
    );
    let reads = 0;
    server.trouble = (request) => {
      if (request === "read") reads++;
      return undefined;
    };
    const session = await open();
    const progress: number[] = [];
    const ctx = driverContext({ progress: (done) => progress.push(done) });
    const texts = Array.from({ length: COUNT }, (_, i) => nameOf(i));
    const readings = await readGateway(session, texts, ctx);
    let wrong = 0;
    for (const [i, reading] of readings.entries())
      if (typeof reading === "string" || reading.quality !== "good" || reading.value !== i / 8) wrong++;
    expect([readings.length, wrong, reads]).toEqual([COUNT, 0, COUNT / 1000]);
    expect(progress.at(-1)).toBe(COUNT);
  }, 120_000);
});

describe("answers", () => {
  it("belong to their requests in whatever order they come", async () => {
    const held: string[] = [];
    const gateway = await scripted((line, _nth, socket) => {
      if (line.request !== "read") return greeting(line);
      held.push(itemsAnswer(line.id, [{ value: line.id, type: "uint32" }]));
      if (held.length === 3) socket.write(`${held.reverse().join("\n")}\n`);
      return undefined;
    });
    const session = later(await connectGateway(gateway.port, { local: { in_flight: 4 } }));
    const requests = driver.plan(gatewayPoints(["a", "b", "c"]), { ...session.limits, maxPoints: 1 });
    const values = await Promise.all(requests.map((request) => session.read(request, driverContext())));
    expect(values).toMatchObject([[{ value: 3 }], [{ value: 4 }], [{ value: 5 }]]);
  });

  it.each([
    ["no JSON", () => "{id:5}", /not a JSON object in UTF-8/],
    ["no UTF-8", () => Buffer.from([0x7b, 0xff, 0x7d, 0x0a]), /not a JSON object in UTF-8/],
    ["an answer to nothing", () => itemsAnswer(99, []), /an answer to 99, which was not asked/],
    ["an answer without a number", () => '{"answer":{}}', /an answer to nothing/],
    ["fewer items", (id: number) => itemsAnswer(id, []), /0 items where 1 were asked for answers a/],
    ["no items", (id: number) => JSON.stringify({ id, answer: 5 }), /no items where 1 were asked for/],
    ["an error without a code", (id: number) => JSON.stringify({ id, error: {} }), /an error without a code answers a/],
    ["neither answer nor error", (id: number) => JSON.stringify({ id }), /no items where/],
    ["deep nesting", () => "{".padEnd(200_000, '"a":{'), /not a JSON object/],
  ])("%s breaks the protocol: the source fails, in words that say what came", async (_, answer, words) => {
    const gateway = await scripted((line) => (line.request === "read" ? answer(line.id) : greeting(line)));
    const session = later(await connectGateway(gateway.port));
    const [request] = driver.plan(gatewayPoints(["a"]), session.limits);
    if (!request) throw new Error("nothing is planned");
    await expect(session.read(request, driverContext())).rejects.toMatchObject({
      reason: { type: "UNKNOWN" },
      condition: "protocol_violation",
      message: expect.stringMatching(words),
    });
    expect(session.alive()).toBe(false);
  });

  it("a quality of 99999, or an item without value and error, is that item's fault, and the source's others are read", async () => {
    const wrong: readonly [object, RegExp][] = [
      [{ value: 7, type: "int16", quality: 99_999 }, /the quality "99999"; expected a whole number from 0 to 65535/],
      [{}, /neither a value nor an error/],
      [{ error: {} }, /an error without a code/],
    ];
    const gateway = await scripted((line) =>
      line.request === "read" ? itemsAnswer(line.id, [{ value: 7, type: "int16" }, ...wrong.map(([item]) => item)]) : greeting(line),
    );
    const session = later(await connectGateway(gateway.port));
    const [request] = driver.plan(gatewayPoints(["a", "b", "c", "d"]), session.limits);
    const readings = request && (await session.read(request, driverContext()));
    expect(readings).toMatchObject([
      { quality: "good", value: 7 },
      ...wrong.map(([, words]) => ({ quality: "bad", fault: "device_error", detail: expect.stringMatching(words) })),
    ]);
    expect(session.alive()).toBe(true);
  });

  it("a wrong item in the answer to a look-up is that item's refusal", async () => {
    const gateway = await scripted((line) =>
      line.request === "resolve"
        ? JSON.stringify({ id: line.id, answer: { epoch: "1", items: [{ item: "a" }, { type: "int16" }, { error: 5 }, 9] } })
        : greeting(line),
    );
    const session = later(await connectGateway(gateway.port));
    const batches = [];
    for await (const batch of session.prepare?.(gatewayPoints(["a", "b", "c", "d"]), driverContext()) ?? []) batches.push(...batch);
    const refused = { refusal: { fault: "device_error", message: expect.stringContaining("neither a name nor an error") } };
    expect(batches).toMatchObject([{ address: { item: "a" } }, refused, refused, refused]);
    expect(session.alive()).toBe(true);
  });

  it("fields of later versions do no harm, and neither do carriage returns", async () => {
    const gateway = await scripted((line) =>
      line.request === "read"
        ? `{"id":${line.id},"new":1,"answer":{"items":[{"value":7,"type":"int16","later":{"a":[1]}}],"x":2}}\r`
        : greeting(line),
    );
    const session = later(await connectGateway(gateway.port));
    const [request] = driver.plan(gatewayPoints(["a"]), session.limits);
    expect(request && (await session.read(request, driverContext()))).toMatchObject([{ quality: "good", value: 7 }]);
  });

  it("a gateway that dribbles a long line is cut off, and one that sends it steadily is waited for", async () => {
    const long = JSON.stringify("x".repeat(40_000));
    const gateway = await scripted((line, _nth, socket) => {
      if (line.request !== "read") return greeting(line);
      const bytes = Buffer.from(`${itemsAnswer(line.id, [{ value: "VALUE", type: "string" }]).replace('"VALUE"', long)}\n`);
      const slice = line.items?.[0] === "steady" ? 4096 : 1;
      let at = 0;
      const timer = setInterval(() => {
        if (at >= bytes.length || socket.destroyed) clearInterval(timer);
        else socket.write(bytes.subarray(at, at + slice));
        at += slice;
      }, 40);
      return undefined;
    });
    const ctx = driverContext({ timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 300 } });
    const read = async (item: string) => {
      const session = later(await connectGateway(gateway.port));
      const [request] = driver.plan(gatewayPoints([item]), session.limits);
      return request && session.read(request, ctx);
    };
    expect(await read("steady")).toMatchObject([{ quality: "good", value: "x".repeat(40_000) }]);
    await expect(read("dribbles")).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  });
});

describe("limits", () => {
  it("are the smaller of the gateway's and the settings'", async () => {
    const { open } = await start({ limits: { maxItems: 50, maxInFlight: 1, maxLineBytes: 80_000 } });
    expect((await open()).limits).toEqual({ maxPoints: 50, inFlight: 1, maxBytes: 79_000, maxRequestBytes: 80_000 });
    expect((await open({ local: { max_items: 7, in_flight: 8, max_answer_bytes: 65_536 } })).limits).toEqual({
      maxPoints: 7,
      inFlight: 1,
      maxBytes: 64_536,
      maxRequestBytes: 80_000,
    });
  });

  it("an answer that is too large is a refusal that is halved; one value that is too large is its fault alone", async () => {
    const { open } = await start(
      {},
      ["a", "b", "c"].map((item) => ({ item, type: "string", value: item.repeat(item === "c" ? 80_000 : 40_000) })) as never,
    );
    const session = await open({ local: { max_answer_bytes: 65_536 } });
    const ask = (...items: string[]) => {
      const points = gatewayPoints(items).map(
        (point): Point => ({ ...point, address: { item: items[point.index], epoch: session.epoch } }),
      );
      return session.read({ points }, driverContext());
    };
    await expect(ask("a", "b")).rejects.toMatchObject({
      name: "FaultError",
      scope: "points",
      message: expect.stringContaining("too_large"),
    });
    expect(await ask("a")).toMatchObject([{ quality: "good" }]);
    await expect(ask("c")).rejects.toMatchObject({ fault: "device_error", scope: "points" });
    expect(session.alive()).toBe(true);
  });
});

describe("listing", () => {
  it("goes through all pages and branches, each item once, the nearer first", async () => {
    const items = Array.from({ length: 1203 }, (_, i) => ({ item: `Flat ${i}`, type: "int16", value: i }));
    const { open, server } = await start({}, items);
    server.add({ item: "P.A.B", path: ["P", "A", "B"], type: "float64[2]", value: [1, 2], unit: "bar", comment: "deep" });
    server.add({ item: "Flat 7", path: ["P", "Again"], type: "int16", value: 7 });
    const found = await listed(await open());
    expect(found).toHaveLength(1203 + 3);
    expect(found.slice(1203)).toEqual([
      { address: "P", name: "P", type: undefined, path: [] },
      { address: "P/A", name: "A", type: undefined, path: ["P"] },
      { address: "P.A.B", name: "B", type: { scalar: "float64", count: 2 }, path: ["P", "A"], unit: "bar", comment: "deep" },
    ]);
  });

  it("ends with a gateway whose branches and pages do not", async () => {
    const gateway = await scripted((line) =>
      line.request === "browse" ? JSON.stringify({ id: line.id, answer: { entries: [{ name: "again", branch: true }] } }) : greeting(line),
    );
    expect(await listed(later(await connectGateway(gateway.port)))).toHaveLength(32);
    const pages = await scripted((line) =>
      line.request === "browse" ? JSON.stringify({ id: line.id, answer: { entries: [], next: "x" } }) : greeting(line),
    );
    expect(await listed(later(await connectGateway(pages.port)))).toEqual([]);
  });

  it("says so where the gateway cannot list", async () => {
    const gateway = await scripted((line) => greeting(line)?.replace('["browse"]', "[]"));
    await expect(listed(later(await connectGateway(gateway.port)))).rejects.toMatchObject({
      message: expect.stringContaining("cannot list"),
    });
  });
});

describe("security", () => {
  let authority: TestAuthority;
  let files: CertificateFiles;
  let pki: TestPki;
  beforeAll(async () => {
    authority = await createAuthority();
    files = await authority.issue("gateway", "IP:127.0.0.1");
    pki = testPki();
  });
  afterAll(async () => {
    await authority.remove();
    pki.remove();
  });

  const psk = (key = KEY) => ({ security: { kind: "psk", identity: "collector", key: Buffer.from(key, "hex") } }) as const;
  const certificate = () => ({ kind: "certificate", certificate: readFileSync(files.cert), key: readFileSync(files.key) }) as const;
  const byKey = (secret: string | undefined, more: GatewayAsk = {}): GatewayAsk => ({
    local: { security: "psk" },
    ...(secret !== undefined && { secret }),
    ...more,
  });

  it("a key that both sides have protects what is read; fence and tap stand before encryption", async () => {
    const { port } = await start(psk());
    const proxy = later(await startFaultProxy(port));
    const tapped: Uint8Array[] = [];
    const tap: DriverContext["tap"] = (direction, frame) => void (direction === "out" && tapped.push(frame));
    const session = later(await connectGateway(proxy.port, byKey(KEY, { ctx: driverContext({ tap }) })));
    expect(await readGateway(session, ["Press.Force"])).toMatchObject([{ quality: "good", value: 812.5 }]);
    expect(ALLOWED["vendor_gateway"]?.(Buffer.concat(tapped))).toEqual([]);
    const wire = Buffer.concat([...proxy.sent()]).toString("latin1");
    expect(wire.length).toBeGreaterThan(200);
    for (const word of ["Press", "hello", "OpcDa"]) expect(wire).not.toContain(word);
  });

  it.each([
    ["split", "ok"],
    ["cut", "CONNECTION_CLOSED"],
    ["reset", "CONNECTION_RESET"],
    ["silent", "TIMEOUT"],
  ] as const)("inside TLS a connection that is %s ends as outside: %s", async (fault, expected) => {
    const { port } = await start(psk());
    const proxy = later(await startFaultProxy(port));
    const session = later(await connectGateway(proxy.port, byKey(KEY)));
    proxy.fault = fault;
    const ctx = driverContext({ answerMs: fault === "silent" ? 200 : 5000 });
    const outcome = await readGateway(session, ["Press.Force"], ctx).then(
      ([reading]) => (typeof reading === "object" && reading.quality === "good" ? "ok" : "no value"),
      (error: { readonly reason?: { readonly type: string } }) => error.reason?.type,
    );
    expect(outcome).toBe(expected);
    expect(session.alive()).toBe(fault === "split");
  });

  it("another key, another name, no key and a key that is none: refused, in words without the key", async () => {
    const { port } = await start(psk());
    const seen: string[] = [];
    const take = (fields: object, message: string) => void seen.push(JSON.stringify(fields), message);
    const log: Log = { debug: take, info: take, warn: take, error: take };
    const refusal = async (ask: GatewayAsk) => {
      const error: unknown = await connectGateway(port, { ...ask, ctx: driverContext({ log }) }).catch((one: unknown) => one);
      const { reason, condition, message, stack, cause } = error as Error & { reason: { type: string }; condition: string };
      seen.push(message, String(stack), String(cause));
      return [reason.type, condition, message] as const;
    };
    expect(await refusal(byKey(OTHER_KEY))).toEqual([
      "UNKNOWN",
      "server_refuses",
      expect.stringMatching(/alert decrypt error; .*same key, under the name collector\?$/),
    ]);
    expect(await refusal(byKey(KEY, { local: { security: "psk", psk_identity: "other" } }))).toEqual([
      "UNKNOWN",
      "server_refuses",
      expect.stringContaining("under the name other?"),
    ]);
    expect(await refusal(byKey(undefined))).toEqual(["UNKNOWN", "secret_missing", expect.stringContaining("collector secret set")]);
    expect(await refusal(byKey(`${CANARY}7`))).toEqual([
      "UNKNOWN",
      "configuration_invalid",
      expect.stringContaining("32 to 128 hexadecimal digits"),
    ]);
    for (const text of seen) for (const key of [KEY, OTHER_KEY, CANARY]) expect(text).not.toContain(key);
  });

  it("a gateway that shows a certificate instead of knowing the key is refused", async () => {
    const { port } = await start({ security: certificate() });
    await expect(connectGateway(port, byKey(KEY))).rejects.toThrow(
      /unable to verify the first certificate|a certificate instead of knowing the key/,
    );
  });

  it("one side with TLS and the other without: each says what to look at", async () => {
    const [secured, plain] = [await start(psk()), await start()];
    await expect(connectGateway(secured.port)).rejects.toThrow(/answers with TLS: set security|closed the connection|ECONNRESET/);
    await expect(connectGateway(plain.port, byKey(KEY))).rejects.toThrow(/security is psk: has the gateway the same key/);
  });

  it("a certificate is trusted by a person or by its first use, and another one is not", async () => {
    const { port, gateway } = await start({ security: certificate() });
    const ask = (trust: "strict" | "first_use"): GatewayAsk => ({ local: { security: "certificate", trust }, ctx: driverContext({ pki }) });
    await expect(connectGateway(port, ask("strict"))).rejects.toMatchObject({
      condition: "certificate_refused",
      message: expect.stringContaining("collector pki trust"),
    });
    const session = later(await connectGateway(port, ask("first_use")));
    expect(await readGateway(session, ["Press.Force"])).toMatchObject([{ value: 812.5 }]);
    expect(textsOf(session.warnings?.())).toEqual([]);
    later(await connectGateway(port, ask("strict")));
    await gateway.close();
    const other = await authority.issue("other", "DNS:elsewhere.test");
    await start({ port, security: { kind: "certificate", certificate: readFileSync(other.cert), key: readFileSync(other.key) } });
    await expect(connectGateway(port, ask("first_use"))).rejects.toMatchObject({ condition: "certificate_refused" });
  });

  it("a gateway that asks for a certificate is shown the collector's own", async () => {
    const own = await pki.own();
    const trusting = await start({ security: { ...certificate(), clientAuthorities: readFileSync(own.certificateFile) } });
    const ask: GatewayAsk = { local: { security: "certificate", trust: "first_use" }, ctx: driverContext({ pki }) };
    const session = later(await connectGateway(trusting.port, ask));
    expect(await readGateway(session, ["Press.Force"])).toMatchObject([{ value: 812.5 }]);
    const strange = await start({ security: { ...certificate(), clientAuthorities: readFileSync(authority.ca) } });
    await expect(connectGateway(strange.port, ask)).rejects.toMatchObject({
      reason: { type: expect.stringMatching(/UNKNOWN|CONNECTION/) },
    });
  });
});
