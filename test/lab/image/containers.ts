import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/** The programs that start containers here, and Debian's packages that bring them. */
const PARTS: Readonly<Record<string, string>> = {
  crun: "crun",
  mmdebstrap: "mmdebstrap",
  mosquitto_sub: "mosquitto-clients",
  ip: "iproute2",
  setpriv: "util-linux",
  nsenter: "util-linux",
};
/** Debian's nobody: containers belong to it, and root in them is nobody here. */
const USER = 65534;
const WITHIN_MS = 30_000;

/** Why containers cannot be started here; undefined: they can. */
export function missingParts(): string | undefined {
  if (process.getuid?.() !== 0) return "it needs root for a network of its own; the containers themselves run without";
  if (process.arch !== "x64") return "it starts the amd64 image";
  const folders = (process.env["PATH"] ?? "").split(":");
  const missing = Object.entries(PARTS).filter(([program]) => !folders.some((dir) => existsSync(path.join(dir, program))));
  if (missing.length > 0) return `missing: ${missing.map(([program, from]) => `${program} (${from})`).join(", ")}`;
  try {
    execFileSync("setpriv", [...AS_USER, "unshare", "--user", "true"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "users may not make user namespaces on this machine";
  }
}

const AS_USER = [`--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"];

/** The parts of a service in a compose file that a container here gets. */
export interface ComposeService {
  readonly command?: readonly string[];
  readonly user?: string;
  readonly network_mode: "host";
  readonly read_only: boolean;
  readonly cap_drop: readonly ["ALL"];
  readonly security_opt: readonly ["no-new-privileges:true"];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
}
/** Its other keys, which a container here does without: limits need a cgroup, and nothing is started again. */
const NOT_HERE = ["container_name", "image", "healthcheck", "mem_limit", "stop_grace_period", "restart"];
const HERE = ["command", "user", "network_mode", "read_only", "cap_drop", "security_opt", "volumes", "tmpfs"];

/** An image of which a container can be made. */
export interface UnpackedImage {
  readonly root: string;
  /** Digest of each layer before packing. */
  readonly layers: readonly string[];
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly WorkingDir: string;
  };
}

/** Unpacks an image's archive into `folder`, as a runtime would: from the index down to the layers, one over the other. */
export function unpackImage(archive: string, folder: string): UnpackedImage {
  const root = path.join(folder, "root");
  mkdirSync(root, { recursive: true });
  execFileSync("tar", ["-xf", archive, "-C", folder]);
  const blob = ({ digest }: { readonly digest: string }): string => path.join(folder, "blobs", digest.replace(":", "/"));
  const json = (file: string) => JSON.parse(readFileSync(file, "utf8"));
  const manifest = json(blob(json(path.join(folder, "index.json")).manifests[0]));
  for (const layer of manifest.layers) execFileSync("tar", ["-xpzf", blob(layer), "-C", root]);
  chmodSync(root, 0o755);
  const { config, rootfs } = json(blob(manifest.config));
  return { root, layers: rootfs.diff_ids, config };
}

export interface Container {
  readonly log: readonly string[];
  /** Number of its first process, as this machine sees it. */
  pid(): number;
  /** Runs a program in it, as its user; never throws for the exit code. */
  exec(...words: readonly string[]): Promise<{ readonly code: number; readonly out: string }>;
  /** Sends SIGTERM, waits, and returns its exit code. */
  stop(): Promise<number>;
}

/** A network without any other machine, in which containers and programs share 127.0.0.1. `folder` holds what they keep. */
export class ContainerHost {
  readonly #folder: string;
  readonly #holder: ChildProcess;
  readonly #children: ChildProcess[] = [];
  readonly #enter: readonly string[];

  private constructor(folder: string, holder: ChildProcess) {
    this.#folder = folder;
    this.#holder = holder;
    this.#enter = ["-t", String(holder.pid), "-n", "-m", "--"];
  }

  static async start(folder: string): Promise<ContainerHost> {
    chmodSync(folder, 0o755);
    for (const name of ["state", "volumes"]) {
      mkdirSync(path.join(folder, name));
      chownSync(path.join(folder, name), USER, USER);
    }
    // crun refuses a machine with cgroups of both versions; containers here have none.
    const script = "ip link set lo up; umount -l /sys/fs/cgroup/unified 2>/dev/null; echo up; exec sleep 900";
    const holder = spawn("unshare", ["--net", "--mount", "sh", "-c", script], { stdio: ["ignore", "pipe", "inherit"] });
    const host = new ContainerHost(folder, holder);
    await said(holder, /up/, []);
    return host;
  }

  /** A program of this machine in the network, until the host ends; settles once it says `ready`. */
  async program(ready: RegExp, ...words: readonly string[]): Promise<void> {
    const child = spawn("nsenter", [...this.#enter, ...words], { stdio: ["pipe", "pipe", "inherit"] });
    this.#children.push(child);
    await said(child, ready, []);
  }

  /** Runs a program of this machine in the network; resolves to its output. Rejects where it fails. */
  output(...words: readonly string[]): Promise<string> {
    return new Promise((done, fail) =>
      execFile("nsenter", [...this.#enter, ...words], { timeout: WITHIN_MS }, (error, out) => (error ? fail(error) : done(out))),
    );
  }

  /** Starts a service of the compose file in `composeFolder`, without root, and waits until it says `ready`. */
  async container(name: string, service: ComposeService, image: UnpackedImage, composeFolder: string, ready: RegExp): Promise<Container> {
    const bundle = path.join(this.#folder, name);
    mkdirSync(bundle);
    writeFileSync(path.join(bundle, "config.json"), JSON.stringify(this.#specOf(service, image, composeFolder)));
    const crun = [...this.#enter, "setpriv", ...AS_USER, "crun", "--root", path.join(this.#folder, "state")];
    const user = service.user ?? image.config.User;
    const child = spawn("nsenter", [...crun, "run", "--bundle", bundle, name], { stdio: ["ignore", "pipe", "pipe"] });
    this.#children.push(child);
    const ended = new Promise<number>((done) => child.once("exit", (code) => done(code ?? -1)));
    const log: string[] = [];
    await said(child, ready, log);
    return {
      log,
      pid: () => JSON.parse(execFileSync("nsenter", [...crun, "state", name], { encoding: "utf8" })).pid,
      exec: (...words) =>
        new Promise((done) =>
          execFile("nsenter", [...crun, "exec", "--user", user, name, ...words], { timeout: WITHIN_MS }, (error, out, err) =>
            done({ code: error ? (typeof error.code === "number" ? error.code : -1) : 0, out: out + err }),
          ),
        ),
      stop() {
        execFileSync("nsenter", [...crun, "kill", name, "SIGTERM"]);
        return ended;
      },
    };
  }

  /** Ends all that runs in it. */
  end(): void {
    for (const child of [...this.#children, this.#holder]) child.kill("SIGKILL");
  }

  /** The runtime's settings (OCI runtime-spec): one user, no rights of root, and volumes as the only places to write to. */
  #specOf(service: ComposeService, { root, config }: UnpackedImage, composeFolder: string): object {
    const unknown = Object.keys(service).filter((key) => !HERE.includes(key) && !NOT_HERE.includes(key));
    if (unknown.length > 0) throw new Error(`the compose file has ${unknown.join(", ")}, which containers here do not know`);
    const { command = config.Cmd, user = config.User, tmpfs = [], volumes = [] } = service;
    const [uid, gid] = user.split(":").map(Number);
    return {
      ociVersion: "1.0.2",
      process: {
        user: { uid, gid },
        args: [...config.Entrypoint, ...command],
        env: config.Env,
        cwd: config.WorkingDir,
        capabilities: {},
        noNewPrivileges: true,
      },
      root: { path: root, readonly: service.read_only },
      mounts: [
        { destination: "/proc", type: "proc", source: "proc" },
        { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=64k"] },
        ...tmpfs.map((destination) => ({ destination, type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev", "mode=1777"] })),
        ...volumes.map((text) => this.#volume(text, composeFolder)),
      ],
      linux: {
        namespaces: ["user", "mount", "pid", "ipc"].map((type) => ({ type })),
        uidMappings: [{ containerID: uid, hostID: USER, size: 1 }],
        gidMappings: [{ containerID: gid, hostID: USER, size: 1 }],
        maskedPaths: ["/proc/kcore", "/proc/keys"],
        readonlyPaths: ["/proc/sys"],
      },
    };
  }

  #volume(text: string, composeFolder: string): object {
    const [from = "", destination, access = "rw"] = text.split(":");
    const isFile = from.startsWith("./");
    const source = isFile ? path.join(composeFolder, from) : path.join(this.#folder, "volumes", from);
    if (!isFile && !existsSync(source)) {
      mkdirSync(source, { mode: 0o750 });
      chownSync(source, USER, USER);
    }
    return { destination, type: "bind", source, options: ["bind", access] };
  }
}

/** Settles once the process prints what `ready` matches; all its lines go into `log`. Rejects where it ends before. */
function said(child: ChildProcess, ready: RegExp, log: string[]): Promise<void> {
  return new Promise((done, fail) => {
    const failed = (why: string): void => fail(new Error(`${child.spawnargs.join(" ")}: ${why}\n${log.join("\n")}`));
    const timer = setTimeout(() => failed(`did not say ${ready} within ${WITHIN_MS} ms`), WITHIN_MS);
    child.once("exit", (code) => failed(`ended with ${code}`));
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        log.push(...text.trimEnd().split("\n"));
        if (!ready.test(text)) return;
        clearTimeout(timer);
        done();
      });
  });
}
