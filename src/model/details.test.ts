import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DETAILS, DETAILS_TYPES, detailsCreateSchema, detailsReadSchema, parseFinsAddress, toReadDetails } from "./details.ts";

/** The least that each type is created with. */
const LEAST = {
  vendor_a: { host: "plc" },
  modbus_tcp: { host: "plc" },
  s7: { host: "plc" },
  vendor_b: { host: "plc", machine: "C5", initialization_mode: "Default" },
  fins: { host: "plc", local_address: "0.10.0", remote_address: "0.1.0" },
  opcua: {
    host: "plc",
    port: 4840,
    endpoint_url: "opc.tcp://plc:4840",
    security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "Basic256Sha256" },
    user_identity: { type: "UserNamePassword", username: "reader", password: "s3cret" },
  },
  vendor_gateway: { host: "plc", port: 1, protocol_details: { protocol: "PVI", path: "a/b" } },
  odac: { host: "plc" },
  plastcontrol: { host: "plc", port: 1, readout_mode: { type: "active" } },
  s7plus: { host: "plc", port: 102, password: { type: "set", value: "s3cret" } },
} as const;

const create = (type: keyof typeof LEAST, more: object = {}) => detailsCreateSchema.parse({ type, ...LEAST[type], ...more });

describe("what was created, in the form in which it is read", () => {
  test.each(DETAILS_TYPES)("%s is a complete read form without a secret", (type) => {
    const { details } = toReadDetails(create(type));
    expect(DETAILS[type].read.parse(details)).toEqual(details);
    expect(detailsReadSchema.parse(details)).toEqual(details);
    expect(JSON.stringify(details)).not.toContain("s3cret");
    expect(details).toMatchObject({ type, host: "plc", port: expect.any(Number) });
  });

  test("the secrets that were in it are next to it", () => {
    expect(toReadDetails(create("opcua")).secrets).toEqual({ password: "s3cret" });
    expect(toReadDetails(create("s7plus")).secrets).toEqual({ password: "s3cret" });
    for (const type of DETAILS_TYPES)
      if (type !== "opcua" && type !== "s7plus") expect(toReadDetails(create(type)).secrets, type).toEqual({});
    expect(toReadDetails(create("opcua", { user_identity: { type: "Anonymous" } })).secrets).toEqual({});
  });

  test("a password of s7plus is configured, or there is none", () => {
    expect(toReadDetails(create("s7plus")).details).toMatchObject({ password: { type: "configured" } });
    for (const password of [undefined, { type: "none" }]) {
      const read = toReadDetails(create("s7plus", { password }));
      expect(read.details).toMatchObject({ password: { type: "none" } });
      expect(read.secrets).toEqual({});
    }
  });

  test("it does not change what it was given", () => {
    const created = create("opcua");
    const before = structuredClone(created);
    toReadDetails(created);
    expect(created).toEqual(before);
  });
});

describe("FINS addresses", () => {
  test("every address in range is read back", () => {
    fc.assert(
      fc.property(fc.nat(127), fc.nat(254), fc.nat(255), (network, node, unit) => {
        expect(parseFinsAddress(`${network}.${node}.${unit}`)).toEqual({ network, node, unit });
      }),
    );
  });

  test("every number beyond its range is refused", () => {
    fc.assert(
      fc.property(fc.integer({ min: 256, max: 100_000 }), fc.nat(2), (n, place) => {
        expect(parseFinsAddress([0, 1, 0].with(place, n).join("."))).toBeUndefined();
      }),
    );
    for (const text of ["128.1.0", "0.255.0", "", "0.1", "0.1.0.0", "0x1.1.0", "0.1.-1", "0.1.0\n", "٠.١.٠"])
      expect(parseFinsAddress(text), text).toBeUndefined();
  });
});

test("a wrong type is answered with the right ones", () => {
  const message = detailsCreateSchema.safeParse({ type: "modbus", host: "plc" }).error?.issues[0]?.message ?? "";
  for (const type of DETAILS_TYPES) expect(message).toContain(type);
});

test("no error repeats a secret", () => {
  const tries = [
    { type: "opcua", ...LEAST.opcua, user_identity: { type: "X509Certificate", password: "s3cret" } },
    { type: "opcua", ...LEAST.opcua, user_identity: { type: "UserNamePassword", username: 7, password: "s3cret" } },
    { type: "opcua", ...LEAST.opcua, user_identity: { type: "UserNamePassword", username: "u", password: ["s3cret"] } },
    { type: "opcua", ...LEAST.opcua, user_identity: "s3cret" },
    { type: "s7plus", ...LEAST.s7plus, password: "s3cret" },
    { type: "s7plus", ...LEAST.s7plus, password: { type: "set", value: { is: "s3cret" } } },
    { type: "s7plus", ...LEAST.s7plus, password: { type: "s3cret" } },
  ];
  for (const input of tries) {
    const { success, error } = detailsCreateSchema.safeParse(input);
    expect(success).toBe(false);
    expect(JSON.stringify(error?.issues)).not.toContain("s3cret");
  }
});
