import { isIP } from "node:net";
import { endText } from "../../model/address.ts";
import { hostProblem } from "../../model/host.ts";

/** `host:port` of a proxy or a server, an IPv6 address in brackets. Pure. */
export const hostPortOf = ({ host, port }: { readonly host: string; readonly port: number }): string => endText({ address: host, port });

/** Says why a host cannot go into a request as it is; undefined: it can. Pure. */
export function requestHostProblem(host: string): string | undefined {
  const problem = hostProblem(host);
  if (problem !== undefined) return problem;
  if (isIP(host) !== 0 && !host.includes("%")) return undefined;
  return /^[a-z0-9_]([a-z0-9_.-]{0,252})$/i.test(host)
    ? undefined
    : "a host in a request to a proxy or a web server has only letters, digits, dots and hyphens";
}
