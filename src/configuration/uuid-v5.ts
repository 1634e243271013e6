import { createHash } from "node:crypto";

/** Name-based UUID, version 5 (RFC 9562, 5.5). Throws RangeError where `namespace` is not a UUID. */
export function uuidV5(namespace: string, name: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(namespace))
    throw new RangeError(`the namespace ${JSON.stringify(namespace)} is not a UUID`);
  const hash = createHash("sha1")
    .update(Buffer.from(namespace.replaceAll("-", ""), "hex"))
    .update(name, "utf8")
    .digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString("hex", 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
