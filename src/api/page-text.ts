import type { YieldToEventLoop } from "../base/timer.ts";

/** JSON of up to so many characters is parsed in one go: about a millisecond. */
const AT_ONCE_CHARACTERS = 64 * 1024;
/** A longer record is none: parsing it would hold up the readouts. */
const MAX_RECORD_CHARACTERS = 256 * 1024;
/** How often the scan looks at the clock. */
const SCAN_CHARACTERS = 32 * 1024;

/**
 * The value of a page's JSON text (API-V2, 2.7: an object whose `data` is a list). A long text is parsed record by record, so that the
 * readouts go on meanwhile; a record of more than 256 Ki characters counts as null. Throws SyntaxError where it is not JSON.
 */
export async function parsePageText(text: string, yieldToEventLoop: YieldToEventLoop): Promise<unknown> {
  if (text.length <= AT_ONCE_CHARACTERS) return JSON.parse(text);
  const found = await findRecords(text, yieldToEventLoop);
  // Without its records a page is short; a long one is not a page of the API, whatever else it is.
  if (!found) return {};
  const envelope: unknown = JSON.parse(text.slice(0, found.from) + text.slice(found.to));
  if (typeof envelope !== "object" || envelope === null || !("data" in envelope)) return {};
  // Of a key that occurs twice the last value counts, which is not the one that was cut out.
  if (!Array.isArray(envelope.data) || envelope.data.length > 0) return {};
  const data: unknown[] = [];
  for (const [from, to] of found.records) {
    data.push(to - from > MAX_RECORD_CHARACTERS ? null : JSON.parse(text.slice(from, to)));
    await yieldToEventLoop();
  }
  return { ...envelope, data };
}

interface FoundRecords {
  /** The text between the brackets of `data`. */
  readonly from: number;
  readonly to: number;
  readonly records: readonly (readonly [from: number, to: number])[];
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];
const DATA_KEY = /[{,\s]"data"\s*:\s*$/;

/** Where the records of a page are, by brackets and quotes alone; undefined: it is an object without a list `data`, or too long without it. */
async function findRecords(text: string, yieldToEventLoop: YieldToEventLoop): Promise<FoundRecords | undefined> {
  if (!/^\s{0,100}\{/.test(text)) throw new SyntaxError("a page is an object");
  const records: (readonly [number, number])[] = [];
  let depth = 0;
  /** Behind the opening bracket of `data`; -1: not seen yet. */
  let from = -1;
  let to = -1;
  let recordFrom = -1;
  let lookAt = SCAN_CHARACTERS;
  for (let at = 0; at < text.length; at++) {
    if (at >= lookAt) {
      await yieldToEventLoop();
      lookAt = at + SCAN_CHARACTERS;
    }
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = closingQuote(text, at);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth++;
      if (code === OPEN_BRACKET && depth === 2 && from < 0 && DATA_KEY.test(text.slice(Math.max(0, at - 40), at))) {
        from = at + 1;
        recordFrom = from;
      }
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--;
      if (depth === 1 && from >= 0 && to < 0) {
        to = at;
        if (records.length > 0 || text.slice(from, at).trim() !== "") records.push([recordFrom, at]);
      }
    } else if (code === COMMA && depth === 2 && from >= 0 && to < 0) {
      records.push([recordFrom, at]);
      recordFrom = at + 1;
    }
  }
  if (depth !== 0) throw new SyntaxError("the text ends in the middle");
  return to < 0 || text.length - (to - from) > AT_ONCE_CHARACTERS ? undefined : { from, to, records };
}

function closingQuote(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at++;
    else if (code === QUOTE) return at;
  }
  throw new SyntaxError("a text is not closed");
}
