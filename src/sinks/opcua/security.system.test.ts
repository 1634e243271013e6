import { randomUUID } from "node:crypto";
import { AttributeIds, MessageSecurityMode, SecurityPolicy, type UserIdentityInfo, UserTokenType } from "node-opcua-client";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { codesOf, textsOf } from "../../model/testing/warnings.ts";
import type { Sink } from "../sink.ts";
import kind from "./sink.ts";
import { ANONYMOUS, batchOf, type ClientOptions, createRig, good, layoutOf, type Rig, reportOf, user, variableOf } from "./testing/rig.ts";

const LAYOUT = layoutOf("press", variableOf("temp", { scalar: "float64" }));
const PASSWORD = "correct horse";
const MODES = ["Sign", "SignAndEncrypt"] as const;
const POLICIES = [
  ["Aes128-Sha256-RsaOaep", SecurityPolicy.Aes128_Sha256_RsaOaep],
  ["Aes256-Sha256-RsaPss", SecurityPolicy.Aes256_Sha256_RsaPss],
  ["Basic256Sha256", SecurityPolicy.Basic256Sha256],
] as const;

let rig: Rig;
beforeAll(async () => {
  rig = await createRig();
  rig.server.trust(rig.client.own);
});
afterAll(() => rig.end());

let sink: (Sink & { readonly url: string }) | undefined;
afterEach(async () => {
  await sink?.close();
  sink = undefined;
});

async function serve(
  change: Parameters<Rig["open"]>[0] = {},
  users: Readonly<Record<string, string>> = { op: PASSWORD },
): Promise<Sink & { url: string }> {
  const opened = await rig.open(change, { users });
  sink = opened;
  await opened.describe?.([reportOf(LAYOUT)], rig.ctx());
  await opened.write(batchOf(LAYOUT, [good(21.5)]), rig.ctx());
  return opened;
}

/** What a client of this kind gets: the value, or the words of what it was refused with. */
async function attempt(url: string, identity: UserIdentityInfo, options: ClientOptions = {}): Promise<unknown> {
  const client = await rig.clientOf(options);
  try {
    await client.connect(url);
    const session = await client.createSession(identity);
    const { value } = await session.read({ nodeId: "ns=1;s=v-temp", attributeId: AttributeIds.Value });
    await session.close();
    return value.value;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await client.disconnect();
  }
}

