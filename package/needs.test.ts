import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { isAtLeast, NEEDS, SETTINGS_SINCE, symbolsOf } from "./needs.ts";

const ROOT = path.resolve(import.meta.dirname, "..");
/** Settings of the units that systemd 232 and older knew: the manual of 254 and later names the version of each. */
const OLDER =
  /^(Description|Documentation|After|Wants|WantedBy|ConditionDirectoryNotEmpty|StartLimitIntervalSec|Type|NotifyAccess|SyslogIdentifier|Exec(Start|Reload)|Restart(Sec)?|Timeout(Start|Stop)Sec|WatchdogSec|KillMode|User|Group|UMask|(State|Runtime|Configuration)Directory(Mode)?|Memory(High|Max)|TasksMax|Limit(NOFILE|CORE)|NoNewPrivileges|CapabilityBoundingSet|AmbientCapabilities|Protect(System|Home|KernelModules|KernelTunables|ControlGroups)|Private(Tmp|Devices|Users|Network)|Device(Policy|Allow)|Restrict(Namespaces|Realtime|AddressFamilies)|RemoveIPC|MemoryDenyWriteExecute|SystemCall(Architectures|Filter|ErrorNumber))$/;

describe("needs of the package", () => {
  it("names a systemd that knows each setting of its units", () => {
    const units = globSync("*.service", { cwd: path.join(ROOT, "systemd") });
    expect(units.sort()).toEqual(["collector-credentials.service", "collector.service"]);
    for (const unit of units) {
      const text = readFileSync(path.join(ROOT, "systemd", unit), "utf8");
      const settings = new Set(Array.from(text.matchAll(/^(\w+)=/gm), ([, name = ""]) => name));
      expect(settings.size).toBeGreaterThan(20);
      for (const name of settings)
        if (!OLDER.test(name)) expect(SETTINGS_SINCE[name], `since when ${name} is known`).toBeLessThanOrEqual(NEEDS.systemd);
    }
  });

  it("stands in the guide", () => {
    const guide = readFileSync(path.join(ROOT, "docs/guide/installing.md"), "utf8");
    for (const needed of [`glibc ${NEEDS.glibc}`, `GLIBCXX_${NEEDS.glibcxx}`, `systemd ${NEEDS.systemd}`]) expect(guide).toContain(needed);
  });

  it("reads the highest version of each kind from readelf", () => {
    const printed =
      "  0x0010:   Name: GLIBC_2.9  Flags: none\n  0x0020:   Name: GLIBC_2.28  Flags: none\n  Name: GLIBCXX_3.4.29  Name: CXXABI_1.3.9";
    expect([...symbolsOf(printed)]).toEqual([
      ["GLIBC", "2.28"],
      ["GLIBCXX", "3.4.29"],
    ]);
  });

  it("compares versions by their numbers", () => {
    expect([isAtLeast("2.34", "2.34"), isAtLeast("2.34", "2.4"), isAtLeast("2.4", "2.34"), isAtLeast("3.4", "3.4.1")]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
