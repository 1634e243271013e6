import type { Duplex } from "node:stream";
import type { Context } from "../../model/context.ts";
import type { ProxyAddress } from "../../model/proxy-address.ts";
import { ReasonError } from "../../model/reason.ts";
import { dial } from "../lib/dial.ts";
import { hostPortOf, requestHostProblem } from "../lib/request-host.ts";
import { secure, type TlsSettings, tlsReason } from "../lib/tls.ts";
import { dialThrough } from "../lib/tunnel.ts";

/** How a broker is reached: TCP, through a proxy where there is one, then TLS, then WebSocket. */
export interface WayOptions {
  readonly host: string;
  readonly port: number;
  /** How a command names the sink, for next steps. */
  readonly sink?: string;
  readonly proxy?: ProxyAddress | undefined;
  readonly proxyPassword?: string | undefined;
  /** Absent: plain TCP. */
  readonly tls?: TlsSettings | undefined;
  /** Absent: MQTT over TCP. */
  readonly websocketPath?: string | undefined;
  /** Deadline of the name look-up, the TCP connect, the proxy's answers, the TLS handshake and the WebSocket handshake, each. */
  readonly connectTimeoutMs: number;
}

/** A stream to the broker, on which it waits for CONNECT. Throws ReasonError; nothing is left open then. */
export async function openWay(options: WayOptions, ctx: Context): Promise<Duplex> {
  const { host, port, sink = "NAME", proxy, proxyPassword, tls, websocketPath, connectTimeoutMs: timeoutMs } = options;
  if (websocketPath !== undefined) requireHost(host);
  const plain = proxy
    ? await dialThrough({ proxy, password: proxyPassword, host, port, timeoutMs }, ctx)
    : await dial({ host, port, nameMs: timeoutMs, connectMs: timeoutMs }, ctx);
  const socket = tls ? await secure(plain, tls, { host, port, timeoutMs, sink }, ctx.signal) : plain;
  if (websocketPath !== undefined) {
    // Loaded where it is used: most brokers are reached without.
    const { openWebSocket } = await import("../lib/websocket.ts");
    const endpoint = hostPortOf({ host, port });
    const explainTls = (error: unknown) => tls && tlsReason(error, endpoint, tls, sink);
    return await openWebSocket(
      socket,
      { endpoint, path: websocketPath, isSecure: tls !== undefined, timeoutMs, sink, explainTls },
      ctx.signal,
    );
  }
  if (!socket.destroyed && !socket.readableEnded) return socket;
  socket.destroy();
  throw new ReasonError("CONNECTION_CLOSED", `${hostPortOf({ host, port })} closed the connection`);
}

function requireHost(host: string): void {
  const problem = requestHostProblem(host);
  if (problem !== undefined) throw new ReasonError("UNKNOWN", `host: ${problem}`, { condition: "configuration_invalid" });
}
