import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { SECURITY_POLICIES, type SecurityMode, type SecurityPolicy } from "../../src/model/details.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { parseCertificate } from "../../src/os/pki/certificate.ts";
import { ALLOWED } from "../../test/conformance/allowed.ts";
import { startFaultProxy } from "../../test/support/fault-proxy.ts";
import { connect, context, detailsOf, readTexts, type TestPki, testPki } from "../../test/support/opcua.ts";
import type { AnySession, Direction } from "../driver.ts";
import driver from "./driver.ts";
import { type OpcuaSimulator, type OpcuaSimulatorOptions, OTHER_NAMESPACE, PLANT_NAMESPACE, startOpcuaSimulator } from "./simulator.ts";
import { makeCertificate } from "./simulator-certificates.ts";

const PASSWORD = "hunter2-S3cr3t-äöü";
const nsu = (id: string) => `nsu=${PLANT_NAMESPACE};s=${id}`;
let pki: TestPki;
const simulators: OpcuaSimulator[] = [];
const start = async (options: OpcuaSimulatorOptions = {}): Promise<OpcuaSimulator> => {
  const simulator = await startOpcuaSimulator({ bulk: 10, ...options });
  simulators.push(simulator);
  return simulator;
};
const sessions: AnySession[] = [];
const open = async (...given: Parameters<typeof connect>): Promise<AnySession> => {
  const session = await connect(...given);
  sessions.push(session);
  return session;
};
const failureOf = (work: Promise<unknown>): Promise<ReasonError> =>
  work.then(
    () => {
      throw new Error("it succeeded");
    },
    (error: unknown) => {
      expect(error).toBeInstanceOf(ReasonError);
      return error as ReasonError;
    },
  );

beforeAll(() => {
  pki = testPki();
});
afterEach(async () => {
  for (const session of sessions.splice(0)) await session.close();
  for (const simulator of simulators.splice(0)) await simulator.close();
});
afterAll(() => pki.remove());

describe("every mode, policy and identity", () => {
  let simulator: OpcuaSimulator;
  let userDer: Uint8Array;
  beforeAll(async () => {
    const own = await pki.own();
    // Any certificate with its key can be a user's.
    const { readFile } = await import("node:fs/promises");
    const given = async (file: string) => ({ file, bytes: await readFile(file) });
    userDer = pki.addUser("operator", await given(own.certificateFile), await given(own.privateKeyFile)).der;
    simulator = await startOpcuaSimulator({
      bulk: 1,
      policies: SECURITY_POLICIES,
      tokenPolicies: SECURITY_POLICIES,
      userCertificates: "any",
    });
    const verdict = await pki.judge([simulator.certificate.der], { of: "server", peer: "any", trust: "first_use" });
    expect(verdict.trusted).toBe(true);
    expect(userDer.length).toBeGreaterThan(100);
  });
  afterAll(() => simulator.close());

  const secured = SECURITY_POLICIES.filter((policy) => policy !== "None");
  const ways: readonly (readonly [SecurityMode, SecurityPolicy, SecurityPolicy])[] = [
    ...SECURITY_POLICIES.map((token) => ["None", "None", token] as const),
    ...(["Sign", "SignAndEncrypt"] as const).flatMap((mode) =>
      secured.flatMap((policy) => [
        [mode, policy, policy] as const,
        [mode, policy, policy === "Basic256Sha256" ? "Aes256-Sha256-RsaPss" : "Basic256Sha256"] as const,
      ]),
    ),
    ["SignAndEncrypt", "Basic256Sha256", "None"],
  ];
  const identities = ["Anonymous", "UserNamePassword", "X509Certificate"] as const;

  it.each(
    ways
      .flatMap((way) => identities.map((identity) => [...way, identity] as const))
      .filter(([, , token, identity]) => identity !== "X509Certificate" || token !== "None"),
  )(
    "reads with mode %s, policy %s, token policy %s as %s, and nothing but requests that read leaves",
    async (security_mode, endpoint_security_policy, token_security_policy, identity) => {
      const frames: { readonly direction: Direction; readonly frame: Uint8Array }[] = [];
      const ctx = context({ pki, tap: (direction, frame) => frames.push({ direction, frame: Buffer.from(frame) }) });
      const session = await open(
        detailsOf(simulator.port, {
          security_settings: { security_mode, endpoint_security_policy, token_security_policy },
          user_identity: identity === "UserNamePassword" ? { type: identity, username: "reader" } : { type: identity },
        }),
        ctx,
        { secrets: { password: PASSWORD }, settings: { user_certificate: "operator" } },
      );
      expect(await readTexts(session, [nsu("Double"), nsu("Missing")], ctx)).toMatchObject([
        { quality: "good", value: -2.25e-300 },
        { quality: "bad", fault: "not_found" },
      ]);
      await session.close();
      expect(simulator.sessions()).toBe(0);
      const sent = frames.filter(({ direction }) => direction === "out").map(({ frame }) => frame);
      expect(ALLOWED["opcua"]?.(Buffer.concat(sent))).toEqual([]);
      expect(sent.length).toBeGreaterThanOrEqual(8);
      expect(frames.filter(({ direction }) => direction === "in").length).toBeGreaterThanOrEqual(7);
      // What a tap shows may be kept and sent around.
      expect(Buffer.concat(sent).includes(PASSWORD)).toBe(false);
    },
  );
});

