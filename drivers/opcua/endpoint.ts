import { shellHost } from "../../src/base/shell-word.ts";
import { type OpcuaDetails, SECURITY_POLICIES, type SecurityMode, type SecurityPolicy } from "../../src/model/details.ts";
import { endpointParts } from "../../src/model/endpoint-url.ts";
import type { Reason } from "../../src/model/reason.ts";
import { quote } from "../lib/text.ts";

export type TokenType = OpcuaDetails["user_identity"]["type"];

/** What a server offers, of its EndpointDescription (OPC 10000-4, 7.14); null policies and modes that we do not know stay words. */
export interface OfferedEndpoint {
  readonly endpointUrl: string;
  readonly mode: SecurityMode | "Invalid";
  readonly policyUri: string;
  readonly transportUri: string;
  readonly securityLevel: number;
  /** DER, perhaps with its chain. */
  readonly certificate: Uint8Array;
  readonly applicationUri: string | null;
  readonly tokens: readonly OfferedToken[];
}

export interface OfferedToken {
  readonly policyId: string | null;
  readonly type: TokenType | "IssuedToken";
  /** Null or empty: that of the endpoint (OPC 10000-4, 7.42). */
  readonly policyUri: string | null;
}

/** What is wanted: the configuration, and nothing weaker. */
export interface Wanted {
  readonly endpointUrl: string;
  readonly mode: SecurityMode;
  readonly policyUri: string;
  readonly tokenType: TokenType;
  readonly tokenPolicyUri: string;
}

export interface Choice {
  readonly endpoint: OfferedEndpoint;
  readonly token: OfferedToken;
  /** What protects the token in the end. */
  readonly tokenPolicyUri: string;
}

const POLICY_BASE = "http://opcfoundation.org/UA/SecurityPolicy#";
/** No security (OPC 10000-7, 6.6.161). */
export const NONE_POLICY_URI = `${POLICY_BASE}None`;
/** OPC UA TCP with UA Secure Conversation and binary encoding (OPC 10000-7, 6.6.165); empty in some old servers. */
const TRANSPORT = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";
const MAX_LISTED = 20;

/** `Aes128-Sha256-RsaOaep` in the API, `…#Aes128_Sha256_RsaOaep` in OPC UA. */
export const policyUri = (policy: SecurityPolicy): string => `${POLICY_BASE}${policy.replaceAll("-", "_")}`;
const shortPolicy = (uri: string): string => (uri.startsWith(POLICY_BASE) ? uri.slice(POLICY_BASE.length) : uri);

export function wantedOf({ endpoint_url, security_settings, user_identity }: OpcuaDetails): Wanted {
  return {
    endpointUrl: endpoint_url,
    mode: security_settings.security_mode,
    policyUri: policyUri(security_settings.endpoint_security_policy),
    tokenType: user_identity.type,
    tokenPolicyUri: policyUri(security_settings.token_security_policy),
  };
}

/**
 * The endpoint with exactly the mode, policy and token that are configured; an anonymous token needs no policy. Of several the one whose URL
 * is ours, then the one of the highest level. Host names in the URLs do not matter: servers behind NAT announce others. Pure.
 */
export function chooseEndpoint(offered: readonly OfferedEndpoint[], wanted: Wanted): Choice | undefined {
  const choices = offered
    .filter((endpoint) => isOurTransport(endpoint) && endpoint.mode === wanted.mode && endpoint.policyUri === wanted.policyUri)
    .flatMap((endpoint): Choice[] =>
      endpoint.tokens
        .map((token) => ({ endpoint, token, tokenPolicyUri: token.policyUri || endpoint.policyUri }))
        .filter(
          ({ token, tokenPolicyUri }) =>
            token.type === wanted.tokenType && (token.type === "Anonymous" || tokenPolicyUri === wanted.tokenPolicyUri),
        ),
    );
  return choices.sort((a, b) => rank(b, wanted) - rank(a, wanted))[0];
}

const isOurTransport = ({ transportUri }: OfferedEndpoint): boolean => transportUri === "" || transportUri === TRANSPORT;

const rank = ({ endpoint }: Choice, wanted: Wanted): number =>
  (endpoint.endpointUrl === wanted.endpointUrl ? 1000 : pathOf(endpoint.endpointUrl) === pathOf(wanted.endpointUrl) ? 500 : 0) +
  endpoint.securityLevel;

