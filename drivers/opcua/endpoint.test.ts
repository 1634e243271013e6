import { describe, expect, it } from "vitest";
import { SECURITY_MODES, SECURITY_POLICIES, type SecurityMode, type SecurityPolicy } from "../../src/model/details.ts";
import {
  chooseEndpoint,
  describeOffer,
  noMatch,
  type OfferedEndpoint,
  type OfferedToken,
  policyUri,
  type TokenType,
  wantedOf,
} from "./endpoint.ts";

const TRANSPORT = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";
const token = (type: OfferedToken["type"], policy: SecurityPolicy | null): OfferedToken => ({
  policyId: `${type}_${policy}`,
  type,
  policyUri: policy && policyUri(policy),
});
const offer = (
  mode: SecurityMode,
  policy: SecurityPolicy,
  tokens: readonly OfferedToken[],
  more: Partial<OfferedEndpoint> = {},
): OfferedEndpoint => ({
  endpointUrl: "opc.tcp://inside:4840",
  mode,
  policyUri: policyUri(policy),
  transportUri: TRANSPORT,
  securityLevel: 1,
  certificate: new Uint8Array(),
  applicationUri: "urn:server",
  tokens,
  ...more,
});
const wanted = (security_mode: SecurityMode, policy: SecurityPolicy, type: TokenType, token_security_policy: SecurityPolicy) =>
  wantedOf({
    type: "opcua",
    host: "h",
    port: 4840,
    endpoint_url: "opc.tcp://outside:4840",
    security_settings: { security_mode, endpoint_security_policy: policy, token_security_policy },
    user_identity: type === "UserNamePassword" ? { type, username: "u" } : { type },
  });

