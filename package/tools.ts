import { accessSync, constants } from "node:fs";
import path from "node:path";

/** Debian's names of the architectures that packages are made for, the bundler's and rpm's. */
export const ARCHITECTURES = {
  amd64: { arch: "x64", strip: "x86_64-linux-gnu-strip", rpm: "x86_64" },
  arm64: { arch: "arm64", strip: "aarch64-linux-gnu-strip", rpm: "aarch64" },
} as const;
export type Architecture = keyof typeof ARCHITECTURES;

/** Programs that packaging starts, and Debian's packages that bring them. */
const TOOLS: Readonly<Record<string, string>> = {
  "dpkg-deb": "dpkg",
  git: "git",
  md5sum: "coreutils",
  npm: "npm",
  tar: "tar",
  "x86_64-linux-gnu-strip": "binutils-x86-64-linux-gnu",
  "aarch64-linux-gnu-strip": "binutils-aarch64-linux-gnu",
};

/** The programs that images need in addition. */
const IMAGE_TOOLS: Readonly<Record<string, string>> = { mmdebstrap: "mmdebstrap" };

/** The programs that packages, and images where they are wanted, for these architectures need and that are in no folder of `searchPath` (PATH), each with Debian's package. */
export function lackingTools(architectures: readonly Architecture[], searchPath: string, withImages: boolean): readonly string[] {
  const strips: readonly string[] = Object.values(ARCHITECTURES).map(({ strip }) => strip);
  const needed = architectures.map((name): string => ARCHITECTURES[name].strip);
  return Object.entries({ ...TOOLS, ...(withImages && IMAGE_TOOLS) })
    .filter(([tool]) => !strips.includes(tool) || needed.includes(tool))
    .filter(([tool]) => !hasTool(tool, searchPath))
    .map(([tool, from]) => `${tool} (${from})`);
}

/** If a program is in a folder of `searchPath` (PATH). */
export const hasTool = (tool: string, searchPath: string): boolean =>
  searchPath.split(":").some((folder) => isProgram(path.join(folder, tool)));

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
