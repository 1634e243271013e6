import { lookup } from "node:dns/promises";
import { type Address, literalAddress } from "../model/address.ts";

/** The addresses of a host by the system's own look-up, which may take half a minute for a dead name. Rejects as that does. */
export async function systemAddresses(host: string): Promise<readonly Address[]> {
  const literal = literalAddress(host);
  if (literal) return [literal];
  const found = await lookup(host, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}
