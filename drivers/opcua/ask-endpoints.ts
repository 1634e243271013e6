import { UserTokenType } from "node-opcua-client";
import { endpointParts } from "../../src/model/endpoint-url.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { CallContext, Channel } from "./client.ts";
import { NONE_POLICY_URI, type OfferedEndpoint, type OfferedToken, type Wanted } from "./endpoint.ts";
import { publicKeyOf } from "./identity.ts";
import type { OpenOptions } from "./open.ts";
import { makeRequest } from "./services.ts";
import { codeOf, STATUS } from "./status-codes.ts";

const MODES = ["Invalid", "None", "Sign", "SignAndEncrypt"] as const;
const TOKENS: Readonly<Record<number, OfferedToken["type"]>> = {
  [UserTokenType.Anonymous]: "Anonymous",
  [UserTokenType.UserName]: "UserNamePassword",
  [UserTokenType.Certificate]: "X509Certificate",
};

/** What a server says that wants security of each channel (OPC 10000-4, 7.39); some hang up instead. */
const WANTS_SECURITY: ReadonlySet<number> = new Set([
  STATUS.BadSecurityChecksFailed,
  STATUS.BadSecurityModeInsufficient,
  STATUS.BadSecurityModeRejected,
  STATUS.BadSecurityPolicyRejected,
  STATUS.BadServiceUnsupported,
  STATUS.BadUserAccessDenied,
]);

/** Opens a channel; `serverCertificate`: DER of the server's. */
type Open = (mode: Wanted["mode"], policyUri: string, serverCertificate: Buffer | undefined) => Promise<Channel>;

export interface AskedEndpoints {
  /** Over which they were asked for; open. */
  readonly channel: Channel;
  readonly offered: readonly OfferedEndpoint[];
  /** With which it is secured, as it is wanted; undefined: it is not. */
  readonly shown: Buffer | undefined;
}

/**
 * The server's endpoints, over a channel without security; where the server refuses such a one, over a channel as it is wanted, secured with a
 * certificate that is trusted already. Throws what `open` throws; nothing stays open then.
 */
export async function askEndpoints(open: Open, wanted: Wanted, options: OpenOptions, ctx: DriverContext): Promise<AskedEndpoints> {
  if (options.refusesPlain && wanted.mode !== "None") {
    const asked = await askSecured(open, wanted, options, ctx).catch(() => undefined);
    if (asked) return asked;
    options.onRefusesPlain(false);
  }
  let refusal: ReasonError;
  try {
    return await askOver(await open("None", NONE_POLICY_URI, undefined), undefined, wanted, ctx);
  } catch (error) {
    if (wanted.mode === "None" || !(error instanceof ReasonError) || !wantsSecurity(error)) throw error;
    refusal = error;
  }
  ctx.log.debug({ err: refusal }, "the server refuses a channel without security");
  const asked = await askSecured(open, wanted, options, ctx);
  if (asked) {
    options.onRefusesPlain(true);
    return asked;
  }
  throw new ReasonError(
    refusal.reason,
    `${refusal.message}; ${refusal.reason.type === "OPC_UA_ERROR_RESPONSE" ? "it takes no" : "if it takes no"} channel without security, over which it would show its certificate: export that at the server, and type: sudo collector pki trust FILE`,
    { cause: refusal },
  );
}

/** Undefined: no certificate is trusted that may be the server's. Throws what the likeliest one met. */
async function askSecured(open: Open, wanted: Wanted, options: OpenOptions, ctx: DriverContext): Promise<AskedEndpoints | undefined> {
  const { details } = options.input;
  const hosts = [endpointParts(details.endpoint_url)?.host ?? details.endpoint_url, details.host];
  const trusted = (await ctx.pki?.trustedFor({ peer: details.endpoint_url, hosts })) ?? [];
  let first: unknown;
  for (const certificate of trusted.map((der) => Buffer.from(der))) {
    // All policies encrypt with RSA.
    if (publicKeyOf(certificate).asymmetricKeyType !== "rsa") continue;
    try {
      return await askOver(await open(wanted.mode, wanted.policyUri, certificate), certificate, wanted, ctx);
    } catch (error) {
      first ??= error;
      if (ctx.signal.aborted) break;
    }
  }
  if (first !== undefined) throw first;
  return undefined;
}

async function askOver(channel: Channel, shown: Buffer | undefined, { endpointUrl }: Wanted, ctx: CallContext): Promise<AskedEndpoints> {
  try {
    return { channel, offered: await offeredEndpoints(channel, endpointUrl, ctx), shown };
  } catch (error) {
    await channel.close();
    throw error;
  }
}

function wantsSecurity({ reason }: ReasonError): boolean {
  if (reason.type === "OPC_UA_ERROR_RESPONSE") return WANTS_SECURITY.has(codeOf(reason.code));
  return reason.type === "CONNECTION_CLOSED" || reason.type === "CONNECTION_RESET";
}

async function offeredEndpoints(channel: Channel, endpointUrl: string, ctx: CallContext): Promise<readonly OfferedEndpoint[]> {
  const { endpoints } = await channel.call(
    "GetEndpoints",
    makeRequest("GetEndpoints", { endpointUrl, localeIds: [], profileUris: [] }),
    ctx,
  );
  return (endpoints ?? []).slice(0, 200).map(
    (endpoint): OfferedEndpoint => ({
      endpointUrl: endpoint.endpointUrl ?? "",
      mode: MODES[endpoint.securityMode] ?? "Invalid",
      policyUri: endpoint.securityPolicyUri ?? "",
      transportUri: endpoint.transportProfileUri ?? "",
      securityLevel: endpoint.securityLevel,
      certificate: endpoint.serverCertificate ?? Buffer.alloc(0),
      applicationUri: endpoint.server.applicationUri ?? null,
      tokens: (endpoint.userIdentityTokens ?? []).map((token) => ({
        policyId: token.policyId ?? null,
        type: TOKENS[token.tokenType] ?? "IssuedToken",
        policyUri: token.securityPolicyUri ?? null,
      })),
    }),
  );
}
