import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DriverContext } from "../../drivers/driver.ts";
import { type OpcuaSimulator, PLANT_NAMESPACE, startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import { Gateway } from "../../gateway/server.ts";
import { SimulatedPlant, SimulatedServer } from "../../gateway/simulated-plant.ts";
import { Ring, recordIn, ringMemory } from "../../src/lib/capture/ring.ts";
import type { SecurityMode, SecurityPolicy } from "../../src/model/details.ts";
import { driverContext } from "../support/driver-context.ts";
import { connectGateway, readGateway } from "../support/gateway.ts";
import { connect, context, detailsOf, readTexts, type TestPki, testPki } from "../support/opcua.ts";
import { captureOf, formsOf } from "./captured.ts";
import { isMissing, look } from "./tshark.ts";

/** What a capture has of connections that log in: the driver's marks alone count here, since the writer is told no secret. */

const PASSWORD = "hunter2-S3cr3t-äöü";
const canTell = !isMissing || process.env["COLLECTOR_REQUIRE_PARTS"] === "1";

const hasSecret = (capture: Buffer, secret: string): boolean => formsOf(secret).some((form) => capture.includes(form));
const ringed = (ctx: DriverContext): { readonly memory: SharedArrayBuffer; readonly ctx: DriverContext } => {
  const memory = ringMemory(1024 * 1024);
  return { memory, ctx: { ...ctx, wire: new Ring(memory) } };
};

describe("OPC UA", () => {
  let simulator: OpcuaSimulator;
  let pki: TestPki;
  beforeAll(async () => {
    pki = testPki();
    simulator = await startOpcuaSimulator({
      bulk: 1,
      policies: ["None", "Basic256Sha256"],
      tokenPolicies: ["None", "Basic256Sha256"],
      userCertificates: "any",
    });
    await pki.judge([simulator.certificate.der], { of: "server", peer: "any", trust: "first_use" });
  });
  afterAll(async () => {
    await simulator.close();
    pki.remove();
  });

  const record = async (mode: SecurityMode, policy: SecurityPolicy, token: SecurityPolicy): Promise<SharedArrayBuffer> => {
    const { memory, ctx } = ringed(context({ pki }));
    const details = detailsOf(simulator.port, {
      security_settings: { security_mode: mode, endpoint_security_policy: policy, token_security_policy: token },
      user_identity: { type: "UserNamePassword", username: "reader" },
    });
    const session = await connect(details, ctx, { secrets: { password: PASSWORD } });
    expect(await readTexts(session, [`nsu=${PLANT_NAMESPACE};s=String`], ctx)).toMatchObject([{ quality: "good" }]);
    await session.close();
    return memory;
  };

  it.each([
    ["None", "None", "None"],
    ["None", "None", "Basic256Sha256"],
    ["Sign", "Basic256Sha256", "None"],
    ["SignAndEncrypt", "Basic256Sha256", "None"],
  ] as const)("leaves out the log-in and what is encrypted: mode %s, policy %s, password %s", async (mode, policy, token) => {
    const memory = await record(mode, policy, token);
    const { events } = recordIn(memory);
    const withheld = events.filter((event) => event.withheld !== undefined);
    expect(new Set(withheld.map((event) => event.withheld))).toEqual(
      new Set(mode === "None" ? ["log_in"] : mode === "Sign" ? ["encrypted", "log_in"] : ["encrypted"]),
    );
    expect(withheld.every(({ bytes, length }) => bytes.length === 0 && length > 0)).toBe(true);
    const capture = captureOf(memory, { type: "opcua", standardPort: 4840 });
    expect(hasSecret(capture, PASSWORD)).toBe(false);
    if (!canTell) return;
    const packets = look(capture);
    expect(packets.filter(({ trouble }) => trouble !== "")).toEqual([]);
    expect(packets.some(({ protocols, info }) => protocols.endsWith(":opcua") && info.includes("Hello message"))).toBe(true);
    expect(packets.some(({ info }) => info.includes("ReadResponse"))).toBe(mode !== "SignAndEncrypt");
    expect(packets.filter(({ comment }) => comment.includes("left out")).length).toBeGreaterThanOrEqual(withheld.length);
  });
});

describe("a gateway behind TLS", () => {
  it("leaves out all that is inside TLS, and keeps how much it was", async () => {
    const KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const plant = new SimulatedPlant();
    plant.add(
      { protocol: "OPC_DA", server_name: "Plant.OpcDa.1" },
      new SimulatedServer("Plant", [{ item: "Press.Force", type: "float64", value: 812.5 }]),
    );
    const security = { kind: "psk", identity: "collector", key: Buffer.from(KEY, "hex") } as const;
    const gateway = await Gateway.start({ backend: plant, security });
    const { memory, ctx } = ringed(driverContext());
    try {
      const session = await connectGateway(gateway.port, { local: { security: "psk" }, secret: KEY, ctx });
      expect(await readGateway(session, ["Press.Force"], ctx)).toMatchObject([{ quality: "good" }]);
      await session.close();
    } finally {
      await gateway.close();
    }
    const data = recordIn(memory).events.filter(({ kind }) => kind === "data");
    expect(data.length).toBeGreaterThan(4);
    expect(data.every(({ bytes, withheld }) => bytes.length === 0 && withheld === "tls")).toBe(true);
    const capture = captureOf(memory, { type: "vendor_gateway" });
    expect(capture.includes("Press")).toBe(false);
    if (canTell) expect(look(capture).filter(({ trouble }) => trouble !== "")).toEqual([]);
  });
});
