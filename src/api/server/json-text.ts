/** Text of a longer body is not searched for its error: each try reads all before it. */
const MAX_SEARCHED = 64 * 1024;

/** The text of a JSON body (RFC 8259, 8.1): UTF-8, whose byte order mark is passed over. Undefined: it is not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export interface Position {
  /** From 1. */
  readonly line: number;
  /** In characters, from 1. */
  readonly column: number;
}

/** The place where a text stops being JSON; undefined: it is JSON, or too long to be searched. Nothing of the text is given back. */
export function jsonErrorAt(text: string): Position | undefined {
  if (text.length > MAX_SEARCHED || endOf(text) === "good") return undefined;
  // The longest beginning that something could follow: all that are shorter could be followed too.
  let [good, bad] = [0, text.length + 1];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (endOf(text.slice(0, middle)) === "bad") bad = middle;
    else good = middle;
  }
  const before = text.slice(0, good).split("\n");
  return { line: before.length, column: [...(before.at(-1) ?? "")].length + 1 };
}

/** True: a text is JSON, the beginning of one, or neither. */
function endOf(text: string): "good" | "open" | "bad" {
  try {
    JSON.parse(text);
    return "good";
  } catch (error) {
    const message = error instanceof Error ? error.message : "";
    if (/^Unexpected end|^Unterminated string/.test(message)) return "open";
    const at = / at position (\d+)/.exec(message)?.[1];
    // A literal or number that is cut off is complained about at its end.
    return (at !== undefined && Number(at) >= text.length) || /(?:^|[[{:,\s])(?:t|tr|tru|f|fa|fal|fals|n|nu|nul)$/.test(text)
      ? "open"
      : "bad";
  }
}
