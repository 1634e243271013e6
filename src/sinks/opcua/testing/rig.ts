import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  MessageSecurityMode,
  OPCUAClient,
  type OPCUAClientOptions,
  SecurityPolicy,
  type UserIdentityInfo,
  UserTokenType,
} from "node-opcua-client";
import type { Context, Log } from "../../../model/context.ts";
import type { Layout, LayoutVariable } from "../../../model/layout.ts";
import type { OwnCertificate } from "../../../model/pki.ts";
import type { SourceReport } from "../../../model/report.ts";
import { type OpcuaSinkDetails, SINK_DETAILS, userSecretName } from "../../../model/sink-details.ts";
import type { DataType, Reading } from "../../../model/value.ts";
import { createPki, type OpenPki } from "../../../os/pki/pki.ts";
import type { Sink, SinkBatch } from "../../sink.ts";
import { settingsSchema } from "../settings.ts";
import kind from "../sink.ts";

/** A machine with a PKI folder of its own. */
export interface Machine {
  readonly pki: OpenPki;
  readonly own: OwnCertificate;
  /** Puts a certificate into the folder of those that are trusted. */
  trust(other: OwnCertificate): void;
}

export interface Rig {
  readonly folder: string;
  readonly server: Machine;
  readonly client: Machine;
  machine(name: string): Promise<Machine>;
  readonly logged: readonly { readonly level: string; readonly message: string; readonly fields: object }[];
  ctx(change?: Partial<Context>): Context;
  open(change?: Partial<OpcuaSinkDetails>, options?: OpenOptions): Promise<Sink & { readonly url: string }>;
  /** Closes the sinks and the clients, and removes the folder. */
  end(): Promise<void>;
  /** A client that is not connected, as the machine `client`; its certificate is trusted unless `trust` was not called. */
  clientOf(options?: ClientOptions): Promise<OPCUAClient>;
}

export interface OpenOptions {
  readonly users?: Readonly<Record<string, string>>;
  readonly settings?: object;
  readonly ctx?: Partial<Context>;
}

export interface ClientOptions extends Partial<OPCUAClientOptions> {
  readonly machine?: Machine;
}

const STORE = {
  referenceCounter: 0,
  initialize: async () => {},
  dispose: async () => {},
  verifyCertificate: async () => "Good",
  trustCertificate: async () => {},
  rejectCertificate: async () => {},
  addIssuer: async () => {},
  addRevocationList: async () => {},
};

