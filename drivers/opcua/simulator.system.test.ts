import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  AttributeIds,
  type ClientSession,
  DataType,
  StatusCodes,
  type UserIdentityInfo,
  UserTokenType,
  type Variant,
} from "node-opcua-client";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import {
  makeCertificate,
  type OpcuaSimulator,
  type OpcuaSimulatorOptions,
  OTHER_NAMESPACE,
  PLANT_NAMESPACE,
  type SimulatorCertificate,
  startOpcuaSimulator,
  USERS,
} from "./simulator.ts";
import { createWitness, type Way, type Witness } from "./simulator-client.ts";

let opened: OpcuaSimulator[] = [];
let witness: Witness;

const start = async (options: OpcuaSimulatorOptions = { bulk: 2 }): Promise<OpcuaSimulator> => {
  const simulator = await startOpcuaSimulator(options);
  opened.push(simulator);
  return simulator;
};

beforeAll(async () => {
  witness = await createWitness();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const simulator of opened) await simulator.close();
  opened = [];
});
afterAll(() => witness.close());

const at = (simulator: OpcuaSimulator, id: string) => ({
  nodeId: `ns=${simulator.plantIndex};s=${id}`,
  attributeId: AttributeIds.Value,
});
const withSession = <T>(simulator: OpcuaSimulator, work: (session: ClientSession) => Promise<T>, way?: Way): Promise<T> =>
  witness.withSession(simulator.endpointUrl, work, way);
const reads = (simulator: OpcuaSimulator, way?: Way) =>
  withSession(simulator, async (session) => (await session.read(at(simulator, "Double"))).statusCode.name, way);

