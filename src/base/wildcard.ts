/**
 * True: the text is of the pattern whose `*`, which stand for any text, separate the parts; one part alone may be anywhere. In linear time,
 * because readouts wait meanwhile. Pure.
 */
export function matches(text: string, parts: readonly string[]): boolean {
  const [first = "", ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) return text.includes(first);
  if (!text.startsWith(first)) return false;
  let from = first.length;
  for (const part of rest) {
    const at = text.indexOf(part, from);
    if (at === -1) return false;
    from = at + part.length;
  }
  return text.length - last.length >= from && text.endsWith(last);
}
