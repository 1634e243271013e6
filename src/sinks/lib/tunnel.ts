import { STATUS_CODES } from "node:http";
import { isIP, type Socket } from "node:net";
import type { Context } from "../../model/context.ts";
import { toReasonError } from "../../model/failure.ts";
import { type ProxyAddress, proxyName } from "../../model/proxy-address.ts";
import { type PlainReasonType, ReasonError } from "../../model/reason.ts";
import { dial, withDeadline } from "./dial.ts";
import { HeadReader } from "./head-reader.ts";
import { hostPortOf, requestHostProblem } from "./request-host.ts";

export interface TunnelOptions {
  readonly proxy: ProxyAddress;
  /** The password of the proxy's user; undefined: the proxy has no user. */
  readonly password: string | undefined;
  /** The server behind the proxy: the proxy looks its name up. */
  readonly host: string;
  readonly port: number;
  /** For the look-up of the proxy's name, for the TCP connection to it and for all its answers, each. */
  readonly timeoutMs: number;
}

/**
 * Opens TCP to a server through a proxy. The policy judges the proxy's address as the one that is connected to, and the server's host as far as
 * this machine knows it: an address in full, a name by its port and by whether networks are named at all. Throws ReasonError with the condition
 * proxy_fails where the proxy is at fault or says no; leaves no socket behind then.
 */
export async function dialThrough(options: TunnelOptions, ctx: Context): Promise<Socket> {
  const { proxy, host, port, timeoutMs } = options;
  const problem = requestHostProblem(host);
  if (problem !== undefined) throw new ReasonError("UNKNOWN", `host: ${problem}`, { condition: "configuration_invalid" });
  const refusal = ctx.permit?.(host, port);
  if (refusal !== undefined) throw new ReasonError("UNKNOWN", refusal, { condition: "forbidden_by_policy" });
  const socket = await dial({ host: proxy.host, port: proxy.port, nameMs: timeoutMs, connectMs: timeoutMs }, ctx).catch(
    (error: unknown) => {
      throw proxyFailure(toReasonError(error), options);
    },
  );
  const reader = new HeadReader(socket);
  try {
    const opening = proxy.protocol === "http" ? httpConnect(socket, reader, options) : socks5(socket, reader, options);
    await withDeadline(opening, timeoutMs, ctx.signal, () => {
      return new ReasonError("TIMEOUT", `it did not open the way to ${hostPortOf(options)} within ${timeoutMs} ms`);
    });
    // Neither TLS nor MQTT lets the server speak first.
    if (reader.end() > 0) throw violation("it sends bytes of the server that nothing was sent to");
    return socket;
  } catch (error) {
    reader.end();
    socket.destroy();
    throw ctx.signal.aborted ? error : proxyFailure(toReasonError(error), options);
  }
}

/** Names the proxy as the failure's place. Failures of the policy, of a setting and of this machine keep their condition. */
function proxyFailure(error: ReasonError, { proxy }: TunnelOptions): ReasonError {
  const message = `the proxy ${proxyName(proxy)}: ${error.message}`;
  if (
    error.condition === "forbidden_by_policy" ||
    error.condition === "configuration_invalid" ||
    error.condition === "collector_host_trouble"
  )
    return new ReasonError(error.reason, message, { condition: error.condition, cause: error });
  return new ReasonError(error.reason, message, { condition: "proxy_fails", cause: error });
}

const violation = (message: string): ReasonError => new ReasonError("UNKNOWN", `${message}; is it a proxy of another kind?`);

/** Bound of one answer with its headers. */
const MAX_HEAD_BYTES = 16_384;

