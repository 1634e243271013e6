import { typeExamples } from "../type-examples.ts";
import { KEY_FILE, PASSWORD_FILE, SOURCE, type Verb } from "../verb.ts";
import type { BrowseOptions } from "./browse.ts";
import type { CaptureOptions } from "./capture.ts";
import type { ExplainOptions } from "./explain.ts";
import type { PlanOptions } from "./plan.ts";
import type { ProbeOptions } from "./probe.ts";
import type { ReadOptions } from "./read.ts";
import type { WatchOptions } from "./watch.ts";

/** `collector read`. */
export const READ: Verb = {
  usage: "read <source> <words...>",
  description: "Read addresses of a device: one that is typed, without any configuration, or a configured data source.",
  args: {
    source: "type of a device that is not configured, such as modbus_tcp; or the name of a data source",
    words: "addresses, ADDRESS or ADDRESS:TYPE; of a typed device also key=value pairs: connection details and the driver's settings",
  },
  examples: ["collector read press-1 holding:10 holding:12:float32", ...typeExamples("read")],
  json: "print one JSON object for each pass",
  options: [
    {
      flags: "-t, --type <type>",
      description: "type of the addresses without one: bool, int16, uint32, float32, string(20), float32[10] …",
    },
    {
      flags: "--timeout <duration>",
      description: "deadline of one pass; address look-up has its own limit, prepare_timeout",
      default: "10s",
    },
    { flags: "--count <n>", description: "number of passes", default: "1" },
    { flags: "--interval <duration>", description: "from the start of one pass to the next", default: "1s" },
    PASSWORD_FILE,
    KEY_FILE,
  ],
  notes: `Of a typed device, only state_dir and the policy.yaml next to the settings apply. The part after the last colon of an address is its
type only if it names one. For opcua, endpoint_url is enough: the defaults are None and Anonymous. The verb
asks for the password of a username, or takes it from --password-file. It shows the thumbprint of a server certificate that is not
trusted yet, and the command that trusts it; trust=first_use trusts the first one that the server shows.`,
  showsExitCodes: true,
  run: async (io, source: string, words: string[], options: ReadOptions) => (await import("./read.ts")).read(source, words, options, io),
};

/** `collector browse`. */
export const BROWSE: Verb = {
  usage: "browse <source> [words...]",
  description: "List the variables of a device.",
  args: {
    source: "name of a data source, or the type of a device that is not configured",
    words: "key=value pairs for such a device: connection details and the driver's settings",
  },
  examples: [
    ...typeExamples("browse"),
    "collector browse press-1 --depth 3",
    "collector browse press-1 --filter temperature --json",
    "collector browse press-1 --profile euromap77 --csv | collector variables import press-1 -",
    "collector browse press-1 --csv > press-1.csv     look it over, then: collector variables import press-1 press-1.csv",
    "collector browse press-1 --filter 'Line1/*' --csv | collector variables import press-1 -",
  ],
  json: "print one JSON object per line, as they are found",
  options: [
    { flags: "--csv", description: "print the variables as CSV for collector variables import" },
    { flags: "--depth <n>", description: "at most this many levels" },
    { flags: "--profile <name>", description: "only what a published model of machines has (OPC UA): euromap77, packml, machinetool" },
    { flags: "--filter <text>", description: "only variables with this text in name, path or address; * matches anything" },
    { flags: "--timeout <duration>", description: "stop after this time, with what was found", default: "10min" },
    PASSWORD_FILE,
    KEY_FILE,
  ],
  notes: "It only reads. Ctrl-C stops it, with what was found so far.",
  showsExitCodes: true,
  run: async (io, source: string, words: string[], options: BrowseOptions) =>
    (await import("./browse.ts")).browse(source, words, options, io),
};

/** `collector probe`. */
export const PROBE: Verb = {
  usage: "probe <source> [words...]",
  description: "Test each step of the connection to a device or broker; show which one fails and what to do.",
  args: {
    source: "name of a data source or data sink, or the type of a device that is not configured",
    words: "for such a device: key=value pairs (connection details and the driver's settings) and addresses",
  },
  examples: [
    "collector probe press-1",
    "collector probe hall-3                             the broker of this data sink",
    "collector probe press-1 --json | jq '.steps[] | select(.result == \"failed\")'",
    ...typeExamples("probe"),
    "collector probe press-1 --habits                   a pause, shorter requests, one request at a time, no gaps",
  ],
  options: [
    { flags: "--timeout <duration>", description: "deadline of the whole walk (default: 30s, with --habits 1min)" },
    { flags: "--no-others", description: "ask only as it is configured: no other units, slots, nodes, connection types and protocols" },
    { flags: "--habits", description: "read again and again to find how the device wants to be asked, and which settings say so" },
    PASSWORD_FILE,
    KEY_FILE,
  ],
  notes: `Steps: name, policy, route, neighbour, connection, handshake, log-in, first value, each with its time; of a data sink of
the type mqtt tls, log-in (as a client of its own, so that the service keeps its connection) and publish (one empty message on …/status/collector-probe, which
nothing keeps) follow the connection. It opens a connection of its own and only reads. Where the service reads the device already, it says first what that knows; a controller that takes one connection may
refuse a second. Where the device refuses the way or is silent, it tries the usual other units, slots, nodes and connection types, one after the other over
one connection at a time, then first requests of other protocols, and names the one that is answered. It prints what the device granted: sizes, requests at once, nodes, the time of a session. Where the configuration API does not answer, the last good copy on disk says where the device is.`,
  showsExitCodes: true,
  run: async (io, source: string, words: string[], options: ProbeOptions) => (await import("./probe.ts")).probe(source, words, options, io),
};

