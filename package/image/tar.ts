/** One entry of an archive. Its name is a path below the root, without a slash at either end. */
export type TarEntry = { readonly name: string; readonly mode: number; readonly owner?: number } & (
  | { readonly type: "file"; readonly content: Uint8Array }
  | { readonly type: "symlink"; readonly target: string }
  | { readonly type: "folder" }
);

const BLOCK = 512;
const TYPE_FLAG = { file: "0", symlink: "2", folder: "5", longName: "L" } as const;
const NAME_BYTES = 100;

/**
 * A tar archive of the entries, sorted by name, so that equal entries give equal bytes. `time` is in seconds of the epoch; owner and group are
 * the entry's number, 0 where it has none. Throws Error for a name twice, or a target of more than 100 bytes.
 */
export function tarOf(entries: readonly TarEntry[], time: number): Buffer {
  // A folder comes before what is in it: its name is the shorter one.
  const sorted = [...entries].sort((a, b) => (a.name < b.name ? -1 : 1));
  const twice = sorted.find(({ name }, i) => sorted[i + 1]?.name === name);
  if (twice) throw new Error(`${twice.name} is in the archive twice`);
  return Buffer.concat([...sorted.flatMap((entry) => blocksOf(entry, time)), Buffer.alloc(2 * BLOCK)]);
}

function blocksOf(entry: TarEntry, time: number): readonly Buffer[] {
  const name = Buffer.from(entry.type === "folder" ? `${entry.name}/` : entry.name);
  const target = Buffer.from(entry.type === "symlink" ? entry.target : "");
  if (target.length > NAME_BYTES) throw new Error(`${entry.name} is a link to a name of more than ${NAME_BYTES} bytes`);
  const content =
    entry.type === "file" ? Buffer.from(entry.content.buffer, entry.content.byteOffset, entry.content.length) : Buffer.alloc(0);
  const head = headerOf({ ...entry, name, target, size: content.length, flag: TYPE_FLAG[entry.type], time });
  const blocks = [head, content, padding(content.length)];
  if (name.length <= NAME_BYTES) return blocks;
  // The form of GNU tar, which each reader of images knows.
  const whole = Buffer.concat([name, Buffer.alloc(1)]);
  const long = { name: Buffer.from("././@LongLink"), target, mode: 0, size: whole.length, flag: TYPE_FLAG.longName, time: 0 };
  return [headerOf(long), whole, padding(whole.length), ...blocks];
}

interface Header {
  readonly name: Buffer;
  readonly target: Buffer;
  readonly mode: number;
  readonly owner?: number;
  readonly size: number;
  readonly flag: string;
  readonly time: number;
}

/** The block before the content, as POSIX.1-1988 (ustar) lays it out. */
function headerOf({ name, target, mode, owner = 0, size, flag, time }: Header): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number): void =>
    void block.write(value.toString(8).padStart(length - 1, "0"), at, "latin1");
  name.copy(block, 0, 0, NAME_BYTES);
  octal(mode, 100, 8);
  octal(owner, 108, 8);
  octal(owner, 116, 8);
  octal(size, 124, 12);
  octal(time, 136, 12);
  block.write(flag, 156, "latin1");
  target.copy(block, 157);
  block.write("ustar\x0000", 257, "latin1");
  // The sum counts its own field as spaces.
  block.fill(" ", 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

const padding = (length: number): Buffer => Buffer.alloc((BLOCK - (length % BLOCK)) % BLOCK);
