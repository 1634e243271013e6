import type { ReasonType } from "../../../src/model/reason.ts";
import { PLANT_PORT, POWER } from "./lab.ts";

/** Settings of every source of the matrix, ms. A failed ARP takes 3.1 s and must come before the connect deadline. */
export const TIMES = { intervalMs: 250, nameMs: 2000, connectMs: 4000, answerMs: 1000 } as const;

const DEVICE = "10.99.2.2";
const GHOST = "10.99.1.66";

export interface Row {
  readonly transport: "tcp" | "udp";
  /** True: the trouble is there before the first connect, or comes while values are read. */
  readonly when: "connect" | "session";
  /** For people. */
  readonly what: string;
  /** Switch of the lab; absent: the device or name itself is what is wrong, and there is nothing to heal. */
  readonly fault?: string;
  readonly host?: string;
  readonly port?: number;
  readonly reason: ReasonType;
  readonly condition?: string;
  /** The longest wait that the settings allow before it is known, ms. */
  readonly byMs: number;
}

const { intervalMs, nameMs, connectMs, answerMs } = TIMES;
const ARP_MS = 3100;
const tcp = (when: Row["when"], what: string, fault: string, reason: ReasonType, byMs: number, condition?: string): Row => ({
  transport: "tcp",
  when,
  what,
  fault,
  reason,
  byMs,
  ...(condition !== undefined && { condition }),
});
const udp = (when: Row["when"], what: string, fault: string, reason: ReasonType, byMs: number = answerMs): Row => ({
  transport: "udp",
  when,
  what,
  fault,
  reason,
  byMs,
});
const at = (what: string, host: string, port: number, reason: ReasonType, byMs: number, condition?: string): Row => ({
  transport: "tcp",
  when: "connect",
  what,
  host,
  port,
  reason,
  byMs,
  ...(condition !== undefined && { condition }),
});
const mid = intervalMs + answerMs;

export const MATRIX: readonly Row[] = [
  at("nothing listens on the port", DEVICE, 4999, "CONNECTION_REFUSED", 0),
  tcp("connect", "every packet is dropped", "drop", "TIMEOUT", connectMs),
  tcp("connect", "the router says: network unreachable", "icmp-net-unreachable", "NETWORK_UNREACHABLE", 0),
  tcp("connect", "the router says: network unknown", "icmp-net-unknown", "NETWORK_UNREACHABLE", 0),
  tcp("connect", "the router says: host unreachable", "icmp-host-unreachable", "NO_ROUTE_TO_HOST", 0),
  tcp("connect", "the router says: administratively prohibited", "icmp-admin-prohibited", "NO_ROUTE_TO_HOST", 0),
  tcp("connect", "the router says: host unknown", "icmp-host-unknown", "HOST_DOWN", 0),
  tcp("connect", "the router says: host isolated", "icmp-host-isolated", "HOST_DOWN", 0),
  tcp("connect", "the router says: port unreachable", "icmp-port-unreachable", "CONNECTION_REFUSED", 0),
  tcp("connect", "a firewall answers with RST", "tcp-reset", "CONNECTION_REFUSED", 0),
  tcp("connect", "the collector has no route", "route-none", "NETWORK_UNREACHABLE", 0),
  tcp("connect", "the collector's route says: unreachable", "route-unreachable", "NO_ROUTE_TO_HOST", 0),
  tcp("connect", "the collector's route says: prohibited", "route-prohibit", "UNKNOWN", 0, "collector_host_trouble"),
  tcp("connect", "the collector's cable is out", "link-down-local", "NETWORK_UNREACHABLE", 0),
  tcp("connect", "the device's cable is out, behind a router", "arp-silent", "NO_ROUTE_TO_HOST", ARP_MS),
  at("the device is off, on the same subnet", GHOST, PLANT_PORT, "NO_ROUTE_TO_HOST", ARP_MS),
  at("the name does not exist", "nx.lab", PLANT_PORT, "LOOKUP_ERROR", 0),
  at("the name server fails", "servfail.lab", PLANT_PORT, "LOOKUP_ERROR", nameMs),
  at("the name server never answers", "never.lab", PLANT_PORT, "LOOKUP_ERROR", nameMs),
  at("the device accepts and resets", DEVICE, 5005, "CONNECTION_RESET", 0),
  at("the device accepts and closes", DEVICE, 5006, "CONNECTION_CLOSED", 0),
  at("the device accepts and never answers", DEVICE, 5004, "TIMEOUT", answerMs, "never_answered"),
  at("the device answers one byte a second", DEVICE, 5007, "TIMEOUT", answerMs, "never_answered"),
  at("another protocol answers", DEVICE, 5010, "UNKNOWN", 0, "protocol_violation"),
  tcp("session", "every packet is dropped", "drop", "TIMEOUT", mid),
  tcp("session", "only the answers are dropped", "drop-response", "TIMEOUT", mid),
  tcp("session", "a firewall has forgotten the connection", "drop-established", "TIMEOUT", mid),
  tcp("session", "a firewall answers with RST", "tcp-reset", "CONNECTION_REFUSED", intervalMs),
  tcp("session", "the device loses its power", POWER, "TIMEOUT", mid),
  tcp("session", "the device's cable is out", "link-down-device", "TIMEOUT", mid),
  tcp("session", "the collector's route is gone", "route-none", "TIMEOUT", mid),
  { transport: "udp", when: "connect", what: "nothing listens on the port", port: 4999, reason: "CONNECTION_REFUSED", byMs: 0 },
  { transport: "udp", when: "connect", what: "the device is off, on the same subnet", host: GHOST, reason: "TIMEOUT", byMs: answerMs },
  udp("connect", "every packet is dropped", "drop", "TIMEOUT"),
  udp("connect", "the router says: host unreachable", "icmp-host-unreachable", "TIMEOUT"),
  udp("connect", "the router says: administratively prohibited", "icmp-admin-prohibited", "NO_ROUTE_TO_HOST", 0),
  udp("connect", "the router says: host unknown", "icmp-host-unknown", "HOST_DOWN", 0),
  udp("connect", "the collector has no route", "route-none", "NETWORK_UNREACHABLE", 0),
  udp("session", "the router says: port unreachable", "icmp-port-unreachable", "CONNECTION_REFUSED", intervalMs),
  udp("session", "every packet is dropped", "drop", "TIMEOUT", mid),
];

export const hostOf = ({ host = DEVICE }: Row): string => host;
export const portOf = ({ port, transport }: Row): number => port ?? (transport === "udp" ? 5001 : PLANT_PORT);
