import type { Verb } from "../verb.ts";
import type { SimulateOptions } from "./simulate.ts";

/** `collector simulate`. */
export const SIMULATE: Verb = {
  usage: "simulate [type]",
  description: "Run a simulated machine to practise with: a device of this type with named, moving values.",
  args: { type: "type of data source; absent: list the machines" },
  examples: [
    "collector simulate                                  which machines there are",
    "collector simulate modbus_tcp",
    "collector simulate s7 --listen 127.0.0.1:1102",
    "collector simulate modbus_tcp --fault slow --after 1min     a riddle for people who learn to find faults",
    "collector simulate fins --csv | collector variables import filler-8 -",
  ],
  json: "print one JSON object per line: where it listens, each fault as it begins, the end; of a list one object",
  options: [
    { flags: "-l, --listen <address:port>", description: "where it listens (default: 127.0.0.1, and a port above 1023 for each type)" },
    { flags: "--list", description: "list the machines, their ports and what can be wrong with them" },
    { flags: "--csv", description: "print the machine's variables as CSV for collector variables import, and end" },
    {
      flags: "--fault <name>",
      description:
        "what is wrong with it: silent, refuses, slow, drop, locked, wrong-unit, deaf, hurried, one-at-a-time, short-blocks; repeat it for more",
      repeats: true,
    },
    { flags: "--after <duration>", description: "when that begins (default: at once)" },
  ],
  notes: `The simulators are in the package collector-simulators, and in a checkout; the collector's own package holds none. They print the commands
that read the machine. They listen without any rights, so on 1502 where a real device has 502; beside loopback where listen in policy.yaml opens
an address. They connect to nothing. Ctrl-C ends one.`,
  run: async (io, type: string | undefined, options: SimulateOptions) => (await import("./simulate.ts")).simulate(io, type, options),
};
