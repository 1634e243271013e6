import os from "node:os";
import { MessageSecurityMode, SecurityPolicy, UserTokenPolicy, UserTokenType } from "node-opcua-client";
import { type OPCUAServer, type OPCUAServerOptions, RegisterServerMethod } from "node-opcua-server";
import type { Context } from "../../model/context.ts";
import { messageOf, toReasonError } from "../../model/failure.ts";
import type { OwnCertificate, Pki } from "../../model/pki.ts";
import { ReasonError } from "../../model/reason.ts";
import { type OpcuaSinkDetails, userSecretName } from "../../model/sink-details.ts";
import type { OpenInput, Sink } from "../sink.ts";
import { type Connections, watchConnections } from "./connections.ts";
import { fenceLibrary } from "./library.ts";
import { LIMITS } from "./limits.ts";
import { probeListening } from "./listen.ts";
import { createNodeMaker } from "./nodes.ts";
import { ReadOnlyServer } from "./server.ts";
import { createServing } from "./serving.ts";
import type { OpcuaSinkSettings } from "./settings.ts";
import { createClientTrust } from "./trust.ts";
import { hashUsers, type Users } from "./users.ts";

const SWEEP_MS = 1000;
/** How often it is looked whether the collector's certificate was renewed. */
const RENEWAL_MS = 600_000;
const CLOSE_TIMEOUT_MS = 3000;
const PRODUCT = "collector";

