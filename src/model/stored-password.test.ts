import { describe, expect, test } from "vitest";
import { type Details, SECURITY_MODES, SECURITY_POLICIES, type SecurityMode, type SecurityPolicy } from "./details.ts";
import { weakerSecurity } from "./security-strength.ts";
import { passwordBoundChanges, passwordPath } from "./stored-password.ts";

const settings = (mode: SecurityMode, endpoint: SecurityPolicy, token: SecurityPolicy) => ({
  security_mode: mode,
  endpoint_security_policy: endpoint,
  token_security_policy: token,
});

/** Every policy with those that are weaker. */
const WEAKER_POLICIES: Readonly<Record<SecurityPolicy, readonly SecurityPolicy[]>> = {
  None: [],
  Basic128Rsa15: ["None"],
  Basic256: ["None", "Basic128Rsa15"],
  "Aes128-Sha256-RsaOaep": ["None", "Basic128Rsa15", "Basic256"],
  Basic256Sha256: ["None", "Basic128Rsa15", "Basic256", "Aes128-Sha256-RsaOaep"],
  "Aes256-Sha256-RsaPss": ["None", "Basic128Rsa15", "Basic256", "Aes128-Sha256-RsaOaep", "Basic256Sha256"],
};
const WEAKER_MODES: Readonly<Record<SecurityMode, readonly SecurityMode[]>> = {
  None: [],
  Sign: ["None"],
  SignAndEncrypt: ["None", "Sign"],
};

describe("what is weaker", () => {
  test.each(SECURITY_MODES.flatMap((from) => SECURITY_MODES.map((to) => [from, to] as const)))("mode %s to %s", (from, to) => {
    const found = weakerSecurity(settings(from, "Basic256Sha256", "None"), settings(to, "Basic256Sha256", "None"));
    expect(found).toEqual(WEAKER_MODES[from].includes(to) ? ["security_mode"] : []);
  });

  test.each(SECURITY_POLICIES.flatMap((from) => SECURITY_POLICIES.map((to) => [from, to] as const)))("policy %s to %s", (from, to) => {
    const isWeaker = WEAKER_POLICIES[from].includes(to);
    expect(weakerSecurity(settings("None", "None", from), settings("None", "None", to))).toEqual(isWeaker ? ["token_security_policy"] : []);
    // In mode None the endpoint policy protects nothing.
    expect(weakerSecurity(settings("None", from, "None"), settings("None", to, "None"))).toEqual([]);
    if (from === "None" || to === "None") return;
    expect(weakerSecurity(settings("Sign", from, "None"), settings("Sign", to, "None"))).toEqual(
      isWeaker ? ["endpoint_security_policy"] : [],
    );
  });

  test("each counts by itself: what becomes stronger makes up for nothing", () => {
    const before = settings("Sign", "Basic256Sha256", "Basic256Sha256");
    expect(weakerSecurity(before, settings("SignAndEncrypt", "Aes256-Sha256-RsaPss", "None"))).toEqual(["token_security_policy"]);
    expect(weakerSecurity(before, settings("SignAndEncrypt", "Basic256", "Aes256-Sha256-RsaPss"))).toEqual(["endpoint_security_policy"]);
    expect(weakerSecurity(before, settings("None", "Aes256-Sha256-RsaPss", "Basic128Rsa15"))).toEqual([
      "security_mode",
      "token_security_policy",
    ]);
  });

  test("from no protection everything is as strong", () => {
    for (const mode of SECURITY_MODES)
      for (const policy of SECURITY_POLICIES)
        expect(weakerSecurity(settings("None", "Aes256-Sha256-RsaPss", "None"), settings(mode, policy, policy))).toEqual([]);
  });
});

const opcua: Extract<Details, { type: "opcua" }> = {
  type: "opcua",
  host: "plc",
  port: 4840,
  endpoint_url: "opc.tcp://plc:4840/",
  security_settings: settings("Sign", "Basic256Sha256", "Basic256Sha256"),
  user_identity: { type: "UserNamePassword", username: "reader" },
};
const s7plus: Extract<Details, { type: "s7plus" }> = {
  type: "s7plus",
  host: "plc",
  port: 102,
  destination_tsap: "SIMATIC-ROOT-ES",
  password: { type: "configured" },
};

test.each<[name: string, before: Details, after: Details, changes: readonly string[]]>([
  ["nothing", opcua, { ...opcua }, []],
  ["host and port", opcua, { ...opcua, host: "other", port: 1 }, ["host", "port"]],
  ["endpoint_url", opcua, { ...opcua, endpoint_url: "opc.tcp://other:4840/" }, ["endpoint_url"]],
  ["the user", opcua, { ...opcua, user_identity: { type: "UserNamePassword", username: "admin" } }, ["user_identity.username"]],
  ["weaker", opcua, { ...opcua, security_settings: settings("None", "None", "Basic256Sha256") }, ["security_settings.security_mode"]],
  ["stronger", opcua, { ...opcua, security_settings: settings("SignAndEncrypt", "Aes256-Sha256-RsaPss", "Basic256Sha256") }, []],
  ["removal", opcua, { ...opcua, host: "other", user_identity: { type: "Anonymous" } }, []],
  ["none before", { ...opcua, user_identity: { type: "Anonymous" } }, { ...opcua, host: "other" }, []],
  [
    "a certificate",
    { ...opcua, user_identity: { type: "X509Certificate" } },
    { ...opcua, user_identity: { type: "X509Certificate" }, port: 1 },
    [],
  ],
  ["s7plus: host and port", s7plus, { ...s7plus, host: "other", port: 1 }, ["host", "port"]],
  ["s7plus: another kind of connection to the same PLC", s7plus, { ...s7plus, destination_tsap: "SIMATIC-ROOT-HMI" }, []],
  ["s7plus: removal", s7plus, { ...s7plus, host: "other", password: { type: "none" } }, []],
  [
    "a type without password",
    { type: "s7", host: "a", port: 1, rack: 0, slot: 2 },
    { type: "s7", host: "b", port: 1, rack: 0, slot: 2 },
    [],
  ],
])("what the password is bound to: %s", (_, before, after, changes) => {
  expect(passwordBoundChanges(before, after)).toEqual(changes);
});

test("where the password is", () => {
  expect([passwordPath(opcua), passwordPath(s7plus)]).toEqual([["user_identity", "password"], ["password"]]);
  expect(passwordPath({ ...s7plus, password: { type: "none" } })).toBeUndefined();
});
