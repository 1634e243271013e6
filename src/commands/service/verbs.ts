import { KEY_FILE, PASSWORD_FILE, type Verb } from "../verb.ts";
import type { SetupOptions } from "./setup.ts";
import type { StatusView } from "./status.ts";
import type { BundleOptions } from "./support-bundle.ts";
import type { TailOptions } from "./tail.ts";
import type { VerifyOptions } from "./verify.ts";

interface StatusOptions extends Omit<StatusView, "source"> {
  readonly config?: string;
  readonly json?: boolean;
}

/** `collector run`. Its output is its log, whose format the settings have (log.format). */
export const RUN: Verb = {
  usage: "run",
  description: "Run the service: pull the configuration, read the data sources, publish to the data sinks.",
  examples: [
    "collector run                              settings from /etc/collector/collector.yaml, or the defaults",
    "collector run --config ./collector.yaml    settings from another file",
  ],
  json: false,
  notes:
    "SIGINT or SIGTERM stops it in order; a second one ends it at once. SIGHUP reads settings and policy again at once; changes of both files are taken within seconds without it.",
  run: async (io, options: { config?: string }) => (await import("./run.ts")).run(options, io),
};

/** `collector status`. */
export const STATUS: Verb = {
  usage: "status [name]",
  description: "Show the state of the running service's sources and sinks, and what to do about failures.",
  args: { name: "name or uuid of one data source or data sink: all that is known of it" },
  examples: [
    "collector status",
    "collector status press-1",
    "collector status plant-broker",
    "collector status --failing",
    "collector status --json | jq '.sources[] | {name, state: .status.state.type}'",
  ],
  options: [
    { flags: "--failing", description: "only what fails or has bad variables, all of it" },
    { flags: "--all", description: "all data sources in the table, however many" },
  ],
  showsExitCodes: true,
  notes: "Of more than 15 data sources, one page shows how many are in which state and what is wrong, each cause once.",
  run: async (io, source: string | undefined, options: StatusOptions) => (await import("./status.ts")).status({ ...options, source }, io),
};

/** `collector health`. */
export const HEALTH: Verb = {
  usage: "health",
  description: "Ask the running service whether it works, for the health check of a container.",
  examples: ["collector health", "collector health --json | jq .not_ready"],
  notes:
    "Exit code 0: the service answers and reads what is due, as /healthz says; 4: it does not. Failing devices and brokers do not count: collector status shows them.",
  run: async (io, options: CommonOptions) => (await import("./health.ts")).health(options, io),
};

/** `collector setup`. */
export const SETUP: Verb = {
  usage: "setup <url>",
  description: "Connect this collector to a platform: try the key, find its collector, write the settings.",
  args: { url: "base address of the platform's API" },
  examples: [
    "sudo collector setup https://platform.example --key-file key.txt",
    "sudo collector setup https://platform.example --key-file key.txt --ca plant-ca.pem",
  ],
  options: [
    { flags: "--key-file <file>", description: "file whose first line is the API key; a key is never an argument", required: true },
    { flags: "--collector <uuid>", description: "this collector's uuid, if the key does not tell it" },
    { flags: "--ca <file>", description: "certificate authorities of the API (PEM); copied to the folder of the settings, like the key" },
    { flags: "--insecure", description: "allow plain http to another machine" },
  ],
  notes: "A second setup replaces all of these settings: a former --ca or --insecure that is left out is removed. Other settings stay.",
  run: async (io, url: string, options: SetupOptions) => (await import("./setup.ts")).setup(url, options, io),
};

interface CommonOptions {
  readonly config?: string;
  readonly json?: boolean;
}

/** `collector flows`. */
export const FLOWS: Verb = {
  usage: "flows",
  description: "List every network connection of this configuration, as a firewall needs it.",
  examples: ["collector flows", "collector flows --json | jq -r '.flows[] | [.direction, .host, .port] | @tsv'"],
  notes:
    "From the settings and the last good configuration on disk, without a connection; for what is listened on, the process that listens at this moment. A proxy of the service's environment (HTTPS_PROXY) is not seen. A name is looked up at the name servers of this machine.",
  run: async (io, options: CommonOptions) => (await import("./flows.ts")).flows(options, io),
};

/** `collector check`. */
export const CHECK: Verb = {
  usage: "check",
  description: "Check settings, policy, secrets, variable files and addresses, before the service takes them.",
  examples: ["collector check", "collector check --config ./collector.yaml", "collector check --json | jq '.findings[]'"],
  notes:
    "Asks neither the API nor a device: data sources are those of the last good copy on disk. Ends with 2 where something cannot be used.",
  showsExitCodes: true,
  run: async (io, options: CommonOptions) => (await import("./check.ts")).check(options, io),
};

