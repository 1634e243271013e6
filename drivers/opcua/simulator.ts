import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { OPCUACertificateManager } from "node-opcua-certificate-manager";
import { EndpointDescription, MessageSecurityMode, SecurityPolicy, UserTokenType } from "node-opcua-client";
import { nodesets } from "node-opcua-nodesets";
import type { OperationLimitsOptions } from "node-opcua-server";
import type { Simulator, StartSimulator } from "../simulator.ts";
import { makeCertificate, type SimulatorCertificate, writeCertificate } from "./simulator-certificates.ts";
import { MisbehavingServer, type ServiceFaultRule } from "./simulator-server.ts";
import {
  type AddressSpace,
  fillSpace,
  type MovingVariable,
  OTHER_NAMESPACE,
  PLANT_NAMESPACE,
  type PlantVariable,
  type TreeShape,
} from "./simulator-space.ts";

import { TYPES_NODESET } from "./simulator-types.ts";

export { type CertificateWish, makeCertificate, type SimulatorCertificate, writeCertificate } from "./simulator-certificates.ts";
export type { ServiceFaultRule } from "./simulator-server.ts";
export { OTHER_NAMESPACE, PLANT_NAMESPACE } from "./simulator-space.ts";

/** By the API's own names (API-V2, 2.2). */
export type ModeName = "None" | "Sign" | "SignAndEncrypt";
export type PolicyName = "None" | "Aes128-Sha256-RsaOaep" | "Aes256-Sha256-RsaPss" | "Basic128Rsa15" | "Basic256" | "Basic256Sha256";

const MODES: Readonly<Record<ModeName, MessageSecurityMode>> = {
  None: MessageSecurityMode.None,
  Sign: MessageSecurityMode.Sign,
  SignAndEncrypt: MessageSecurityMode.SignAndEncrypt,
};
const POLICIES: Readonly<Record<PolicyName, SecurityPolicy>> = {
  None: SecurityPolicy.None,
  "Aes128-Sha256-RsaOaep": SecurityPolicy.Aes128_Sha256_RsaOaep,
  "Aes256-Sha256-RsaPss": SecurityPolicy.Aes256_Sha256_RsaPss,
  Basic128Rsa15: SecurityPolicy.Basic128Rsa15,
  Basic256: SecurityPolicy.Basic256,
  Basic256Sha256: SecurityPolicy.Basic256Sha256,
};

const ALL_MODES: readonly ModeName[] = ["None", "Sign", "SignAndEncrypt"];
/** None and those that are current. */
const CURRENT_POLICIES: readonly PolicyName[] = ["None", "Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic256Sha256"];

/** The user that every simulator knows unless others are given. The password is the one that the conformance suite hands to drivers. */
export const USERS: Readonly<Record<string, string>> = { reader: "hunter2-S3cr3t-äöü" };

export interface OpcuaSimulatorOptions {
  /** 0 or absent takes a free one. */
  readonly port?: number;
  /** 127.0.0.1 unless told otherwise. */
  readonly host?: string;
  /** All three unless told otherwise; an endpoint for every mode and policy that fit together. */
  readonly modes?: readonly ModeName[];
  /** None and the three current ones unless told otherwise. Tokens of the endpoint without security take all but None of them. */
  readonly policies?: readonly PolicyName[];
  /** If given, every endpoint offers tokens with these policies; `None` is a password in the clear. */
  readonly tokenPolicies?: readonly PolicyName[];
  /** True unless told otherwise. */
  readonly anonymous?: boolean;
  /** Passwords by name. */
  readonly users?: Readonly<Record<string, string>>;
  /** DER certificates that people log in with; none unless told otherwise. */
  readonly userCertificates?: readonly Uint8Array[] | "any";
  /** DER certificates of trusted clients; any unless told otherwise. Others are answered BadSecurityChecksFailed or BadCertificateUntrusted. */
  readonly trust?: readonly Uint8Array[] | "any";
  /** The server's own; one of a key that this process shares is made otherwise. */
  readonly certificate?: SimulatorCertificate;
  /** What the server calls itself; another than the certificate's makes it one of a wrong URI. */
  readonly applicationUri?: string;
  /** Host in the endpoint URLs that it announces, where it is not the one that it listens on. */
  readonly announcedHost?: string;
  /** In the order of their indexes, from 3 on; 2 has the plant's own types. */
  readonly namespaces?: readonly string[];
  /** 100 unless told otherwise. */
  readonly maxSessions?: number;
  readonly operationLimits?: OperationLimitsOptions;
  /** References in one answer, whatever the client asks for. */
  readonly maxReferencesPerNode?: number;
  /** Variables `Bulk.0` and on; 1,000 unless told otherwise. */
  readonly bulk?: number;
  /** Doubles that change by themselves, with their units. */
  readonly moving?: readonly MovingVariable[];
  readonly tree?: TreeShape;
  /** Files of published models that it has besides OPC UA's own, each behind those that it needs. */
  readonly nodesets?: readonly string[];
  /** Adds to its address space before it starts. */
  readonly fill?: (addressSpace: AddressSpace) => void;
  /** Added to every source time stamp; 0 unless told otherwise. */
  readonly sourceClockMs?: number;
}

