/** Bytes of a batch's row in addition to its payload: its header, its numbers and its place in the page. */
const ROW_BYTES = 34;
/** Of a page that holds rows, and of a page that continues one (https://www.sqlite.org/fileformat2.html#b_tree_pages). */
const LEAF_HEADER_BYTES = 8;
const OVERFLOW_HEADER_BYTES = 4;

/** Bytes that a batch takes in the file, as SQLite fills its pages: rows of one size, one behind the other. Pure. */
export function rowBytes(payloadBytes: number, pageBytes: number): number {
  const bytes = payloadBytes + ROW_BYTES;
  const maxLocal = pageBytes - 35;
  if (bytes <= maxLocal) return shareOfLeaf(bytes, pageBytes);
  const perOverflow = pageBytes - OVERFLOW_HEADER_BYTES;
  const minLocal = Math.floor(((pageBytes - 12) * 32) / 255) - 23;
  const rest = minLocal + ((bytes - minLocal) % perOverflow);
  const local = rest <= maxLocal ? rest : minLocal;
  return shareOfLeaf(local, pageBytes) + Math.ceil((bytes - local) / perOverflow) * pageBytes;
}

/** A leaf takes whole rows only: what is too small for the next one stays empty. */
const shareOfLeaf = (bytes: number, pageBytes: number): number =>
  pageBytes / Math.max(1, Math.floor((pageBytes - LEAF_HEADER_BYTES) / bytes));
