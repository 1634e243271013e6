import { resolveHost } from "../../drivers/lib/resolve.ts";
import { optionsOfSink } from "../configuration/options-of-sink.ts";
import { permitOf } from "../lib/policy.ts";
import { type Address, literalAddress } from "../model/address.ts";
import { silentLog } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Policy } from "../model/policy.ts";
import { proxyIn } from "../model/proxy-address.ts";
import type { DataSink } from "../model/resources.ts";
import type { Settings } from "../model/settings.ts";
import { brokerIn } from "../sinks/mqtt/settings.ts";

/** Hosts of the configuration, and what policy.yaml says of them. */

/** A host of the configuration, and what needs it. */
export interface Host {
  readonly host: string;
  readonly port: number;
  readonly of: "sources" | "sinks";
  readonly who: string;
}

/** A host with its addresses, or the words for why it has none. */
export interface FoundHost extends Host {
  readonly addresses: readonly Address[] | string;
}

/** A host that policy.yaml closes, and why. */
export interface ClosedHost extends Host {
  readonly why: string;
}

type Entry = { readonly name: string | null; readonly uuid: string; readonly details: unknown };

/** Hosts that are looked up. */
const MAX_HOSTS = 50;

/** Each host and port once, of data sources and data sinks that have one; of a sink behind a proxy the proxy's. Pure. */
export function hostsOf(sources: readonly Entry[], sinks: readonly DataSink[], settings: Settings | undefined): readonly Host[] {
  const hosts = new Map<string, Host>();
  const enter = (of: Host["of"], records: readonly Entry[]): void => {
    for (const { name, uuid, details } of records) {
      const { host, port }: { readonly host?: unknown; readonly port?: unknown } = details ?? {};
      if (typeof host !== "string") continue;
      const one = { host, port: typeof port === "number" ? port : 0, of, who: name ?? uuid };
      hosts.set(`${of} ${host} ${one.port}`, one);
    }
  };
  enter("sources", sources);
  for (const sink of sinks)
    enter(
      "sinks",
      placesOf(sink, settings).map((details) => ({ ...sink, details })),
    );
  return [...hosts.values()];
}

/** The proxy on the way to a sink's server, or else that server and a second one. */
function placesOf(sink: DataSink, settings: Settings | undefined): readonly unknown[] {
  const options = settings ? optionsOfSink(settings, sink) : {};
  const proxy = proxyIn(options);
  const { fallback } = options;
  return proxy ? [proxy] : [sink.details, ...(typeof fallback === "string" ? [brokerIn(fallback)] : [])];
}

/** Looks the names up, each for so long at most, of as many hosts as have a bound. Never throws. */
export const foundHosts = (hosts: readonly Host[], nameMs: number, signal: AbortSignal): Promise<readonly FoundHost[]> =>
  Promise.all(hosts.slice(0, MAX_HOSTS).map(async (one) => ({ ...one, addresses: await addressesOf(one.host, nameMs, signal) })));

async function addressesOf(host: string, nameMs: number, signal: AbortSignal): Promise<readonly Address[] | string> {
  const literal = literalAddress(host);
  if (literal) return [literal];
  const timeouts = { nameMs, connectMs: nameMs, answerMs: nameMs };
  return resolveHost(host, { signal, log: silentLog, timeouts }).catch((error: unknown) => messageOf(error));
}

/** Those of which no address may be connected to. A host without an address is none of them. */
export function closedHosts(policy: Policy, hosts: readonly FoundHost[]): readonly ClosedHost[] {
  return hosts.flatMap(({ addresses, ...host }) => {
    if (typeof addresses === "string") return [];
    const permit = permitOf(policy, host.of);
    const refusals = addresses.map(({ address }) => permit(address, host.port));
    const [why] = refusals;
    return why !== undefined && refusals.every((refusal) => refusal !== undefined) ? [{ ...host, why }] : [];
  });
}

/**
 * The sections of policy.yaml as they open all closed hosts, each whole: what it opens already stays open. Where a section names no networks yet
 * and has to, it names those of all hosts, because it then says all that is open.
 */
export function openingLines(policy: Policy, hosts: readonly FoundHost[]): readonly string[] {
  return (["sources", "sinks"] as const).flatMap((of) => {
    const own = hosts.filter((one) => one.of === of);
    const closed = closedHosts(policy, own).map(({ host, port }) => `${host} ${port}`);
    if (closed.length === 0) return [];
    const { networks, loopback, ports } = policy[of];
    const addressesIn = (some: readonly FoundHost[]): readonly string[] =>
      some.flatMap(({ addresses }) => (typeof addresses === "string" ? [] : addresses.slice(0, 1).map(({ address }) => address)));
    const toOpen = own.filter(({ host, port }) => closed.includes(`${host} ${port}`));
    const isOnlyOfLoopback = addressesIn(toOpen).every(isLoopback);
    const added = addressesIn(networks || isOnlyOfLoopback ? toOpen : own).filter((address) => !isLoopback(address));
    const all = networks || added.length > 0 ? unique([...(networks ?? []), ...added]) : undefined;
    const allPorts = ports && unique([...ports.map(String), ...toOpen.map(({ port }) => String(port))]);
    return [
      `${of}:`,
      ...(all ? [`  networks: [${all.map(quoted).join(", ")}]`] : []),
      ...(loopback || addressesIn(toOpen).some(isLoopback) ? ["  loopback: true"] : []),
      ...(allPorts ? [`  ports: [${allPorts.join(", ")}]`] : []),
    ];
  });
}

const isLoopback = (address: string): boolean => address.startsWith("127.") || address === "::1";
const unique = (texts: readonly string[]): readonly string[] => [...new Set(texts)];
const quoted = (network: string): string => (network.includes(":") ? JSON.stringify(network) : network);
