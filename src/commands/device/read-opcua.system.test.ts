import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  makeCertificate,
  type OpcuaSimulator,
  type OpcuaSimulatorOptions,
  type PolicyName,
  startOpcuaSimulator,
  USERS,
  writeCertificate,
} from "../../../drivers/opcua/simulator.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { EXIT } from "../io.ts";
import { type Ran, type RunOptions, runCommandWith, settingsFile } from "../testing.ts";

const PASSWORD = USERS["reader"] ?? "";
const POLICIES: readonly PolicyName[] = ["Basic256Sha256", "Aes128-Sha256-RsaOaep", "Aes256-Sha256-RsaPss", "Basic256", "Basic128Rsa15"];

interface Here {
  readonly folder: string;
  run(...words: string[]): Promise<Ran>;
  runWith(options: RunOptions, ...words: string[]): Promise<Ran>;
}

function here(): Here {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  const runWith: Here["runWith"] = (options, ...words) =>
    runCommandWith({ env: { HOME: folder }, ...options }, ...words, "--config", config);
  return { folder, runWith, run: (...words) => runWith({}, ...words) };
}

const secured = (mode: string, policy: string): string[] => [
  `security_settings.security_mode=${mode}`,
  `security_settings.endpoint_security_policy=${policy}`,
];
const valueIn = ({ code, out, err }: Ran): unknown => {
  expect([code, out === ""], err + out).toEqual([EXIT.good, false]);
  return JSON.parse(out).values[0].value;
};

describe("read and browse opcua in every mode", () => {
  let simulator: OpcuaSimulator;
  let person: Awaited<ReturnType<typeof makeCertificate>>;
  beforeAll(async () => {
    person = await makeCertificate({ applicationUri: "urn:test:person", commonName: "reader", of: "user", freshKey: true });
    simulator = await startOpcuaSimulator({
      bulk: 1,
      policies: ["None", ...POLICIES],
      tokenPolicies: ["None", ...POLICIES],
      userCertificates: [person.der],
    });
  });
  afterAll(() => simulator.close());

  const url = (): string => `endpoint_url=${simulator.endpointUrl}`;
  const words = (...more: string[]): string[] => [
    "read",
    "opcua",
    url(),
    "trust=first_use",
    ...more,
    `ns=${simulator.plantIndex};s=Double`,
    "--json",
  ];

  it("takes None and Anonymous where nothing is given", async () => {
    const { run } = here();
    const ran = await run("read", "opcua", `endpoint_url=${simulator.endpointUrl}`, "/Objects/3:Plant/3:Types/3:UInt64", "--json");
    expect(valueIn(ran)).toBe(2 ** 64);
    expect(ran.out).toContain('"value":18446744073709551615,');
    expect(ran.out).toContain('"type":"uint64"');
  });

  it.each(["Sign", "SignAndEncrypt"].flatMap((mode) => POLICIES.map((policy) => [mode, policy] as const)))(
    "%s with %s: anonymous, by password, by certificate",
    async (mode, policy) => {
      const { run, folder } = here();
      const file = join(folder, "pw.txt");
      writeFileSync(file, `${PASSWORD}\n`);
      const { certificateFile, privateKeyFile } = await writeCertificate(folder, "anna", person);
      expect((await run("pki", "user", "anna", certificateFile, privateKeyFile)).code).toBe(EXIT.good);
      expect(valueIn(await run(...words(...secured(mode, policy))))).toBe(-2.25e-300);
      const named = await run(...words(...secured(mode, policy), "username=reader", "--password-file", file));
      expect(valueIn(named)).toBe(-2.25e-300);
      expect(named.out + named.err).not.toContain(PASSWORD);
      const certified = words(...secured(mode, policy), "user_identity.type=X509Certificate", "user_certificate=anna");
      expect(valueIn(await run(...certified, `security_settings.token_security_policy=${policy}`))).toBe(-2.25e-300);
      const browsed = await run("browse", "opcua", url(), "trust=first_use", ...secured(mode, policy), "--depth", "1", "--json");
      expect([browsed.code, browsed.out.match(/"name":"Plant"/g)]).toEqual([EXIT.good, ['"name":"Plant"']]);
      await expect.poll(() => simulator.sessions()).toBe(0);
    },
  );

  it.each([...POLICIES])("None with a password under %s, asked for", async (policy) => {
    const { runWith } = here();
    const ran = await runWith({ typed: PASSWORD }, ...words("username=reader", `security_settings.token_security_policy=${policy}`));
    expect(valueIn(ran)).toBe(-2.25e-300);
  });

  it.each([...POLICIES])("None with a user certificate under %s", async (policy) => {
    const { run, folder } = here();
    const { certificateFile, privateKeyFile } = await writeCertificate(folder, "anna", person);
    expect((await run("pki", "user", "user", certificateFile, privateKeyFile)).code).toBe(EXIT.good);
    const ran = await run(...words("user_identity.type=X509Certificate", `security_settings.token_security_policy=${policy}`));
    expect(valueIn(ran)).toBe(-2.25e-300);
  });

  it("sends a password in the clear only on request", async () => {
    const clear = await startOpcuaSimulator({ bulk: 1, modes: ["None"], policies: ["None"], tokenPolicies: ["None"] });
    try {
      const { runWith } = here();
      const asked = ["read", "opcua", `endpoint_url=${clear.endpointUrl}`, "username=reader", "i=2258", "--json"];
      const refused = await runWith({ typed: PASSWORD }, ...asked);
      expect(refused.code).toBe(EXIT.sourceFailed);
      expect(JSON.parse(refused.out).reason).toMatchObject({
        type: "OPC_UA_NO_MATCHING_ENDPOINT_POLICY",
        token_security_policy_uri: "http://opcfoundation.org/UA/SecurityPolicy#Basic256Sha256",
      });
      const said = await runWith({ typed: PASSWORD }, ...asked, "security_settings.token_security_policy=None");
      expect(said.code, said.out).toBe(EXIT.good);
    } finally {
      await clear.close();
    }
  });
});

