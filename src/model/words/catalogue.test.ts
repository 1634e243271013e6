import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../../../test/support/any-text.ts";
import { CONDITIONS } from "../condition.ts";
import { FAULTS } from "../fault.ts";
import type { Reason, ReasonType } from "../reason.ts";
import { REASON_TYPES } from "../reason-schema.ts";
import { type Explanation, explainReason } from "./catalogue.ts";
import { explainFault } from "./fault-catalogue.ts";
import { KNOWN_STATUSES, knownStatus } from "./opcua-statuses.ts";

const EXAMPLES: { readonly [T in ReasonType]: Extract<Reason, { type: T }> } = {
  LOOKUP_ERROR: { type: "LOOKUP_ERROR" },
  NO_ROUTE_TO_HOST: { type: "NO_ROUTE_TO_HOST" },
  HOST_DOWN: { type: "HOST_DOWN" },
  NETWORK_UNREACHABLE: { type: "NETWORK_UNREACHABLE" },
  CONNECTION_REFUSED: { type: "CONNECTION_REFUSED" },
  CONNECTION_RESET: { type: "CONNECTION_RESET" },
  CONNECTION_CLOSED: { type: "CONNECTION_CLOSED" },
  TIMEOUT: { type: "TIMEOUT" },
  VENDOR_GATEWAY_ERROR: { type: "VENDOR_GATEWAY_ERROR" },
  OPC_UA_ERROR_RESPONSE: {
    type: "OPC_UA_ERROR_RESPONSE",
    code: 0x80340000,
    name: "BadNodeIdUnknown",
    description: "The node id refers to a node that does not exist.",
    reason: "no such node in ns 2",
  },
  OPC_UA_NO_MATCHING_ENDPOINT_POLICY: {
    type: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY",
    endpoint_url: "opc.tcp://10.0.0.7:4840/ua",
    endpoint_security_policy_uri: "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256",
    message_security_mode: "SignAndEncrypt",
    token_type: "UserNamePassword",
    token_security_policy_uri: "http://opcfoundation.org/UA/SecurityPolicy#None",
  },
  S7PLUS_ERROR: { type: "S7PLUS_ERROR", category: "AUTHENTICATION" },
  FINS_NETWORK_RELAY_ERROR: {
    type: "FINS_NETWORK_RELAY_ERROR",
    response_code: 0x0201,
    requested_node: 17,
    relay_network: 2,
    relay_node: 10,
  },
  UNKNOWN: { type: "UNKNOWN" },
};

/** What the package brings, and what every Debian has. */
const COMMANDS =
  /^((sudo )?collector (read|run|browse|check|probe|explain|source set|sink set|secret (set|confirm)|pki (list|renew|user))|journalctl -u collector|getent hosts|timedatectl)/;
const commandsIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");

