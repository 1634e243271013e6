import { readFile } from "node:fs/promises";
import { type StatusCode, StatusCodes } from "node-opcua-client";
import {
  makeCertificate,
  type OpcuaSimulator,
  type OpcuaSimulatorOptions,
  PLANT_NAMESPACE,
  startOpcuaSimulator,
} from "../../../drivers/opcua/simulator.ts";
import type { OpcuaDetails } from "../../../src/model/details.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { freePort } from "../../support/free-port.ts";
import { connect, context, detailsOf, readTexts, type TestPki, testPki } from "../../support/opcua.ts";
import { errorMessage, startRawServer } from "./raw-server.ts";

/** What a row may use; all of it ends with the row. */
export interface Bench {
  start(options?: OpcuaSimulatorOptions): Promise<OpcuaSimulator>;
  pki(): TestPki;
  /** Runs when the row is over. */
  later(work: () => unknown): void;
}

/** One way in which reading fails: it is done for real, and what comes out must be this. */
export interface Row {
  readonly group: "network" | "endpoint" | "certificates" | "user" | "session";
  readonly what: string;
  readonly reason: string;
  /** Of OPC_UA_ERROR_RESPONSE. */
  readonly name?: string;
  readonly condition?: string;
  /** What the detail must say, so that no two causes read alike. */
  readonly detail: RegExp;
  /** What the failure carries: not to be tried again before. */
  readonly retryAfterMs?: number;
  run(bench: Bench): Promise<unknown>;
}

const PASSWORD = "hunter2-S3cr3t-äöü";
const nsu = (id: string) => `nsu=${PLANT_NAMESPACE};s=${id}`;
const SECURE = {
  security_mode: "SignAndEncrypt",
  endpoint_security_policy: "Basic256Sha256",
  token_security_policy: "Basic256Sha256",
} as const;
const USER = { type: "UserNamePassword", username: "reader" } as const;

/** Connects and reads one value; the session ends with the row. */
async function readOnce(
  bench: Bench,
  details: OpcuaDetails,
  ctx = context(),
  settings: Record<string, unknown> = {},
  password: string | undefined = PASSWORD,
) {
  const session = await connect(details, ctx, { settings, secrets: password === undefined ? {} : { password } });
  bench.later(() => session.close());
  return { session, readings: await readTexts(session, [nsu("Double")], ctx) };
}

/** A collector that trusts the server from its first use on. */
const secured = async (bench: Bench, options: OpcuaSimulatorOptions, details: Partial<OpcuaDetails> = {}, pki = bench.pki()) => {
  const simulator = await bench.start(options);
  return readOnce(bench, detailsOf(simulator.port, { security_settings: SECURE, ...details }), context({ pki }), { trust: "first_use" });
};

const answering = (service: string, fault: StatusCode, text?: string) => async (bench: Bench) => {
  const simulator = await bench.start();
  simulator.misbehave({ service, answer: { fault, ...(text !== undefined && { text }) } });
  return readOnce(bench, detailsOf(simulator.port));
};

const withProxy = (fault: "silent" | "cut" | "reset" | "close-now", when: "connect" | "session") => async (bench: Bench) => {
  const simulator = await bench.start();
  const proxy = await startFaultProxy(simulator.port);
  bench.later(() => proxy.close());
  const ctx = context({ answerMs: 1000 });
  if (when === "connect") proxy.fault = fault;
  const { session } = await readOnce(bench, detailsOf(proxy.port), ctx);
  proxy.fault = fault;
  return readTexts(session, [nsu("Double")], ctx);
};

const raw = (answer: Uint8Array) => async (bench: Bench) => {
  const server = await startRawServer(answer);
  bench.later(() => server.close());
  return readOnce(bench, detailsOf(server.port));
};

