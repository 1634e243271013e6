import { statfs } from "node:fs/promises";
import os from "node:os";
import process from "node:process";
import { listenProblem } from "../lib/port-look.ts";

/** What the machine says of itself. */

/** Bytes that an unprivileged user may still write where `folder` is; undefined: it cannot be asked. */
export async function freeBytes(folder: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

/** Names and versions of what the collector runs on. */
export function versions(): Readonly<Record<string, string>> {
  const { node = "?", v8 = "?", openssl = "?" } = process.versions;
  return { node, v8, openssl, system: `${os.type()} ${os.release()}`, architecture: os.arch(), hostname: os.hostname() };
}

export type PortState = "free" | "taken" | "unknown";

/** True: a TCP address of this machine can be listened on now; it is not kept. Never throws. */
export async function portState(host: string, port: number): Promise<PortState> {
  const problem = await listenProblem(host, port);
  if (!problem) return "free";
  return problem.code === "EADDRINUSE" ? "taken" : "unknown";
}
