import { execFileSync } from "node:child_process";
import { chmodSync, lstatSync, lutimesSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

export interface DebOptions {
  /** The tree as it will be installed; `DEBIAN/` is added here. */
  readonly tree: string;
  readonly out: string;
  readonly control: Readonly<Record<string, string>>;
  /** Paths in the tree that an upgrade keeps as the person left them. */
  readonly conffiles: readonly string[];
  /** Text by name: postinst, prerm, postrm. */
  readonly scripts: Readonly<Record<string, string>>;
  /** Path in the tree → mode, where it is neither that of a plain file nor of a program. */
  readonly modes: Readonly<Record<string, number>>;
  /** Seconds of the epoch: every time stamp. */
  readonly sourceDate: number;
  /** False: packs fast and large, for a test. */
  readonly small: boolean;
}

/** Builds one .deb from the tree, the same bytes from the same tree. Throws Error. */
export function buildDeb({ tree, out, control, conffiles, scripts, modes, sourceDate, small }: DebOptions): void {
  const files = entriesOf(tree);
  const installedKiB = files.reduce((sum, file) => sum + Math.ceil((file.isFile ? file.size : 1024) / 1024), 0);
  for (const { name, isFile, executable } of files)
    chmodSync(path.join(tree, name), modes[name] ?? (!isFile || executable ? 0o755 : 0o644));
  const meta = path.join(tree, "DEBIAN");
  mkdirSync(meta);
  // Modes are set apart: those given on creation depend on the umask.
  chmodSync(meta, 0o755);
  const putMeta = (name: string, text: string, mode: number): void => {
    writeFileSync(path.join(meta, name), text);
    chmodSync(path.join(meta, name), mode);
  };
  const fields = Object.entries({ ...control, "Installed-Size": String(installedKiB) });
  const summed = files.filter(({ isFile, name }) => isFile && !conffiles.includes(name)).map(({ name }) => name);
  putMeta("control", `${fields.map(([key, value]) => `${key}: ${value}`).join("\n")}\n`, 0o644);
  if (conffiles.length > 0) putMeta("conffiles", `${conffiles.map((file) => `/${file}`).join("\n")}\n`, 0o644);
  putMeta("md5sums", execFileSync("md5sum", summed, { cwd: tree, encoding: "utf8" }), 0o644);
  for (const [name, text] of Object.entries(scripts)) putMeta(name, text, 0o755);
  for (const { name } of entriesOf(tree)) lutimesSync(path.join(tree, name), sourceDate, sourceDate);
  chmodSync(tree, 0o755);
  lutimesSync(tree, sourceDate, sourceDate);
  // One thread: the blocks that several cut depend on their number.
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(sourceDate), DPKG_DEB_THREADS_MAX: "1" };
  const compression = small ? ["-Zxz", "-z9"] : ["-Zgzip", "-z1"];
  execFileSync("dpkg-deb", ["--root-owner-group", ...compression, "--build", tree, out], { env, stdio: ["ignore", "ignore", "inherit"] });
}

interface Entry {
  readonly name: string;
  readonly isFile: boolean;
  readonly size: number;
  readonly executable: boolean;
}

/** Everything below the tree, in an order that does not depend on the file system. */
function entriesOf(tree: string): readonly Entry[] {
  return readdirSync(tree, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const stat = lstatSync(path.join(tree, name));
      return { name, isFile: stat.isFile(), size: stat.size, executable: (stat.mode & 0o100) !== 0 };
    });
}