describe("the OPC UA simulator", () => {
  it("serves a value of each type, a thousand more, and leaves nothing behind", async () => {
    // A folder for this test alone: others have simulators of their own at the same time.
    const folder = mkdtempSync(path.join(tmpdir(), "simulator-test-"));
    vi.stubEnv("TMPDIR", folder);
    const simulator = await start({});
    expect(readdirSync(folder)).toHaveLength(1);
    const ids = ["Boolean", "Int64", "Float", "Matrix", "Structure", "Array.Structure", "Enumeration", "Bulk.999"];
    const states = ["Bad", "Uncertain", "Waiting", "NotReadable", "AccessDenied", "Missing"];
    const values = await withSession(simulator, (session) => session.read([...ids, ...states].map((id) => at(simulator, id))));
    expect(values.map((value) => value.statusCode.name)).toEqual([
      ...new Array(ids.length).fill("Good"),
      "BadSensorFailure",
      "UncertainSensorNotAccurate",
      "BadWaitingForInitialData",
      "BadNotReadable",
      "BadUserAccessDenied",
      "BadNodeIdUnknown",
    ]);
    const inside = values.map((value): Variant => value.value);
    expect(inside[1]?.value).toEqual([0xffdf_ffff, 0xffff_ffff]);
    expect(inside[3]?.dimensions).toEqual([2, 3]);
    expect(inside[4]?.dataType).toBe(DataType.ExtensionObject);
    expect(inside[4]?.value).toMatchObject({ number: 1, seconds: 12.5, name: "Schuß", mode: 2, window: { low: 10, high: 20 } });
    expect(inside[5]?.value).toHaveLength(2);
    expect(inside[6]?.value).toBe(2);
    expect(inside[7]?.value).toBe(999.25);
    expect(simulator.requests("Read")).toBeGreaterThan(0);
    await simulator.close();
    opened = [];
    expect(readdirSync(folder)).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  it.each([
    ["None", ["None"]],
    ["Sign", ["Basic256Sha256", "Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic128Rsa15", "Basic256"]],
    ["SignAndEncrypt", ["Basic256Sha256", "Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic128Rsa15", "Basic256"]],
  ] as const)("serves mode %s with every policy, anonymous and by password", async (mode, policies) => {
    const simulator = await start({
      bulk: 2,
      policies: ["None", "Basic256Sha256", "Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic128Rsa15", "Basic256"],
    });
    for (const policy of policies) {
      const way = { mode, policy };
      expect(await reads(simulator, way), policy).toBe("Good");
      const user: UserIdentityInfo = { type: UserTokenType.UserName, userName: "reader", password: USERS["reader"] ?? "" };
      expect(await reads(simulator, { ...way, user }), policy).toBe("Good");
      await expect(reads(simulator, { ...way, user: { ...user, password: "wrong" } }), policy).rejects.toThrow(
        /BadUserAccessDenied|BadIdentityToken/,
      );
    }
    await expect.poll(() => simulator.sessions()).toBe(0);
  });

  it("knows the people whose certificates it was given", async () => {
    const person = await makeCertificate({ applicationUri: "urn:test:person", commonName: "reader", of: "user", freshKey: true });
    const simulator = await start({ bulk: 2, userCertificates: [person.der] });
    const way: Way = { mode: "SignAndEncrypt", policy: "Basic256Sha256" };
    const by = (certificate: SimulatorCertificate): Way => ({
      ...way,
      user: { type: UserTokenType.Certificate, certificateData: Buffer.from(certificate.der), privateKey: certificate.privateKey },
    });
    expect(await reads(simulator, by(person))).toBe("Good");
    const stranger = await makeCertificate({ applicationUri: "urn:test:stranger", of: "user", freshKey: true });
    await expect(reads(simulator, by(stranger))).rejects.toThrow(/BadIdentityTokenRejected/);
  });

  it("lets nobody in whom it does not trust, until it does", async () => {
    const simulator = await start({ bulk: 2, trust: [] });
    const way: Way = { mode: "Sign", policy: "Basic256Sha256" };
    await expect(reads(simulator, way)).rejects.toThrow();
    await simulator.trust(witness.certificate.der);
    expect(await reads(simulator, way)).toBe("Good");
  });

  it("offers tokens as wished, and nothing anonymous", async () => {
    const simulator = await start({ bulk: 2, anonymous: false, tokenPolicies: ["Aes256-Sha256-RsaPss"] });
    const offered = await withSession(simulator, async () => [], {
      user: { type: UserTokenType.UserName, userName: "reader", password: USERS["reader"] ?? "" },
    });
    expect(offered).toEqual([]);
    await expect(reads(simulator)).rejects.toThrow();
  });

  it("changes namespaces at a restart on the same port, and keeps its certificate", async () => {
    const first = await start();
    const { port, certificate, plantIndex } = first;
    await first.close();
    opened = [];
    const second = await start({ bulk: 2, port, certificate, namespaces: [OTHER_NAMESPACE, PLANT_NAMESPACE] });
    expect(second.plantIndex).toBe(plantIndex + 1);
    expect(second.certificate.thumbprint).toBe(certificate.thumbprint);
    expect(await reads(second)).toBe("Good");
  });

  it("announces another host", async () => {
    const simulator = await start({ bulk: 2, announcedHost: "press.example" });
    expect(simulator.endpointUrl).toBe(`opc.tcp://press.example:${simulator.port}`);
  });

  it("answers with the fault, the silence and the end that it was told", async () => {
    const simulator = await start();
    simulator.misbehave({ service: "Read", after: 1, times: 1, answer: { fault: StatusCodes.BadTooManyOperations, text: "at most 10" } });
    await withSession(simulator, async (session) => {
      const node = at(simulator, "Double");
      expect((await session.read(node)).statusCode.name).toBe("Good");
      await expect(session.read(node)).rejects.toThrow(/BadTooManyOperations/);
      expect((await session.read(node)).statusCode.name).toBe("Good");
      simulator.behave();
      simulator.misbehave({ service: "Read", times: 1, answer: { delayMs: 200 } });
      const asked = performance.now();
      expect((await session.read(node)).statusCode.name).toBe("Good");
      expect(performance.now() - asked).toBeGreaterThan(190);
      simulator.behave();
      simulator.misbehave({ service: "Read", times: 1, answer: "silent" });
      const [unanswered, answered] = [
        session.read(node).then(
          () => "answered",
          () => "nothing",
        ),
        session.read(node),
      ];
      expect((await answered).statusCode.name).toBe("Good");
      expect(await Promise.race([unanswered, new Promise((done) => setTimeout(() => done("still waiting"), 200))])).toBe("still waiting");
      simulator.behave();
      simulator.misbehave({ service: "Read", times: 1, answer: "hang_up" });
      await expect(session.read(node)).rejects.toThrow();
    });
  });

  it("changes what a variable holds, its type and its status too, and has a clock of its own", async () => {
    const simulator = await start({ bulk: 2, sourceClockMs: -3_600_000 });
    await withSession(simulator, async (session) => {
      const node = at(simulator, "Double");
      const before = await session.read(node);
      expect(Date.now() - (before.sourceTimestamp?.getTime() ?? 0)).toBeGreaterThan(3_590_000);
      simulator.variable("Double").set({ dataType: DataType.String, value: "eleven" });
      expect((await session.read(node)).value).toMatchObject({ dataType: DataType.String, value: "eleven" });
      simulator.variable("Double").set({ dataType: DataType.Double, value: 1 }, StatusCodes.UncertainLastUsableValue);
      expect((await session.read(node)).statusCode.name).toBe("UncertainLastUsableValue");
      expect(() => simulator.variable("Nothing")).toThrow(/Nothing/);
    });
  });

  it("shows the certificate that it was given: expired, not valid yet, of another URI or host", async () => {
    for (const wish of [
      { applicationUri: "urn:example:opcua-simulator", validity: "expired" },
      { applicationUri: "urn:example:opcua-simulator", validity: "not_yet_valid" },
      { applicationUri: "urn:somebody:else" },
      { applicationUri: "urn:example:opcua-simulator", dns: ["elsewhere.example"], ip: [] },
    ] as const) {
      const certificate = await makeCertificate(wish);
      const simulator = await start({ bulk: 1, certificate });
      const shown = await witness.serverCertificate(simulator.endpointUrl);
      expect(new X509Certificate(shown).fingerprint.replaceAll(":", "")).toBe(certificate.thumbprint);
      const { validTo, validFrom, subjectAltName } = new X509Certificate(shown);
      expect(Date.parse(validTo) < Date.now()).toBe("validity" in wish && wish.validity === "expired");
      expect(Date.parse(validFrom) > Date.now()).toBe("validity" in wish && wish.validity === "not_yet_valid");
      expect(subjectAltName).toContain(wish.applicationUri);
      if ("dns" in wish) expect(subjectAltName).not.toContain("localhost");
    }
  });

  it("has variables that move by themselves, with a unit", async () => {
    const simulator = await start({ bulk: 1, moving: [{ id: "Speed", name: "speed", unit: "mm/s", value: (ms) => 100 + ms }] });
    await withSession(simulator, async (session) => {
      const [first, second] = [await session.read(at(simulator, "Speed")), await session.read(at(simulator, "Speed"))];
      expect(second.value.value).toBeGreaterThan(first.value.value);
    });
  });

  it("ends sessions by itself, and limits how many there are", async () => {
    const simulator = await start({ bulk: 2, maxSessions: 1 });
    await withSession(simulator, async (session) => {
      await expect(reads(simulator)).rejects.toThrow(/BadTooManySessions/);
      simulator.closeSessions();
      expect(simulator.sessions()).toBe(0);
      // node-opcua's client makes a new one by itself.
      expect((await session.read(at(simulator, "Double"))).statusCode.name).toBe("Good");
      expect(simulator.requests("CreateSession")).toBe(3);
    });
  });

  it("counts writes, so that a test can see that there was none", async () => {
    const simulator = await start();
    await withSession(simulator, async (session) => {
      const value = { value: { dataType: DataType.Double, value: 5 } };
      expect((await session.write({ ...at(simulator, "Writable"), value })).name).toBe("Good");
      expect((await session.write({ ...at(simulator, "Double"), value })).name).not.toBe("Good");
    });
    expect(simulator.writes()).toBe(1);
    expect(simulator.requests("Write")).toBe(2);
  });

  it("has a deep tree with a cycle, handed out in pages", async () => {
    const simulator = await start({ bulk: 25, maxReferencesPerNode: 10, tree: { depth: 2, folders: 3, variables: 4 } });
    await withSession(simulator, async (session) => {
      const page = await session.browse({
        nodeId: `ns=${simulator.plantIndex};s=Bulk`,
        referenceTypeId: "HierarchicalReferences",
        includeSubtypes: true,
      });
      expect(page.references).toHaveLength(10);
      expect(page.continuationPoint?.length).toBeGreaterThan(0);
      const back = await session.browse(`ns=${simulator.plantIndex};s=Tree.f2`);
      expect(back.references?.map((reference) => reference.browseName.name)).toContain("Tree");
    });
  });
});
