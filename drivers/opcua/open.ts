import { readFile } from "node:fs/promises";
import type { OpcuaDetails } from "../../src/model/details.ts";
import { endpointParts } from "../../src/model/endpoint-url.ts";
import { messageOf } from "../../src/model/failure.ts";
import type { CertificateLife, Pki } from "../../src/model/pki.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import { knownStatus } from "../../src/model/words/opcua-statuses.ts";
import type { ConnectInput, DriverContext, Endpoint } from "../driver.ts";
import { askEndpoints } from "./ask-endpoints.ts";
import { openChannel } from "./client.ts";
import { type Creation, createSession, type OpenedSession, type Own } from "./create-session.ts";
import {
  type Choice,
  chooseEndpoint,
  describeOffer,
  listOffer,
  NONE_POLICY_URI,
  needsCertificate,
  noMatch,
  type Wanted,
  wantedOf,
} from "./endpoint.ts";
import { certificateRefused } from "./failure.ts";
import type { User } from "./identity.ts";
import { keyPair, splitChain } from "./services.ts";
import type { OpcuaSettings } from "./settings.ts";

export type OpcuaInput = ConnectInput<OpcuaDetails, OpcuaSettings>;

export interface OpenOptions {
  readonly input: OpcuaInput;
  readonly endpoint: Endpoint;
  readonly maxAnswerBytes: number;
  onTooLarge(): void;
  /** True: the server has refused a channel without security before. */
  readonly refusesPlain: boolean;
  onRefusesPlain(refuses: boolean): void;
  /** The server may hold a session that could not be ended. */
  onLost(): void;
}

/**
 * From nothing to an activated session: GetEndpoints without security, the choice of the endpoint, trust, the secure channel, CreateSession,
 * ActivateSession. Throws ReasonError or FaultError; nothing stays open then but, for seconds, what `createSession` waits to end.
 */
export async function openSession(options: OpenOptions, ctx: DriverContext): Promise<OpenedSession> {
  const { details, settings, secrets } = options.input;
  const wanted = wantedOf(details);
  const own = await ownCertificate(ctx.pki, wanted);
  const user = await userOf(details, settings, secrets, ctx.pki);
  const open = (mode: Wanted["mode"], policyUri: string, serverCertificate: Buffer | undefined) =>
    openChannel(
      {
        endpoint: options.endpoint,
        endpointUrl: wanted.endpointUrl,
        mode,
        policyUri,
        serverCertificate,
        own: mode === "None" ? undefined : own?.pair,
        maxAnswerBytes: options.maxAnswerBytes,
        onTooLarge: options.onTooLarge,
        secret: user.type === "UserNamePassword" && wanted.tokenPolicyUri === NONE_POLICY_URI ? Buffer.from(user.password) : undefined,
      },
      ctx,
    );

  const { channel: asked, offered, shown } = await askEndpoints(open, wanted, options, ctx);
  let channel = asked;
  let creation: Creation;
  try {
    const choice = chooseEndpoint(offered, wanted);
    if (!choice) throw new ReasonError(noMatch(wanted), describeOffer(offered, wanted));
    ctx.log.debug({ offered: listOffer(offered) }, "the server's endpoints");
    const chain = splitChain(choice.endpoint.certificate);
    const trusted = needsCertificate(wanted, choice) ? await trust(chain, choice, options.input, ctx) : NO_CERTIFICATE;
    if (shown && !chain[0]?.equals(shown)) throw certificateRefused("the server's endpoint has another certificate than its channel");
    if (wanted.mode !== "None" && !shown) {
      await channel.close();
      channel = await open(wanted.mode, wanted.policyUri, chain[0]);
    }
    creation = { wanted, choice, chain, own, user, settings, ...trusted, onLost: options.onLost };
  } catch (error) {
    await channel.close();
    throw error;
  }
  ctx.loggingIn?.();
  return createSession(channel, creation, ctx);
}