describe("by default", () => {
  test.each(MODES.flatMap((mode) => POLICIES.map(([name, policy]) => [mode, name, policy] as const)))(
    "%s with %s: the user gets in; a wrong password, an unknown user and anonymous do not",
    async (mode, _name, securityPolicy) => {
      const { url } = await serve();
      const options = { securityMode: MessageSecurityMode[mode], securityPolicy };
      expect(await attempt(url, user("op", PASSWORD), options)).toBe(21.5);
      expect(await attempt(url, user("op", "wrong"), options)).toContain("BadUserAccessDenied");
      expect(await attempt(url, user("nobody", PASSWORD), options)).toContain("BadUserAccessDenied");
      expect(await attempt(url, ANONYMOUS, options)).toMatch(/anonymous|BadIdentityToken/i);
    },
  );

  test("no endpoint without security, none for anonymous, none with user certificates", async () => {
    const { url, warnings } = await serve();
    expect(textsOf(warnings)).toEqual([]);
    const client = await rig.clientOf({ securityMode: MessageSecurityMode.None, securityPolicy: SecurityPolicy.None });
    await client.connect(url);
    const endpoints = await client.getEndpoints();
    await client.disconnect();
    expect(endpoints.map(({ securityMode }) => securityMode).sort()).toEqual([2, 2, 2, 3, 3, 3]);
    const tokens = endpoints.flatMap(({ userIdentityTokens }) => userIdentityTokens ?? []);
    expect(new Set(tokens.map(({ tokenType }) => tokenType))).toEqual(new Set([UserTokenType.UserName]));
    const options = { securityMode: MessageSecurityMode.None, securityPolicy: SecurityPolicy.None };
    expect(await attempt(url, ANONYMOUS, options)).not.toBe(21.5);
    expect(await attempt(url, user("op", PASSWORD), options)).not.toBe(21.5);
  });

  test("names the clients that are logged in, with their security and subscriptions, and tells where they change", async () => {
    const opened = await serve();
    let changes = 0;
    opened.watchWarnings?.(() => changes++);
    expect(opened.clients?.()).toEqual({ first: [], count: 0 });
    const client = await rig.clientOf({
      securityMode: MessageSecurityMode.SignAndEncrypt,
      securityPolicy: SecurityPolicy.Aes256_Sha256_RsaPss,
    });
    await client.connect(opened.url);
    const session = await client.createSession(user("op", PASSWORD));
    await session.createSubscription2({ requestedPublishingInterval: 1000, publishingEnabled: true });
    const [one] = opened.clients?.().first ?? [];
    expect(one).toMatchObject({
      address: expect.stringContaining("127.0.0.1"),
      security: "SignAndEncrypt Aes256_Sha256_RsaPss",
      subscriptions: 1,
    });
    expect(one?.name).toMatch(/\w/);
    expect(Math.abs(Date.parse(one?.since ?? "") - Date.now())).toBeLessThan(60_000);
    expect(JSON.stringify(opened.clients?.())).not.toContain(PASSWORD);
    await expect.poll(() => changes, { timeout: 5000 }).toBeGreaterThan(0);
    await session.close();
    await client.disconnect();
    await expect.poll(() => opened.clients?.().count, { timeout: 5000 }).toBe(0);
  });

  test("the endpoints are named as the client came by", async () => {
    const { url } = await serve();
    const client = await rig.clientOf();
    await client.connect(url.replace("127.0.0.1", "localhost"));
    const endpoints = await client.getEndpoints({ endpointUrl: url.replace("127.0.0.1", "plant-box.example") });
    await client.disconnect();
    const port = new URL(url.replace("opc.tcp", "http")).port;
    expect(new Set(endpoints.map(({ endpointUrl }) => endpointUrl))).toEqual(new Set([`opc.tcp://plant-box.example:${port}`]));
  });

  test("a server that nobody can log in to says so", async () => {
    const { warnings } = await serve({}, {});
    expect(codesOf(warnings)).toContain("log_in_impossible");
    expect(textsOf(warnings).join()).toContain("log-in is impossible");
  });

  test("a user without a password here does not open", async () => {
    const details = { ...(kind.details.parse({ type: "opcua", port: 4840 }) as object), users: [{ username: "op" }] };
    const settings = kind.settings.parse({ listen: "127.0.0.1" });
    const input = { uuid: "x", name: null, details, settings, secrets: {} };
    await expect(kind.open(input, rig.ctx())).rejects.toMatchObject({
      condition: "secret_missing",
      message: expect.stringContaining('"op"'),
    });
  });
});

