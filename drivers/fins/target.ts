import { literalAddress } from "../../src/model/address.ts";
import { type FinsAddress, type FinsDetails, parseFinsAddress } from "../../src/model/details.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext, Endpoint, OtherWay } from "../driver.ts";
import type { FinsLink } from "./link.ts";
import type { FinsSettings } from "./settings.ts";
import { TcpLink } from "./tcp-link.ts";
import { equalNodes, UdpLink } from "./udp-link.ts";

export type Transport = Endpoint["transport"];

/** Sources that may use either share a place with those that use TCP, which is tried first. */
export const endpointOf = ({ host, port }: FinsDetails, { transport }: FinsSettings): Endpoint => ({
  host,
  port,
  transport: transport === "udp" ? "udp" : "tcp",
});

/** Who asks whom. */
export interface Nodes {
  readonly local: FinsAddress;
  readonly remote: FinsAddress;
}

/** Throws ReasonError: an address is none, or both have the same node. Pure. */
export function nodesOf({ local_address, remote_address }: FinsDetails): Nodes {
  const [local, remote] = [parseFinsAddress(local_address), parseFinsAddress(remote_address)];
  if (!local || !remote) throw invalid(`${local ? remote_address : local_address} is not NETWORK.NODE.UNIT in decimal`);
  const equal = equalNodes(local, remote);
  if (equal !== undefined) throw invalid(equal);
  return { local, remote };
}

const invalid = (words: string): ReasonError => new ReasonError("UNKNOWN", words, { condition: "configuration_invalid" });

/** Throws ReasonError. */
export function openLink(transport: Transport, details: FinsDetails, settings: FinsSettings, ctx: DriverContext): Promise<FinsLink> {
  const { local, remote } = nodesOf(details);
  const endpoint: Endpoint = { host: details.host, port: details.port, transport };
  return transport === "tcp" ? TcpLink.open(endpoint, local, remote, ctx) : UdpLink.open(endpoint, local, remote, settings, ctx);
}

/**
 * Any node that is free for the collector and the controller behind the address itself: by FINS/TCP the unit tells both nodes, and by the
 * usual setting (Omron W421, automatic generation) a node is the last octet of its IPv4 address. Pure.
 */
export function otherWays(details: FinsDetails, settings: FinsSettings): readonly OtherWay<FinsDetails, FinsSettings>[] {
  const octet = literalAddress(details.host)?.family === 4 ? Number(details.host.split(".")[3]) : 0;
  const remotes = ["0.0.0", ...(octet >= 1 && octet <= 254 ? [`0.${octet}.0`] : [])];
  return remotes
    .filter((remote) => remote !== details.remote_address || details.local_address !== "0.0.0")
    .map((remote) => ({
      words: `node ${remote} from the node 0.0.0`,
      fields: ["local_address=0.0.0", `remote_address=${remote}`],
      details: { ...details, local_address: "0.0.0", remote_address: remote },
      settings,
    }));
}