describe("the certificates of who types the command", () => {
  const open: OpcuaSimulator[] = [];
  afterEach(async () => {
    for (const simulator of open.splice(0)) await simulator.close();
  });
  const simulate = async (options: OpcuaSimulatorOptions): Promise<OpcuaSimulator> => {
    const simulator = await startOpcuaSimulator({ bulk: 1, ...options });
    open.push(simulator);
    return simulator;
  };

  it("are kept below the person's home where the service's state folder is not there", async () => {
    const simulator = await simulate({});
    const folder = temporaryFolder();
    const config = settingsFile(folder, { state_dir: join(folder, "nowhere") });
    const env = { HOME: join(folder, "home") };
    const words = [
      "read",
      "opcua",
      `endpoint_url=${simulator.endpointUrl}`,
      ...secured("Sign", "Basic256Sha256"),
      "i=2258",
      "--config",
      config,
    ];
    const refused = await runCommandWith({ env }, ...words);
    expect(refused.code).toBe(EXIT.sourceFailed);
    expect(refused.out).toContain(`type \`collector pki trust ${simulator.certificate.thumbprint}`);
    const pki = join(folder, "home", ".local", "state", "collector", "pki");
    expect(readdirSync(join(pki, "own")).length).toBeGreaterThan(0);
    const trusted = await runCommandWith({ env }, ...words, "trust=first_use");
    expect([trusted.code, trusted.err]).toEqual([EXIT.good, expect.stringContaining("first one from this peer")]);
    expect((await runCommandWith({ env }, ...words)).code).toBe(EXIT.good);
    expect(existsSync(join(folder, "nowhere"))).toBe(false);
  });

  it("are the same in every run, so that a server has to trust them once", async () => {
    const simulator = await simulate({ trust: [] });
    const { run, folder } = here();
    const words = [
      "read",
      "opcua",
      `endpoint_url=${simulator.endpointUrl}`,
      ...secured("Sign", "Basic256Sha256"),
      "trust=first_use",
      "i=2258",
      "--json",
    ];
    const refused = await run(...words);
    expect(refused.code).toBe(EXIT.sourceFailed);
    expect(JSON.parse(refused.out)).toMatchObject({ reason: { type: "OPC_UA_ERROR_RESPONSE" } });
    const der = join(folder, "own.der");
    expect((await run("pki", "export", der)).code).toBe(EXIT.good);
    await simulator.trust(readFileSync(der));
    expect((await run(...words)).code).toBe(EXIT.good);
  });

  it("are not looked at for types that need none", async () => {
    const { run, folder } = here();
    expect((await run("read", "modbus_tcp", "host=127.0.0.1", "port=1", "holding:0")).code).toBe(EXIT.sourceFailed);
    expect(existsSync(join(folder, "pki"))).toBe(false);
  });
});
