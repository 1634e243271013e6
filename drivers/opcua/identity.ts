import { type createPublicKey, X509Certificate } from "node:crypto";
import {
  AnonymousIdentityToken,
  computeSignatureAsync,
  getCryptoFactory,
  type SecurityPolicy,
  UserNameIdentityToken,
  X509IdentityToken,
} from "node-opcua-client";
import { ReasonError } from "../../src/model/reason.ts";
import { NONE_POLICY_URI } from "./endpoint.ts";
import { certificateRefused } from "./failure.ts";
import type { KeyPair } from "./services.ts";

/** Who logs in. */
export type User =
  | { readonly type: "Anonymous" }
  | { readonly type: "UserNamePassword"; readonly username: string; readonly password: string }
  | { readonly type: "X509Certificate"; readonly pair: KeyPair };

export interface TokenInput {
  readonly policyId: string | null;
  /** What protects the token. */
  readonly policyUri: string;
  /** DER, without its chain; empty where the server has none. */
  readonly serverCertificate: Buffer;
  readonly serverNonce: Buffer;
}

export type Signature = Awaited<ReturnType<typeof computeSignatureAsync>>;
export interface Token {
  readonly token: AnonymousIdentityToken | UserNameIdentityToken | X509IdentityToken;
  readonly signature: Signature;
}

const asPolicy = (uri: string): SecurityPolicy => uri as SecurityPolicy;

/**
 * The user's token (OPC 10000-4, 7.40): a password is encrypted with the server's certificate by exactly the configured policy and goes in
 * the clear only where that is None; a certificate proves itself by its signature. Throws ReasonError where that is not possible.
 */
export async function makeToken(user: User, input: TokenInput): Promise<Token> {
  const { policyId, policyUri, serverCertificate, serverNonce } = input;
  switch (user.type) {
    case "Anonymous":
      return { token: new AnonymousIdentityToken({ policyId }), signature: undefined };
    case "UserNamePassword":
      return { token: passwordToken(user, input), signature: undefined };
    case "X509Certificate": {
      if (policyUri === NONE_POLICY_URI)
        throw new ReasonError(
          "UNKNOWN",
          "a user certificate proves itself by a signature: token_security_policy must be another than None",
          {
            condition: "configuration_invalid",
          },
        );
      const signature = await computeSignatureAsync(serverCertificate, serverNonce, user.pair.key, asPolicy(policyUri));
      if (!signature) throw certificateRefused("the user certificate cannot sign: the server has sent no certificate or no nonce to sign");
      return { token: new X509IdentityToken({ policyId, certificateData: user.pair.certificate }), signature };
    }
  }
}

function passwordToken(
  { username, password }: Extract<User, { type: "UserNamePassword" }>,
  { policyId, policyUri, serverCertificate, serverNonce }: TokenInput,
): UserNameIdentityToken {
  const secret = Buffer.from(password);
  if (policyUri === NONE_POLICY_URI)
    return new UserNameIdentityToken({ policyId, userName: username, password: secret, encryptionAlgorithm: null });
  const factory = getCryptoFactory(asPolicy(policyUri));
  if (!factory || serverCertificate.length === 0)
    throw certificateRefused(
      'the password cannot be encrypted: the server has sent no certificate (it is not sent in the clear unless token_security_policy is "None")',
    );
  // Length of the rest, the password, the server's last nonce (OPC 10000-4, 7.40.2.2).
  const length = Buffer.alloc(4);
  length.writeUInt32LE(secret.length + serverNonce.length);
  return new UserNameIdentityToken({
    policyId,
    userName: username,
    encryptionAlgorithm: factory.asymmetricEncryptionAlgorithm ?? null,
    password: factory.asymmetricEncrypt(Buffer.concat([length, secret, serverNonce]), publicKeyOf(serverCertificate)),
  });
}

/** Throws ReasonError for bytes that are no certificate. */
export function publicKeyOf(der: Buffer): ReturnType<typeof createPublicKey> {
  try {
    return new X509Certificate(der).publicKey;
  } catch (error) {
    throw certificateRefused(`the server's certificate cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
