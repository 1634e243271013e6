import type { AnyDriver } from "../../../drivers/driver.ts";
import { specOf } from "../../agent/source-spec.ts";
import { boundOptions, readProfile } from "../../configuration/bindings.ts";
import { withDetailsType } from "../../configuration/details-type.ts";
import { localOptions } from "../../configuration/local-options.ts";
import { literalAddress } from "../../model/address.ts";
import { messageOf } from "../../model/failure.ts";
import { proxyIn } from "../../model/proxy-address.ts";
import type { DataSink, DataSource } from "../../model/resources.ts";
import type { Settings } from "../../model/settings.ts";
import type { AnySinkKind } from "../../sinks/sink.ts";

/** A connection that the collector opens (out), or takes (in). */
export interface Flow {
  readonly direction: "out" | "in";
  /** The data source or sink, or what else it is for. */
  readonly what: string;
  readonly type: string;
  /** Host name or address at the other end; of `in` the address that is listened on. */
  readonly host: string;
  readonly port: number;
  readonly transport: "tcp" | "udp" | "tcp and udp";
  readonly encryption: string;
  /** Who listens on the port at this moment, in words; null: nothing does. Absent: not looked at. */
  readonly listening?: string | null;
}

export interface FlowInput {
  readonly settings: Settings;
  readonly sources: readonly DataSource[];
  readonly sinks: readonly DataSink[];
  readonly driverOf: (type: string) => Promise<AnyDriver | undefined>;
  readonly sinkKindOf: (type: string) => Promise<AnySinkKind | undefined>;
}

/** What there is, and why a data source or sink has none. */
export interface Flows {
  readonly flows: readonly Flow[];
  readonly unknown: readonly { readonly what: string; readonly why: string }[];
}

const NONE = "none";
const DNS_PORT = 53;
const HTTP_PORTS: Readonly<Record<string, number>> = { "https:": 443, "http:": 80 };

/** Every connection that this configuration makes. Asks nobody; pure but for loading the drivers and the profiles. */
export async function flowsOf(input: FlowInput): Promise<Flows> {
  const found = await Promise.all([...input.sources.map((one) => ofSource(one, input)), ...input.sinks.map((one) => ofSink(one, input))]);
  const parts = found.flat();
  const flows = [...parts.flatMap((part) => ("why" in part ? [] : [part])), ...ofCollector(input.settings)];
  const names = flows.some(({ direction, host }) => direction === "out" && literalAddress(host) === undefined && host !== "localhost");
  const lookUps: Flow = {
    direction: "out",
    what: "look-ups of names",
    type: "dns",
    host: "(name servers of this machine)",
    port: DNS_PORT,
    transport: "tcp and udp",
    encryption: NONE,
  };
  return { flows: names ? [...flows, lookUps] : flows, unknown: parts.flatMap((part) => ("why" in part ? [part] : [])) };
}

type Found = Flow | Flows["unknown"][number];

async function ofSource(given: DataSource, { settings, driverOf }: FlowInput): Promise<Found> {
  const { record } = withDetailsType(given);
  const what = record.name;
  const driver = await driverOf(record.type);
  if (!driver) return { what, why: `this collector has no driver for ${record.type}` };
  const { readout_interval_unit: readoutIntervalUnit } = settings;
  const local = boundOptions(record.type, localOptions(settings.sources, record), settings, readProfile);
  const made = await specOf(
    { record, local, readoutIntervalUnit, variables: [], warnings: [], secrets: {}, missingSecret: undefined },
    driver,
  );
  if ("problem" in made) return { what, why: made.problem.detail };
  const { endpoint, connect } = made.spec;
  const encryption = driver.encryption?.(connect.details, connect.settings) ?? NONE;
  const listensAt = driver.listensAt?.(connect.details, connect.settings);
  const place = listensAt === undefined ? endpoint : { ...endpoint, ...placeOf(listensAt) };
  return { direction: listensAt === undefined ? "out" : "in", what, type: record.type, ...place, encryption };
}

async function ofSink(given: DataSink, { settings, sinkKindOf }: FlowInput): Promise<Found | readonly Found[]> {
  const { record } = withDetailsType(given);
  const { type } = record;
  const what = record.name ?? record.uuid;
  try {
    const kind = await sinkKindOf(type);
    if (!kind) return { what, why: `this collector has no data sink of type ${type}` };
    if (type === "platform") return { ...apiFlow(settings), what, type };
    const details = kind.details.parse(record.details);
    const local = kind.settings.parse(localOptions(settings.sinks, record));
    const at = kind.endpoint(details);
    const { host, port } = placeOf(at);
    const listen = textIn(local, "listen") ?? host;
    // The second of two servers.
    const fallback = textIn(local, "fallback");
    const encryption = kind.encryption?.(details, local) ?? NONE;
    const proxy = proxyIn(local);
    const servers = [{ at, what }, ...(fallback === undefined ? [] : [{ at: fallback, what: `${what} (second)` }])];
    if (!kind.listens && (proxy || fallback !== undefined))
      return servers.map((server): Flow => {
        const place = proxy ? { host: proxy.host, port: proxy.port } : placeOf(server.at);
        const words = proxy ? `${server.what} (${server.at}) through the proxy` : server.what;
        return { direction: "out", what: words, type, ...place, transport: "tcp", encryption };
      });
    return { direction: kind.listens ? "in" : "out", what, type, host: kind.listens ? listen : host, port, transport: "tcp", encryption };
  } catch (error) {
    return { what, why: messageOf(error) };
  }
}

const textIn = (value: unknown, field: string): string | undefined => {
  const text: unknown = typeof value === "object" && value !== null ? Object.entries(value).find(([key]) => key === field)?.[1] : undefined;
  return typeof text === "string" ? text : undefined;
};

function ofCollector(settings: Settings): readonly Flow[] {
  const { api, embedded_api: embedded, http, page } = settings;
  const health: Flow = {
    direction: "in",
    what: "metrics and health",
    type: "http",
    ...placeOf(http.listen),
    transport: "tcp",
    encryption: NONE,
  };
  const status: Flow = {
    direction: "in",
    what: "page for browsers",
    type: "http",
    ...placeOf(page.listen),
    transport: "tcp",
    encryption: page.tls ? "TLS" : NONE,
  };
  const served = [health, ...(page.enabled ? [status] : [])];
  if (api) return [apiFlow(settings), ...served];
  const encryption = embedded.tls ? "TLS" : NONE;
  return [
    { direction: "in", what: "configuration API", type: "http", ...placeOf(embedded.listen), transport: "tcp", encryption },
    ...served,
  ];
}

/** To the configuration API, or to the proxy on the way. */
function apiFlow({ api, embedded_api: embedded }: Settings): Flow {
  const url = new URL(api?.url ?? `${embedded.tls ? "https" : "http"}://${embedded.listen}`);
  const via = api?.proxy === undefined ? url : new URL(api.proxy);
  const encryption = url.protocol === "https:" ? "TLS" : NONE;
  return {
    direction: "out",
    what: via === url ? "configuration API" : `configuration API (${url.host}) through the proxy`,
    type: "http",
    host: via.hostname.replace(/^\[|\]$/g, ""),
    port: via.port === "" ? (HTTP_PORTS[via.protocol] ?? 0) : Number(via.port),
    transport: "tcp",
    encryption,
  };
}

/** Of `host:port`, where the host may be an IPv6 address in brackets or without them. */
function placeOf(text: string): { readonly host: string; readonly port: number } {
  const at = text.lastIndexOf(":");
  return { host: text.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(text.slice(at + 1)) };
}
