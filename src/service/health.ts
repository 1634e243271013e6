import { listenRefusal } from "../lib/policy.ts";
import type { Log } from "../model/context.ts";
import type { Policy } from "../model/policy.ts";
import { type HttpListener, type Page, startHttpListener } from "./http-listener.ts";
import type { Metrics } from "./metrics.ts";

export interface HealthOptions {
  /** `address:port`. */
  readonly listen: string;
  readonly policy: Policy;
  readonly metrics: Metrics;
  readonly isHealthy: () => boolean;
  readonly isReady: () => boolean;
  readonly log: Log;
  readonly onTrouble: (message: string) => void;
}

/** /metrics, /healthz and /readyz; undefined where the policy does not let it listen, which is an alarm. */
export function startHttp({ listen, policy, metrics, isHealthy, isReady, log, onTrouble }: HealthOptions): HttpListener | undefined {
  const closed = listenRefusal(policy, listen);
  if (closed !== undefined) {
    onTrouble(`http.listen: ${closed}; metrics and health are not served`);
    return undefined;
  }
  const pages = {
    "/metrics": async () => ({ status: 200, contentType: metrics.contentType, body: await metrics.text() }),
    "/healthz": () => verdict(isHealthy(), "no data source that is due is being read; restart the collector if this lasts"),
    "/readyz": () => verdict(isReady(), "not ready: no configuration is at work yet; see collector status"),
  };
  // Closed by its own end: until then a stopping service says that it is not ready.
  return startHttpListener({ listen, pages, onTrouble }, { signal: new AbortController().signal, log });
}

const verdict = (ok: boolean, otherwise: string): Page => ({
  status: ok ? 200 : 503,
  contentType: "text/plain; charset=utf-8",
  body: ok ? "ok\n" : `${otherwise}\n`,
});
