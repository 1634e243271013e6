import type { OpcuaDetails, SecurityMode, SecurityPolicy } from "./details.ts";

/** From none to all of: integrity, confidentiality (OPC 10000-4, 7.20). */
const MODE_STRENGTH: Readonly<Record<SecurityMode, number>> = { None: 0, Sign: 1, SignAndEncrypt: 2 };

/**
 * By what each profile asks for (OPC 10000-7, 6.6): first those that are deprecated for SHA-1, RSA-PKCS1 v1.5 before OAEP; of the others
 * AES-128 before AES-256, and OAEP with SHA-1 before OAEP with SHA-256.
 */
const POLICY_STRENGTH: Readonly<Record<SecurityPolicy, number>> = {
  None: 0,
  Basic128Rsa15: 1,
  Basic256: 2,
  "Aes128-Sha256-RsaOaep": 3,
  Basic256Sha256: 4,
  "Aes256-Sha256-RsaPss": 5,
};

/** In words of the API; one that is none protects nothing. */
type SecuritySettings = Readonly<Record<keyof OpcuaDetails["security_settings"], string>>;

const strengthIn = (strengths: Readonly<Record<string, number>>, word: string): number =>
  Object.hasOwn(strengths, word) ? (strengths[word] ?? 0) : 0;

/**
 * The security settings that protect less after the change than before: a mode or a policy lower in the order above. Each counts by itself:
 * a stronger channel makes up for no weaker token. In mode None the endpoint policy protects nothing, whatever it says. Pure.
 */
export function weakerSecurity(before: SecuritySettings, after: SecuritySettings): readonly (keyof SecuritySettings)[] {
  const channelPolicy = ({ security_mode: mode, endpoint_security_policy: policy }: SecuritySettings): string =>
    mode === "None" ? "None" : policy;
  const isModeWeaker = strengthIn(MODE_STRENGTH, after.security_mode) < strengthIn(MODE_STRENGTH, before.security_mode);
  const isChannelWeaker = strengthIn(POLICY_STRENGTH, channelPolicy(after)) < strengthIn(POLICY_STRENGTH, channelPolicy(before));
  const isTokenWeaker =
    strengthIn(POLICY_STRENGTH, after.token_security_policy) < strengthIn(POLICY_STRENGTH, before.token_security_policy);
  return [
    ...(isModeWeaker ? (["security_mode"] as const) : []),
    // If the mode becomes None it says the same.
    ...(isChannelWeaker && after.security_mode !== "None" ? (["endpoint_security_policy"] as const) : []),
    ...(isTokenWeaker ? (["token_security_policy"] as const) : []),
  ];
}