function expectComplete({ sentence, cause, nextStep }: Explanation): void {
  for (const text of [sentence, cause, nextStep]) {
    expect(text).toMatch(/^\S.{10,}\.$/);
    expect(text).not.toMatch(/undefined|null\b(?! in)|NaN,|\[object|\.\.$/);
    expect(text.split("`").length % 2, `unpaired backtick in: ${text}`).toBe(1);
  }
  // Whoever reads it has the status or the log before them.
  expect(nextStep).not.toContain("collector status");
  for (const command of commandsIn(nextStep)) expect(command).toMatch(COMMANDS);
}

const reasons: readonly Reason[] = [...Object.values(EXAMPLES), { type: "S7PLUS_ERROR", category: "UNKNOWN" }];
const places = [
  undefined,
  {},
  { endpoint: null },
  { endpoint: "press.local:502", source: "press-1" },
  { endpoint: "[fe80::1]:502" },
] as const;

test("there is an example of every reason", () => {
  expect(Object.keys(EXAMPLES).sort()).toEqual([...REASON_TYPES].sort());
});

describe.each(reasons)("$type", (reason) => {
  test.each(places)("is explained at %j", (where) => {
    expectComplete(explainReason(reason, null, where));
  });
});

describe.each(CONDITIONS)("%s", (condition) => {
  test.each(places)("is explained at %j", (where) => {
    expectComplete(explainReason({ type: "UNKNOWN" }, condition, where));
  });
});

test.each(FAULTS)("the fault %s is explained", (fault) => {
  expectComplete(explainFault(fault));
});

test("no two entries share a sentence", () => {
  const sentences = [
    ...reasons.map((reason) => explainReason(reason).sentence),
    ...CONDITIONS.map((condition) => explainReason({ type: "UNKNOWN" }, condition).sentence),
    ...FAULTS.map((fault) => explainFault(fault).sentence),
  ];
  expect(new Set(sentences).size).toBe(sentences.length);
});

test("a condition says more than its reason and wins", () => {
  expect(explainReason({ type: "UNKNOWN" }, "secret_missing").sentence).toContain("password");
});

test("name, host and port are filled in", () => {
  const { sentence, nextStep } = explainReason({ type: "CONNECTION_REFUSED" }, null, { endpoint: "10.0.0.5:502", source: "press-1" });
  expect(sentence).toBe("press-1: 10.0.0.5:502 refused the connection.");
  expect(commandsIn(nextStep)).toEqual(["collector probe press-1"]);
  expect(commandsIn(explainReason({ type: "TIMEOUT" }, null, { endpoint: "[::1]:502" }).nextStep)).toEqual([]);
  const named = (source: string, more: object = {}) =>
    commandsIn(explainReason({ type: "TIMEOUT" }, null, { endpoint: "[::1]:502", source, ...more }).nextStep);
  expect([named("a b"), named("Füller 1"), named("a'b"), named("-x"), named("a`b")]).toEqual([
    ["collector probe 'a b'"],
    ["collector probe 'Füller 1'"],
    ["collector probe SOURCE"],
    ["collector probe SOURCE"],
    ["collector probe SOURCE"],
  ]);
  expect(named("press-1", { isWalked: true })).toEqual([]);
  const login = explainReason({ type: "S7PLUS_ERROR", category: "AUTHENTICATION" }, null, { source: "press-1" });
  expect(commandsIn(login.nextStep)).toEqual(["sudo collector secret set press-1"]);
  expect(explainReason({ type: "LOOKUP_ERROR" }, null, { endpoint: "press.local:502" }).nextStep).toContain("`getent hosts press.local`");
});

test("a client identifier that is taken and a rack without a CPU have a command that mends them", () => {
  const steps = (condition: "client_id_taken" | "module_not_found", where: object) =>
    commandsIn(explainReason({ type: "CONNECTION_CLOSED" }, condition, { source: "hall 3", ...where }).nextStep);
  expect(steps("client_id_taken", { sinkType: "mqtt", uuid: "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01" })).toEqual([
    "collector sink set 'hall 3' client_id=collector-6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01",
  ]);
  expect(steps("module_not_found", {})).toEqual(["collector source set 'hall 3' slot=1"]);
});

test("where all variables are bad, cause and next step are those of the first one's fault", () => {
  const where = { endpoint: "10.0.0.5:502", source: "press-1", fault: { variable: "seven", fault: "no_answer" } } as const;
  const { cause, nextStep } = explainReason({ type: "UNKNOWN" }, "all_variables_faulted", where);
  expect(cause).toBe(explainFault("no_answer").cause);
  expect(commandsIn(nextStep)).toEqual(["collector explain press-1 seven"]);
});

test("a bad variable leads to explain, and from there to a read of its address, with the names that a shell takes", () => {
  expect(commandsIn(explainFault("not_found", { source: "a b", variable: "speed" }).nextStep)).toEqual(["collector explain 'a b' speed"]);
  expect(commandsIn(explainFault("not_found", { source: "a", address: "holding:1[2]" }).nextStep)).toEqual([
    "collector read a 'holding:1[2]'",
  ]);
  expect(commandsIn(explainFault("not_found", { source: "a", address: '"Motor".speed' }).nextStep)).toEqual([
    "collector read a '\"Motor\".speed'",
  ]);
  expect(commandsIn(explainFault("not_found").nextStep)).toEqual([]);
});

test("of a data sink the words are about a broker, a platform or a server", () => {
  for (const [sinkType, noun] of [
    ["mqtt", "broker"],
    ["platform", "platform"],
    ["opcua", "server"],
  ] as const)
    for (const endpoint of ["h:1", null])
      for (const explanation of [
        ...reasons
          .filter(({ type }) => !/OPC_UA|S7PLUS|FINS|GATEWAY/.test(type))
          .map((reason) => explainReason(reason, null, { endpoint, sinkType, source: "s" })),
        ...(["certificate_refused", "protocol_violation", "server_refuses", "collector_host_trouble"] as const).map((condition) =>
          explainReason({ type: "UNKNOWN" }, condition, { endpoint, sinkType, source: "s" }),
        ),
      ]) {
        const all = Object.values(explanation).join(" ");
        expect(all).not.toMatch(/\bdevice\b/);
        if (endpoint === null && !/collector's machine/.test(all)) expect(all).toMatch(new RegExp(`\\b${noun}\\b`));
      }
});

test("a command of ours in the detail is the next step; one in a device's words is not", () => {
  const step = (condition: "certificate_refused" | "server_refuses", detail: string) =>
    explainReason({ type: "UNKNOWN" }, condition, { source: "press-1", detail }).nextStep;
  const trust = "the server shows a certificate that is not trusted; type `sudo collector pki trust 0123AB`";
  expect(step("certificate_refused", trust)).toBe("If the certificate is the right one, type `sudo collector pki trust 0123AB`.");
  expect(step("server_refuses", trust)).not.toContain("pki");
  expect(step("certificate_refused", "`sudo collector pki trust $(reboot)`")).not.toContain("reboot");
});

test.each([
  [EXAMPLES.OPC_UA_ERROR_RESPONSE, ["0x80340000", "BadNodeIdUnknown", "does not exist", "no such node in ns 2"]],
  [
    EXAMPLES.OPC_UA_NO_MATCHING_ENDPOINT_POLICY,
    ["opc.tcp://10.0.0.7:4840/ua", "#Basic256Sha256", "SignAndEncrypt", "UserNamePassword", "#None"],
  ],
  [EXAMPLES.S7PLUS_ERROR, ["AUTHENTICATION"]],
  [EXAMPLES.FINS_NETWORK_RELAY_ERROR, ["0x0201", "network 2", "node 10", "node 17"]],
])("the sentence holds the payload of $type", (reason, parts) => {
  const { sentence } = explainReason(reason);
  for (const part of parts) expect(sentence).toContain(part);
});

test.each(KNOWN_STATUSES)("the OPC UA status %s is explained", (name) => {
  const reason: Reason = { type: "OPC_UA_ERROR_RESPONSE", code: 0x80000000, name, description: null, reason: null };
  const explanation = explainReason(reason);
  expectComplete(explanation);
  expect(explanation.cause.slice(1)).toBe(`${knownStatus(name)?.cause.slice(1)}.`);
  expect(explanation.cause).toMatch(/^[A-Z]/);
});

test("a name of no status has no explanation of its own, whatever it is", () => {
  for (const name of ["BadNodeIdUnknown", "constructor", "__proto__", ""]) expect(knownStatus(name)).toBeUndefined();
  expect(knownStatus(null)).toBeUndefined();
});

test("the causes that are known better are named", () => {
  const refused: Reason = { type: "OPC_UA_ERROR_RESPONSE", code: 0x801f0000, name: "BadUserAccessDenied", description: null, reason: null };
  expect(explainReason(refused).cause).toContain("password");
  expect(explainReason({ ...refused, code: 0x801a0000, name: "BadCertificateUntrusted" }).cause).toContain("certificate");
  expect(explainReason({ ...refused, code: 0x80560000, name: "BadTooManySessions" }).cause).toContain("sessions");
  expect(explainReason({ ...refused, name: null }).sentence).toContain("0x801F0000");
  expect(explainReason({ ...EXAMPLES.FINS_NETWORK_RELAY_ERROR, response_code: 0x0501 }).cause).toContain("routing tables");
});

test("a command never holds a host that a shell would not take as it is", () => {
  const hostile = fc.oneof(anyText(), fc.constantFrom("$(reboot)", "a;reboot", "-oProxy", "a`id`", "a b", "a\n|sh", "'", "&"));
  fc.assert(
    fc.property(hostile, fc.constantFrom(...reasons.map((r) => r.type)), (host, type) => {
      const reason = { ...EXAMPLES[type], ...(type === "OPC_UA_NO_MATCHING_ENDPOINT_POLICY" && { endpoint_url: host }) } as Reason;
      const { nextStep } = explainReason(reason, null, { endpoint: `${host}:502` });
      for (const command of commandsIn(nextStep)) expect(command).toMatch(/^[\w .:/@%[\]=-]+$/);
      expect(nextStep).not.toMatch(/ -[^-cvtsnu]/);
    }),
  );
});

test("foreign texts are one short line", () => {
  const { sentence } = explainReason({ ...EXAMPLES.OPC_UA_ERROR_RESPONSE, reason: `a\nb\u001b[31m\u2028${"x".repeat(100_000)}` }, null, {
    source: "press\r\n1",
  });
  expect(sentence).toMatch(/^press 1: .*a b \[31m x/);
  expect(sentence).not.toMatch(/[\p{Cc}\u2028]/u);
  expect(sentence.length).toBeLessThan(600);
});
