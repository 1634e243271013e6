import type { OpcuaDetails, SecurityPolicy } from "../../src/model/details.ts";
import { endpointParts } from "../../src/model/endpoint-url.ts";
import { type Warning, warning } from "../../src/model/warning.ts";

/** Policies that OPC 10000-7 has withdrawn: SHA-1 signatures, or keys below 2048 bits. */
const DEPRECATED: readonly SecurityPolicy[] = ["Basic128Rsa15", "Basic256"];

/** What the configuration itself makes a warning of. Pure. */
export function warningsOf({ endpoint_url, host, port, security_settings, user_identity }: OpcuaDetails): readonly Warning[] {
  const { security_mode, endpoint_security_policy, token_security_policy } = security_settings;
  const inUse = [endpoint_security_policy, ...(user_identity.type === "Anonymous" ? [] : [token_security_policy])];
  const parts = endpointParts(endpoint_url);
  const said = parts ? `${parts.host}:${parts.port}` : endpoint_url;
  return [
    ...(said.toLowerCase() === `${host}:${port}`.toLowerCase()
      ? []
      : [warning("endpoint_differs", `the collector connects to ${host}:${port} and tells the server ${endpoint_url}`)]),
    ...(security_mode === "None"
      ? [warning("no_encryption", 'security_mode is "None": anyone on the network can read along and change what is read')]
      : []),
    ...(user_identity.type === "UserNamePassword" && token_security_policy === "None" && security_mode !== "SignAndEncrypt"
      ? [warning("password_in_clear", 'token_security_policy is "None": the password goes over the network in the clear')]
      : []),
    ...DEPRECATED.filter((policy) => inUse.includes(policy)).map((policy) =>
      warning(
        "security_policy_weak",
        `the security policy ${policy} is withdrawn and weak: Basic256Sha256 or a newer one is better`,
        policy,
      ),
    ),
  ];
}