describe("only where it is configured", () => {
  test.each(["None", "Sign", "SignAndEncrypt"] as const)("%s for anonymous, and said in the warnings", async (mode) => {
    const { url, warnings } = await serve({ security_modes: [mode], anonymous: true });
    const securityPolicy = mode === "None" ? SecurityPolicy.None : SecurityPolicy.Aes256_Sha256_RsaPss;
    expect(await attempt(url, ANONYMOUS, { securityMode: MessageSecurityMode[mode], securityPolicy })).toBe(21.5);
    expect(await attempt(url, user("op", PASSWORD), { securityMode: MessageSecurityMode[mode], securityPolicy })).toBe(21.5);
    expect(textsOf(warnings).some((words) => words.startsWith("anonymous is on"))).toBe(true);
    expect(textsOf(warnings).some((words) => words.startsWith("security_modes has None"))).toBe(mode === "None");
  });

  test("without message security passwords are encrypted all the same", async () => {
    const { url } = await serve({ security_modes: ["None"], security_policies: ["None"] });
    const options = { securityMode: MessageSecurityMode.None, securityPolicy: SecurityPolicy.None };
    const client = await rig.clientOf(options);
    await client.connect(url);
    const tokens = (await client.getEndpoints()).flatMap(({ userIdentityTokens }) => userIdentityTokens ?? []);
    await client.disconnect();
    expect(tokens.map(({ securityPolicyUri }) => securityPolicyUri)).toEqual([
      SecurityPolicy.Basic256Sha256,
      SecurityPolicy.Aes256_Sha256_RsaPss,
    ]);
    expect(await attempt(url, user("op", PASSWORD), options)).toBe(21.5);
    expect(await attempt(url, user("op", "wrong"), options)).toContain("BadUserAccessDenied");
    expect(await attempt(url, ANONYMOUS, options)).not.toBe(21.5);
  });

  test("a path in the URL", async () => {
    const { url } = await serve({ path: "/collector" });
    const client = await rig.clientOf();
    await client.connect(`${url}/collector`);
    expect((await client.getEndpoints())[0]?.endpointUrl).toMatch(/\/collector$/);
    await client.disconnect();
    expect(await attempt(`${url}/collector`, user("op", PASSWORD))).toBe(21.5);
  });
});

describe("policies that are withdrawn", () => {
  const WITHDRAWN = [
    ["Basic128Rsa15", SecurityPolicy.Basic128Rsa15],
    ["Basic256", SecurityPolicy.Basic256],
  ] as const;

  test.each(WITHDRAWN)("%s is not offered unless it is configured", async (_name, securityPolicy) => {
    const { url } = await serve();
    expect(await attempt(url, user("op", PASSWORD), { securityPolicy })).not.toBe(21.5);
  });

  test.each(MODES.flatMap((mode) => WITHDRAWN.map(([name, policy]) => [mode, name, policy] as const)))(
    "%s with %s where it is configured: the user gets in, a wrong password does not, and the warnings name it",
    async (mode, name, securityPolicy) => {
      const { url, warnings } = await serve({ security_modes: [mode], security_policies: [name] });
      const options = { securityMode: MessageSecurityMode[mode], securityPolicy };
      expect(await attempt(url, user("op", PASSWORD), options)).toBe(21.5);
      expect(await attempt(url, user("op", "wrong"), options)).toContain("BadUserAccessDenied");
      expect(codesOf(warnings)).toContain("security_policy_weak");
      expect(textsOf(warnings)).toEqual([expect.stringContaining(name)]);
    },
  );
});

describe("certificates of clients", () => {
  test("one that is not trusted is refused, named with the command, and let in once it is trusted", async () => {
    const stranger = await rig.machine("stranger");
    const served = await serve();
    expect(await attempt(served.url, user("op", PASSWORD), { machine: stranger })).not.toBe(21.5);
    const said = textsOf(served.warnings).filter((warning) => warning.includes(stranger.own.thumbprint));
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(`sudo collector pki trust ${stranger.own.thumbprint}`);
    expect(rig.logged.some(({ level, message }) => level === "warn" && message.includes(stranger.own.thumbprint))).toBe(true);
    rig.server.trust(stranger.own);
    expect(await attempt(served.url, user("op", PASSWORD), { machine: stranger })).toBe(21.5);
    expect(textsOf(served.warnings).filter((warning) => warning.includes(stranger.own.thumbprint))).toEqual([]);
  });

  test("one that has expired is trusted until a day: then its connection ends, while others stay", async () => {
    const { pki } = rig.server;
    const judge = pki.judge.bind(pki);
    const spy = vi.spyOn(pki, "judge").mockImplementation(async (chain, options) => {
      const verdict = await judge(chain, options);
      const nowMs = Date.now();
      return verdict.trusted ? { ...verdict, life: { ...verdict.life, notAfter: nowMs - 1000, forgivenUntil: nowMs + 1500 } } : verdict;
    });
    const client = await rig.clientOf({ securityMode: MessageSecurityMode.Sign });
    try {
      const served = await serve();
      const lost = new Promise<void>((done) => client.once("connection_lost", () => done()));
      await client.connect(served.url);
      expect(codesOf(served.warnings)).toContain("certificate_forgiven");
      await lost;
      expect(rig.logged.some(({ message }) => message.includes("the trust in its expired certificate is over"))).toBe(true);
    } finally {
      spy.mockRestore();
      await client.disconnect();
    }
  });

  test("so many strangers are listed, and no more", async () => {
    const served = await serve();
    const strangers = await Promise.all(Array.from({ length: 12 }, (_, i) => rig.machine(`crowd-${i}`)));
    for (const machine of strangers) expect(await attempt(served.url, user("op", PASSWORD), { machine })).not.toBe(21.5);
    expect(textsOf(served.warnings)).toHaveLength(10);
  }, 60_000);
});

