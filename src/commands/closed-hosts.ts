import { resolveHost } from "../../drivers/lib/resolve.ts";
import { optionsOfSink, optionsOfSource } from "../configuration/options-of-sink.ts";
import { permitOf } from "../lib/policy.ts";
import { type Address, literalAddress } from "../model/address.ts";
import { silentLog } from "../model/context.ts";
import { endpointParts } from "../model/endpoint-url.ts";
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

/** Names that are looked up. */
const MAX_NAMES = 50;

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
  enter(
    "sources",
    sources.flatMap((source) => [source, ...secondOf(source, settings)]),
  );
  for (const sink of sinks)
    enter(
      "sinks",
      placesOf(sink, settings).map((details) => ({ ...sink, details })),
    );
  return [...hosts.values()];
}

/** The second server of an OPC UA source. */
function secondOf(source: Entry, settings: Settings | undefined): readonly Entry[] {
  const url = settings && optionsOfSource(settings, source)["second_endpoint_url"];
  const second = typeof url === "string" ? endpointParts(url) : undefined;
  return second ? [{ ...source, details: second }] : [];
}

/** The proxy on the way to a sink's server, or else that server and a second one. */
function placesOf(sink: DataSink, settings: Settings | undefined): readonly unknown[] {
  const options = settings ? optionsOfSink(settings, sink) : {};
  const proxy = proxyIn(options);
  const { fallback } = options;
  return proxy ? [proxy] : [sink.details, ...(typeof fallback === "string" ? [brokerIn(fallback)] : [])];
}

/** Looks the names up, each for so long at most, as many as have a bound. Never throws. */
export function foundHosts(hosts: readonly Host[], nameMs: number, signal: AbortSignal): Promise<readonly FoundHost[]> {
  const names = [...new Set(hosts.map(({ host }) => host))].filter((host) => !literalAddress(host));
  const late = new Set(names.slice(MAX_NAMES));
  const addresses = (host: string) => (late.has(host) ? "too many names: it was not looked up" : addressesOf(host, nameMs, signal));
  return Promise.all(hosts.map(async (one) => ({ ...one, addresses: await addresses(one.host) })));
}

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
 * and has to, it names those of all hosts, because it then says all that is open, and a comment names the hosts that have no address now.
 */
export function openingLines(policy: Policy, hosts: readonly FoundHost[]): readonly string[] {
  return (["sources", "sinks"] as const).flatMap((of) => {
    const own = hosts.filter((one) => one.of === of);
    const closed = new Set(closedHosts(policy, own).map(({ host, port }) => `${host} ${port}`));
    if (closed.size === 0) return [];
    const { networks, loopback, ports } = policy[of];
    const toOpen = own.filter(({ host, port }) => closed.has(`${host} ${port}`));
    const anyPort = permitOf({ ...policy, [of]: { networks, loopback } }, of);
    // One address is enough for the way to a host.
    const first = toOpen.flatMap((one) => addressesIn(one).slice(0, 1));
    const byAddress = first.filter((address) => anyPort(address, 0) !== undefined);
    const opensLoopback = byAddress.some(isLoopback);
    const added = byAddress.filter((address) => !isLoopback(address));
    const begins = !networks && added.length > 0;
    const openNow = begins ? own.flatMap(addressesIn).filter((address) => !isLoopback(address) && anyPort(address, 0) === undefined) : [];
    const all = unique([...(networks ?? []), ...openNow, ...added]);
    const unknown = begins ? unique(own.flatMap(({ addresses, host }) => (typeof addresses === "string" ? [host] : []))) : [];
    const anyAddress = permitOf({ ...policy, [of]: { networks: ["0.0.0.0/0"], loopback, ports } }, of);
    const addedPorts = toOpen.flatMap(({ port }) => (anyAddress("0.0.0.0", port) === undefined ? [] : [String(port)]));
    const allPorts = ports && unique([...ports.map(String), ...addedPorts]);
    return [
      `${of}:`,
      ...(unknown.length > 0 ? [`  # closed by these networks until its address is among them: ${unknown.map(commented).join(", ")}`] : []),
      ...(networks || begins ? [`  networks: [${all.map(quoted).join(", ")}]`] : []),
      ...(loopback || opensLoopback ? ["  loopback: true"] : []),
      ...(allPorts ? [`  ports: [${allPorts.join(", ")}]`] : []),
    ];
  });
}

/** Without a zone, which policy.yaml does not have. */
const addressesIn = ({ addresses }: FoundHost): readonly string[] =>
  typeof addresses === "string" ? [] : addresses.map(({ address }) => address.replace(/%.*/, ""));

/** A host is any text; a comment is one line. */
const commented = (host: string): string => (/^[\x21-\x7e]+$/.test(host) ? host : JSON.stringify(host));
const isLoopback = (address: string): boolean => address.startsWith("127.") || address === "::1";
const unique = (texts: readonly string[]): readonly string[] => [...new Set(texts)];
const quoted = (network: string): string => (network.includes(":") ? JSON.stringify(network) : network);