/** Without security a collector that cannot keep certificates does without. */
async function ownCertificate(pki: Pki | undefined, wanted: Wanted): Promise<Own | undefined> {
  try {
    if (!pki) throw new Error("the collector has no state folder to keep certificates in (state_dir)");
    const certificate = await pki.own();
    return { certificate, pair: keyPair(certificate.certificate, await readFile(certificate.privateKeyFile, "utf8")) };
  } catch (error) {
    if (wanted.mode === "None") return undefined;
    throw new ReasonError("UNKNOWN", `security_mode ${wanted.mode} needs the collector's own certificate: ${messageOf(error)}`, {
      cause: error,
      condition: "configuration_invalid",
    });
  }
}

async function userOf(
  { user_identity: identity }: OpcuaDetails,
  settings: OpcuaSettings,
  secrets: Readonly<Record<string, string>>,
  pki: Pki | undefined,
): Promise<User> {
  if (identity.type === "Anonymous") return identity;
  const missing = (words: string, cause?: unknown) =>
    new ReasonError("UNKNOWN", words, { condition: "secret_missing", ...(cause !== undefined && { cause }) });
  if (identity.type === "UserNamePassword") {
    const { password } = secrets;
    if (password === undefined) throw missing(`the password of user ${identity.username} is not here: sudo collector secret set SOURCE`);
    return { ...identity, password };
  }
  const name = settings.user_certificate;
  if (!pki) throw missing("the user certificate needs a state folder to lie in (state_dir)");
  try {
    const files = await pki.user(name);
    return { type: "X509Certificate", pair: keyPair(files.certificate, await readFile(files.privateKeyFile, "utf8")) };
  } catch (error) {
    throw missing(`the user certificate ${name} is not here: ${messageOf(error)}`, error);
  }
}

/** The server's certificate as status tells of it; `life` undefined: the security needs none. */
interface Trusted {
  readonly warnings: readonly Warning[];
  readonly life: CertificateLife | undefined;
}

const NO_CERTIFICATE: Trusted = { warnings: [], life: undefined };

/** Nothing secret goes to a server whose certificate is not trusted. */
async function trust(
  chain: readonly Buffer[],
  { endpoint }: Choice,
  { details, settings }: OpcuaInput,
  ctx: DriverContext,
): Promise<Trusted> {
  if (chain.length === 0) throw certificateRefused("the server has no certificate, and the configured security needs one");
  if (!ctx.pki)
    throw new ReasonError(
      "UNKNOWN",
      "whether the server is trusted cannot be known: the collector has no state folder to keep certificates in (state_dir)",
      {
        condition: "configuration_invalid",
      },
    );
  const host = endpointParts(details.endpoint_url)?.host ?? details.endpoint_url;
  const hosts = [host, details.host];
  const verdict = await ctx.pki.judge(chain, { of: "server", peer: details.endpoint_url, trust: settings.trust, hosts });
  if (!verdict.trusted) throw certificateRefused(verdict.words);
  if (verdict.firstUse) ctx.log.info({ thumbprint: verdict.thumbprint }, "trusted the server's certificate on first use");
  if (
    settings.application_uri_check &&
    endpoint.applicationUri !== null &&
    endpoint.applicationUri !== "" &&
    !verdict.uris.includes(endpoint.applicationUri)
  )
    throw certificateRefused(
      `the server calls itself ${JSON.stringify(endpoint.applicationUri)}, its certificate ${JSON.stringify(verdict.uris.join(", "))}: give the server a certificate of its own, or set application_uri_check: false where the server is known to be so`,
    );
  const unnamed = warning(
    "certificate_unnamed",
    `the server's certificate ${host === details.host ? `does not name ${host}` : `names neither ${host} nor ${details.host}`}; it is trusted by its thumbprint ${verdict.thumbprint}`,
  );
  return { warnings: verdict.hosts.length > 0 ? [] : [unnamed], life: verdict.life };
}

/** Our certificate, for the words of a refusal that is about it; empty for any other. */
export async function ownWords(pki: Pki | undefined, status: string | null): Promise<string> {
  if (!pki || !knownStatus(status)?.isAboutOwnCertificate) return "";
  try {
    const { thumbprint, applicationUri } = await pki.own();
    return `the collector's certificate has the thumbprint ${thumbprint} and names ${applicationUri}`;
  } catch {
    return "";
  }
}