describe("guessing passwords", () => {
  // users.system.test.ts counts how many of 1000 are evaluated: here each costs the client RSA, too.
  test("a hundred wrong ones lock the user out, and another user at the same address still gets in", async () => {
    const served = await serve({}, { op: PASSWORD, other: "battery staple" });
    const { url } = served;
    const client = await rig.clientOf({ securityMode: MessageSecurityMode.Sign });
    await client.connect(url);
    const refusals = new Map<string, number>();
    for (let i = 0; i < 100; i++) {
      const said = await client.createSession(user("op", `guess ${i}`)).then(
        () => "in",
        (error: Error) => /Bad\w+/.exec(error.message)?.[0] ?? error.message,
      );
      refusals.set(said, (refusals.get(said) ?? 0) + 1);
    }
    await client.disconnect();
    expect(refusals).toEqual(new Map([["BadUserAccessDenied", 100]]));
    // The right password of the same user is not looked at either.
    expect(await attempt(url, user("op", PASSWORD))).toContain("BadUserAccessDenied");
    // The value of the beginning may be too old to be served.
    await served.write(batchOf(LAYOUT, [good(21.5)]), rig.ctx());
    expect(await attempt(url, user("other", "battery staple"))).toBe(21.5);
  }, 120_000);
});

test("no secret is logged", () => {
  expect(JSON.stringify(rig.logged)).not.toContain(PASSWORD);
  expect(JSON.stringify(rig.logged)).not.toContain("guess 1");
});

describe("on a plant where nothing else changes", () => {
  test("a certificate that is refused, a refused log-in and a lock-out are in the warnings at once", async () => {
    const { url } = await serve();
    const seen: string[] = [];
    const loggedBefore = rig.logged.length;
    sink?.watchWarnings?.(() => void seen.push(textsOf(sink?.warnings).join("\n") ?? ""));
    const stranger = await rig.machine(`stranger-${randomUUID()}`);
    await attempt(url, user("op", PASSWORD), { machine: stranger });
    expect(seen.at(-1)).toContain(stranger.own.thumbprint);
    expect(seen.at(-1)).toContain("collector pki trust");
    expect(await attempt(url, user("op", "canary"))).toContain("BadUserAccessDenied");
    expect(seen.at(-1)).toMatch(/a log-in as "op" from \S+ was refused, the last at 20\S+Z/);
    const client = await rig.clientOf();
    await client.connect(url);
    for (let i = 0; i < 9; i++) await expect(client.createSession(user("op", `canary ${i}`))).rejects.toThrow("BadUserAccessDenied");
    expect(seen.at(-1)).toMatch(/log-ins as "op" from \S+ are locked out until 20\S+Z/);
    await expect(client.createSession(user("op", PASSWORD))).rejects.toThrow("BadUserAccessDenied");
    await client.disconnect();
    const logged = rig.logged.slice(loggedBefore);
    expect(logged.filter(({ level, message }) => level === "warn" && message.includes("looks at no password"))).toHaveLength(1);
    expect(JSON.stringify([seen, rig.logged])).not.toContain("canary");
  });
});
