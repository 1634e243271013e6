import fc from "fast-check";
import { describe, expect, test } from "vitest";
import modbus from "../../../drivers/modbus_tcp/driver.ts";
import opcua from "../../../drivers/opcua/driver.ts";
import s7plus from "../../../drivers/s7plus/driver.ts";
import { UsageError } from "../io.ts";
import { parseReadInput, parseSourceInput, splitType } from "./read-input.ts";

const parse = (...words: string[]) => parseReadInput(modbus, words, undefined);
const mistake = (...words: string[]): string => {
  try {
    parse(...words);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return (error as UsageError).message;
  }
  throw new Error("no UsageError");
};

test("what follows the last colon is a type only if it is one", () => {
  expect(splitType("holding:0:uint16")).toEqual({ address: "holding:0", type: { scalar: "uint16" } });
  expect(splitType("holding:0")).toEqual({ address: "holding:0", type: undefined });
  expect(splitType("ns=2;s=a:b:STRING(20)")).toEqual({ address: "ns=2;s=a:b", type: { scalar: "string", maxBytes: 20 } });
  expect(splitType("/Objects/2:Plant/2:UInt16")).toEqual({ address: "/Objects/2:Plant/2:UInt16", type: undefined });
  expect(splitType("/Objects/2:Plant/2:UInt16:float32")).toEqual({ address: "/Objects/2:Plant/2:UInt16", type: { scalar: "float32" } });
  expect(splitType(":uint16")).toEqual({ address: ":uint16", type: undefined });
});

describe("key=value", () => {
  test("goes to details, settings or time-outs, each as its schema wants it", () => {
    const input = parse(
      "host=10.0.0.5",
      "port=1502",
      "ephemeral_connections=false",
      "unit=3",
      "order=CDAB",
      "connect_timeout=250ms",
      "holding:0:uint16",
    );
    expect(input.details).toEqual({ type: "modbus_tcp", host: "10.0.0.5", port: 1502, ephemeral_connections: false });
    expect(input.settings).toMatchObject({ unit: 3, order: "CDAB" });
    expect(input.timeouts).toEqual({ nameMs: 5000, connectMs: 250, answerMs: 3000 });
    expect(input.points).toEqual([{ text: "holding:0", address: expect.anything(), type: { scalar: "uint16" } }]);
  });

  test("a port that the API asks for is the usual one where none is given, which is said", () => {
    const unsaid = parseReadInput(s7plus, ["host=plc", '"Motor_DB".speed', "8A0E0001.11"], undefined);
    expect(unsaid.details).toMatchObject({ host: "plc", port: 102, destination_tsap: "SIMATIC-ROOT-ES", password: { type: "none" } });
    expect(unsaid.notes).toEqual(["no port is given; port 102 is the usual one of s7plus"]);
    expect(unsaid.points.map(({ text }) => text)).toEqual(['"Motor_DB".speed', "8A0E0001.11"]);
    const said = parseSourceInput(s7plus, ["host=plc", "port=1102"]);
    expect([said.details, said.notes]).toEqual([expect.objectContaining({ port: 1102 }), []]);
    // If the API has a default of its own, nothing is filled in.
    expect(parse("host=10.0.0.5", "holding:0").notes).toEqual([]);
  });

  test("a host of digits stays text", () => {
    expect(parse("host=10", "holding:0").details).toMatchObject({ host: "10", port: 502 });
  });

  test("every mistake is named with what would be right", () => {
    expect(mistake("holding:0")).toMatch(/^host: is required\nknown keys: host, port, ephemeral_connections, unit, order/);
    expect(mistake("host=a", "prot=1", "holding:0")).toMatch(
      /not an address of modbus_tcp, and prot is not a key of it; did you mean port\?; known keys: host/,
    );
    expect(mistake("host=a", "port=x", "holding:0")).toMatch(/^port: "x" must be a number/);
    expect(mistake("host=a", "port=70000", "unit=300", "holding:0")).toMatch(/^port: .*65535[\s\S]*\nunit: .*255/);
    expect(mistake("host=a", "ephemeral_connections=yes", "holding:0")).toMatch(/must be true or false/);
    expect(mistake("host=a", "host=b", "holding:0")).toMatch(/^host: is given twice/);
    expect(mistake("host=a", "connect_timeout=soon", "holding:0")).toMatch(/^connect_timeout: expected a duration/);
    expect(mistake("host=a", "order=BDCA", "holding:0")).toMatch(/^order: expected ABCD, BADC, CDAB or DCBA\n/);
    expect(mistake("host=a")).toMatch(/no address is given/);
    expect(mistake("host=a", "holding:x", "coil:y", "holding:1")).toMatch(/holding:x[\s\S]*\n[\s\S]*coil:y/);
  });
});

