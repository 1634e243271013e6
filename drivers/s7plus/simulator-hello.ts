import { Reader, WireError } from "./simulator-wire.ts";

// RFC 8446, 4.1.2 and 4.2: the first record, its message, the extension of groups; RFC 8422: x25519.
const [HANDSHAKE, CLIENT_HELLO, GROUPS] = [22, 1, 10];
const X25519 = 0x001d;
/** Groups that no real CPU knew: hybrids with ML-KEM. */
const HYBRIDS: ReadonlySet<number> = new Set([0x11eb, 0x11ec, 0x11ed]);
/** The longest that was seen to be taken is far below. */
const LARGEST = 700;

/** Why a CPU resets this first record of a client's; undefined: it goes on. */
export function helloFault(record: Buffer): string | undefined {
  if (record.length > LARGEST) return `a client hello of ${record.length} bytes`;
  try {
    const groups = groupsOf(new Reader(record));
    if (!groups.includes(X25519)) return "a client hello without X25519";
    const hybrid = groups.find((group) => HYBRIDS.has(group));
    return hybrid === undefined ? undefined : `a client hello with the hybrid group ${hybrid.toString(16)}`;
  } catch (error) {
    if (error instanceof WireError) return `no client hello: ${error.message}`;
    throw error;
  }
}

function groupsOf(reader: Reader): readonly number[] {
  if (reader.u8() !== HANDSHAKE) throw new WireError("it is not a handshake");
  reader.take(4);
  if (reader.u8() !== CLIENT_HELLO) throw new WireError("it is another message");
  // Length, version and random; session id; suites; compressions.
  reader.take(3 + 2 + 32);
  reader.take(reader.u8());
  reader.take(reader.u16());
  reader.take(reader.u8());
  const extensions = new Reader(reader.take(reader.u16()));
  while (extensions.left > 0) {
    const type = extensions.u16();
    const body = new Reader(extensions.take(extensions.u16()));
    if (type !== GROUPS) continue;
    const list = new Reader(body.take(body.u16()));
    return Array.from({ length: list.left / 2 }, () => list.u16());
  }
  return [];
}