const pathOf = (url: string): string => (endpointParts(url)?.path ?? url).replace(/\/$/, "");

/** True: anything goes to the server that its certificate protects: the channel, or a token under a policy of its own. Pure. */
export const needsCertificate = ({ mode }: Wanted, { token, tokenPolicyUri }: Choice): boolean =>
  mode !== "None" || (token.type !== "Anonymous" && tokenPolicyUri !== NONE_POLICY_URI);

/** The API's reason when nothing fits (API-V2, 2.3): policies as full URIs, mode and token in the API's own words. */
export const noMatch = (wanted: Wanted): Reason => ({
  type: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY",
  endpoint_url: wanted.endpointUrl,
  endpoint_security_policy_uri: wanted.policyUri,
  message_security_mode: wanted.mode,
  token_type: wanted.tokenType,
  token_security_policy_uri: wanted.tokenPolicyUri,
});

/** For the person who has to choose: what is missing, and all that the server offers. */
export function describeOffer(offered: readonly OfferedEndpoint[], wanted: Wanted): string {
  const modes = offered.filter(
    (endpoint) => isOurTransport(endpoint) && endpoint.mode === wanted.mode && endpoint.policyUri === wanted.policyUri,
  );
  const asked = `${wanted.mode} with ${shortPolicy(wanted.policyUri)}`;
  const missing =
    modes.length === 0
      ? `the server offers no endpoint with ${asked}`
      : `the server's endpoint with ${asked} takes no ${wanted.tokenType}${wanted.tokenType === "Anonymous" ? "" : ` with token policy ${shortPolicy(wanted.tokenPolicyUri)}`}`;
  const hint = wanted.mode === "None" && wanted.policyUri !== NONE_POLICY_URI ? " (mode None goes with policy None only)" : "";
  const fitting = closestCommand(offered, wanted);
  return `${missing}${hint}; it offers: ${listOffer(offered)}${fitting === undefined ? "" : `; try: ${fitting}`}`;
}

/** Reads with what the server offers and the API can say, the nearest to what is wanted; undefined: there is none. */
function closestCommand(offered: readonly OfferedEndpoint[], wanted: Wanted): string | undefined {
  const choices = offered.filter(isOurTransport).flatMap((endpoint) =>
    endpoint.tokens.flatMap((token) => {
      const { mode, policyUri: uri, securityLevel } = endpoint;
      const [policy, tokenPolicy] = [policyOf(uri), policyOf(token.policyUri || uri)];
      const isUser = token.type === "UserNamePassword";
      if (mode === "Invalid" || policy === undefined || tokenPolicy === undefined || !(isUser || token.type === "Anonymous")) return [];
      const nearness =
        (token.type === wanted.tokenType ? 400 : 0) + (mode === wanted.mode ? 200 : 0) + (uri === wanted.policyUri ? 100 : 0);
      const words = [
        ...(mode === "None" ? [] : [`security_mode=${mode}`, `endpoint_security_policy=${policy}`]),
        ...(isUser ? ["username=NAME", `token_security_policy=${tokenPolicy}`] : []),
      ];
      return [{ words, nearness: nearness + Math.min(securityLevel, 99) }];
    }),
  );
  const [closest] = choices.sort((a, b) => b.nearness - a.nearness);
  return closest && ["collector read opcua", `endpoint_url=${shellHost(wanted.endpointUrl, "URL")}`, ...closest.words, "i=2258"].join(" ");
}

const policyOf = (uri: string): SecurityPolicy | undefined => SECURITY_POLICIES.find((policy) => policyUri(policy) === uri);

export function listOffer(offered: readonly OfferedEndpoint[]): string {
  if (offered.length === 0) return "nothing";
  const lines = new Set(
    offered.map(({ mode, policyUri: uri, transportUri, tokens }) => {
      const words = tokens.map((token) =>
        token.type === "Anonymous" ? token.type : `${token.type} (${shortPolicy(token.policyUri || uri)})`,
      );
      const other = transportUri === "" || transportUri === TRANSPORT ? "" : " over another transport";
      return `${mode}/${shortPolicy(uri)}${other} with ${words.length === 0 ? "no token" : [...new Set(words)].join(", ")}`.slice(0, 300);
    }),
  );
  const shown = [...lines].slice(0, MAX_LISTED).map((line) => quote(line, 300).slice(1, -1));
  return `${shown.join("; ")}${lines.size > MAX_LISTED ? "; …" : ""}`;
}
