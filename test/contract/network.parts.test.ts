import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { stringify } from "yaml";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { builtCollector } from "../support/built-collector.ts";
import { createAuthority } from "../support/certificates.ts";
import { type CollectorProcess, startCollector } from "../support/collector-process.ts";

/** An address that is nowhere but in the namespaces of these tests. */
const ADDRESS = "10.99.8.1";
const LISTEN = `${ADDRESS}:8420`;
const OPEN = { listen: ["127.0.0.0/8", `${ADDRESS}/32`] };

const run = promisify(execFile);
const required = process.env["COLLECTOR_REQUIRE_PARTS"] === "1";
const missing = missingParts();

function missingParts(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root for a network namespace";
  for (const [part = "", ...words] of [
    ["curl", "--version"],
    ["openssl", "version"],
    ["unshare", "-n", "ip", "link", "add", "lan", "type", "veth", "peer", "name", "end"],
  ])
    try {
      execFileSync(part, words, { stdio: "ignore" });
    } catch {
      return `${[part, ...words].join(" ")} does not work here`;
    }
  return undefined;
}

const folder = mkdtempSync(join(tmpdir(), "collector-network-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = await builtCollector();
/** The program in a namespace of its own that has the address. */
const inNamespace = join(folder, "in-namespace");
writeFileSync(
  inNamespace,
  `#!/bin/sh
exec unshare -n sh -c 'ip link set lo up && ip link add lan type veth peer name end && ip addr add ${ADDRESS}/24 dev lan &&
  ip link set lan up && ip link set end up && exec "$0" "$@"' ${program} "$@"
`,
);
chmodSync(inNamespace, 0o755);

async function start(embedded_api: object): Promise<CollectorProcess> {
  const collector = await startCollector({ command: [inNamespace], policy: OPEN, settings: { embedded_api } });
  onTestFinished(async () => void (await collector.stop()));
  return collector;
}

/** What a request for the secrets with the collector's own key is answered. */
async function secretsOver(url: string, collector: CollectorProcess, ...words: string[]): Promise<string> {
  const own = (await readFile(join(collector.stateDir, "keys/collector.key"), "utf8")).trim();
  const { collector: uuid } = await collector.status();
  return (await curl(collector, ...words, "-H", `Authorization: ${own}`, `${url}/api/ext/v1/secrets?collector=${uuid}`)).out;
}

/** curl beside the collector: its exit code, and what it printed. */
async function curl({ pid }: CollectorProcess, ...words: string[]): Promise<{ readonly code: number; readonly out: string }> {
  const asked = ["-t", String(pid), "-n", "curl", "-sS", "--max-time", "10", ...words];
  try {
    return { code: 0, out: (await run("nsenter", asked)).stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { readonly code: number; readonly stdout: string; readonly stderr: string };
    return { code, out: stdout + stderr };
  }
}

const alarmsOf = async (collector: CollectorProcess): Promise<string> => textsOf((await collector.status()).alarms).join("\n");

/** What the program says when it does not start, and its exit code. */
function refusalOf(embedded_api: object, policy: object): { readonly code: number | null; readonly said: string } {
  const at = mkdtempSync(join(folder, "refused-"));
  const settings = join(at, "collector.yaml");
  writeFileSync(settings, stringify({ state_dir: join(at, "state"), http: { listen: "127.0.0.1:9420" }, embedded_api }));
  writeFileSync(join(at, "policy.yaml"), stringify(policy));
  const { status, stderr } = spawnSync(inNamespace, ["run", "--config", settings], { encoding: "utf8", timeout: 60_000 });
  return { code: status, said: stderr };
}

test.runIf(required)("what these tests need is here", () => expect(missing).toBeUndefined());

describe.skipIf(missing !== undefined)("beyond loopback", () => {
  test("neither without a certificate or a decision, nor where the policy does not open the address", { timeout: 120_000 }, () => {
    const plain = refusalOf({ listen: LISTEN }, OPEN);
    expect([plain.code, plain.said]).toEqual([
      2,
      expect.stringMatching(/embedded_api\.listen: .*name a certificate in tls, or set insecure: true/),
    ]);
    const closed = refusalOf({ listen: LISTEN, insecure: true }, {});
    expect([closed.code, closed.said]).toEqual([
      4,
      expect.stringMatching(/10\.99\.8\.1 is not among the addresses that policy\.yaml opens/),
    ]);
  });

  test("with insecure: true it serves plain http, and status shows it all the time", { timeout: 120_000 }, async () => {
    const collector = await start({ listen: LISTEN, insecure: true });
    const key = await collector.adminKey();
    expect(await curl(collector, "-H", `Authorization: ${key}`, `http://${LISTEN}/api/v2/sites`)).toEqual({
      code: 0,
      out: '{"data":[],"metadata":{"next_cursor":null}}',
    });
    // The keys are the person's decision; the passwords of machines stay where nobody reads along.
    expect(await secretsOver(`http://${LISTEN}`, collector)).toMatch(/^\{"detail":"secrets are given .*TLS/);
    expect(await alarmsOf(collector)).toMatch(
      /10\.99\.8\.1:8420 in plain http \(embedded_api\.insecure: true\): keys and passwords can be read/,
    );
    await expect.poll(async () => (await collector.status()).config, { timeout: 20_000 }).toMatchObject({ ok: true, origin: "api" });
  });

  test("with a certificate it serves https alone; the collector and the command line beside it reach it", {
    timeout: 120_000,
  }, async () => {
    const authority = await createAuthority();
    onTestFinished(() => authority.remove());
    const { cert, key: privateKey } = await authority.issue("api", `IP:${ADDRESS}`);
    const collector = await start({ listen: LISTEN, tls: { cert_file: cert, key_file: privateKey } });
    const key = await collector.adminKey();
    const sites = `https://${LISTEN}/api/v2/sites`;
    expect(await curl(collector, "--cacert", authority.ca, "-H", `Authorization: ${key}`, sites)).toMatchObject({
      code: 0,
      out: '{"data":[],"metadata":{"next_cursor":null}}',
    });
    expect(await secretsOver(`https://${LISTEN}`, collector, "--cacert", authority.ca)).toBe('{"secrets":{}}');
    // 60: the certificate is not trusted.
    expect(await curl(collector, "-H", `Authorization: ${key}`, sites)).toMatchObject({ code: 60 });
    expect(await curl(collector, "-w", "%{http_code}", `http://${LISTEN}/api/v2/sites`)).toEqual({
      code: 0,
      out: '{"detail":"this port speaks TLS: ask with https"}400',
    });
    // TLS 1.1 is not spoken. 35: the handshake failed.
    expect(await curl(collector, "--cacert", authority.ca, "--tls-max", "1.1", sites)).toMatchObject({ code: 35 });
    await expect.poll(async () => (await collector.status()).config, { timeout: 20_000 }).toMatchObject({ ok: true, origin: "api" });
    expect(await alarmsOf(collector)).not.toContain("plain http");
    const listed = await run(program, ["source", "list", "--config", collector.settingsFile]);
    expect(listed.stdout).toContain("No data sources");
  });
});