export interface OpcuaSimulator extends Simulator {
  /** With the host that it announces. */
  readonly endpointUrl: string;
  readonly applicationUri: string;
  readonly certificate: SimulatorCertificate;
  /** Namespace index of the plant in this run. */
  readonly plantIndex: number;
  /** A variable of the plant by the text of its id. Throws where there is none. */
  variable(id: string): PlantVariable;
  misbehave(rule: ServiceFaultRule): void;
  /** Forgets all rules. */
  behave(): void;
  /** Requests for a service since the start: `Read`. */
  requests(service: string): number;
  sessions(): number;
  /** Writes that changed the one variable that may be written. */
  writes(): number;
  /** Ends all sessions on the server's side; channels stay. */
  closeSessions(): void;
  /** DER of a client or of a user, from now on. */
  trust(certificate: Uint8Array): Promise<void>;
}

/** A real OPC UA server (node-opcua) with a plant. Everything it writes lies in a temporary folder that ends with it. */
export async function startOpcuaSimulator(options: OpcuaSimulatorOptions = {}): Promise<OpcuaSimulator> {
  const folder = await mkdtemp(path.join(tmpdir(), "opcua-simulator-"));
  try {
    return await start(options, folder);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function start(options: OpcuaSimulatorOptions, folder: string): Promise<OpcuaSimulator> {
  const host = options.host ?? "127.0.0.1";
  const announced = options.announcedHost ?? host;
  const applicationUri = options.applicationUri ?? "urn:example:opcua-simulator";
  const names = {
    dns: ["localhost", ...(isAddress(announced) ? [] : [announced])],
    ip: ["127.0.0.1", ...(isAddress(announced) ? [announced] : [])],
  };
  const certificate = options.certificate ?? (await makeCertificate({ applicationUri, ...names }));
  const files = await writeCertificate(folder, "server", certificate);
  const [clients, people] = [
    await manager(folder, "clients", options.trust ?? "any"),
    await manager(folder, "users", options.userCertificates ?? []),
  ];
  const policies = options.policies ?? CURRENT_POLICIES;
  const modes = options.modes ?? ALL_MODES;
  const users = new Map(Object.entries(options.users ?? USERS));
  const server = new MisbehavingServer({
    ...serverOptions(options, { modes, policies, users, applicationUri }),
    host,
    hostname: announced,
    ...files,
    serverCertificateManager: clients,
    userCertificateManager: people,
  });
  server.maxReferencesPerNode = options.maxReferencesPerNode ?? 0;
  const close = async (): Promise<void> => {
    await server.shutdown(0);
    await Promise.all([clients.dispose(), people.dispose()]);
    await rm(folder, { recursive: true, force: true });
  };
  await server.initialize();
  const { addressSpace } = server.engine;
  if (!addressSpace) throw new Error("the server has no address space");
  server.engine.serverDiagnosticsEnabled = false;
  const namespaces = options.namespaces ?? [PLANT_NAMESPACE, OTHER_NAMESPACE];
  const space = fillSpace(addressSpace, {
    namespaces,
    bulk: options.bulk ?? 1000,
    sourceClockMs: options.sourceClockMs ?? 0,
    moving: options.moving ?? [],
    ...(options.tree && { tree: options.tree }),
  });
  options.fill?.(addressSpace);
  if (options.tokenPolicies) offerTokens(server, options.tokenPolicies, options.anonymous ?? true);
  await server.start();
  const port = server.endpoints[0]?.port ?? 0;
  const plantIndex = addressSpace.getNamespaceIndex(PLANT_NAMESPACE);
  const urlAt = (at: string, atPort: number) => `opc.tcp://${at}:${atPort}`;
  const [mode, policy] = modes.includes("None")
    ? (["None", "None"] as const)
    : ([modes[0], policies.find((name) => name !== "None")] as const);
  return {
    port,
    endpointUrl: urlAt(announced, port),
    applicationUri,
    certificate,
    plantIndex,
    details: (at, atPort) => ({
      type: "opcua",
      host: at,
      port: atPort,
      endpoint_url: urlAt(announced, port),
      security_settings: {
        security_mode: mode,
        endpoint_security_policy: policy,
        token_security_policy: policies.find((name) => name !== "None") ?? "None",
      },
      user_identity:
        (options.anonymous ?? true) ? { type: "Anonymous" } : { type: "UserNamePassword", username: [...users.keys()][0] ?? "reader" },
    }),
    variables: space.variables,
    missing: { address: `nsu=${PLANT_NAMESPACE};s=Missing`, type: "float64" },
    malformed: ["", "ns=2", "ns=70000;i=1", "ns=-1;i=1", "i=-1", "i=4294967296", "i=1.5", "g=72962B91", "b=***", "x=1", "ns=2;x=1"],
    connections: () => server.currentChannelCount,
    variable: space.variable,
    misbehave: (rule) => server.misbehave(rule),
    behave: () => server.behave(),
    requests: (service) => server.counts.get(service) ?? 0,
    sessions: () => server.sessions.size,
    writes: space.writes,
    closeSessions() {
      for (const session of [...server.sessions]) server.engine.closeSession(session.authenticationToken, true, "Terminated");
    },
    async trust(der) {
      await Promise.all([clients.trustCertificate(Buffer.from(der)), people.trustCertificate(Buffer.from(der))]);
    },
    close,
  };
}

interface Offered {
  readonly modes: readonly ModeName[];
  readonly policies: readonly PolicyName[];
  /** Passwords by name. */
  readonly users: ReadonlyMap<string, string>;
  readonly applicationUri: string;
}

/** What is the same wherever the server runs and whatever its files are. */
const serverOptions = (options: OpcuaSimulatorOptions, { modes, policies, users, applicationUri }: Offered) => ({
  port: options.port ?? 0,
  serverInfo: { applicationUri, productUri: "urn:example:opcua-simulator", applicationName: { text: "Simulator" } },
  buildInfo: { productName: "Simulator" },
  securityModes: modes.map((mode) => MODES[mode]),
  securityPolicies: policies.map((policy) => POLICIES[policy]),
  allowAnonymous: options.anonymous ?? true,
  nodesets: [nodesets.standard, { name: "types.xml", source: TYPES_NODESET }, ...(options.nodesets ?? [])],
  userManager: { isValidUser: (name: string, password: string) => users.get(name) === password },
  maxConnectionsPerEndpoint: 1000,
  serverCapabilities: {
    maxSessions: options.maxSessions ?? 100,
    ...(options.operationLimits && { operationLimits: options.operationLimits }),
  },
  isAuditing: false,
});

const isAddress = (host: string): boolean => /^[\d.]+$|:/.test(host);

async function manager(folder: string, name: string, trusted: readonly Uint8Array[] | "any"): Promise<OPCUACertificateManager> {
  const made = new OPCUACertificateManager({
    rootFolder: path.join(folder, name),
    automaticallyAcceptUnknownCertificate: trusted === "any",
    disableFileWatchers: true,
  });
  await made.initialize();
  if (trusted !== "any") for (const der of trusted) await made.trustCertificate(Buffer.from(der));
  return made;
}

function offerTokens(server: MisbehavingServer, policies: readonly PolicyName[], anonymous: boolean): void {
  for (const description of server.endpoints.flatMap((endpoint) => endpoint.endpointDescriptions())) {
    const offered = policies.flatMap((policy) => [
      { tokenType: UserTokenType.UserName, securityPolicyUri: POLICIES[policy], policyId: `username_${policy}` },
      ...(policy === "None"
        ? []
        : [{ tokenType: UserTokenType.Certificate, securityPolicyUri: POLICIES[policy], policyId: `certificate_${policy}` }]),
    ]);
    const kept = (description.userIdentityTokens ?? []).filter((token) => token.tokenType === UserTokenType.Anonymous && anonymous);
    description.userIdentityTokens = new EndpointDescription({ userIdentityTokens: [...kept, ...offered] }).userIdentityTokens;
  }
}

export const startSimulator: StartSimulator = (options) => startOpcuaSimulator(options);