/** `collector doctor`. */
export const DOCTOR: Verb = {
  usage: "doctor",
  description: "Check this machine: clock, disk, names, routes, ports, policy.",
  examples: ["collector doctor", "sudo collector doctor --json | jq '.checks[] | select(.result != \"ok\")'"],
  notes: "Looks up names and asks the kernel for routes; sends nothing to a device. `collector probe SOURCE` walks the way to one.",
  showsExitCodes: true,
  run: async (io, options: CommonOptions) => (await import("./doctor.ts")).doctor(options, io),
};

/** `collector tail`. */
export const TAIL: Verb = {
  usage: "tail [source]",
  description: "Show the last lines of the running service's log, of everything or of one data source or data sink.",
  args: { source: "name of a data source or data sink; absent: everything" },
  examples: ["collector tail", "collector tail press-1 --follow", "collector tail --lines 200 --json | jq 'select(.level == \"error\")'"],
  json: "print one JSON object a line, as the log has them",
  options: [
    { flags: "-n, --lines <n>", description: "so many lines, 0 to 500", default: "20" },
    { flags: "-f, --follow", description: "follow new lines until Ctrl-C" },
  ],
  notes: "The service keeps its last 2000 lines, 1 MiB at most; journalctl -u collector has more.",
  run: async (io, source: string | undefined, options: TailOptions) => (await import("./tail.ts")).tail(source, options, io),
};

/** `collector support-bundle`. */
export const SUPPORT_BUNDLE: Verb = {
  usage: "support-bundle [file]",
  description: "Write one file with all that a question about this collector needs, without secrets.",
  args: { file: "file to write; absent: collector-support-TIME.tar.gz here" },
  examples: [
    "sudo collector support-bundle",
    "sudo collector support-bundle /tmp/question.tar.gz",
    "sudo collector support-bundle --captures    with what failed data sources exchanged with their devices",
  ],
  options: [{ flags: "--captures", description: "add the captures of failed data sources: frames with values and addresses of devices" }],
  notes: `Holds versions, doctor, check, status, plans, settings, policy, configuration, log. Passwords, keys and tokens are taken out by the names of
their fields and by their values; addresses and names of machines stay. Look it over before you send it: tar -xzf FILE.`,
  showsExitCodes: true,
  run: async (io, file: string | undefined, options: BundleOptions) =>
    (await import("./support-bundle.ts")).supportBundle(file, options, io),
};

/** `collector verify`. */
export const VERIFY: Verb = {
  usage: "verify <sink> [file]",
  description:
    "Compare a data sink's values, in a received copy or at the platform, with what was acknowledged; name each readout that differs.",
  args: {
    sink: "name or uuid of a data sink of the type mqtt or platform, which has manifest=true",
    file: "stored messages or rows, one JSON a line; - for a pipe; absent: what the broker sends for the time of --for",
  },
  examples: [
    "collector verify broker",
    "collector verify broker --for 10min",
    "sudo collector verify platform    asks the platform for all that it acknowledged in the last hour",
    "mosquitto_sub -h broker.example -t 'plant/#' -F '%j' > received.jsonl; collector verify broker received.jsonl",
    "psql -At -c 'select to_json(readings) from readings' | collector verify broker - --since 2026-11-20T09:00:00Z",
    "collector verify broker --json | jq '.findings[] | {kind, source, id, time}'",
  ],
  options: [
    {
      flags: "--for <duration>",
      description: "listen to the broker for this time, or until Ctrl-C; two whole minutes at least (default: 3min)",
    },
    {
      flags: "--since <time>",
      description: "judge readouts from this time on; absent: from the first one that arrived, of a platform: of the last hour",
    },
    { flags: "--until <time>", description: "judge readouts up to this time" },
    PASSWORD_FILE,
    KEY_FILE,
  ],
  notes: `A FILE with a manifest in it needs no configuration, and SINK is only its name then; for a FILE without, the retained manifests come from the
broker. The payloads envelope, columns and rows can be verified. What came again after a lost connection counts as repeated, and is no
difference. It subscribes under a client identifier of its own, with the user of the sink, who needs the right to read.
A platform is asked what it holds (GET /ext/v1/values) and compared with what this machine has kept of its answers: no FILE and no --for.

Exit codes:
  0  all well        1  something differs         2  wrong command line or settings
  3  nothing could be compared: no manifest, no connection, or no time in common`,
  run: async (io, sink: string, file: string | undefined, options: VerifyOptions) =>
    (await import("./verify.ts")).verify(sink, file, options, io),
};