/** Opens the server: endpoints, users, an empty address space. Throws ReasonError. */
export async function openServer(
  input: OpenInput<OpcuaSinkDetails, OpcuaSinkSettings>,
  ctx: Context,
  host: string,
  notes: readonly string[],
  renewalEveryMs = RENEWAL_MS,
): Promise<Sink> {
  const { details, settings } = input;
  const { pki } = ctx;
  if (!pki)
    throw new ReasonError("UNKNOWN", "the OPC UA server needs a certificate, and this program has no folder to keep one in", {
      condition: "configuration_invalid",
    });
  const stopIfAsked = (): void => {
    if (ctx.signal.aborted) throw new ReasonError("CONNECTION_CLOSED", "stopped by the collector");
  };
  stopIfAsked();
  const own = await ownCertificate(pki);
  await probeListening(host, details.port);
  const users = await usersOf(input);
  stopIfAsked();

  fenceLibrary(ctx.log);
  const trust = createClientTrust({ pki, onRefused: (words) => ctx.log.warn({}, words) });
  const intervals = new Map<string, number>();
  const server = new ReadOnlyServer(optionsOf(input, own, host, users, trust), ctx.log, ({ namespace, value }) =>
    namespace === 1 ? intervals.get(String(value)) : undefined,
  );
  let connections: Connections | undefined;
  const close = async (): Promise<void> => {
    await within(CLOSE_TIMEOUT_MS, shutdown(server));
    connections?.end();
  };
  try {
    await server.initialize();
    connections = watchConnections(server, settings.max_sessions * LIMITS.connectionsPerSession, ctx.log);
    closeMethods(server);
    narrowTokens(server, details);
    stopIfAsked();
    await server.start();
  } catch (error) {
    await close();
    throw failureOf(error, host, details.port);
  }
  const { addressSpace } = server.engine;
  if (!addressSpace) throw new ReasonError("UNKNOWN", "node-opcua has no address space", { condition: "internal_error" });
  const serving = createServing(
    createNodeMaker(addressSpace, (uuid) => intervals.get(uuid)),
    intervals,
    { log: ctx.log },
  );
  ctx.log.info(
    { url: server.getEndpointUrl(), host, thumbprint: own.thumbprint, applicationUri: own.applicationUri },
    "the OPC UA server listens; clients have to trust the certificate with this thumbprint",
  );

  let isClosed = false;
  let lose: (error: Error) => void = () => {};
  const lost = new Promise<Error>((done) => {
    lose = done;
  });
  let closing: Promise<void> | undefined;
  let isSweeping = false;
  let { notice } = own;
  let renewalMs = performance.now() + renewalEveryMs;

  const sweep = async (): Promise<void> => {
    if (isSweeping) return;
    isSweeping = true;
    try {
      connections?.bound();
      await serving.sweep();
      if (connections?.isListening() === false) lose(new ReasonError("CONNECTION_CLOSED", "the OPC UA server no longer listens"));
      if (performance.now() < renewalMs) return;
      renewalMs = performance.now() + renewalEveryMs;
      const { thumbprint, notice: now } = await ownCertificate(pki);
      notice = now;
      if (thumbprint !== own.thumbprint)
        lose(new ReasonError("CONNECTION_CLOSED", "the collector's certificate was renewed; the OPC UA server is started again with it"));
    } catch (error) {
      ctx.log.debug({ err: messageOf(error) }, "a look at the OPC UA server failed; it is repeated");
    } finally {
      isSweeping = false;
    }
  };
  const sweeper = setInterval(() => void sweep(), SWEEP_MS);
  const fixed = [...notes, ...warningsOf(details)];
  const gone = (): ReasonError => new ReasonError("CONNECTION_CLOSED", "the OPC UA server is closed");

  return {
    // One batch after the other: values of a source must not overtake each other.
    inFlight: 1,
    get warnings() {
      return [
        ...fixed,
        ...serving.warnings(),
        ...(notice === undefined ? [] : [notice]),
        ...(connections?.warnings() ?? []),
        ...trust.refused(),
      ];
    },
    lost,
    async write(batch) {
      if (isClosed) throw gone();
      await serving.write(batch);
      return { refused: 0 };
    },
    async describe(sources) {
      if (isClosed) throw gone();
      await serving.describe(sources);
    },
    close() {
      isClosed = true;
      serving.end();
      clearInterval(sweeper);
      lose(gone());
      closing ??= close();
      return closing;
    },
  };

  function shutdown(open: OPCUAServer): Promise<void> {
    return open.shutdown(0).catch((error: unknown) => ctx.log.debug({ err: messageOf(error) }, "the OPC UA server did not close in order"));
  }

  function usersOf({ details: { users: named }, secrets }: typeof input): Promise<Users> {
    const missing = named.filter(({ username }) => secrets[userSecretName(username)] === undefined).map(({ username }) => username);
    if (missing.length > 0)
      throw new ReasonError(
        "UNKNOWN",
        `no password is known here for the users ${missing.map((name) => JSON.stringify(name)).join(", ")}`,
        {
          condition: "secret_missing",
        },
      );
    return hashUsers(named.map(({ username }) => ({ username, password: secrets[userSecretName(username)] ?? "" })));
  }

  function optionsOf(
    { name }: typeof input,
    { applicationUri, certificateFile, privateKeyFile }: OwnCertificate,
    listenOn: string,
    known: Users,
    store: ReturnType<typeof createClientTrust>,
  ): OPCUAServerOptions {
    return {
      port: details.port,
      host: listenOn,
      hostname: os.hostname(),
      resourcePath: details.path === "/" ? "" : details.path,
      securityModes: details.security_modes.map((mode) => MessageSecurityMode[mode]),
      securityPolicies: details.security_policies.map((policy) => SecurityPolicy[POLICIES[policy]]),
      allowAnonymous: details.anonymous,
      disableDiscovery: false,
      certificateFile,
      privateKeyFile,
      serverCertificateManager: store as unknown as NonNullable<OPCUAServerOptions["serverCertificateManager"]>,
      userCertificateManager: store as unknown as NonNullable<OPCUAServerOptions["userCertificateManager"]>,
      userManager: {
        isValidUserAsync(user, password, done) {
          const address = this.channel?.remoteAddress ?? "";
          known.check({ user, address }, password).then(
            (isRight) => done(null, isRight),
            () => done(null, false),
          );
        },
        getUserRoles: () => [],
      },
      serverInfo: {
        applicationUri,
        productUri: `urn:${PRODUCT}`,
        applicationName: { text: name ?? "Collector", locale: "en" },
      },
      buildInfo: { productName: PRODUCT, productUri: `urn:${PRODUCT}`, manufacturerName: PRODUCT, softwareVersion: "", buildNumber: "" },
      isAuditing: false,
      registerServerMethod: RegisterServerMethod.HIDDEN,
      allowAnonymousSubscriptionTransferOnUnsecuredChannel: false,
      timeout: LIMITS.handshake,
      defaultSecureTokenLifetime: LIMITS.securityToken,
      maxConnectionsPerEndpoint: settings.max_sessions * LIMITS.connectionsPerSession,
      transportSettings: { adjustTransportLimits },
      nodesetLoaderOptions: { yieldEveryBytes: 64 * 1024 },
      serverCapabilities: {
        maxSessions: settings.max_sessions,
        maxSubscriptionsPerSession: LIMITS.subscriptionsPerSession,
        maxSubscriptions: LIMITS.subscriptions,
        maxMonitoredItems: settings.max_monitored_items,
        maxMonitoredItemsPerSubscription: settings.max_monitored_items,
        maxMonitoredItemsQueueSize: LIMITS.dataQueue,
        maxBrowseContinuationPoints: LIMITS.browseContinuationPoints,
        minSupportedSampleRate: 0,
        maxArrayLength: 65_535,
        maxStringLength: LIMITS.message,
        maxByteStringLength: LIMITS.message,
        maxSelectClauseParameters: 100,
        maxWhereClauseParameters: 100,
        serverProfileArray: [
          "http://opcfoundation.org/UA-Profile/Server/EmbeddedUA2017",
          "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary",
        ],
        operationLimits: {
          maxNodesPerRead: LIMITS.nodesPerRead,
          maxNodesPerBrowse: LIMITS.nodesPerBrowse,
          maxNodesPerWrite: LIMITS.nodesPerRead,
          maxNodesPerMethodCall: LIMITS.nodesPerRead,
          maxNodesPerRegisterNodes: LIMITS.nodesPerRegister,
          maxNodesPerTranslateBrowsePathsToNodeIds: LIMITS.nodesPerTranslate,
          maxMonitoredItemsPerCall: LIMITS.itemsPerCall,
          maxNodesPerHistoryReadData: 1,
          maxNodesPerHistoryReadEvents: 1,
          maxNodesPerHistoryUpdateData: 0,
          maxNodesPerHistoryUpdateEvents: 0,
          maxNodesPerNodeManagement: 0,
        },
      },
    };
  }
}