describe("reading", () => {
  const everything = [
    "Boolean",
    "Int64",
    "UInt64",
    "Float",
    "String",
    "Array.Int32",
    "Matrix",
    "DateTime",
    "Guid",
    "LocalizedText",
    "Enumeration",
    "Structure",
    "Structure.Standard",
    "Array.Structure",
  ];

  it.each(["plain", "registered", "subscribe"])("gives the same in read_mode %s", async (read_mode) => {
    const simulator = await start();
    const ctx = context();
    const session = await open(detailsOf(simulator.port), ctx, { settings: { read_mode, publishing_interval: 50, sampling_interval: 50 } });
    const readings = await readTexts(session, [...everything, "Missing", "Double.NaN"].map(nsu), ctx);
    expect(readings).toMatchObject([
      { value: true, type: { scalar: "bool" } },
      { value: -9_007_199_254_740_993n, type: { scalar: "int64" } },
      { value: 2n ** 64n - 1n, type: { scalar: "uint64" } },
      { value: Math.fround(0.1), type: { scalar: "float32" } },
      { value: "Presse 1: Öl 80 °C" },
      { value: [1, -2, 3], type: { scalar: "int32", count: 3 } },
      { value: [1, 2, 3, 4, 5, 6], type: { scalar: "float64", count: 6, dimensions: [2, 3] } },
      { value: "2026-11-20T09:00:00.123Z" },
      { value: "72962b91-fa75-4ae6-8d28-b404dc7daf63" },
      { value: "Drehzahl" },
      { value: 2, type: { scalar: "int32" } },
      { value: expect.stringContaining('"Counter":9007199254740993,"Name":"Schuß","Pressures":[0.1,80],"Window":{"Low":10,"High":20}') },
      { value: '{"Low":-1.5,"High":2.5}' },
      { value: [expect.stringContaining('"Number":1'), expect.stringContaining('"Number":2')], type: { scalar: "string", count: 2 } },
      { quality: "bad", fault: "not_found" },
      { quality: "bad", fault: "not_a_number" },
    ]);
    simulator.variable("Double").set({ dataType: "Double", value: 7 });
    await expect.poll(async () => (await readTexts(session, [nsu("Double")], ctx))[0]).toMatchObject({ value: 7 });
    if (read_mode === "registered") expect(simulator.requests("RegisterNodes")).toBeGreaterThan(0);
    if (read_mode === "subscribe") {
      const reads = simulator.requests("Read");
      await readTexts(session, everything.map(nsu), ctx);
      expect(simulator.requests("Read")).toBe(reads);
    }
  });

  it("gives each variable its own quality: one bad node never hurts its neighbours", async () => {
    const simulator = await start();
    const ctx = context();
    const session = await open(detailsOf(simulator.port), ctx);
    const ids = ["Double", "Bad", "Uncertain", "Waiting", "NotReadable", "AccessDenied", "Missing", "String.Null", "Int64"];
    expect(await readTexts(session, ids.map(nsu), ctx)).toMatchObject([
      { quality: "good", sourceTime: expect.any(Number) },
      { quality: "bad", fault: "device_error", detail: expect.stringContaining("BadSensorFailure (0x808C0000)") },
      { quality: "uncertain", value: 1.5 },
      { quality: "bad", fault: "no_answer", detail: expect.stringContaining("BadWaitingForInitialData") },
      { quality: "bad", fault: "access_denied", detail: expect.stringContaining("BadNotReadable") },
      { quality: "bad", fault: "access_denied", detail: expect.stringContaining("BadUserAccessDenied") },
      { quality: "bad", fault: "not_found", detail: expect.stringContaining("BadNodeIdUnknown (0x80340000)") },
      { quality: "good", value: "" },
      { quality: "good", value: -9_007_199_254_740_993n },
    ]);
  });

  it("finds nodes by browse paths, index and URI", async () => {
    const simulator = await start();
    const ctx = context();
    const session = await open(detailsOf(simulator.port), ctx);
    const i = simulator.plantIndex;
    expect(
      await readTexts(
        session,
        [
          `/Objects/${i}:Plant/${i}:Types/${i}:Double`,
          `ns=${i};s=Double`,
          nsu("Double"),
          `/Objects/${i}:Plant/${i}:None`,
          "nsu=urn:none;s=a",
          "i=85",
          "i=2259",
        ],
        ctx,
      ),
    ).toMatchObject([
      { value: -2.25e-300 },
      { value: -2.25e-300 },
      { value: -2.25e-300 },
      { fault: "not_found", detail: expect.stringContaining("BadNoMatch") },
      { fault: "not_found", detail: expect.stringContaining("urn:none") },
      { fault: "not_found", detail: expect.stringContaining("BadAttributeIdInvalid") },
      { value: 0, type: { scalar: "int32" } },
    ]);
  });

  it("asks for no more at once than the server grants", async () => {
    const simulator = await start({ bulk: 100, operationLimits: { maxNodesPerRead: 7, maxNodesPerTranslateBrowsePathsToNodeIds: 3 } });
    const ctx = context();
    const session = await open(detailsOf(simulator.port), ctx);
    expect(session.limits.maxPoints).toBe(7);
    const readings = await readTexts(
      session,
      Array.from({ length: 100 }, (_, i) => nsu(`Bulk.${i}`)),
      ctx,
    );
    expect(readings.map((reading) => reading.quality === "good" && reading.value)).toEqual(Array.from({ length: 100 }, (_, i) => i + 0.25));
    const i = simulator.plantIndex;
    const paths = Array.from({ length: 10 }, (_, n) => `/Objects/${i}:Plant/${i}:Bulk/${i}:Bulk.${n}`);
    expect((await readTexts(session, paths, ctx)).map((reading) => reading.quality)).toEqual(Array(10).fill("good"));
    expect(simulator.requests("TranslateBrowsePathsToNodeIds")).toBeGreaterThanOrEqual(4);
  });

  it("lets who asks divide what is refused: the session stays, and the next one asks for as much", async () => {
    const simulator = await start({ bulk: 100 });
    const { StatusCodes } = await import("node-opcua-client");
    const ctx = context();
    const texts = Array.from({ length: 100 }, (_, i) => nsu(`Bulk.${i}`));
    const first = await open(detailsOf(simulator.port), ctx);
    expect(first.limits.maxPoints).toBe(1000);
    for (const fault of [StatusCodes.BadTooManyOperations, StatusCodes.BadEncodingLimitsExceeded, StatusCodes.BadResponseTooLarge]) {
      simulator.misbehave({ service: "Read", answer: { fault }, times: 1 });
      await expect(readTexts(first, texts, ctx)).rejects.toMatchObject({ name: "FaultError", scope: "points" });
    }
    expect(first.alive()).toBe(true);
    const second = await open(detailsOf(simulator.port), ctx);
    expect(second.limits.maxPoints).toBe(1000);
    expect(await readTexts(second, texts, ctx)).toHaveLength(100);
  });

  it("names a busy server as busy, without blame on the points", async () => {
    const simulator = await start();
    const { StatusCodes } = await import("node-opcua-client");
    const ctx = context();
    const session = await open(detailsOf(simulator.port), ctx);
    simulator.misbehave({ service: "Read", answer: { fault: StatusCodes.BadServerTooBusy }, times: 1 });
    await expect(readTexts(session, [nsu("Double")], ctx)).rejects.toMatchObject({ name: "FaultError", scope: "busy" });
    expect(await readTexts(session, [nsu("Double")], ctx)).toMatchObject([{ quality: "good" }]);
  });

  it("reads on through NAT: TCP to host and port, endpoint_url in the messages, another host in the server's answer", async () => {
    const simulator = await start({ announcedHost: "machine-7.factory.example" });
    await pki.judge([simulator.certificate.der], { of: "server", peer: "nat", trust: "first_use" });
    const asked: string[] = [];
    const ctx = context({
      pki,
      resolve: (host) => {
        asked.push(host);
        return Promise.resolve([{ address: "127.0.0.1", family: 4 as const }]);
      },
    });
    const session = await open(
      detailsOf(simulator.port, {
        host: "gateway.example",
        endpoint_url: `opc.tcp://machine-7.factory.example:${simulator.port}`,
        security_settings: { security_mode: "SignAndEncrypt", endpoint_security_policy: "Basic256Sha256", token_security_policy: "None" },
      }),
      ctx,
    );
    expect(await readTexts(session, [nsu("Double")], ctx)).toMatchObject([{ quality: "good" }]);
    expect(new Set(asked)).toEqual(new Set(["gateway.example"]));
  });

  it("reads a server with an expired certificate while a person forgives that, says so, and no longer", async () => {
    const certificate = await makeCertificate({ applicationUri: "urn:example:opcua-simulator", validity: "expired", freshKey: true });
    const simulator = await start({ certificate, policies: ["Basic256Sha256"] });
    const ctx = context({ pki });
    const details = detailsOf(simulator.port, {
      security_settings: { security_mode: "Sign", endpoint_security_policy: "Basic256Sha256", token_security_policy: "None" },
    });
    await expect(connect(details, ctx)).rejects.toMatchObject({ message: expect.stringContaining("--although-expired-until DATE") });
    pki.trust.trust(parseCertificate(certificate.der), Date.now() + 86_400_000);
    const session = await open(details, ctx);
    expect(await readTexts(session, [nsu("Double")], ctx)).toMatchObject([{ quality: "good" }]);
    expect(codesOf(session.warnings?.() ?? [])).toContain("certificate_forgiven");
    vi.useFakeTimers({ now: Date.now() + 86_400_001, toFake: ["Date"] });
    try {
      expect(session.alive()).toBe(false);
    } finally {
      vi.useRealTimers();
    }
    expect(session.alive()).toBe(true);
  });

  it("finds variables below Objects", async () => {
    const simulator = await start();
    const ctx = context();
    const session = await open(detailsOf(simulator.port), ctx);
    const found = [];
    for await (const one of session.discover?.(ctx) ?? []) found.push(one);
    expect(found).toContainEqual(expect.objectContaining({ address: nsu("Double"), type: { scalar: "float64" } }));
    expect(await readTexts(session, [nsu("Double")], ctx)).toMatchObject([{ quality: "good" }]);
  });
});

