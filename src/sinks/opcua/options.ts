import os from "node:os";
import { MessageSecurityMode, SecurityPolicy, UserTokenPolicy, UserTokenType } from "node-opcua-client";
import { type OPCUAServer, type OPCUAServerOptions, RegisterServerMethod } from "node-opcua-server";
import type { OwnCertificate } from "../../model/pki.ts";
import type { OpcuaSinkDetails } from "../../model/sink-details.ts";
import { type Warning, warning } from "../../model/warning.ts";
import { LIMITS } from "./limits.ts";
import type { OpcuaSinkSettings } from "./settings.ts";
import type { ClientTrust } from "./trust.ts";
import type { Users } from "./users.ts";

const PRODUCT = "collector";

export interface ServerInput {
  readonly name: string | null;
  readonly details: OpcuaSinkDetails;
  readonly settings: OpcuaSinkSettings;
  readonly own: OwnCertificate;
  /** Address to listen on. */
  readonly host: string;
  readonly users: Pick<Users, "check">;
  readonly trust: ClientTrust;
}

/** Every option of node-opcua's server that has an unsafe or unbounded default (design/runtime). */
export function optionsOf({ name, details, settings, own, host, users, trust }: ServerInput): OPCUAServerOptions {
  return {
    port: details.port,
    host,
    hostname: os.hostname(),
    resourcePath: details.path === "/" ? "" : details.path,
    securityModes: details.security_modes.map((mode) => MessageSecurityMode[mode]),
    securityPolicies: details.security_policies.map((policy) => SecurityPolicy[POLICIES[policy]]),
    allowAnonymous: details.anonymous,
    disableDiscovery: false,
    certificateFile: own.certificateFile,
    privateKeyFile: own.privateKeyFile,
    serverCertificateManager: trust as unknown as NonNullable<OPCUAServerOptions["serverCertificateManager"]>,
    userCertificateManager: trust as unknown as NonNullable<OPCUAServerOptions["userCertificateManager"]>,
    userManager: {
      isValidUserAsync(user, password, done) {
        const address = this.channel?.remoteAddress ?? "";
        users.check({ user, address }, password).then(
          (isRight) => done(null, isRight),
          () => done(null, false),
        );
      },
      getUserRoles: () => [],
    },
    serverInfo: {
      applicationUri: own.applicationUri,
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
    transportSettings: { adjustTransportLimits: (hello) => transportLimits(hello, settings.max_answer) },
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
      maxStringLength: settings.max_answer,
      maxByteStringLength: settings.max_answer,
      maxSelectClauseParameters: 100,
      maxWhereClauseParameters: 100,
      // What nobody has certified is not claimed.
      serverProfileArray: ["http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary"],
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

/** What is configured and dangerous, or of no use. */
export function warningsOf({ security_modes, security_policies, anonymous, users }: OpcuaSinkDetails): Warning[] {
  const old = security_policies.filter((policy) => DEPRECATED.has(policy));
  return [
    ...(security_modes.includes("None")
      ? [warning("no_encryption", "security_modes has None: everyone who can reach the server can listen in and pose as it")]
      : []),
    ...(anonymous
      ? [warning("anonymous_access", "anonymous is on: everyone who can reach the server can read all values without a user")]
      : []),
    ...(old.length > 0
      ? [warning("security_policy_weak", `security_policies has ${old.join(" and ")}: deprecated, and broken in practice`)]
      : []),
    ...(!anonymous && users.length === 0
      ? [warning("log_in_impossible", "log-in is impossible: there are no users, and anonymous is off")]
      : []),
  ];
}

/** A password is never sent in the clear, also where messages are; nobody logs in with a certificate (OPC 10000-4, 7.42.2.5). */
export function narrowTokens(server: OPCUAServer, { security_modes }: OpcuaSinkDetails): void {
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

/** What a browser of the address space sees; calls are refused in any case. */
export function closeMethods(server: OPCUAServer): void {
  const methods = server.engine.addressSpace?.rootFolder.objects.server.getMethods() ?? [];
  for (const method of methods) Object.defineProperty(method, "_getExecutableFlag", { value: () => false });
}

type Hello = Parameters<NonNullable<OPCUAServerOptions["transportSettings"]>["adjustTransportLimits"]>[0];

/** OPC 10000-6, 7.1.2.3: 0: the client sets no limit. */
function transportLimits({ receiveBufferSize, sendBufferSize, maxMessageSize }: Hello, maxAnswerBytes: number): Hello {
  const chunk = (asked: number): number => Math.min(Math.max(asked || LIMITS.chunk, LIMITS.minChunk), LIMITS.chunk);
  const receive = chunk(receiveBufferSize);
  const send = chunk(sendBufferSize);
  const message = Math.min(maxMessageSize || maxAnswerBytes, maxAnswerBytes);
  return {
    receiveBufferSize: receive,
    sendBufferSize: send,
    maxMessageSize: message,
    maxChunkCount: Math.ceil(maxAnswerBytes / Math.min(receive, send)),
  };
}
