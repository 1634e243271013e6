/** Versions that the package needs on a machine, for Debian, rpm and the guide. Tests compare programs and units with them. */
export const NEEDS = {
  /** better-sqlite3's native part needs it; Node is content with 2.28. */
  glibc: "2.34",
  /** Version of libstdc++'s symbols, and the GCC that brought it: better-sqlite3's native part needs them too. */
  glibcxx: "3.4.29",
  gcc: 11,
  /** Credentials from a folder, and systemd-creds. */
  systemd: 250,
} as const;

/** Settings of the units that came with systemd 233 and later, and with which; the manual of each says so. */
export const SETTINGS_SINCE: Readonly<Record<string, number>> = {
  RuntimeDirectoryPreserve: 235,
  LockPersonality: 235,
  KeyringMode: 235,
  IPAddressDeny: 235,
  IPAddressAllow: 235,
  PrivateMounts: 239,
  OOMPolicy: 243,
  RestrictSUIDSGID: 242,
  ProtectHostname: 242,
  ProtectKernelLogs: 244,
  ProtectClock: 245,
  ProtectProc: 247,
  ProcSubset: 247,
  LoadCredential: 247,
  SetCredential: 247,
};

/** Version symbols of a program (`readelf -V`), the highest of each kind: `GLIBC` → `2.34`. Pure. */
export function symbolsOf(printed: string): ReadonlyMap<string, string> {
  const highest = new Map<string, string>();
  for (const [, kind = "", version = ""] of printed.matchAll(/\bName: (GLIBC|GLIBCXX|GCC)_([\d.]+)/g))
    if (!isAtLeast(highest.get(kind) ?? "0", version)) highest.set(kind, version);
  return highest;
}

/** True where a version of numbers and dots is the other one or a later one. Pure. */
export function isAtLeast(version: string, other: string): boolean {
  const [one = [], two = []] = [version, other].map((text) => text.split(".").map(Number));
  for (let i = 0; i < Math.max(one.length, two.length); i++) {
    const difference = (one[i] ?? 0) - (two[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
