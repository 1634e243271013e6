import type { Verb, VerbGroup } from "../verb.ts";

const FILE = "profile to look at";

const CHECK: Verb = {
  usage: "check <file>",
  description: "Say what a profile can send and read, or what is wrong in it, with the line. Connects to nothing.",
  args: { file: FILE },
  examples: ["collector profile check /etc/collector/profiles/odac-host.yaml", "collector profile check my-scale.yaml --json"],
  run: async (io, file: string, options: object) => (await import("./profile.ts")).checkProfileFile(io, file, options),
};

const REPLAY: Verb = {
  usage: "replay <file> <capture>",
  description: "Show what a profile makes of a recorded conversation (pcap or pcapng), frame by frame. Connects to nothing.",
  args: { file: FILE, capture: "recording of tcpdump or Wireshark" },
  examples: [
    "collector profile replay my-scale.yaml scale.pcapng --port 4001",
    "collector profile replay odac-host.yaml odac.pcap --port 2020 --detail protocol_override=host --parameter group=1",
  ],
  options: [
    { flags: "-p, --port <port>", description: "port of the device (of this machine, where the device connects)", required: true },
    { flags: "--parameter <name=value>", description: "value of a parameter; repeat it for more", repeats: true },
    {
      flags: "--detail <name=value>",
      description: "value of a field of the details, such as machine=C5; repeat it for more",
      repeats: true,
    },
  ],
  notes: `The package collector-workbench reads captures (sudo apt install ./collector-workbench_*.deb), and so does a checkout; the collector's own
package only writes them. collector profile check needs neither.`,
  run: async (io, file: string, capture: string, options: object) =>
    (await import("./profile.ts")).replayCapture(io, file, capture, options),
};

/** `collector profile …` */
export const PROFILE_VERBS: VerbGroup = {
  name: "profile",
  description: "Profiles of devices whose protocol is not public: look them over, and try them on a recording",
  verbs: [CHECK, REPLAY],
};
