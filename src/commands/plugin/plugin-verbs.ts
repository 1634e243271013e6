import type { Verb, VerbGroup } from "../verb.ts";

const CHECK: Verb = {
  usage: "check <command...>",
  description: "Run a plugin and play the checks of its specification (docs/plugin-protocol.md) against it.",
  args: { command: "program and its arguments; its own options come after --" },
  examples: [
    "collector plugin check ./line_plugin.py",
    "collector plugin check --type odac --details host=10.0.0.14 --details port=2020 --read temperature:float32 -- /opt/odac/plugin --fast",
  ],
  options: [
    { flags: "-t, --type <type>", description: "type of the data source (default: the first of its hello)" },
    { flags: "--details <key=value>", description: "detail of a device to try it with; repeat it for more", repeats: true },
    { flags: "--parameter <name=value>", description: "setting of the plugin; repeat it for more", repeats: true },
    { flags: "--read <address[:type]>", description: "address to read; repeat it for more", repeats: true },
    { flags: "--timeout <duration>", description: "for one request (default: 5s)" },
  ],
  showsExitCodes: true,
  run: async (io, command: readonly string[], options: object) => (await import("./plugin.ts")).check(io, command, options),
};

const UNIT: Verb = {
  usage: "unit <name> <command...>",
  description: "Print the units of systemd that run a plugin as a user of its own, in the networks of policy.yaml.",
  args: { name: "name of the plugin, such as odac", command: "absolute program and its arguments; its own options come after --" },
  examples: [
    "collector plugin unit odac /opt/odac/plugin",
    "sudo collector plugin unit odac --out /etc/systemd/system -- /opt/odac/plugin --fast && sudo systemctl daemon-reload && sudo systemctl enable --now collector-plugin-odac.socket",
  ],
  options: [{ flags: "-o, --out <folder>", description: "write them there; files of the same names are replaced" }],
  notes: "Write them again after a change of the networks in policy.yaml.",
  run: async (io, name: string, command: readonly string[], options: object) =>
    (await import("./plugin.ts")).unit(io, name, command, options),
};

/** `collector plugin …` */
export const PLUGIN_VERBS: VerbGroup = {
  name: "plugin",
  description: "Plugins: programs that read devices for the collector",
  verbs: [CHECK, UNIT],
};
