import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const NETLAB = path.join(ROOT, "test/lab/netlab.sh");
const NODE = path.join(ROOT, "node_modules/.bin/node");
export const PLANT_PORT = 5020;
/** The device loses its power, and with it all that it knew of its connections; nothing of it reaches the collector. */
export const POWER = "device-power";

/** What the collector host said, see collector-host.ts. */
export interface Told {
  readonly at: number;
  readonly source?: string;
  readonly good?: true;
  readonly state?: string;
  readonly reason?: string;
  readonly condition?: string | null;
  readonly detail?: string;
  readonly applied?: true;
  /** Epoch ms, as status shows it; null: not waiting for a retry. */
  readonly retryAt?: number | null;
  readonly failedReadouts?: number;
}

export interface Lab {
  /** All that was told so far. */
  readonly told: readonly Told[];
  apply(sources: readonly unknown[]): void;
  /** Asks for `retryAt` and `failedReadouts` of each source. */
  askRetries(): void;
  /** A switch of netlab.sh, or POWER. */
  fault(name: string): Promise<void>;
  heal(): Promise<void>;
  down(): Promise<void>;
}

const env = {
  ...process.env,
  PATH: `${path.join(ROOT, "node_modules/.bin")}:${process.env["PATH"] ?? ""}`,
  NETLAB_QUIET: "1",
  NETLAB_TTL: "900",
};

/** Why the lab cannot be built here; undefined: it can. */
export function missingParts(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  for (const program of ["ip", "nft"])
    try {
      execFileSync("sh", ["-c", `PATH=/usr/sbin:/sbin:$PATH command -v ${program}`], { stdio: "ignore" });
    } catch {
      return `needs ${program} (Debian packages iproute2 and nftables)`;
    }
  return undefined;
}

/** Builds a lab of its own with a Modbus device and the collector's agent in it. */
export async function startLab(): Promise<Lab> {
  const id = `c${(process.pid % 1_000_000).toString(36)}`;
  const run = (...args: string[]) =>
    new Promise<void>((done, fail) =>
      execFile(NETLAB, args, { env: { ...env, NETLAB_ID: id }, timeout: 60_000 }, (error, stdout, stderr) =>
        error ? fail(new Error(`netlab ${args.join(" ")}: ${stdout}${stderr}`, { cause: error })) : done(),
      ),
    );
  await run("up");
  const children: ChildProcess[] = [];
  const inside = (where: string, script: string, ...args: string[]) => {
    const child = spawn(NETLAB, ["exec", where, NODE, path.join(import.meta.dirname, script), ...args], {
      env: { ...env, NETLAB_ID: id },
      stdio: ["pipe", "pipe", "inherit"],
    });
    children.push(child);
    return child;
  };
  const told: Told[] = [];
  const startDevice = async () => {
    const started = inside("dev", "device-host.ts", String(PLANT_PORT));
    await new Promise((ready, fail) => {
      started.stdout.once("data", ready);
      started.once("exit", (code) => fail(new Error(`the device host ended with ${code}`)));
    });
    return started;
  };
  let device = await startDevice();
  let hasPower = true;
  const inDevice = (...command: string[]) => run("exec", "dev", ...command);
  const powerOff = async () => {
    hasPower = false;
    await inDevice("sh", "-c", "echo 1 >/proc/sys/net/ipv4/tcp_orphan_retries");
    await inDevice("nft", "add table inet power; add chain inet power out { type filter hook output priority 0; policy drop; }");
    const ended = new Promise((done) => device.once("exit", done));
    device.stdin.end();
    await ended;
  };
  const powerOn = async () => {
    if (hasPower) return;
    hasPower = true;
    // The kernel must have forgotten the connections before the way is open again.
    const forgotten = `for i in $(seq 120); do [ -z "$(ss -Htan state connected sport = :${PLANT_PORT})" ] && exit 0; sleep 0.1; done; exit 1`;
    await inDevice("sh", "-c", forgotten);
    await inDevice("nft", "delete table inet power");
    device = await startDevice();
  };
  const collector = inside("col", "collector-host.ts");
  createInterface({ input: collector.stdout }).on("line", (line) => told.push(JSON.parse(line) as Told));
  return {
    told,
    apply: (sources) => void collector.stdin.write(`${JSON.stringify(sources)}\n`),
    askRetries: () => void collector.stdin.write(`${JSON.stringify("retries")}\n`),
    fault: (name) => (name === POWER ? powerOff() : run("fault", ...name.split(" "))),
    async heal() {
      await powerOn();
      await run("heal");
    },
    async down() {
      for (const child of children) child.stdin?.end();
      await run("down");
    },
  };
}
