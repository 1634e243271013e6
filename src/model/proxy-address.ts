import { endText } from "./address.ts";

/** A proxy on the way to a server, as the setting `proxy` names it. */
export interface ProxyAddress {
  readonly protocol: "http" | "socks5";
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  /** Undefined: it wants none. */
  readonly user: string | undefined;
}

const DEFAULT_PORTS: Readonly<Record<ProxyAddress["protocol"], number>> = { http: 3128, socks5: 1080 };
/** RFC 1929, 2: one byte has the length of a user and of a password. */
const MAX_USER_BYTES = 255;
const EXPECTED = "expected an address such as http://proxy.example:3128, http://USER@proxy.example:3128 or socks5://proxy.example:1080";

/** The proxy that a text names, or what is wrong with the text, without repeating it: it may hold a password. Pure. */
export function parseProxy(text: string): ProxyAddress | { readonly problem: string } {
  const [, scheme = "", place = ""] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]+)\/?$/i.exec(text) ?? [];
  const protocol = scheme.toLowerCase();
  if (protocol === "https" || protocol === "socks4" || protocol === "socks")
    return { problem: `${protocol} is not spoken; the proxy has to speak HTTP CONNECT (http://) or SOCKS5 (socks5://)` };
  if (protocol !== "http" && protocol !== "socks5") return { problem: EXPECTED };
  // Both schemes are read by the rules of http, which know a host's forms.
  const url = URL.canParse(`http://${place}`) ? new URL(`http://${place}`) : undefined;
  if (!url || url.hostname === "") return { problem: EXPECTED };
  if (url.password !== "")
    return { problem: "holds a password; name the user alone, and keep the password with `sudo collector secret set NAME/users/USER`" };
  const port = /:(\d+)$/.exec(place)?.[1];
  const user = decoded(url.username);
  if (user === undefined) return { problem: "the user holds a % that is not an escape; write %25 for it" };
  if (Buffer.byteLength(user) > MAX_USER_BYTES) return { problem: `the user is longer than ${MAX_USER_BYTES} bytes` };
  // RFC 7617, 2: the first colon ends the user.
  if (protocol === "http" && user.includes(":"))
    return { problem: "the user holds a colon, which HTTP cannot tell from the password's beginning" };
  return {
    protocol,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: port === undefined ? DEFAULT_PORTS[protocol] : Number(port),
    user: user === "" ? undefined : user,
  };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The proxy that local options name, where they name one as it has to be; undefined: the way is straight. Pure. */
export function proxyIn(options: unknown): ProxyAddress | undefined {
  const text: unknown = typeof options === "object" && options !== null && "proxy" in options ? options.proxy : undefined;
  const parsed = typeof text === "string" ? parseProxy(text) : undefined;
  return parsed && !("problem" in parsed) ? parsed : undefined;
}

/** `http://proxy.example:3128`, without its user. Pure. */
export const proxyName = ({ protocol, host, port }: ProxyAddress): string => `${protocol}://${endText({ address: host, port })}`;
