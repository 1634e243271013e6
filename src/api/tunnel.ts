import { type ClientRequest, request as httpRequest, type RequestOptions } from "node:http";
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIPv6, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect, type SecureContext, type TLSSocket } from "node:tls";
import { formatDuration } from "../base/duration.ts";
import { networkWords } from "./network-words.ts";
import { type HttpProxy, refusalWords } from "./proxy.ts";

/** The proxy cannot be reached, or opens no tunnel. The message is for people. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
}

export interface TunnelOptions {
  readonly proxy: HttpProxy;
  /** From the start to the tunnel, in milliseconds: name, TCP, the proxy's own TLS, CONNECT. */
  readonly connectMs: number;
  /** Of the API's server; undefined: Node's. */
  readonly secureContext: SecureContext | undefined;
  /** Authorities of a proxy that is spoken to with https; undefined: Node's. */
  readonly ca: string | undefined;
}

type OnSocket = (error: Error | null, socket: Duplex) => void;

/**
 * Connections to HTTPS servers through an HTTP proxy (CONNECT; RFC 9110, 9.3.6), each in a tunnel of its own. Node's agents can do it too
 * (`proxyEnv`), but without a deadline on what the proxy answers, nor a bound of its length.
 */
export class TunnelAgent extends HttpsAgent {
  readonly #options: TunnelOptions;
  /** Requests for a tunnel under way. */
  readonly #asking = new Set<ClientRequest>();

  constructor(options: TunnelOptions, agentOptions: AgentOptions) {
    super(agentOptions);
    this.#options = options;
  }

  override createConnection(options: RequestOptions & { readonly servername?: string }, onSocket?: OnSocket): undefined {
    const { secureContext } = this.#options;
    const host = options.host ?? "localhost";
    const target = `${isIPv6(host) ? `[${host}]` : host}:${options.port ?? 443}`;
    // The agent takes an error without a socket, as Node's own connections end; its type wants both.
    const failed = (error: Error): void => (onSocket as ((error: Error) => void) | undefined)?.(error);
    this.#open(target, failed, (socket) => {
      const secured: TLSSocket = connect({
        socket,
        host,
        ...(options.servername !== undefined && { servername: options.servername }),
        ...(secureContext && { secureContext }),
      });
      onSocket?.(null, secured);
    });
  }

  override destroy(): void {
    for (const asking of this.#asking) asking.destroy(new ProxyError("stopped"));
    super.destroy();
  }

  #open(target: string, failed: (error: Error) => void, opened: (socket: Socket) => void): void {
    const { proxy, connectMs } = this.#options;
    const asking = this.#ask(target);
    this.#asking.add(asking);
    const timer = setTimeout(
      () => asking.destroy(new ProxyError(`the proxy ${proxy.name} did not open the way within ${formatDuration(connectMs)}`)),
      connectMs,
    );
    let isSettled = false;
    const settle = (then: () => void): void => {
      clearTimeout(timer);
      this.#asking.delete(asking);
      if (!isSettled) then();
      isSettled = true;
    };
    asking.on("error", (error) => settle(() => failed(inWords(error, proxy))));
    // What answers CONNECT like any other request.
    asking.on("response", (response) => {
      response.destroy();
      settle(() => failed(new ProxyError(refusalWords(response.statusCode ?? 0, proxy))));
    });
    asking.on("close", () => settle(() => failed(new ProxyError(`the proxy ${proxy.name} closed the connection`))));
    asking.on("connect", (response, socket: Socket, head) => {
      const status = response.statusCode ?? 0;
      if (isSettled || status < 200 || status >= 300) {
        socket.destroy();
        return settle(() => failed(new ProxyError(refusalWords(status, proxy))));
      }
      if (head.length > 0) socket.unshift(head);
      settle(() => opened(socket));
    });
    asking.end();
  }

  #ask(target: string): ClientRequest {
    const { proxy, ca } = this.#options;
    const { authorization } = proxy;
    const options = {
      host: proxy.host,
      port: proxy.port,
      method: "CONNECT",
      path: target,
      agent: false as const,
      headers: { host: target, ...(authorization !== undefined && { "proxy-authorization": authorization }) },
    };
    return proxy.protocol === "https:" ? httpsRequest({ ...options, ...(ca !== undefined && { ca }) }) : httpRequest(options);
  }
}

const inWords = (error: Error, { name }: HttpProxy): Error =>
  error instanceof ProxyError ? error : new ProxyError(`the proxy ${name}: ${networkWords(error)}`, { cause: error });
