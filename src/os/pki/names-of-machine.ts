import { hostname, type NetworkInterfaceInfo, networkInterfaces } from "node:os";

/** The names and addresses of this machine for its certificate. Informative only: who connects by another one is served all the same. */
export function namesOfMachine(
  name: string = hostname(),
  interfaces: Readonly<Record<string, readonly Pick<NetworkInterfaceInfo, "address" | "internal">[] | undefined>> = networkInterfaces(),
): { readonly dns: readonly string[]; readonly ip: readonly string[] } {
  const ip = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address))
    .map(({ address }) => address.split("%")[0] ?? address);
  // A host name that DNS does not permit would make a certificate that others cannot read.
  return { dns: /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(name) ? [name] : [], ip: [...new Set(ip)].sort() };
}