const network: readonly Row[] = [
  {
    group: "network",
    what: "nothing listens on the port",
    reason: "CONNECTION_REFUSED",
    detail: /ECONNREFUSED/,
    run: async (bench) => readOnce(bench, detailsOf(await freePort())),
  },
  {
    group: "network",
    what: "the server accepts and never answers",
    reason: "TIMEOUT",
    detail: /OpenSecureChannel within/,
    run: withProxy("silent", "connect"),
  },
  {
    group: "network",
    what: "the server accepts and hangs up",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection/,
    run: withProxy("close-now", "connect"),
  },
  { group: "network", what: "a black hole in mid-session", reason: "TIMEOUT", detail: /Read within/, run: withProxy("silent", "session") },
  {
    group: "network",
    what: "the server hangs up in mid-session",
    reason: "CONNECTION_CLOSED",
    detail: /closed the connection/,
    run: withProxy("cut", "session"),
  },
  {
    group: "network",
    what: "the connection is reset in mid-session",
    reason: "CONNECTION_RESET",
    detail: /ECONNRESET/,
    run: withProxy("reset", "session"),
  },
  {
    group: "network",
    what: "something else than OPC UA listens there",
    reason: "UNKNOWN",
    condition: "protocol_violation",
    detail: /does not speak OPC UA: its answer begins with/,
    run: raw(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")),
  },
  {
    group: "network",
    what: "the server does not know the path in endpoint_url",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadTcpEndpointUrlInvalid",
    detail: /path in endpoint_url.*"no such path"/,
    run: raw(errorMessage(0x8083_0000, "no such path")),
  },
  {
    group: "network",
    what: "the server takes no more connections",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadTcpServerTooBusy",
    detail: /no more connections/,
    run: raw(errorMessage(0x807d_0000, "")),
  },
];

const endpoint: readonly Row[] = [
  {
    group: "endpoint",
    what: "the server has no such security policy",
    reason: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY",
    detail: /no endpoint with SignAndEncrypt with Basic256Sha256; it offers: .*Aes128_Sha256_RsaOaep/,
    run: (bench) => secured(bench, { policies: ["None", "Aes128-Sha256-RsaOaep"] }),
  },
  {
    group: "endpoint",
    what: "the server has no such security mode",
    reason: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY",
    detail: /no endpoint with SignAndEncrypt/,
    run: (bench) => secured(bench, { modes: ["None", "Sign"], policies: ["None", "Basic256Sha256"] }),
  },
  {
    group: "endpoint",
    what: "the server takes no anonymous user",
    reason: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY",
    detail: /takes no Anonymous; it offers/,
    run: (bench) => secured(bench, { anonymous: false, policies: ["None", "Basic256Sha256"] }),
  },
  {
    group: "endpoint",
    what: "the server wants the password under another policy",
    reason: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY",
    detail: /takes no UserNamePassword with token policy Basic256Sha256/,
    run: (bench) =>
      secured(bench, { tokenPolicies: ["Aes256-Sha256-RsaPss"], policies: ["None", "Basic256Sha256"] }, { user_identity: USER }),
  },
];

const certificates: readonly Row[] = [
  {
    group: "certificates",
    what: "the server does not trust the collector's certificate, and does not say so",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadSecurityChecksFailed",
    detail: /does not say why.*thumbprint/,
    run: (bench) => secured(bench, { trust: [] }),
  },
  {
    group: "certificates",
    what: "the server does not trust the collector's certificate, and says so",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadCertificateUntrusted",
    detail: /does not trust the collector's certificate.*"see rejected"/,
    run: answering("CreateSession", StatusCodes.BadCertificateUntrusted, "see rejected"),
  },
  {
    group: "certificates",
    what: "the collector does not trust the server's certificate",
    reason: "UNKNOWN",
    condition: "certificate_refused",
    detail: /is not trusted on this machine.*pki trust/,
    async run(bench) {
      const simulator = await bench.start();
      return readOnce(bench, detailsOf(simulator.port, { security_settings: SECURE }), context({ pki: bench.pki() }));
    },
  },
  {
    group: "certificates",
    what: "the collector does not trust the server that a password would go to",
    reason: "UNKNOWN",
    condition: "certificate_refused",
    detail: /is not trusted on this machine/,
    async run(bench) {
      const simulator = await bench.start();
      const security_settings = {
        security_mode: "None",
        endpoint_security_policy: "None",
        token_security_policy: "Basic256Sha256",
      } as const;
      return readOnce(bench, detailsOf(simulator.port, { security_settings, user_identity: USER }), context({ pki: bench.pki() }));
    },
  },
  {
    group: "certificates",
    what: "the server shows another certificate than before",
    reason: "UNKNOWN",
    condition: "certificate_refused",
    detail: /not the one that this server showed before/,
    async run(bench) {
      const pki = bench.pki();
      const first = await bench.start();
      const details = detailsOf(first.port, { security_settings: SECURE });
      const { session } = await readOnce(bench, details, context({ pki }), { trust: "first_use" });
      await session.close();
      await first.close();
      const certificate = await makeCertificate({ applicationUri: "urn:example:opcua-simulator", freshKey: true });
      await bench.start({ port: first.port, certificate });
      return readOnce(bench, details, context({ pki }), { trust: "first_use" });
    },
  },
  {
    group: "certificates",
    what: "the server's certificate has expired",
    reason: "UNKNOWN",
    condition: "certificate_refused",
    detail: /expired/,
    run: async (bench) =>
      secured(bench, { certificate: await makeCertificate({ applicationUri: "urn:example:opcua-simulator", validity: "expired" }) }),
  },
  {
    group: "certificates",
    what: "the server's certificate is not valid yet",
    reason: "UNKNOWN",
    condition: "certificate_refused",
    detail: /not valid|not yet valid|from/,
    run: async (bench) =>
      secured(bench, { certificate: await makeCertificate({ applicationUri: "urn:example:opcua-simulator", validity: "not_yet_valid" }) }),
  },
  {
    group: "certificates",
    what: "the server's certificate is that of another application",
    reason: "UNKNOWN",
    condition: "certificate_refused",
    detail: /calls itself "urn:example:this", its certificate "urn:example:other"/,
    run: async (bench) =>
      secured(bench, { applicationUri: "urn:example:this", certificate: await makeCertificate({ applicationUri: "urn:example:other" }) }),
  },
  {
    group: "certificates",
    what: "the collector's own certificate has expired for the server",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadCertificateTimeInvalid",
    detail: /collector's certificate: expired or not yet valid/,
    run: answering("CreateSession", StatusCodes.BadCertificateTimeInvalid),
  },
  {
    group: "certificates",
    what: "the collector's certificate does not name the application that it says it is",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadCertificateUriInvalid",
    detail: /application URI that the collector gave/,
    async run(bench) {
      const pki = bench.pki();
      const renamed = { ...pki, own: async () => ({ ...(await pki.own()), applicationUri: "urn:somebody:else" }) };
      const simulator = await bench.start();
      return readOnce(bench, detailsOf(simulator.port, { security_settings: SECURE }), context({ pki: renamed }), { trust: "first_use" });
    },
  },
  {
    group: "certificates",
    what: "the server does not find the collector's host in its certificate",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadCertificateHostNameInvalid",
    detail: /collector's host/,
    run: answering("CreateSession", StatusCodes.BadCertificateHostNameInvalid),
  },
  {
    group: "certificates",
    what: "the clocks of server and collector are too far apart",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadInvalidTimestamp",
    detail: /clocks .* too far apart/,
    run: answering("CreateSession", StatusCodes.BadInvalidTimestamp),
  },
];

const user: readonly Row[] = [
  {
    group: "user",
    what: "the password is wrong",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadUserAccessDenied",
    detail: /password/,
    async run(bench) {
      const simulator = await bench.start();
      return readOnce(
        bench,
        detailsOf(simulator.port, { security_settings: SECURE, user_identity: USER }),
        context({ pki: bench.pki() }),
        { trust: "first_use" },
        "wrong",
      );
    },
  },
  {
    group: "user",
    what: "the server rejects the user",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadIdentityTokenRejected",
    detail: /rejects the user/,
    run: answering("ActivateSession", StatusCodes.BadIdentityTokenRejected, "unknown user"),
  },
  {
    group: "user",
    what: "the server does not trust the user's certificate",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadIdentityTokenRejected",
    detail: /user certificate/,
    async run(bench) {
      const pki = bench.pki();
      const own = await pki.own();
      const given = async (file: string) => ({ file, bytes: await readFile(file) });
      pki.addUser("user", await given(own.certificateFile), await given(own.privateKeyFile));
      return secured(bench, { userCertificates: [] }, { user_identity: { type: "X509Certificate" } }, pki);
    },
  },
  {
    group: "user",
    what: "the user's certificate is not in the PKI folder",
    reason: "UNKNOWN",
    condition: "secret_missing",
    detail: /user certificate user is not here/,
    run: (bench) => secured(bench, {}, { user_identity: { type: "X509Certificate" } }),
  },
  {
    group: "user",
    what: "the password is not on this machine",
    reason: "UNKNOWN",
    condition: "secret_missing",
    detail: /collector secret set/,
    async run(bench) {
      const simulator = await bench.start();
      const details = detailsOf(simulator.port, { security_settings: SECURE, user_identity: USER });
      const session = await connect(details, context({ pki: bench.pki() }), { settings: { trust: "first_use" } });
      bench.later(() => session.close());
      return session;
    },
  },
];

const session: readonly Row[] = [
  {
    group: "session",
    what: "the server has no session free",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadTooManySessions",
    detail: /no session free.*ends within 60 s$/,
    retryAfterMs: 60_000,
    async run(bench) {
      const simulator = await bench.start({ maxSessions: 1 });
      const details = detailsOf(simulator.port);
      await readOnce(bench, details);
      await readOnce(bench, details).catch(() => {});
      // Each refusal is the server's own.
      const asked = simulator.requests("CreateSession");
      const failed = readOnce(bench, details);
      await failed.catch(() => {});
      if (simulator.requests("CreateSession") !== asked + 1) throw new Error("it did not ask the server");
      return failed;
    },
  },
  {
    group: "session",
    what: "the server is too busy for another session",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadServerTooBusy",
    detail: /too busy at the moment/,
    run: answering("CreateSession", StatusCodes.BadServerTooBusy),
  },
  {
    group: "session",
    what: "the user may not do anything in the session, the server says",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadUserAccessDenied",
    detail: /to Read: .*"no rights"/,
    run: answering("Read", StatusCodes.BadUserAccessDenied, "no rights"),
  },
  {
    group: "session",
    what: "the server has ended the session",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadSessionIdInvalid",
    detail: /ended the session/,
    async run(bench) {
      const simulator = await bench.start();
      const { session: open } = await readOnce(bench, detailsOf(simulator.port));
      simulator.closeSessions();
      return readTexts(open, [nsu("Double")], context());
    },
  },
  {
    group: "session",
    what: "the server shuts down",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadShutdown",
    detail: /shutting down/,
    run: answering("Read", StatusCodes.BadShutdown),
  },
  {
    group: "session",
    what: "the server fails with an error of its own",
    reason: "OPC_UA_ERROR_RESPONSE",
    name: "BadInternalError",
    detail: /internal error.*"PLC not loaded"/i,
    run: answering("CreateSession", StatusCodes.BadInternalError, "PLC not loaded"),
  },
];

export const ROWS: readonly Row[] = [...network, ...endpoint, ...certificates, ...user, ...session];

/** What rows use, and its end. */
export function createBench(): Bench & { close(): Promise<void> } {
  const works: (() => unknown)[] = [];
  return {
    async start(options = {}) {
      const simulator = await startOpcuaSimulator({ bulk: 1, ...options });
      works.push(() => simulator.close());
      return simulator;
    },
    pki() {
      const pki = testPki();
      works.push(() => pki.remove());
      return pki;
    },
    later: (work) => void works.push(work),
    async close() {
      // The youngest first: sessions before their servers.
      for (const work of works.splice(0).reverse()) await work();
    },
  };
}
