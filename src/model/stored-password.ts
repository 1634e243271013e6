import type { Details, OpcuaDetails, SecurityMode, SecurityPolicy } from "./details.ts";

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

type SecuritySettings = OpcuaDetails["security_settings"];

/**
 * The security settings that protect less after the change than before: a mode or a policy lower in the order above. Each counts by itself:
 * a stronger channel makes up for no weaker token. In mode None the endpoint policy protects nothing, whatever it says. Pure.
 */
export function weakerSecurity(before: SecuritySettings, after: SecuritySettings): readonly (keyof SecuritySettings)[] {
  const channelPolicy = ({ security_mode: mode, endpoint_security_policy: policy }: SecuritySettings): SecurityPolicy =>
    mode === "None" ? "None" : policy;
  const isModeWeaker = MODE_STRENGTH[after.security_mode] < MODE_STRENGTH[before.security_mode];
  const isChannelWeaker = POLICY_STRENGTH[channelPolicy(after)] < POLICY_STRENGTH[channelPolicy(before)];
  const isTokenWeaker = POLICY_STRENGTH[after.token_security_policy] < POLICY_STRENGTH[before.token_security_policy];
  return [
    ...(isModeWeaker ? (["security_mode"] as const) : []),
    // Where the mode becomes None it says the same.
    ...(isChannelWeaker && after.security_mode !== "None" ? (["endpoint_security_policy"] as const) : []),
    ...(isTokenWeaker ? (["token_security_policy"] as const) : []),
  ];
}

/** Where the details have a password that is stored, as a path in them; undefined: they have none. Pure. */
export function passwordPath(details: Details): readonly string[] | undefined {
  if (details.type === "opcua") return details.user_identity.type === "UserNamePassword" ? ["user_identity", "password"] : undefined;
  return details.type === "s7plus" && details.password.type === "configured" ? ["password"] : undefined;
}

/**
 * The fields, as paths with dots, whose change would send the stored password elsewhere, as another user or less protected: whoever makes it
 * must know the password. Empty: nothing of that changes, or one of both has no password. Pure.
 */
export function passwordBoundChanges(before: Details, after: Details): readonly string[] {
  if (!passwordPath(before) || !passwordPath(after)) return [];
  const address = (["host", "port"] as const).filter((field) => before[field] !== after[field]);
  if (before.type !== "opcua" || after.type !== "opcua") return address;
  const user = ({ user_identity: identity }: OpcuaDetails): string | undefined =>
    identity.type === "UserNamePassword" ? identity.username : undefined;
  return [
    ...address,
    ...(before.endpoint_url === after.endpoint_url ? [] : ["endpoint_url"]),
    ...(user(before) === user(after) ? [] : ["user_identity.username"]),
    ...weakerSecurity(before.security_settings, after.security_settings).map((field) => `security_settings.${field}`),
  ];
}