describe("sessions", () => {
  it("leaves none behind in 150 reconnects, also where the connection is cut or the read stopped", { timeout: 120_000 }, async () => {
    const simulator = await start();
    const details = detailsOf(simulator.port);
    const once = async (i: number) => {
      const stop = new AbortController();
      const session = await connect(details, context());
      const reading = readTexts(session, [nsu("Double")], context({ signal: i % 3 === 0 ? stop.signal : AbortSignal.timeout(20_000) }));
      if (i % 3 === 0) stop.abort();
      await reading.catch(() => {});
      await session.close();
    };
    for (let i = 0; i < 15; i++) await once(i);
    const handles = () => process.getActiveResourcesInfo().filter((name) => /TCP|Timeout/.test(name)).length;
    await expect.poll(() => simulator.connections()).toBe(0);
    const [before, listeners] = [handles(), process.eventNames().reduce((n, name) => n + process.listenerCount(name), 0)];
    for (let i = 0; i < 150; i++) await once(i);
    expect(simulator.sessions()).toBe(0);
    await expect.poll(() => simulator.connections()).toBe(0);
    await expect.poll(handles, { timeout: 5000 }).toBeLessThanOrEqual(before);
    expect(process.eventNames().reduce((n, name) => n + process.listenerCount(name), 0)).toBe(listeners);
  });

  it("closes its session also in the middle of a read, and within two seconds where the server is silent", async () => {
    const simulator = await start();
    const session = await open(detailsOf(simulator.port), context());
    simulator.misbehave({ service: "Read", answer: "silent" });
    const stop = new AbortController();
    const reading = failureOf(readTexts(session, [nsu("Double")], context({ signal: stop.signal })));
    await expect.poll(() => simulator.requests("Read")).toBeGreaterThan(1);
    stop.abort();
    expect((await reading).reason.type).toBe("TIMEOUT");
    await session.close();
    expect(simulator.sessions()).toBe(0);
    simulator.behave();
    const other = await open(detailsOf(simulator.port), context());
    simulator.misbehave({ service: "CloseSession", answer: "silent" });
    const began = performance.now();
    await other.close();
    expect(performance.now() - began).toBeLessThan(3 * 2000);
  });

  it("leaves nothing behind where connecting is stopped, at whatever moment", { timeout: 60_000 }, async () => {
    const simulator = await start();
    await (await connect(detailsOf(simulator.port), context())).close();
    for (let i = 0; i < 150; i++) {
      const stop = new AbortController();
      setTimeout(() => stop.abort(), i % 30);
      await connect(detailsOf(simulator.port), context({ signal: stop.signal })).then(
        (session) => session.close(),
        (error: unknown) => expect(error).toBeInstanceOf(ReasonError),
      );
    }
    await expect.poll(() => simulator.connections(), { timeout: 10_000 }).toBe(0);
    expect(simulator.sessions()).toBe(0);
  });

  it("ends a session that the server gives too late, while nobody waits for that", async () => {
    const simulator = await start();
    simulator.misbehave({ service: "CreateSession", answer: { delayMs: 800 } });
    const began = performance.now();
    const failure = await failureOf(connect(detailsOf(simulator.port), context({ answerMs: 200 })));
    expect(failure.reason.type).toBe("TIMEOUT");
    expect(performance.now() - began).toBeLessThan(3 * 250);
    await expect.poll(() => simulator.requests("CloseSession"), { timeout: 5000 }).toBe(1);
    await expect.poll(() => simulator.connections()).toBe(0);
    expect(simulator.sessions()).toBe(0);
  });

  it("keeps an idle session alive, and finds out by itself that it is gone", { timeout: 40_000 }, async () => {
    const simulator = await start();
    const session = await open(detailsOf(simulator.port), context(), { settings: { session_timeout: 10_000 } });
    const reads = simulator.requests("Read");
    await expect.poll(() => simulator.requests("Read"), { timeout: 15_000, interval: 200 }).toBeGreaterThan(reads);
    expect(session.alive()).toBe(true);
    simulator.closeSessions();
    await expect.poll(() => session.alive(), { timeout: 15_000, interval: 200 }).toBe(false);
  });

  it("ends a subscription's session where the server falls silent", { timeout: 40_000 }, async () => {
    const simulator = await start();
    const proxy = await startFaultProxy(simulator.port);
    const ctx = context({ answerMs: 2000 });
    const session = await open(detailsOf(proxy.port), ctx, { settings: { read_mode: "subscribe", publishing_interval: 100 } });
    expect(await readTexts(session, [nsu("Double")], ctx)).toMatchObject([{ quality: "good" }]);
    proxy.fault = "silent";
    await expect.poll(() => session.alive(), { timeout: 30_000, interval: 200 }).toBe(false);
    expect((await failureOf(readTexts(session, [nsu("Double")], context()))).reason.type).toBe("TIMEOUT");
    await session.close();
    await proxy.close();
  });
});