/** `collector plan`. */
export const PLAN: Verb = {
  usage: "plan <source>",
  description: "Show what a readout asks for, how long it takes, and which interval that fits.",
  args: { source: SOURCE },
  examples: [
    "collector plan press-1",
    "collector plan press-1 --requests",
    "collector plan press-1 --json | jq '{fits, feasible_interval_ms}'",
  ],
  options: [
    { flags: "--requests", description: "list all requests" },
    { flags: "--timeout <duration>", description: "deadline of a readout over a connection of its own", default: "10s" },
    PASSWORD_FILE,
    KEY_FILE,
  ],
  notes: `Where the service reads the source, its last readouts are what was measured, and nothing is asked of the device. Where it does not run,
the source is read three times over a connection of its own. Limits are those in use: what the device granted or was learned of it.`,
  showsExitCodes: true,
  run: async (io, source: string, options: PlanOptions) => (await import("./plan.ts")).plan(source, options, io),
};

/** `collector explain`. */
export const EXPLAIN: Verb = {
  usage: "explain <source> <variable>",
  description: "Trace one value: address, request, bytes, byte orders, scaling, sinks.",
  args: { source: SOURCE, variable: "name or uuid of the variable" },
  examples: [
    "collector explain press-1 temperature",
    "collector explain press-1 temperature --json | jq '.orders[] | select(.configured | not)'",
  ],
  options: [{ flags: "--timeout <duration>", description: "how long the next readout is waited for", default: "15s" }],
  notes: `The running service answers; its bytes are read once more over the connection that it has, at the end of its next readout. A value that
looks right in another byte order needs that order in its address (@CDAB) or in the settings of the source.`,
  showsExitCodes: true,
  run: async (io, source: string, variable: string, options: ExplainOptions) =>
    (await import("./explain.ts")).explain(source, variable, options, io),
};

/** `collector watch`. */
export const WATCH: Verb = {
  usage: "watch [source]",
  description: "Show the values of the running service as they are read, with unit, quality, age and raw form.",
  args: { source: `${SOURCE}; absent: all` },
  examples: [
    "collector watch press-1",
    "collector watch press-1 --filter temp",
    "collector watch press-1 --for 30s",
    "collector watch press-1 --count 1 --json | jq '.values[] | {name, value, quality}'",
  ],
  json: "print one JSON object for each readout",
  options: [
    { flags: "--filter <text>", description: "only variables with this text in name or address; * matches anything" },
    { flags: "--count <n>", description: "end after so many readouts of each data source; absent: Ctrl-C ends it" },
    { flags: "--for <duration>", description: "end after this time" },
  ],
  notes: "The running service answers over its local socket; the device gets no further request.",
  showsExitCodes: true,
  run: async (io, source: string | undefined, options: WatchOptions) => (await import("./watch.ts")).watch(source, options, io),
};

/** `collector capture`. */
export const CAPTURE: Verb = {
  usage: "capture <source>",
  description: "Write what the running service and a device exchanged last as a capture, for Wireshark.",
  args: { source: SOURCE },
  examples: [
    "collector capture press-1",
    "collector capture press-1 --for 30s --out press-1.pcapng",
    "collector capture press-1 --for 1min --out - | tshark -r -",
    "collector capture press-1 --json | jq '{file, events, missing}'",
  ],
  options: [
    { flags: "--for <duration>", description: "also record new frames for this time, at most 1h; absent: only kept frames" },
    { flags: "--out <file>", description: "file to write, which must not be there yet; - for a pipe (default: SOURCE-TIME.pcapng)" },
  ],
  notes: `It needs no root and asks nothing of the device: the service keeps the last bytes of each connection (captures in the settings).
Headers of IP, TCP and UDP are made up. The device has its own address and the protocol's standard port, whatever its port is, so that
tools know the protocol; this machine is 10.0.0.1 or fd00::1. Sources that share a connection share what is kept. Log-ins, secrets and
what is encrypted (TLS, OPC UA with SignAndEncrypt) are left out: their packets say how long they are, and why they have no content. Of a
source that a plugin reads it is what the plugin and the collector say to each other, at 127.0.0.1. Values and addresses stay: look it
over before you send it. Of a source that fails the service writes a capture by itself; collector status SOURCE names it.`,
  showsExitCodes: true,
  run: async (io, source: string, options: CaptureOptions) => (await import("./capture.ts")).capture(source, options, io),
};
