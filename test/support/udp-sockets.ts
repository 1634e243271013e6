import { readFileSync } from "node:fs";

/** Local ports of this machine's sockets that are connected to a UDP port of it: no datagram tells a device that a socket was closed. */
export function socketsConnectedTo(port: number): readonly number[] {
  const remote = port.toString(16).toUpperCase().padStart(4, "0");
  return readFileSync("/proc/net/udp", "latin1")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([, local, far]) => (far?.endsWith(`:${remote}`) && local ? [Number.parseInt(local.split(":")[1] ?? "", 16)] : []));
}
