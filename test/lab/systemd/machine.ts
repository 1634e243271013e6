import { execFile, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/** What the lab needs of the machine it runs on, and Debian's packages that bring it. */
const PARTS: Readonly<Record<string, string>> = {
  "systemd-nspawn": "systemd-container",
  mmdebstrap: "mmdebstrap",
  "dpkg-deb": "dpkg",
  "x86_64-linux-gnu-strip": "binutils",
  nsenter: "util-linux",
};
/** Debian 12: systemd 252, the oldest that is supported. */
const SUITE = "bookworm";
const PACKAGES = "systemd,systemd-sysv,dbus,procps,iproute2,libnss-systemd,ca-certificates,bash-completion,man-db";
/** Kept between runs: making a root takes 20 s. */
const CACHE = path.join(process.env["XDG_CACHE_HOME"] ?? path.join(os.homedir(), ".cache"), "collector-lab");
/** The commands have it. A program takes what earlier ones have compiled, as in vitest.config.ts. */
const ENVIRONMENT = {
  PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
  DEBIAN_FRONTEND: "noninteractive",
  NODE_COMPILE_CACHE: "/tmp/compiled",
};
const COMMAND_TIMEOUT_MS = 60_000;
const BOOT_WITHIN_MS = 60_000;

/** Why the lab cannot run here; undefined: it can. */
export function missingParts(): string | undefined {
  if (process.getuid?.() !== 0) return "it needs root";
  if (process.arch !== "x64") return "it boots the amd64 package";
  const missing = Object.entries(PARTS).filter(
    ([program]) => !(process.env["PATH"] ?? "").split(":").some((dir) => existsSync(path.join(dir, program))),
  );
  return missing.length === 0 ? undefined : `missing: ${missing.map(([program, from]) => `${program} (${from})`).join(", ")}`;
}

/** What a command in the machine printed, and how it ended. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A Debian that was booted with systemd as its first process; its network is the host's. */
export interface Machine {
  /** Its file system, as the host sees it. */
  readonly root: string;
  readonly bootMs: number;
  /** Runs a shell command; never throws for its exit code. */
  run(command: string, input?: string): Promise<Ran>;
  /** As `run`, and throws where the command fails. */
  must(command: string, input?: string): Promise<string>;
  stop(): Promise<void>;
}

/** Boots the root as if it were fresh: what is written lies over it in memory, and is gone when the machine stops. Throws Error. */
export async function bootMachine(): Promise<Machine> {
  const base = rootFolder();
  const began = performance.now();
  const log: string[] = [];
  // Without these capabilities and bpf the IP address lists of a unit are silently not enforced.
  const nspawn = spawn(
    "systemd-nspawn",
    [
      "--boot",
      "--register=no",
      "--keep-unit",
      "--quiet",
      "--console=pipe",
      "--capability=all",
      "--system-call-filter=bpf",
      "--volatile=overlay",
      "-D",
      base,
      `--machine=collector-lab-${process.pid}`,
    ],
    // Several machines at once may lie over the root, which none of them changes.
    { stdio: ["ignore", "pipe", "pipe"], detached: true, env: { ...process.env, SYSTEMD_NSPAWN_LOCK: "0" } },
  );
  for (const stream of [nspawn.stdout, nspawn.stderr]) stream.setEncoding("utf8").on("data", (text: string) => void log.push(text));
  const ended = new Promise<void>((done) => nspawn.once("exit", () => done()));
  const kill = () => void nspawn.kill("SIGKILL");
  process.once("exit", kill);
  const leader = await until("a first process", () => leaderOf(nspawn.pid ?? 0), log);
  const root = `/proc/${leader}/root`;
  writeFileSync(path.join(root, "etc/hosts"), "127.0.0.1 localhost\n");
  const run = (command: string, input = ""): Promise<Ran> =>
    new Promise((done) => {
      const child = execFile(
        "nsenter",
        ["-t", String(leader), "-m", "-u", "-i", "-n", "-p", "-C", "--", "/bin/sh", "-c", command],
        {
          timeout: COMMAND_TIMEOUT_MS,
          maxBuffer: 64 * 2 ** 20,
          env: ENVIRONMENT,
        },
        (error, stdout, stderr) => done({ code: error ? (typeof error.code === "number" ? error.code : -1) : 0, stdout, stderr }),
      );
      child.stdin?.on("error", () => undefined).end(input);
    });
  await until("a running system", async () => /running|degraded/.test((await run("systemctl is-system-running")).stdout) || undefined, log);
  return {
    root,
    bootMs: performance.now() - began,
    run,
    async must(command, input) {
      const { code, stdout, stderr } = await run(command, input);
      if (code !== 0) throw new Error(`${command}: ${code}\n${stdout}${stderr}`);
      return stdout;
    },
    async stop() {
      // SIGRTMIN+14 powers systemd off at once (systemd(1)); its name is not known to Node.
      execFileSync("sh", ["-c", `kill -RTMIN+14 ${leader}`]);
      const timer = setTimeout(kill, 30_000);
      await ended;
      clearTimeout(timer);
      process.removeListener("exit", kill);
    },
  };
}

/** A Debian with systemd, made once. */
function rootFolder(): string {
  const folder = path.join(CACHE, `${SUITE}-${createHash("sha256").update(PACKAGES).digest("hex").slice(0, 8)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const making = mkdtempSync(path.join(CACHE, "making-"));
  execFileSync("mmdebstrap", ["--quiet", "--variant=minbase", `--include=${PACKAGES}`, SUITE, making], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  renameSync(making, folder);
  return folder;
}

/** The machine's first process: nspawn's child, once it has become systemd. */
function leaderOf(nspawn: number): number | undefined {
  const read = (file: string): string => {
    try {
      return readFileSync(file, "utf8");
    } catch {
      return "";
    }
  };
  const children = read(`/proc/${nspawn}/task/${nspawn}/children`).trim().split(" ").filter(Boolean);
  return children.map(Number).find((pid) => read(`/proc/${pid}/comm`).trim() === "systemd");
}

async function until<T>(what: string, look: () => T | undefined | Promise<T | undefined>, log: readonly string[]): Promise<T> {
  const deadline = performance.now() + BOOT_WITHIN_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`the lab has no ${what} within ${BOOT_WITHIN_MS} ms:\n${log.join("")}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
