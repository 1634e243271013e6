const LONGEST_NAME = 60;

/** `press-1-20260102T030405Z.pcapng`: of a source and a time, epoch ms. Pure. */
export function captureFileName(source: string, atMs: number): string {
  const plain = source
    .replaceAll(/[^\w.-]+/g, "_")
    .replace(/^[.-]+/, "")
    .slice(0, LONGEST_NAME);
  const time = new Date(atMs).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  return `${plain || "source"}-${time}.pcapng`;
}
