import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** True: a C compiler is there; where parts are required (COLLECTOR_REQUIRE_PARTS), the attempt to use it says that it is not. */
export function hasCompiler(): boolean {
  if (process.env["COLLECTOR_REQUIRE_PARTS"]) return true;
  try {
    execFileSync("gcc", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Builds `<name>/shim.c` into `folder`; returns the path for LD_PRELOAD. Throws what the compiler says. */
export function buildShim(name: "powerloss" | "failio" | "clock" | "nolocks" | "nolocks", folder: string): string {
  const target = join(folder, `${name}.so`);
  execFileSync("gcc", ["-O1", "-shared", "-fPIC", "-o", target, join(import.meta.dirname, name, "shim.c"), "-ldl", "-lpthread"]);
  return target;
}
