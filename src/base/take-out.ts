/** Takes one item out of a short list, in place and without making another list. False: it is not in it. */
export function takeOut<T>(list: T[], item: T): boolean {
  const at = list.indexOf(item);
  if (at < 0) return false;
  list.copyWithin(at, at + 1);
  list.length--;
  return true;
}
