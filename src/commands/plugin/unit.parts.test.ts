import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import odac from "../../../drivers/odac/driver.ts";
import { driverContext } from "../../../test/support/driver-context.ts";
import { policySchema } from "../../model/policy.ts";
import { runCommand } from "../testing.ts";
import { LAUNCHER, unitFiles } from "./unit.ts";

const BROKEN = path.resolve(import.meta.dirname, "../../../test/support/plugin/broken.mjs");
const [SOCKET, SERVICE] = ["collector-plugin-odac.socket", "collector-plugin-odac@.service"];
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "unit-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("plugin unit", () => {
  const unitWith = (policy: object, command: readonly string[] = ["/opt/odac/plugin"]) =>
    unitFiles({ name: "odac", command, policy: policySchema.parse(policy) })[1]?.text ?? "";

  test("holds a plugin to the networks of the policy", () => {
    const networks = ["10.0.0.0/24", "fd00::/8"];
    expect(unitWith({ sources: { networks } })).toContain("IPAddressDeny=any\nIPAddressAllow=10.0.0.0/24 fd00::/8\n");
    expect(unitWith({ sources: { networks, loopback: true } })).toContain("IPAddressAllow=10.0.0.0/24 fd00::/8 localhost\n");
    expect(unitWith({ sources: { networks: [] } })).toMatch(/IPAddressDeny=any\n(?!IPAddressAllow)/);
    expect(unitWith({})).toMatch(/names no networks(?!.*\nIPAddressDeny)/);
  });

  test.runIf(existsSync("/usr/bin/systemd-analyze") || process.env["COLLECTOR_REQUIRE_PARTS"] === "1")(
    "writes units that systemd takes, with words of any characters",
    async () => {
      const config = path.join(folder, "collector.yaml");
      writeFileSync(path.join(folder, "policy.yaml"), "sources:\n  networks: [10.0.0.0/24]\n");
      const words = ["/bin/true", "--a", 'b "c" \\ $HOME %n', "it's"];
      const { code, out } = await runCommand("plugin", "unit", "odac", "--config", config, "--out", folder, "--json", "--", ...words);
      expect([code, JSON.parse(out)]).toMatchObject([0, { ok: true, socket: "/run/collector-plugin/odac.sock" }]);
      expect(readFileSync(path.join(folder, SERVICE), "utf8")).toContain("IPAddressAllow=10.0.0.0/24");
      const files = [SOCKET, SERVICE].map((name) => path.join(folder, name));
      const verified = spawnSync("systemd-analyze", ["verify", "--man=no", ...files], { encoding: "utf8" });
      // A machine without the collector's user or without a running systemd has words of its own; what is in these files is not in them.
      expect(verified.stderr.split("\n").filter((line) => line.includes("collector-plugin-odac"))).toEqual([]);
    },
  );

  test.each([
    [["Odac!", "/bin/true"], "expected a name of small letters"],
    [["odac", "plugin"], "expected an absolute path"],
    [["odac", "--out", "/no/such/folder", "/bin/true"], "--out /no/such/folder: ENOENT"],
  ])("says what is wrong in %j", async (words, message) => {
    const { code, err } = await runCommand("plugin", "unit", ...words);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe("the launcher of a unit", () => {
  /** As systemd does: one process, in a group of its own, for each connection, which is its standard input and output and blocks. */
  const SERVER = `
import socket, subprocess, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    subprocess.Popen(sys.argv[2:], stdin=connection, stdout=connection, env={"SECRET": "x"}, start_new_session=True)
    connection.close()
`;
  let server: ChildProcess | undefined;
  afterEach(() => void server?.kill("SIGKILL"));

  async function serve(way: string, file: string): Promise<string> {
    const at = path.join(folder, `${way}.sock`);
    const words = ["/bin/sh", "-c", LAUNCHER, "collector-plugin", process.execPath, BROKEN, way, file];
    const started = spawn("/usr/bin/python3", ["-c", SERVER, at, ...words], { stdio: ["ignore", "pipe", "ignore"] });
    server = started;
    await once(started.stdout, "data");
    return at;
  }
  const pidOf = (file: string): number => (JSON.parse(readFileSync(file, "utf8")) as { pid: number }).pid;

  async function open(way: string) {
    const file = path.join(folder, `${way}.json`);
    const socket = await serve(way, file);
    const settings = odac.settings.parse({ plugin: { socket } });
    const details = { type: "odac", host: "127.0.0.1", port: 1, protocol_override: null };
    const session = await odac.connect({ details, settings, secrets: {} }, driverContext());
    const [request] = odac.plan([{ index: 0, ...odac.parseAddress("a", { scalar: "uint16" }, settings) }], session.limits);
    if (!request) throw new Error("no request");
    return { session, request, file, settings };
  }

  test("reads over a socket, with an empty environment, and leaves nothing running", async () => {
    const { session, request, file, settings } = await open("good");
    expect(await session.read(request, driverContext())).toMatchObject([{ value: 1 }]);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ env: {} });
    expect(odac.warningsOf?.({}, settings).join()).not.toContain("own user");
    await session.close();
    await expect.poll(() => isRunning(pidOf(file)), { timeout: 15_000 }).toBe(false);
  });

  test("ends a plugin that hangs and ignores the end of its input", async () => {
    const { session, request, file } = await open("stays");
    await session.read(request, driverContext());
    await session.close();
    expect(session.alive()).toBe(false);
    await expect.poll(() => isRunning(pidOf(file)), { timeout: 15_000 }).toBe(false);
  });

  test("a plugin that dies is known at once", async () => {
    const { session, request } = await open("dies");
    await expect(session.read(request, driverContext())).rejects.toThrow(/dies\.sock ended without a request/);
    await session.close();
  });

  test("a socket that nobody listens on is trouble of this machine", async () => {
    const settings = odac.settings.parse({ plugin: { socket: path.join(folder, "none.sock") } });
    const details = { type: "odac", host: "127.0.0.1", port: 1, protocol_override: null };
    await expect(odac.connect({ details, settings, secrets: {} }, driverContext())).rejects.toMatchObject({
      condition: "collector_host_trouble",
      message: expect.stringContaining("none.sock cannot be used"),
    });
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
