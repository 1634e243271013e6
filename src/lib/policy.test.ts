import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadPolicy, policyFile } from "../configuration/policy-file.ts";
import { policySchema } from "../model/policy.ts";
import { listenRefusal, permitOf } from "./policy.ts";

const byDefault = permitOf(policySchema.parse({}), "sources");

describe("without a policy file", () => {
  it.each([
    "127.0.0.1",
    "127.255.0.9",
    "::1",
    "0.0.0.0",
    "::",
    "169.254.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "224.0.0.1",
    "239.1.2.3",
    "255.255.255.255",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "0:0:0:0:0:FFFF:7f00:0001",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::",
    "64:ff9b:1:7f00:0:100::",
    "64:ff9b:1::7f:0:1:0",
    "64:ff9b:1::7f00:1",
    "press-1",
    "",
  ])("%j is closed", (address) => expect(byDefault(address, 502)).toEqual(expect.any(String)));

  it.each([
    "10.0.0.1",
    "192.168.1.7",
    "172.16.0.1",
    "8.8.8.8",
    "fd00::7",
    "2001:db8::1",
    "::ffff:10.0.0.1",
    "2002:a00:1::1",
    "64:ff9b:1::a00:1",
  ])("%s is open", (address) => expect(byDefault(address, 502)).toBeUndefined());

  it("an address of this machine is closed, in whatever form, unless the policy names it", () => {
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ internal }) => !internal);
    for (const { address, family } of own) {
      expect(byDefault(address, 502), address).toEqual(expect.any(String));
      if (family === "IPv4") expect(byDefault(`::ffff:${address}`, 502)).toContain("an address of this machine");
      const policy = policySchema.parse({ sources: { networks: [address.split("%")[0]] } });
      expect(permitOf(policy, "sources")(address, 502)).toBeUndefined();
    }
  });

  it("listens on loopback only", () => {
    const policy = policySchema.parse({});
    expect([listenRefusal(policy, "127.0.0.1:8420"), listenRefusal(policy, "[::1]:1"), listenRefusal(policy, "localhost:1")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    for (const at of ["0.0.0.0:8420", "[::]:8420", "10.0.0.1:80", "eth0:80"])
      expect(listenRefusal(policy, at), at).toEqual(expect.any(String));
  });
});

