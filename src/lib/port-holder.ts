import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** `st` of a socket that listens (proc_pid_net(5): TCP_LISTEN). */
const LISTENS = "0A";
/** Processes that are looked at. */
const MAX_PROCESSES = 2000;

/** Who listens on a port of this machine, in words: as far as this user may see it; undefined: nobody does, or it cannot be seen. */
export function portHolder(port: number): string | undefined {
  const holder = ["tcp", "tcp6"].flatMap((table) => linesOf(`/proc/self/net/${table}`)).find((one) => one.port === port);
  if (!holder) return undefined;
  if (last?.inode !== holder.inode) last = { inode: holder.inode, words: wordsOf(holder) };
  return last.words;
}

/** A socket has one inode for its life: who tries the same port every few seconds does not look through all processes each time. */
let last: { readonly inode: string; readonly words: string } | undefined;

function wordsOf({ inode, uid }: Holder): string {
  const pid = processOf(inode);
  const user = `the user ${nameOf(uid) ?? `with uid ${uid}`}`;
  return pid === undefined ? `a process of ${user}` : `process ${pid} of ${user} (${programOf(pid)})`;
}

interface Holder {
  readonly port: number;
  readonly uid: number;
  readonly inode: string;
}

/** Columns: sl local_address rem_address st queues timer retransmits uid timeout inode. */
function linesOf(file: string): readonly Holder[] {
  const lines = read(file).split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, local = "", , state, , , , uid, , inode = ""] = line.trim().split(/\s+/);
    return state === LISTENS ? [{ port: Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16), uid: Number(uid), inode }] : [];
  });
}

function processOf(inode: string): number | undefined {
  const pids = folder("/proc").filter((name) => /^\d+$/.test(name));
  const found = pids
    .slice(0, MAX_PROCESSES)
    .find((pid) => folder(`/proc/${pid}/fd`).some((fd) => link(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`));
  return found === undefined ? undefined : Number(found);
}

/** Its name and where it was started; none of its words, which may hold secrets. */
function programOf(pid: number): string {
  const name = read(`/proc/${pid}/comm`).trim();
  const cwd = link(`/proc/${pid}/cwd`);
  return cwd === undefined ? name : `${name}, in ${cwd}`;
}

const nameOf = (uid: number): string | undefined =>
  read("/etc/passwd")
    .split("\n")
    .map((line) => line.split(":"))
    .find(([, , id]) => id === String(uid))?.[0];

const read = (file: string): string => attempt(() => readFileSync(file, "utf8")) ?? "";
const folder = (at: string): readonly string[] => attempt(() => readdirSync(at)) ?? [];
const link = (at: string): string | undefined => attempt(() => readlinkSync(at));

function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
