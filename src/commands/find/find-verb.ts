import type { Verb } from "../verb.ts";
import type { FindOptions } from "./find.ts";

/** `collector find`. */
export const FIND: Verb = {
  usage: "find <network>",
  description: "Look for controllers in a network that policy.yaml opens for it.",
  args: { network: "an IPv4 network of at most 1024 addresses, such as 10.0.0.0/24, or one address" },
  examples: [
    "collector find 10.0.0.0/24",
    "collector find 10.0.0.0/24 --ports 502,1502",
    "collector find 10.0.0.0/24 --json | jq -r '.found[].add'",
  ],
  options: [{ flags: "--ports <list>", description: "only these ports, at most 16 (default: 44818,502,4840,9600,102)" }],
  notes: `It sends only first requests that read, each over a connection of its own: one connection a second to each device, 16 devices at once. At
the usual port of a protocol it sends only the requests of that protocol, at any other port those of all. It needs the key find in
policy.yaml; without it, it prints the line. Ctrl-C ends it, with what was found so far.`,
  showsExitCodes: true,
  run: async (io, network: string, options: FindOptions) => (await import("./find.ts")).find(network, options, io),
};