describe("a server that restarts", () => {
  it("with renumbered namespaces: addresses with ns= are read where their namespace is now, with a warning", async () => {
    const simulator = await start({ namespaces: [PLANT_NAMESPACE, OTHER_NAMESPACE] });
    const details = detailsOf(simulator.port);
    const ns = `ns=${simulator.plantIndex};s=Double`;
    const path = `/Objects/${simulator.plantIndex}:Plant/${simulator.plantIndex}:Types/${simulator.plantIndex}:Double`;
    const session = await open(details, context());
    expect(await readTexts(session, [ns, path], context())).toMatchObject([{ value: -2.25e-300 }, { value: -2.25e-300 }]);
    expect(textsOf(session.warnings?.())).toEqual([]);
    await simulator.close();
    simulators.length = 0;
    await expect.poll(() => session.alive()).toBe(false);
    const again = await start({ namespaces: [OTHER_NAMESPACE, PLANT_NAMESPACE], port: simulator.port });
    expect(again.plantIndex).not.toBe(simulator.plantIndex);
    const renewed = await open(details, context());
    expect(await readTexts(renewed, [ns, path, nsu("Double")], context())).toMatchObject([
      { value: -2.25e-300 },
      { value: -2.25e-300 },
      { value: -2.25e-300 },
    ]);
    expect(codesOf(renewed.warnings?.())).toContain("namespaces_renumbered");
    expect(textsOf(renewed.warnings?.())).toEqual([
      expect.stringContaining("renumbered its namespaces"),
      expect.stringMatching(/^the server has started again: it runs since \S+, before it ran since /),
    ]);
  });
});