/** HTTP CONNECT (RFC 9110, 9.3.6), with a user as RFC 7617 has it. */
async function httpConnect(socket: Socket, reader: HeadReader, { proxy, password, host, port }: TunnelOptions): Promise<void> {
  const { user } = proxy;
  const target = hostPortOf({ host, port });
  const authorization =
    user === undefined ? "" : `Proxy-Authorization: Basic ${Buffer.from(`${user}:${password ?? ""}`).toString("base64")}\r\n`;
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`);
  const head = (await reader.until("\r\n\r\n", "HTTP/1.", MAX_HEAD_BYTES)).toString("latin1");
  const status = Number(/^HTTP\/1\.\d (\d{3})(?: |\r\n)/.exec(head)?.[1] ?? 0);
  if (status >= 200 && status < 300) return;
  if (status === 0 || status < 200) throw violation("it does not answer a CONNECT request as HTTP does");
  const words = `${status}${STATUS_CODES[status] === undefined ? "" : ` ${STATUS_CODES[status]}`}`;
  throw new ReasonError(
    status === 504 ? "TIMEOUT" : "UNKNOWN",
    `it answers CONNECT ${target} with ${words}: ${connectWords(status, head, user)}`,
  );
}

function connectWords(status: number, head: string, user: string | undefined): string {
  if (status === 407) {
    const schemes = [...head.matchAll(/^proxy-authenticate:[ \t]*([a-z0-9-]{1,20})/gim)].map(([, scheme = ""]) => scheme.toLowerCase());
    if (schemes.length > 0 && !schemes.includes("basic"))
      return `it wants a log-in by ${[...new Set(schemes)].join(" or ")}, which is not spoken; let it take Basic for this collector, or this broker without a user`;
    return user === undefined
      ? "it wants a user; name it in proxy of this sink, as http://USER@HOST:PORT, and keep its password with `sudo collector secret set NAME/users/USER`"
      : "it does not accept the user or its password; correct the user in proxy of this sink, or the password with `sudo collector secret set NAME/users/USER`";
  }
  if (status === 403 || status === 405)
    return "it does not let this collector to this broker; allow host and port in the proxy's own rules";
  if (status === 502)
    return "it cannot reach the broker; look whether host and port of this sink are right as the proxy's machine sees them";
  if (status === 503) return "it is not ready, or cannot reach the broker; it is tried again";
  if (status === 504)
    return "the broker did not answer the proxy; look whether host and port of this sink are right as the proxy's machine sees them";
  return "it does not open the way; the proxy's own log says why";
}

/** RFC 1928, 6, with what a person can do. */
const SOCKS_REPLIES: Readonly<Record<number, readonly [words: string, reason: PlainReasonType]>> = {
  1: ["general SOCKS server failure; the proxy's own log says why", "UNKNOWN"],
  2: ["connection not allowed by ruleset; allow host and port in the proxy's own rules", "UNKNOWN"],
  3: ["network unreachable, as the proxy's machine sees it", "NETWORK_UNREACHABLE"],
  4: ["host unreachable, as the proxy's machine sees it; it may not know the name", "NO_ROUTE_TO_HOST"],
  5: ["connection refused by the broker's machine; correct the port, or start the broker", "CONNECTION_REFUSED"],
  6: ["TTL expired on the way to the broker", "TIMEOUT"],
  7: ["command not supported: it does not open TCP connections", "UNKNOWN"],
  8: ["address type not supported; write the broker's host as another form: a name, or an IPv4 address", "UNKNOWN"],
};

const SOCKS_VERSION = 5;
/** RFC 1928, 3: no authentication, and RFC 1929: user and password. */
const NO_LOGIN = 0;
const USER_LOGIN = 2;
const NO_METHOD = 0xff;
const TCP_CONNECT = 1;
const ADDRESS_TYPES = { ipv4: 1, name: 3, ipv6: 4 } as const;
const MAX_FIELD_BYTES = 255;

/** SOCKS5 (RFC 1928), with user and password as RFC 1929 has them. */
async function socks5(socket: Socket, reader: HeadReader, { proxy, password = "", host, port }: TunnelOptions): Promise<void> {
  const { user } = proxy;
  if (Buffer.byteLength(password) > MAX_FIELD_BYTES)
    throw new ReasonError("UNKNOWN", `the password is longer than ${MAX_FIELD_BYTES} bytes`, { condition: "configuration_invalid" });
  const methods = user === undefined ? [NO_LOGIN] : [NO_LOGIN, USER_LOGIN];
  socket.write(Buffer.from([SOCKS_VERSION, methods.length, ...methods]));
  const [version, method = NO_METHOD] = await reader.take(2);
  if (version !== SOCKS_VERSION) throw violation("it does not answer as SOCKS5 does");
  if (method === NO_METHOD)
    throw new ReasonError(
      "UNKNOWN",
      user === undefined
        ? "it wants a user; name it in proxy of this sink, as socks5://USER@HOST:PORT, and keep its password with `sudo collector secret set NAME/users/USER`"
        : "it takes neither a user with a password nor a client without one",
    );
  if (!methods.includes(method)) throw violation(`it chooses the log-in ${method}, which was not offered`);
  if (method === USER_LOGIN) {
    const [name, secret] = [Buffer.from(user ?? ""), Buffer.from(password)];
    socket.write(Buffer.concat([Buffer.from([1, name.length]), name, Buffer.from([secret.length]), secret]));
    const [, status] = await reader.take(2);
    if (status !== 0)
      throw new ReasonError(
        "UNKNOWN",
        "it does not accept the user or its password; correct the user in proxy of this sink, or the password with `sudo collector secret set NAME/users/USER`",
      );
  }
  socket.write(Buffer.concat([Buffer.from([SOCKS_VERSION, TCP_CONNECT, 0]), socksAddress(host), Buffer.from([port >> 8, port & 0xff])]));
  const [replyVersion, reply = 0, , type] = await reader.take(4);
  if (replyVersion !== SOCKS_VERSION) throw violation("it does not answer as SOCKS5 does");
  if (reply !== 0) {
    const [words, reason] = SOCKS_REPLIES[reply] ?? ["a code that SOCKS5 does not have", "UNKNOWN"];
    throw new ReasonError(reason, `it does not connect to ${hostPortOf({ host, port })}: ${words} (code ${reply})`);
  }
  // The address that the proxy connects from says nothing here, and has to be read all the same.
  if (type === ADDRESS_TYPES.name) await reader.take(((await reader.take(1))[0] ?? 0) + 2);
  else if (type === ADDRESS_TYPES.ipv4 || type === ADDRESS_TYPES.ipv6) await reader.take(type === ADDRESS_TYPES.ipv4 ? 6 : 18);
  else throw violation("it answers with an address that SOCKS5 does not have");
}

/** A name goes as it is: the proxy looks it up. */
function socksAddress(host: string): Buffer {
  const family = isIP(host);
  if (family === 4) return Buffer.from([ADDRESS_TYPES.ipv4, ...host.split(".").map(Number)]);
  if (family === 6) return Buffer.from([ADDRESS_TYPES.ipv6, ...ipv6Bytes(host)]);
  const name = Buffer.from(host);
  return Buffer.concat([Buffer.from([ADDRESS_TYPES.name, name.length]), name]);
}

function ipv6Bytes(host: string): readonly number[] {
  // URL writes an IPv4 address at the end in hex, and the shortest run of zeros.
  const [head = "", tail] = new URL(`http://[${host}]/`).hostname.slice(1, -1).split("::");
  const groups = (text: string): readonly string[] => (text === "" ? [] : text.split(":"));
  const [before, after] = [groups(head), groups(tail ?? "")];
  const zeros = new Array<string>(Math.max(0, 8 - before.length - after.length)).fill("0");
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16)).flatMap((group) => [group >> 8, group & 0xff]);
}