/** The names of the API and those of the library. */
const POLICIES = {
  None: "None",
  Basic128Rsa15: "Basic128Rsa15",
  Basic256: "Basic256",
  Basic256Sha256: "Basic256Sha256",
  "Aes128-Sha256-RsaOaep": "Aes128_Sha256_RsaOaep",
  "Aes256-Sha256-RsaPss": "Aes256_Sha256_RsaPss",
} as const satisfies { readonly [P in OpcuaSinkDetails["security_policies"][number]]: keyof typeof SecurityPolicy };

const DEPRECATED = new Set<string>(["Basic128Rsa15", "Basic256"]);

function warningsOf({ security_modes, security_policies, anonymous, users }: OpcuaSinkDetails): string[] {
  const old = security_policies.filter((policy) => DEPRECATED.has(policy));
  return [
    ...(security_modes.includes("None") ? ["security_modes has None: whoever can reach the server can listen in and pose as it"] : []),
    ...(anonymous ? ["anonymous is on: whoever can reach the server can read all values without a user"] : []),
    ...(old.length > 0 ? [`security_policies has ${old.join(" and ")}: deprecated, and broken in practice`] : []),
    ...(!anonymous && users.length === 0 ? ["nobody can log in: there are no users, and anonymous is off"] : []),
  ];
}

async function ownCertificate(pki: Pki): Promise<OwnCertificate> {
  try {
    return await pki.own();
  } catch (error) {
    throw new ReasonError("UNKNOWN", `the collector's own certificate cannot be had: ${messageOf(error)}`, {
      cause: error,
      condition: "collector_host_trouble",
    });
  }
}

/** A password is never sent in the clear, also where messages are; nobody logs in with a certificate (OPC 10000-4, 7.42.2.5). */
function narrowTokens(server: OPCUAServer, { security_modes }: OpcuaSinkDetails): void {
  for (const endpoint of server.endpoints.flatMap((at) => at.endpointDescriptions())) {
    const tokens = (endpoint.userIdentityTokens ?? []).filter(({ tokenType }) => tokenType !== UserTokenType.Certificate);
    const isOpen = endpoint.securityMode === MessageSecurityMode.None && security_modes.includes("None");
    const encrypted = isOpen ? [SecurityPolicy.Basic256Sha256, SecurityPolicy.Aes256_Sha256_RsaPss] : [];
    endpoint.userIdentityTokens = [
      ...tokens.filter(({ tokenType }) => !isOpen || tokenType !== UserTokenType.UserName),
      ...encrypted.map(
        (securityPolicyUri, i) => new UserTokenPolicy({ policyId: `username_${i}`, tokenType: UserTokenType.UserName, securityPolicyUri }),
      ),
    ];
  }
}

/** What a browser of the address space is told; calls are refused in any case. */
function closeMethods(server: OPCUAServer): void {
  const methods = server.engine.addressSpace?.rootFolder.objects.server.getMethods() ?? [];
  for (const method of methods) Object.defineProperty(method, "_getExecutableFlag", { value: () => false });
}

type Hello = Parameters<NonNullable<OPCUAServerOptions["transportSettings"]>["adjustTransportLimits"]>[0];

/** OPC 10000-6, 7.1.2.3: 0 is no limit of the client's. */
function adjustTransportLimits({ receiveBufferSize, sendBufferSize, maxMessageSize }: Hello): Hello {
  const chunk = (asked: number): number => Math.min(Math.max(asked || LIMITS.chunk, LIMITS.minChunk), LIMITS.chunk);
  const receive = chunk(receiveBufferSize);
  const send = chunk(sendBufferSize);
  const message = Math.min(maxMessageSize || LIMITS.message, LIMITS.message);
  return {
    receiveBufferSize: receive,
    sendBufferSize: send,
    maxMessageSize: message,
    maxChunkCount: Math.ceil(LIMITS.message / Math.min(receive, send)),
  };
}

function failureOf(error: unknown, host: string, port: number): ReasonError {
  const known = toReasonError(error);
  return new ReasonError(known.reason, `the OPC UA server cannot be started on ${host}:${port}: ${known.message}`, {
    cause: error,
    ...(known.condition && { condition: known.condition }),
  });
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((done) => {
    timer = setTimeout(done, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