test("--type is the type of addresses that name none", () => {
  const input = parseReadInput(modbus, ["host=a", "holding:0", "holding:2:int16"], { scalar: "float32" });
  expect(input.points.map(({ type }) => type.scalar)).toEqual(["float32", "int16"]);
});

describe("opcua", () => {
  const typed = (...words: string[]) => parseReadInput(opcua, words, undefined);
  const URL = "endpoint_url=opc.tcp://10.0.0.7/ua";

  test("host and port come from the URL, None and Anonymous where nothing is given", () => {
    const { details, passwordOf, points } = typed(URL, "ns=2;s=a", "i=85", "nsu=http://a/b;s=x=y:float32", "/Objects/2:A");
    expect(details).toEqual({
      type: "opcua",
      host: "10.0.0.7",
      port: 4840,
      endpoint_url: "opc.tcp://10.0.0.7/ua",
      security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" },
      user_identity: { type: "Anonymous" },
    });
    expect(passwordOf).toBeUndefined();
    expect(points.map(({ text, type }) => [text, type.scalar])).toEqual([
      ["ns=2;s=a", "auto"],
      ["i=85", "auto"],
      ["nsu=http://a/b;s=x=y", "float32"],
      ["/Objects/2:A", "auto"],
    ]);
    expect(typed("endpoint_url=opc.tcp://[fd00::7]:48010", "host=10.0.0.9", "i=1").details).toMatchObject({
      host: "10.0.0.9",
      port: 48010,
    });
  });

  test("a user's password is asked for, and protected as the channel is or by a policy of today", () => {
    const security = (...words: string[]) => (typed(URL, "i=85", ...words).details as Record<string, unknown>)["security_settings"];
    const { details, passwordOf, secrets } = typed(URL, "username=reader", "i=85");
    expect([passwordOf, secrets]).toEqual(["reader", {}]);
    expect(details).toMatchObject({ user_identity: { type: "UserNamePassword", username: "reader" } });
    expect(security("username=reader")).toMatchObject({ token_security_policy: "Basic256Sha256" });
    const channel = ["security_settings.security_mode=Sign", "security_settings.endpoint_security_policy=Aes256-Sha256-RsaPss"];
    expect(security("username=reader", ...channel)).toMatchObject({ token_security_policy: "Aes256-Sha256-RsaPss" });
    expect(security("username=reader", "security_settings.token_security_policy=None")).toMatchObject({ token_security_policy: "None" });
  });

  test("a user certificate is named, by its name in pki/users", () => {
    const input = typed(URL, "user_identity.type=X509Certificate", "user_certificate=anna", "i=85");
    expect(input).toMatchObject({
      details: { user_identity: { type: "X509Certificate" } },
      settings: { user_certificate: "anna" },
      passwordOf: undefined,
    });
  });

  test("an inner key may leave out what comes before its dot", () => {
    const short = typed(URL, "security_mode=Sign", "endpoint_security_policy=Basic256Sha256", "i=85");
    const long = ["security_settings.security_mode=Sign", "security_settings.endpoint_security_policy=Basic256Sha256"];
    expect(short.details).toEqual(typed(URL, ...long, "i=85").details);
    expect(() => typed(URL, "password=x", "i=85")).toThrow(/does not belong on a command line/);
  });

  test("distinguishes a bad node id from a bad key", () => {
    expect(() => typed(URL, "ns=2;x=1")).toThrow(/"ns=2;x=1" is not an address: expected a node id[\s\S]*and ns is not a key of opcua/);
    expect(() => typed(URL, "endpoint_ulr=x", "i=85")).toThrow(/did you mean endpoint_url\?/);
    expect(() => typed(URL, "user_identity.password=x", "i=85")).toThrow(/does not belong on a command line/);
    expect(() => typed(URL, "security_settings.security_mode=Sign", "i=85")).toThrow(
      /requires an endpoint_security_policy other than None/,
    );
    // Host and port come from the URL: nobody is to type them instead.
    expect(() => typed("i=85")).toThrow(/^endpoint_url: is required\nknown keys/);
    expect(() => typed("endpoint_url=http://h", "port=x", "i=85")).toThrow(/^port: "x" must be a number\nendpoint_url: expected a URL/);
  });
});

test("no words do anything but parse or end in a UsageError", () => {
  const word = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.string({ unit: fc.constantFrom("host", "port", "unit", "=", ":", "holding", "0", ".", "__proto__", "uint16"), maxLength: 6 }),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 5 }), (words) => {
      try {
        parse("host=a", ...words);
      } catch (error) {
        expect(error).toBeInstanceOf(UsageError);
      }
    }),
  );
});