describe("a policy file", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "policy-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const load = (text: string) => {
    const file = path.join(folder, "policy.yaml");
    writeFileSync(file, text);
    return loadPolicy(file);
  };

  it.each(["localhost", "localhost.", "a.LOCALHOST", "127.1", "0x7f000001", "2130706433", "017700000001"])(
    "judges %s, which a proxy looks up for a sink, as the loopback address that it means",
    (host) => {
      expect(permitOf(policySchema.parse({}), "sinks")(host, 1883)).toContain("is a loopback address");
      expect(permitOf(policySchema.parse({ sinks: { loopback: true } }), "sinks")(host, 1883)).toBeUndefined();
    },
  );

  it("judges another name that a proxy looks up for a sink by its port, and refuses it where networks are named", () => {
    const [none, some] = [{}, { networks: ["10.0.0.0/8"] }].map((sinks) =>
      permitOf(policySchema.parse({ sinks: { ports: [8883], ...sinks } }), "sinks"),
    );
    expect(none?.("broker.example", 8883)).toBeUndefined();
    expect(none?.("broker.example", 1883)).toContain("port 1883 of broker.example");
    expect(some?.("broker.example", 8883)).toContain("a name that a proxy looks up");
    expect(some?.("10.1.2.3", 8883)).toBeUndefined();
    for (const text of ["", "a b", "a/b:1"]) expect(none?.(text, 8883), text).toEqual(expect.any(String));
    expect(permitOf(policySchema.parse({}), "sources")("broker.example", 502)).toContain("is not an IP address");
  });

  it("opens what it names and nothing else, for sources and sinks apart", () => {
    const { policy } = load("sources:\n  networks: [10.20.0.0/16, 127.0.0.1, 'fd00::/8']\n  ports: [502, 4840-4850]\n");
    const [sources, sinks] = [permitOf(policy, "sources"), permitOf(policy, "sinks")];
    for (const [address, port] of [
      ["10.20.3.4", 502],
      ["127.0.0.1", 4845],
      ["fd12::1", 502],
      ["::ffff:10.20.0.1", 502],
    ] as const)
      expect(sources(address, port), address).toBeUndefined();
    for (const [address, port] of [
      ["10.21.0.1", 502],
      ["127.0.0.2", 502],
      ["10.20.3.4", 503],
      ["fe80::1", 502],
    ] as const)
      expect(sources(address, port), `${address} ${port}`).toMatch(/policy\.yaml/);
    expect(sinks("127.0.0.1", 1883)).toMatch(/loopback/);
    expect(sinks("10.99.0.1", 1883)).toBeUndefined();
  });

  it("opens loopback by a switch that closes nothing else, on the ports that are open", () => {
    const alone = permitOf(load("sinks: {loopback: true}\n").policy, "sinks");
    for (const address of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "10.0.0.1", "8.8.8.8", "fd00::7"])
      expect(alone(address, 1883), address).toBeUndefined();
    for (const address of ["169.254.169.254", "fe80::1", "224.0.0.1", "0.0.0.0", "2002:7f00:1::1"])
      expect(alone(address, 1883), address).toEqual(expect.any(String));
    expect(permitOf(load("sinks: {loopback: true}\n").policy, "sources")("127.0.0.1", 502)).toMatch(/loopback/);
    const both = permitOf(load("sinks: {loopback: true, networks: [10.0.0.0/8], ports: [1883]}\n").policy, "sinks");
    expect([both("127.0.0.1", 1883), both("10.1.1.1", 1883)]).toEqual([undefined, undefined]);
    expect([both("127.0.0.1", 22), both("8.8.8.8", 1883)]).toEqual([expect.any(String), expect.any(String)]);
  });

  it("that does not open an address is named with its path and what would open it, and that does", () => {
    const file = path.join(folder, "policy.yaml");
    const [none] = [loadPolicy(path.join(folder, "none.yaml")).policy];
    expect(permitOf(none, "sinks")("127.0.0.1", 1883)).toBe(
      `127.0.0.1 is a loopback address; it stays closed until policy.yaml opens it; to do so, put \`sinks: {loopback: true}\` into ${path.join(folder, "none.yaml")}`,
    );
    const { policy } = load("sources: {networks: [10.0.0.0/8], ports: [102]}\n");
    expect(permitOf(policy, "sources")("127.0.0.1", 102)).toContain(`add \`loopback: true\` to sources in ${file}`);
    expect(permitOf(policy, "sources")("10.0.0.1", 502)).toContain(`add 502 to ports of sources in ${file}`);
    expect(permitOf(policy, "sources")("192.168.1.1", 102)).toContain(`add 192.168.1.1 to networks of sources in ${file}`);
    expect(permitOf(none, "sources")("169.254.1.1", 502)).toMatch(
      /add 169\.254\.1\.1 to networks of sources in .*none\.yaml \(networks then says all that is open\)$/,
    );
    for (const [at, address] of [
      ["10.0.0.1:80", "10.0.0.1"],
      ["[2001:db8::1]:80", "2001:db8::1"],
    ] as const) {
      const line = /put `(.*)` into .*none\.yaml$/.exec(listenRefusal(none, at) ?? "")?.[1] ?? "";
      expect([
        line.includes(address),
        listenRefusal(load(`${line}\n`).policy, at),
        listenRefusal(load(`${line}\n`).policy, "[::1]:1"),
      ]).toEqual([true, undefined, undefined]);
    }
  });

  it.each([
    ["sources: {networks: [10.0.0.0/33]}", /sources\.networks\.0: expected an address or a network/],
    ["sources: {network: [10.0.0.0/8]}", /sources\.network: .*did you mean networks/],
    ["sinks: {ports: [0]}", /sinks\.ports\.0: expected a port/],
    ["sinks: {ports: ['9-5']}", /sinks\.ports\.0: expected a port/],
    ["discovery: maybe", /discovery/],
    ["sources: [", /not valid YAML/],
  ])("that says %s opens nothing: it is an error that names the place", (text, words) => expect(() => load(text)).toThrow(words));

  it("is next to the settings file; without one the defaults hold", () => {
    expect(policyFile("/etc/collector/collector.yaml")).toBe("/etc/collector/policy.yaml");
    const file = path.join(folder, "none.yaml");
    expect(loadPolicy(file)).toEqual({ policy: { ...policySchema.parse({}), file }, file: undefined, text: "" });
  });
});