describe("writing", () => {
  it("is no part of a session", async () => {
    const simulator = await start();
    const session = await open(detailsOf(simulator.port), context());
    expect(Object.keys(session).sort()).toEqual([
      "about",
      "alive",
      "close",
      "discover",
      "epoch",
      "granted",
      "limits",
      "prepare",
      "read",
      "readColumns",
      "warnings",
    ]);
  });

  it("is refused by the channel, on the encoded request, before anything is sent", async () => {
    const simulator = await start();
    const { openChannel } = await import("./client.ts");
    const { WriteRequest, CallRequest } = await import("node-opcua-client");
    const proxy = await startFaultProxy(simulator.port);
    const channel = await openChannel(
      {
        endpoint: { host: "127.0.0.1", port: proxy.port, transport: "tcp" },
        endpointUrl: `opc.tcp://127.0.0.1:${proxy.port}`,
        mode: "None",
        policyUri: "http://opcfoundation.org/UA/SecurityPolicy#None",
        serverCertificate: undefined,
        own: undefined,
        maxAnswerBytes: 1_000_000,
        onTooLarge() {},
      },
      context(),
    );
    for (const Request of [WriteRequest, CallRequest]) {
      const smuggled = new Request({}) as unknown as Parameters<typeof channel.call<"Browse">>[1];
      await expect(channel.call("Browse", smuggled, context())).rejects.toThrow(/not one of those that only read|closed|lost/);
    }
    await channel.close();
    expect(simulator.requests("Write")).toBe(0);
    expect(simulator.requests("Call")).toBe(0);
    expect(simulator.writes()).toBe(0);
    for (const bytes of proxy.sent()) expect(ALLOWED["opcua"]?.(bytes)).toEqual([]);
    await proxy.close();
  });
});

it("loads node-opcua only when it connects", async () => {
  const { execFileSync } = await import("node:child_process");
  const script = `await import(${JSON.stringify(new URL("./driver.ts", import.meta.url).href)}); const { default: d } = await import(${JSON.stringify(new URL("./driver.ts", import.meta.url).href)}); console.log(d.type, process.memoryUsage().rss);`;
  const began = performance.now();
  expect(execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" })).toContain("opcua");
  expect(performance.now() - began).toBeLessThan(15_000);
  expect(driver.type).toBe("opcua");
});