describe("chooseEndpoint", () => {
  it("takes exactly what is configured, of everything that could be offered", () => {
    const types = ["Anonymous", "UserNamePassword", "X509Certificate"] as const;
    const tokens = types.flatMap((type) => SECURITY_POLICIES.map((policy) => token(type, policy)));
    const offered = SECURITY_MODES.flatMap((mode) =>
      SECURITY_POLICIES.filter((policy) => (mode === "None") === (policy === "None")).map((policy) => offer(mode, policy, tokens)),
    );
    for (const mode of SECURITY_MODES)
      for (const policy of SECURITY_POLICIES)
        for (const type of types)
          for (const tokenPolicy of SECURITY_POLICIES) {
            const choice = chooseEndpoint(offered, wanted(mode, policy, type, tokenPolicy));
            if ((mode === "None") !== (policy === "None")) expect(choice).toBeUndefined();
            else {
              expect(choice?.endpoint).toMatchObject({ mode, policyUri: policyUri(policy) });
              expect(choice?.token.type).toBe(type);
              if (type !== "Anonymous") expect(choice?.tokenPolicyUri).toBe(policyUri(tokenPolicy));
            }
          }
  });

  it("never takes less security, and not more either", () => {
    const offered = [
      offer("Sign", "Basic256Sha256", [token("UserNamePassword", "None"), token("UserNamePassword", "Aes256-Sha256-RsaPss")]),
    ];
    expect(chooseEndpoint(offered, wanted("Sign", "Basic256Sha256", "UserNamePassword", "Basic256Sha256"))).toBeUndefined();
    expect(chooseEndpoint(offered, wanted("SignAndEncrypt", "Basic256Sha256", "UserNamePassword", "None"))).toBeUndefined();
    expect(chooseEndpoint(offered, wanted("None", "None", "Anonymous", "None"))).toBeUndefined();
  });

  it("takes a token without a policy for one with the endpoint's", () => {
    const offered = [offer("Sign", "Basic256Sha256", [token("UserNamePassword", null)])];
    expect(chooseEndpoint(offered, wanted("Sign", "Basic256Sha256", "UserNamePassword", "Basic256Sha256"))?.tokenPolicyUri).toBe(
      policyUri("Basic256Sha256"),
    );
    expect(chooseEndpoint(offered, wanted("Sign", "Basic256Sha256", "UserNamePassword", "None"))).toBeUndefined();
  });

  it("prefers the URL that is ours, then its path, then the level; other transports do not count", () => {
    const tokens = [token("Anonymous", null)];
    const at = (endpointUrl: string, securityLevel: number, transportUri = TRANSPORT) =>
      offer("None", "None", tokens, { endpointUrl, securityLevel, transportUri });
    const want = wanted("None", "None", "Anonymous", "None");
    const choice = (...offered: OfferedEndpoint[]) => chooseEndpoint(offered, want)?.endpoint.endpointUrl;
    expect(choice(at("opc.tcp://inside:4840/x", 9), at("opc.tcp://inside:4840/", 1))).toBe("opc.tcp://inside:4840/");
    expect(choice(at("opc.tcp://inside:4840", 9), at("opc.tcp://outside:4840", 1))).toBe("opc.tcp://outside:4840");
    expect(choice(at("https://inside", 9, "http://opcfoundation.org/UA-Profile/Transport/https-uabinary"))).toBeUndefined();
  });

  it("gives the API's five strings and lists what there is", () => {
    const want = wanted("SignAndEncrypt", "Aes128-Sha256-RsaOaep", "UserNamePassword", "Basic256Sha256");
    expect(noMatch(want)).toEqual({
      type: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY",
      endpoint_url: "opc.tcp://outside:4840",
      endpoint_security_policy_uri: "http://opcfoundation.org/UA/SecurityPolicy#Aes128_Sha256_RsaOaep",
      message_security_mode: "SignAndEncrypt",
      token_type: "UserNamePassword",
      token_security_policy_uri: "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256",
    });
    const words = describeOffer([offer("Sign", "Basic256Sha256", [token("Anonymous", null), token("UserNamePassword", null)])], want);
    expect(words).toContain("no endpoint with SignAndEncrypt with Aes128_Sha256_RsaOaep");
    expect(words).toContain("Sign/Basic256Sha256 with Anonymous, UserNamePassword (Basic256Sha256)");
    expect(describeOffer([], want)).toContain("it offers: nothing");
  });

  it.each([
    ["None", "Anonymous", "security_mode=Sign endpoint_security_policy=Basic256Sha256 i=2258"],
    [
      "None",
      "UserNamePassword",
      "security_mode=Sign endpoint_security_policy=Basic256Sha256 username=NAME token_security_policy=Basic256Sha256 i=2258",
    ],
    ["SignAndEncrypt", "Anonymous", "security_mode=Sign endpoint_security_policy=Basic256Sha256 i=2258"],
    ["Sign", "X509Certificate", "security_mode=Sign endpoint_security_policy=Basic256Sha256 i=2258"],
  ] as const)("proposes what the server takes in place of %s for %s, and never what has just failed", (mode, tokenType, command) => {
    const want = wanted(mode, mode === "None" ? "None" : "Basic256Sha256", tokenType, "None");
    const offered = [
      offer("Sign", "Basic256Sha256", [token("Anonymous", null), token("UserNamePassword", null)]),
      offer("None", "None", [token("X509Certificate", "Basic256Sha256")]),
    ];
    expect(describeOffer(offered, want)).toMatch(new RegExp(`; try: collector read opcua endpoint_url=opc.tcp://outside:4840 ${command}$`));
    expect(describeOffer([offer("None", "None", [token("Anonymous", null)])], want)).toMatch(
      /endpoint_url=opc.tcp:\/\/outside:4840 i=2258$/,
    );
    expect(describeOffer([offer("Sign", "Basic256Sha256", [])], want)).not.toContain("try:");
    const named = describeOffer(offered, { ...want, endpointUrl: "opc.tcp://reader:canary@plc:4840" });
    expect(named).toMatch(/; try: collector read opcua endpoint_url=URL /);
    expect(named).not.toContain("canary");
  });
});
