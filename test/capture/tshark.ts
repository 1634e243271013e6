import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";

export const isMissing = spawnSync("tshark", ["--version"]).status !== 0;

/** What a packet is to tshark. */
export interface Seen {
  /** `ip:tcp:tpkt:cotp:s7comm`, as far as it could take it apart. */
  readonly protocols: string;
  readonly flags: string;
  readonly ports: readonly string[];
  readonly comment: string;
  /** The line that it has for people, of the protocol that it took apart last. */
  readonly info: string;
  /** Of the packet: malformed, a wrong checksum, bytes that are missing before it. Empty: none. */
  readonly trouble: string;
}

const FIELDS = [
  "frame.protocols",
  "tcp.flags",
  "tcp.port",
  "udp.port",
  "frame.comment",
  "_ws.col.Info",
  "_ws.malformed",
  "tcp.analysis.flags",
  "ip.checksum.status",
  "tcp.checksum.status",
  "udp.checksum.status",
];
const OPTIONS = ["tcp.check_checksum:TRUE", "udp.check_checksum:TRUE", "ip.check_checksum:TRUE"];
/** Of a checksum: it is wrong. */
const BAD = "0";

/** The packets of a capture. */
export function look(capture: Uint8Array): readonly Seen[] {
  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-tshark-"));
  const file = path.join(folder, "capture.pcapng");
  try {
    writeFileSync(file, capture);
    const fields = FIELDS.flatMap((field) => ["-e", field]);
    const options = OPTIONS.flatMap((option) => ["-o", option]);
    const text = execFileSync("tshark", ["-2", "-r", file, ...options, "-T", "fields", ...fields], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 60_000,
    });
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map(seen);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function seen(line: string): Seen {
  const [protocols = "", flags = "", tcp = "", udp = "", comment = "", info = "", malformed = "", analysis = "", ...sums] =
    line.split("\t");
  const hasBadSum = sums.some((status) => status.split(",").includes(BAD));
  const trouble = [malformed && "malformed", analysis && "analysis", hasBadSum && "checksum"].filter(Boolean).join(" ");
  return { protocols, flags, ports: (tcp || udp).split(","), comment, info, trouble: trouble && `${trouble}: ${info}` };
}
