/*
 * A pack: rows of the table `batch` with rising ids, of any sources, in two blobs of streams (pack-bytes.ts). The rows of one layout, and of
 * one shape (pack-shape.ts), are a group; its numbers are kept in columns (pack-column.ts).
 *   head: what counts, acknowledgements and losses need. HEAD, per group: layout varint, kind u8, flags u8 (TIMED alone), rows varint, and the
 *         columns ts, n and n_exploration · IDS: per row the distance to the id before it · ORDER: per row its group, 0 where it is the group
 *         that followed that of the row before the last time
 *   body: BODY, per group: the columns time and span, the prefix, the fields as runs of a kind, and per field its column; the column of the
 *         bytes behind the fields · TAIL: these bytes
 * Each row comes out of it as it went in, to the bit.
 */
/** Kinds of a group. Numbers on disk: never changed, only added to. */
/** Payloads that no header can be told of. */
export const OPAQUE = 0;
/** Payloads with time and span. */
export const TIMED = 1;

/** Streams. */
export const HEAD = 1;
export const IDS = 2;
export const ORDER = 3;
export const BODY = 4;
export const TAIL = 5;

/** Areas of streams for the planes of columns (`AREA`). Fields have the area of their kind, behind these. */
export const TS_AREA = 1;
export const COUNT_AREA = 2;
export const TIME_AREA = 3;
export const SPAN_AREA = 4;
export const LENGTH_AREA = 5;
export const FIELD_AREA = 8;

/** Rows of one pack, and bytes that it may have unpacked; what claims more is damaged. */
export const MAX_ROWS = 2 ** 18;
export const MAX_BYTES = 512 * 2 ** 20;