export async function createRig(): Promise<Rig> {
  const folder = mkdtempSync(path.join(tmpdir(), "opcua-sink-"));
  const { StatusCodes } = await import("node-opcua-client");
  const store = { ...STORE, checkCertificate: async () => StatusCodes.Good, getTrustStatus: async () => StatusCodes.Good };
  const logged: { level: string; message: string; fields: object }[] = [];
  const logAt = (level: string) => (fields: object, message: string) => {
    logged.push({ level, message, fields });
  };
  const log: Log = { debug: logAt("debug"), info: logAt("info"), warn: logAt("warn"), error: logAt("error") };
  const machine = async (name: string): Promise<Machine> => {
    const dir = path.join(folder, name);
    const pki = createPki({ dir, installation: randomUUID() });
    return {
      pki,
      own: await pki.own(),
      trust(other) {
        mkdirSync(path.join(dir, "trusted"), { recursive: true });
        writeFileSync(path.join(dir, "trusted", `${other.thumbprint}.der`), other.certificate);
      },
    };
  };
  const [server, client] = await Promise.all([machine("server"), machine("client")]);
  const sinks: Sink[] = [];
  const clients: OPCUAClient[] = [];
  const ctx = (change: Partial<Context> = {}): Context => ({ signal: new AbortController().signal, log, pki: server.pki, ...change });
  return {
    folder,
    server,
    client,
    machine,
    logged,
    ctx,
    async open(change = {}, { users = {}, settings = {}, ctx: given = {} } = {}) {
      const details = { ...SINK_DETAILS.opcua.read.parse({ type: "opcua", port: 0 }), ...change };
      const secrets = Object.fromEntries(Object.entries(users).map(([user, password]) => [userSecretName(user), password]));
      const named = { ...details, users: Object.keys(users).map((username) => ({ username })) };
      const port = details.port === 0 ? await freePort() : details.port;
      const sink = await kind.open(
        {
          uuid: randomUUID(),
          name: "sink",
          details: { ...named, port },
          settings: settingsSchema.parse({ listen: "127.0.0.1", ...settings }),
          secrets,
        },
        ctx(given),
      );
      sinks.push(sink);
      // The sink has getters: it is not copied.
      return Object.assign(sink, { url: `opc.tcp://127.0.0.1:${port}` });
    },
    async clientOf({ machine: as = client, ...options } = {}) {
      const made = OPCUAClient.create({
        applicationUri: as.own.applicationUri,
        applicationName: "test",
        certificateFile: as.own.certificateFile,
        privateKeyFile: as.own.privateKeyFile,
        clientCertificateManager: store as unknown as NonNullable<OPCUAClientOptions["clientCertificateManager"]>,
        securityMode: MessageSecurityMode.SignAndEncrypt,
        securityPolicy: SecurityPolicy.Basic256Sha256,
        endpointMustExist: false,
        connectionStrategy: { maxRetry: 0, initialDelay: 100, maxDelay: 100 },
        keepSessionAlive: false,
        ...options,
      });
      clients.push(made);
      return made;
    },
    async end() {
      for (const made of clients) await made.disconnect().catch(() => {});
      for (const sink of sinks) await sink.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const net = await import("node:net");
  const server = net.createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}

export const user = (userName: string, password: string): UserIdentityInfo => ({ type: UserTokenType.UserName, userName, password });
export const ANONYMOUS: UserIdentityInfo = { type: UserTokenType.Anonymous };

export function variableOf(name: string, type: DataType, change: Partial<LayoutVariable> = {}): LayoutVariable {
  return { uuid: `v-${name}`, name, address: name, type, unit: null, comment: null, exploration: false, ...change };
}

export function layoutOf(source: string, ...variables: readonly LayoutVariable[]): Layout {
  return { source: { uuid: `s-${source}`, name: source }, variables };
}

export function reportOf(layout: Layout, change: Partial<SourceReport> = {}): SourceReport {
  return {
    uuid: layout.source.uuid,
    name: layout.source.name,
    type: "modbus_tcp",
    endpoint: "127.0.0.1:502",
    status: { last_readout_at: null, configured_variables: layout.variables.length, state: { type: "OK" } },
    since: "2026-11-20T09:00:00.000Z",
    error: null,
    next_retry_at: null,
    interval_ms: 1000,
    warnings: [],
    counters: { readouts: 0, failed_readouts: 0, overruns: 0, values_read: 0, values_faulted: 0, values_unchanged: 0, connects: 0 },
    faults: [],
    layout,
    ...change,
  };
}

export function failing(layout: Layout, change: Partial<SourceReport> = {}): SourceReport {
  return reportOf(layout, {
    status: {
      last_readout_at: "2026-11-20T09:00:00.000Z",
      configured_variables: layout.variables.length,
      state: { type: "ERROR", reason: { type: "TIMEOUT" }, error_at: "2026-11-20T09:00:10.000Z" },
    },
    error: { reason: { type: "TIMEOUT" }, condition: null, detail: "no answer within 3 s" },
    next_retry_at: "2026-11-20T09:00:20.000Z",
    ...change,
  });
}

export const good = (
  value: Extract<Reading, { quality: "good" | "uncertain" }>["value"],
  more: { sourceTime?: number; type?: DataType } = {},
): Reading => ({
  quality: "good",
  value,
  ...more,
});

export function batchOf(layout: Layout, readings: readonly (Reading | undefined)[], time = Date.now()): SinkBatch {
  return { id: "e-1", layout, readouts: [{ time, spanMs: 1, clockSynced: true, readings }], backlog: false };
}
