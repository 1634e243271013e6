import { expect, it } from "vitest";
import type { OpcuaDetails } from "../../src/model/details.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { warningsOf as warned } from "./warnings.ts";

const warningsOf = (details: OpcuaDetails) => textsOf(warned(details));

const secure: OpcuaDetails = {
  type: "opcua",
  host: "10.0.0.7",
  port: 4840,
  endpoint_url: "opc.tcp://10.0.0.7:4840/path",
  security_settings: {
    security_mode: "SignAndEncrypt",
    endpoint_security_policy: "Basic256Sha256",
    token_security_policy: "Basic256Sha256",
  },
  user_identity: { type: "UserNamePassword", username: "u" },
};

it("has nothing to say of what is in order", () => {
  expect(warningsOf(secure)).toEqual([]);
  expect(warningsOf({ ...secure, host: "fd00::7", endpoint_url: "opc.tcp://[FD00::7]" })).toEqual([]);
});

it("names another host, no security, a password in the clear and withdrawn policies", () => {
  expect(warningsOf({ ...secure, host: "10.0.0.8" })).toEqual([
    "the collector connects to 10.0.0.8:4840 and tells the server opc.tcp://10.0.0.7:4840/path",
  ]);
  const settings = (change: Partial<OpcuaDetails["security_settings"]>) =>
    warningsOf({ ...secure, security_settings: { ...secure.security_settings, ...change } });
  expect(settings({ security_mode: "None", endpoint_security_policy: "None" })).toEqual([
    expect.stringContaining('security_mode is "None"'),
  ]);
  expect(settings({ security_mode: "Sign", token_security_policy: "None" })).toEqual([expect.stringContaining("in the clear")]);
  expect(settings({ token_security_policy: "None" })).toEqual([]);
  expect(settings({ endpoint_security_policy: "Basic256", token_security_policy: "Basic128Rsa15" })).toEqual([
    expect.stringContaining("Basic128Rsa15 is withdrawn"),
    expect.stringContaining("Basic256 is withdrawn"),
  ]);
});
