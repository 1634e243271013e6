import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { createSecureContext, type SecureContext } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import type { HttpProxy } from "./proxy.ts";
import { TunnelAgent } from "./tunnel.ts";

/** How the API's address is reached: what TLS needs, as PEM, and a proxy. Holds secrets: for comparing and connecting only. */
export interface Route {
  /** Certificate authorities instead of Node's and the system's. */
  readonly ca?: string | undefined;
  /** Certificate that this collector shows the server, with its private key. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly proxy?: HttpProxy | undefined;
}

/** The connections that a request may use. */
export interface Agents {
  /** Keeps connections for later requests. */
  readonly kept: HttpAgent;
  /** One for a single request, on a connection of its own. */
  single(): HttpAgent;
}

const MAX_CONNECTIONS = 4;

/** Connections to one API, along the route that is given for each request; those of an earlier route end with their request. */
export class Connections {
  readonly #overTls: boolean;
  readonly #connectMs: number;
  #now: { readonly route: Route; readonly agents: Agents } | undefined;

  /** `connectMs`: from the start of a connection to an open tunnel. */
  constructor({ overTls, connectMs }: { readonly overTls: boolean; readonly connectMs: number }) {
    this.#overTls = overTls;
    this.#connectMs = connectMs;
  }

  /** Throws Node's error where certificate and key do not belong together. */
  along(route: Route): Agents {
    const before = this.#now;
    if (before && isDeepStrictEqual(before.route, route)) return before.agents;
    const agents = this.#agents(route);
    if (before) retire(before.agents.kept);
    this.#now = { route, agents };
    return agents;
  }

  close(): void {
    this.#now?.agents.kept.destroy();
    this.#now = undefined;
  }

  #agents(route: Route): Agents {
    const secureContext = this.#overTls ? secureContextOf(route) : undefined;
    const make = (keepAlive: boolean): HttpAgent => {
      const options = { keepAlive, maxSockets: MAX_CONNECTIONS };
      if (!this.#overTls) return new HttpAgent(options);
      if (!route.proxy) return new HttpsAgent({ ...options, ...(secureContext && { secureContext }) });
      return new TunnelAgent({ proxy: route.proxy, connectMs: this.#connectMs, secureContext, ca: route.ca }, options);
    };
    return { kept: make(true), single: () => make(false) };
  }
}

/** Undefined: Node's own, whose authorities all connections of the process share. */
function secureContextOf({ ca, cert, key }: Route): SecureContext | undefined {
  return ca === undefined && cert === undefined ? undefined : createSecureContext({ ca, cert, key });
}

/** Requests under way end as they would have; what is idle is closed, and what becomes idle. */
function retire(agent: HttpAgent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}
