import net from "node:net";
import type { ProxyEnvironment } from "../os/proxy-environment.ts";
import { isLoopback } from "./loopback.ts";

/** An HTTP proxy on the way to the API. */
export interface HttpProxy {
  readonly protocol: "http:" | "https:";
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  /** `host:port`, for messages; without user and password. */
  readonly name: string;
  /** Value of Proxy-Authorization (RFC 7617); undefined: no user is named. */
  readonly authorization: string | undefined;
  /** What names it, for messages: `api.proxy`, or the environment. */
  readonly setting: string;
}

/** Bound of a user or a password, in characters: a header takes 16 KiB. */
const MAX_CREDENTIAL = 1024;

/**
 * The proxy for requests to `url`; undefined: straight there. This machine's loopback is never asked through a proxy, and NO_PROXY is about
 * the environment's alone. Throws an Error that names the setting or variable and nothing of its value. Pure.
 */
export function proxyFor(
  url: URL,
  configured: { readonly url: string; readonly password: string | undefined } | undefined,
  environment: ProxyEnvironment,
): HttpProxy | undefined {
  if (isLoopback(url.hostname)) return undefined;
  if (configured) return checked(url, proxyOf(configured.url, "api.proxy", configured.password));
  const [text, variable] = url.protocol === "https:" ? [environment.https, "HTTPS_PROXY"] : [environment.http, "HTTP_PROXY"];
  if (text === undefined || isExempt(url, environment.none ?? "")) return undefined;
  // curl takes a proxy without a scheme for one that is spoken to in plain http.
  return checked(url, proxyOf(text.includes("://") ? text : `http://${text}`, `the environment's ${variable}`, undefined));
}

function checked(url: URL, proxy: HttpProxy): HttpProxy {
  if (url.protocol === "http:" && proxy.protocol === "https:")
    throw new Error(`${proxy.setting}: a proxy with https takes requests to an API with https only; name its http address`);
  return proxy;
}

function proxyOf(text: string, setting: string, password: string | undefined): HttpProxy {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.hostname === "") throw new Error(`${setting}: is not an address; expected one such as http://proxy.example:3128`);
  const { protocol, hostname, port } = url;
  if (protocol !== "http:" && protocol !== "https:")
    throw new Error(`${setting}: ${protocol.slice(0, -1)} is not spoken; name an HTTP proxy (http:// or https://)`);
  const number = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  const user = decoded(url.username, setting);
  const secret = password ?? decoded(url.password, setting);
  // RFC 7617, 2: the first colon ends the user.
  if (user.includes(":")) throw new Error(`${setting}: the user holds a colon, which HTTP cannot tell from the password's beginning`);
  if (user.length > MAX_CREDENTIAL || secret.length > MAX_CREDENTIAL)
    throw new Error(`${setting}: user or password is longer than ${MAX_CREDENTIAL} characters`);
  return {
    protocol,
    host: hostname.replace(/^\[|\]$/g, ""),
    port: number,
    name: `${hostname}:${number}`,
    authorization: user === "" && secret === "" ? undefined : `Basic ${Buffer.from(`${user}:${secret}`).toString("base64")}`,
    setting,
  };
}

function decoded(text: string, setting: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`${setting}: user or password holds a % that is not an escape; write %25 for it`);
  }
}

/**
 * True: NO_PROXY names the host of `url`: `*`, a name with all below it (with or without a leading dot or `*.`), an address, a network
 * (`10.0.0.0/8`), each with or without a port; separated by commas or blanks. As curl has it.
 */
function isExempt(url: URL, list: string): boolean {
  const host = url.hostname.replace(/^\[|\]$|\.$/g, "").toLowerCase();
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .some((entry) => fits(entry, host, port));
}

function fits(entry: string, host: string, port: string): boolean {
  if (entry === "*") return true;
  const bracketed = /^\[([^\]]*)\](?::(\d+))?$/.exec(entry);
  const [, name = entry, itsPort] = bracketed ?? (net.isIPv6(entry) ? [] : (/^([^:]*):(\d+)$/.exec(entry) ?? []));
  if (itsPort !== undefined && itsPort !== port) return false;
  const version = net.isIP(host);
  if (version !== 0) return isWithin(host, version === 6 ? "ipv6" : "ipv4", name);
  const bare = name.replace(/^\*?\./, "").replace(/\.$/, "");
  return bare !== "" && (host === bare || host.endsWith(`.${bare}`));
}

function isWithin(address: string, family: net.IPVersion, network: string): boolean {
  const [start = "", bits, ...more] = network.split("/");
  const longest = family === "ipv6" ? 128 : 32;
  const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
  if (net.isIP(start) !== (family === "ipv6" ? 6 : 4) || more.length > 0 || prefix < 0 || prefix > longest) return false;
  const subnet = new net.BlockList();
  subnet.addSubnet(start, prefix, family);
  return subnet.check(address, family);
}

/** What a proxy's status means, where it opens no tunnel. */
export function refusalWords(status: number, { name, authorization, setting }: HttpProxy): string {
  if (status !== 407) return `the proxy ${name} (${setting}) does not open the way to the API: it answered ${status}`;
  return authorization === undefined
    ? `the proxy ${name} (${setting}) wants a user (407): name it as http://USER@${name} in api.proxy, and its password's file in api.proxy_password_file`
    : `the proxy ${name} (${setting}) does not accept the user or its password (407)`;
}
