const [QUOTE, BACKSLASH, COLON, BRACKET, BRACE] = [0x22, 0x5c, 0x3a, 0x5b, 0x7b];

/**
 * True: a JSON text has more than `most` objects, lists and fields. Each takes 20 times its characters once it is parsed, so that this is
 * asked before. For a text that is not JSON the answer has no meaning. Pure.
 */
export function hasMoreParts(text: string, most: number): boolean {
  if (text.length <= most) return false;
  let parts = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if ((code === BRACE || code === BRACKET || code === COLON) && ++parts > most) return true;
  }
  return false;
}

/** The place where the string ends that begins at `start`: at the quote with an even number of backslashes before it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}
