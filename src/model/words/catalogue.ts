import { withoutCredentials } from "../../base/plain-text.ts";
import { shellHost, shellWord } from "../../base/shell-word.ts";
import type { Condition } from "../condition.ts";
import type { Fault } from "../fault.ts";
import type { Reason, ReasonType } from "../reason.ts";
import { explainFault } from "./fault-catalogue.ts";
import { knownStatus } from "./opcua-statuses.ts";

/** Says in one sentence what went wrong, then the usual cause and the remedy, with the command to type between backticks. */
export interface Explanation {
  readonly sentence: string;
  readonly cause: string;
  readonly nextStep: string;
}

/** The place of the failure, as far as it is known. */
export interface Where {
  /** `host:port`, an IPv6 address in brackets; null or absent: not known. */
  readonly endpoint?: string | null;
  /** Name of the data source or data sink; it precedes the sentence. */
  readonly source?: string;
  /** It is a data sink, of this type. */
  readonly sinkType?: string;
  /** Its uuid, for a command that needs one. */
  readonly uuid?: string;
  /** The detail that is shown beside it: a command of ours in it is the next step. */
  readonly detail?: string;
  /** The first bad variable, where all are. */
  readonly fault?: { readonly variable: string; readonly fault: Fault };
  /** A next step that knows the case: it takes the place of the usual one. */
  readonly nextStep?: string | undefined;
  /** The way to it has just been walked: the next step is not to walk it. */
  readonly isWalked?: boolean;
}

/** The same for people: `device` (with port) and `name` (without) in a sentence, `host` in a command. */
interface Location {
  readonly device: string;
  readonly name: string;
  readonly host: string;
  /** What it is: `device`, `broker`. */
  readonly what: string;
  /** Its data source or data sink in a command, or a placeholder. */
  readonly source: string;
  readonly uuid: string;
  /** On the first bad variable, where all are. */
  readonly advice: Explanation | undefined;
  /** How to see where the way to it ends, as a sentence after others; empty: no verb shows it. */
  readonly walk: string;
}

/** What a data sink publishes to, by its type; of another type: a server. */
const SINK_SERVERS: ReadonlyMap<string, string> = new Map([
  ["mqtt", "broker"],
  ["platform", "platform"],
]);

/** At the beginning of a sentence; host names keep their case. */
const asSubject = (device: string): string => (device.startsWith("the ") ? capital(device) : device);

/** Longest foreign text that is repeated, in code points. */
const MAX_FOREIGN = 200;

/** Main codes of FINS end codes that a relay reports (Omron W227, 5-1-3). */
const FINS_MAIN_CODES: Readonly<Record<number, string>> = {
  1: "the local node is not on its network or could not send",
  2: "the destination node is not on its network, is busy or does not answer",
  3: "a controller on the way has an error",
  4: "the destination does not know the command",
  5: "the routing tables do not lead to the destination network",
  16: "a node on the way refused the form of the command",
  37: "a unit on the way has an error",
  38: "the destination has too many commands at once or is protected",
};

const REASONS: { readonly [T in ReasonType]: (at: Location, reason: Extract<Reason, { type: T }>) => Explanation } = {
  LOOKUP_ERROR: ({ name, host, walk }) => ({
    sentence: `The name ${name.startsWith("the ") ? `of ${name}` : name} cannot be resolved.`,
    cause: "The name is misspelt, or this machine's DNS server cannot be reached or does not know it.",
    nextStep: `Correct the name or the DNS server, or configure the IP address instead.${walk || ` \`getent hosts ${host}\` asks for it.`}`,
  }),
  NO_ROUTE_TO_HOST: ({ name, what, walk }) => ({
    sentence: `${asSubject(name)} does not answer on the network.`,
    cause: `The ${what} is off, its cable is out, or its IP address or subnet mask is wrong.`,
    nextStep: `Check power, cable and link light of the ${what}, then its IP address.${walk}`,
  }),
  HOST_DOWN: ({ name, what, walk }) => ({
    sentence: `The network reports that ${name} is down.`,
    cause: `The ${what} is switched off, is starting up or has lost its link.`,
    nextStep: `Check power and link light of the ${what}.${walk}`,
  }),
  NETWORK_UNREACHABLE: ({ name, what, walk }) => ({
    sentence: `This machine has no route to ${name}.`,
    cause: `The network interface towards the ${what} is down, or a route or the default gateway is missing.`,
    nextStep: `Check the cable of this machine, and its network settings: they need the network of the ${what}, or a default gateway.${walk}`,
  }),
  CONNECTION_REFUSED: ({ device, what, walk }) => ({
    sentence: `${asSubject(device)} refused the connection.`,
    cause: "The host answers, but no service listens on this port: the port is wrong, the service is off or it takes no more connections.",
    nextStep: `Correct the port, or ${what === "device" ? "enable the service on the device" : `start the ${what}`}.${walk}`,
  }),
  CONNECTION_RESET: ({ device, what, walk }) => ({
    sentence: `${asSubject(device)} reset the connection.`,
    cause: `The ${what} restarted, has too many connections, or a firewall cut the connection.`,
    nextStep: `Close other programs that talk to the ${what}, and look whether a firewall is on the way.${walk}`,
  }),
  CONNECTION_CLOSED: ({ device, what, walk }) => ({
    sentence: `${asSubject(device)} closed the connection before it answered.`,
    cause: `The ${what} restarted, takes no more connections, or did not accept the request.`,
    nextStep: `Close other programs that talk to the ${what}, and look into its log where it has one.${walk}`,
  }),
  TIMEOUT: ({ device, what, walk }) => ({
    sentence: `${asSubject(device)} did not answer in time.`,
    cause: `The ${what} is off, busy or at another address, or a firewall drops the packets silently.`,
    nextStep: `Check power, address and firewall; if the ${what} can be reached, look at its load and its settings.${walk}`,
  }),
  VENDOR_GATEWAY_ERROR: ({ device }) => ({
    sentence: `The gateway at ${device} reported an error.`,
    cause: "The gateway cannot read the machine behind it, or does not know the configured server or path.",
    nextStep: "Check the gateway's connection to the machine, then server and path; the detail holds the gateway's own message.",
  }),
  OPC_UA_ERROR_RESPONSE: ({ device }, { code, name, description, reason }) => {
    const known = knownStatus(name);
    const words = [description, reason].filter((text) => text !== null && text !== "").map((text) => clean(text ?? ""));
    return {
      sentence: stop(
        `The OPC UA server at ${device} answered with error ${[hex(code, 8), ...(name ? [clean(name)] : []), ...words].join(", ")}`,
      ),
      cause: known ? stop(capital(known.cause)) : "The server can be reached but refuses the request; the code says why.",
      nextStep: known?.nextStep ?? "Look the code up in the server's log and manual.",
    };
  },
  OPC_UA_NO_MATCHING_ENDPOINT_POLICY: (_at, reason) => ({
    sentence: `The OPC UA server at ${clean(reason.endpoint_url)} offers no endpoint with mode ${clean(reason.message_security_mode)}, policy ${clean(reason.endpoint_security_policy_uri)} and log-in ${clean(reason.token_type)} under policy ${clean(reason.token_security_policy_uri)}.`,
    cause: "The security settings of the data source are not among those that are enabled on the server.",
    nextStep:
      "Enable them on the server, or configure what it offers: the detail lists that, and ends with a command that tries the nearest.",
  }),
  S7PLUS_ERROR: ({ device }, { category }) =>
    category === "AUTHENTICATION"
      ? {
          sentence: `The PLC at ${device} refused the log-in (AUTHENTICATION).`,
          cause: "The password is missing or wrong, or its access level does not permit reading.",
          nextStep: "Set the password with `sudo collector secret set SOURCE`, or correct the access level in the PLC's project.",
        }
      : {
          sentence: `The PLC at ${device} answered with an S7plus error (UNKNOWN).`,
          cause: "The PLC can be reached but refuses the request, or the collector does not know its firmware.",
          nextStep: "Look the PLC's own code, which the detail holds, up in its manual.",
        },
  FINS_NETWORK_RELAY_ERROR: (_at, { response_code, requested_node, relay_network, relay_node }) => ({
    sentence: `The FINS relay at network ${relay_network}, node ${relay_node} could not forward the request to node ${requested_node} (end code ${hex(response_code, 4)}).`,
    cause: stop(
      FINS_MAIN_CODES[response_code >> 8] ?? "a node between the collector and the PLC could not reach the next one",
      "The end code means: ",
    ),
    nextStep: "Check remote_address (NETWORK.NODE.UNIT) and the routing tables of the PLCs on the way.",
  }),
  UNKNOWN: ({ device, what }) => ({
    sentence: `${asSubject(device)} answered with an error.`,
    cause: `The error is one of the ${what}'s own, or its answer does not fit the protocol.`,
    nextStep: `Look the code, which the detail holds, up in the manual of the ${what}.`,
  }),
};

const CONDITIONS: { readonly [C in Condition]: (at: Location) => Explanation } = {
  details_missing: () => ({
    sentence: "The connection properties are missing: details is null in the configuration API.",
    cause: "The connection is not entered yet, or this API key may not read it.",
    nextStep: "Enter the connection properties in the configuration API; for the embedded one `collector source set --help` says how.",
  }),
  configuration_invalid: () => ({
    sentence: "A setting is wrong.",
    cause: "A field of the details, a local setting or a variable has a wrong value.",
    nextStep: "Correct the field that the detail names; it says what would be right.",
  }),
  type_not_supported: () => ({
    sentence: "This collector does not support this type of data source or data sink.",
    cause: "The type is misspelt, or the collector is older than the type.",
    nextStep: "Correct the type, or update the collector; the detail names the types that it knows.",
  }),
  secret_missing: () => ({
    sentence: "A password or key is configured, but this machine does not have it.",
    cause: "The API never returns passwords; they must be stored on this machine.",
    nextStep:
      "Type `collector secret set NAME` as root, with the name of this data source or data sink, or name a file that holds it as password_file in the settings.",
  }),
  secret_awaited: () => ({
    sentence: "The password has not come from the configuration API yet.",
    cause: "The collector keeps the API's passwords in memory alone, and asks for them at each start.",
    nextStep: "Wait a moment; if it stays, make the configuration API answer: the line Configuration of the status says why it does not.",
  }),
  secret_withheld: () => ({
    sentence: "The password of this machine is not given to where the configuration has it now.",
    cause: "Its host, port, endpoint, user or security was changed in the configuration API after the password was stored on this machine.",
    nextStep:
      "If the change is right, type `collector secret confirm NAME` as root, or name the networks that it may move within as password_networks in the settings. If not, put the configuration right.",
  }),
  interval_invalid: () => ({
    sentence: "The configured interval must be above zero.",
    cause: "readout_interval or publish_interval is 0 or negative in the configuration API.",
    nextStep: "Set an interval of 1 or more in the configuration API.",
  }),
  all_variables_faulted: ({ device, advice }) => ({
    sentence: `${asSubject(device)} answers, but none of the variables can be read.`,
    cause: "The addresses belong to another device or program, or the collector has no right to read them.",
    nextStep: "Correct the addresses: each bad variable is listed with what is wrong with it.",
    ...(advice && { cause: advice.cause, nextStep: advice.nextStep }),
  }),
  forbidden_by_policy: ({ device }) => ({
    sentence: `The policy of this machine does not permit connections to ${device}.`,
    cause:
      "policy.yaml does not open this address or port; without that file, loopback, this machine's own, link-local, multicast and metadata addresses are closed.",
    nextStep:
      "If the connection is intended, open it in policy.yaml, in the folder of the settings file: `collector check` prints the lines. The collector takes them within seconds.",
  }),
  certificate_refused: ({ device }) => ({
    sentence: `The secure connection with ${device} failed: one side did not accept the other's certificate.`,
    cause:
      "The certificate is not trusted yet, has expired, is for another name, or comes from an authority that the other side does not know.",
    nextStep: "Do what the detail says: it names the certificate and what is wrong with it.",
  }),
  proxy_fails: ({ device, what, source }) => ({
    sentence: `The proxy on the way to ${device} does not open it.`,
    cause: `The proxy is off or at another address, refuses the user or the ${what}, or cannot reach the ${what} itself.`,
    nextStep: `Do what the detail says; proxy of the settings of ${source} names the proxy, and its own log has the refusal too.`,
  }),
  client_id_taken: ({ device, source, uuid }) => ({
    sentence: `${asSubject(device)} ends each connection soon after it begins: another client probably uses the same client_id.`,
    cause: "Of two clients with one client_id, each pushes the other off the broker.",
    nextStep: `Give each client its own: \`collector sink set ${source} client_id=collector-${uuid}\`.`,
  }),
  module_not_found: ({ device, source }) => ({
    sentence: `${asSubject(device)} has no CPU at the configured rack and slot.`,
    cause: "The slot is that of another family of controllers, or the CPU is in another one.",
    nextStep: `Set rack and slot as the hardware configuration has them: slot 1 of an S7-1200 or S7-1500 (\`collector source set ${source} slot=1\`), 2 of an S7-300, mostly 3 of an S7-400.`,
  }),
  server_refuses: ({ device, what, walk }) => ({
    sentence: `${asSubject(device)} refuses the connection or what is sent.`,
    cause: "Its rights, limits or settings do not permit it; the detail has its own words and code.",
    nextStep: `Do what the detail says; the log of the ${what} has the refusal too.${walk}`,
  }),
  protocol_violation: ({ device, what, walk }) => ({
    sentence: `${asSubject(device)} sends bytes that do not follow the protocol.`,
    cause: "Another service listens on this port, or the configured type is wrong.",
    nextStep: `Compare type and port with the manual of the ${what}; the detail says what it sent.${walk}`,
  }),
  never_answered: ({ device, what, walk }) => ({
    sentence: `${asSubject(device)} takes the connection and gives no answer.`,
    cause: `Another service listens on this port, the unit id, rack or node is wrong, or all places of the ${what} for clients are in use.`,
    nextStep: `Compare type, port and unit id with the manual of the ${what}, and close other programs that talk to it.${walk}`,
  }),
  answers_no_more: ({ device, what, walk }) => ({
    sentence: `${asSubject(device)} takes the connection and does not answer any more.`,
    cause: `The ${what} is starting up, stopped or overloaded, or another program has taken its place for clients.`,
    nextStep: `Look at the ${what}'s own display and load, and close other programs that talk to it.${walk}`,
  }),
  unit_silent: ({ device, walk }) => ({
    sentence: `${asSubject(device)} answers other data sources, and not this one.`,
    cause: "The unit behind the gateway is off or not connected, or its unit id is wrong.",
    nextStep: `Check power, wiring and unit id of the unit; the detail names the one that was asked.${walk}`,
  }),
  answers_too_slow: ({ device, source, walk }) => ({
    sentence: `${asSubject(device)} answers, and too slowly.`,
    cause: "Its answers take nearly as long as one is waited for: it is busy, or its line is slow.",
    nextStep: `Wait longer for it (answer_timeout in the settings of ${source}), or ask it for less or more seldom.${walk}`,
  }),
  collector_host_trouble: ({ what }) => ({
    sentence: "The collector's machine refuses: it lacks file handles, ports, memory or rights.",
    cause: `This machine is overloaded or wrongly set up; the ${what} is not at fault.`,
    nextStep: "Free what the system's own message in the detail names, or give the collector more of it.",
  }),
  delivery_stalled: ({ device }) => ({
    sentence: `The collector does not deliver what waits for ${device}, although it is connected.`,
    cause:
      "The collector has a fault: it had to begin again with what waits, twice within ten minutes or with nothing delivered between. The values stay in the buffer.",
    nextStep: "Type `journalctl -u collector -n 200`, keep what it prints, and report it. If values keep waiting, restart the service.",
  }),
  internal_error: ({ what }) => ({
    sentence: "The collector itself failed.",
    cause: `The collector has a fault; the ${what} probably has none.`,
    nextStep: "Type `journalctl -u collector -n 200`, keep what it prints, and report it.",
  }),
};

/**
 * Explains why a source cannot be read or a sink cannot be reached. A condition is more exact than its reason and replaces it.
 * Texts from outside are shortened and lose their control characters; a command holds them only if a shell takes them as they are.
 */
export function explainReason(reason: Reason, condition?: Condition | null, where: Where = {}): Explanation {
  const at = locationOf(where);
  const known = condition ? CONDITIONS[condition](at) : ofReason(reason, at);
  const command = commandOf(condition, where.detail);
  const named = where.source === undefined ? known.nextStep : known.nextStep.replaceAll(PLACEHOLDER, (_, verb) => `${verb} ${at.source}`);
  const nextStep = where.nextStep ?? (command === undefined ? named : stepOf(command));
  const sentence = where.source === undefined ? known.sentence : `${clean(where.source)}: ${known.sentence}`;
  return { ...known, nextStep, sentence };
}

/** The only function in which a reason meets the entry of its type, which the compiler cannot follow through the table. */
function ofReason<T extends ReasonType>(reason: Extract<Reason, { type: T }>, at: Location): Explanation {
  const explain: (at: Location, reason: Extract<Reason, { type: T }>) => Explanation = REASONS[reason.type as T];
  return explain(at, reason);
}

/** A command for a secret that does not name whose. */
const PLACEHOLDER = /(secret (?:set|confirm)) (?:SOURCE|NAME)\b/g;

/** Conditions whose detail is in the collector's own words. */
const OURS: ReadonlySet<Condition> = new Set<Condition>(["certificate_refused", "secret_missing", "secret_withheld"]);

/**
 * The command of ours with which a detail ends, which is the next step: what others have put into it comes before. Undefined: there is none,
 * or the detail of this condition is in another's words. Pure.
 */
export const commandOf = (condition: Condition | null | undefined, detail: string | undefined): string | undefined =>
  condition && OURS.has(condition)
    ? [...(detail ?? "").matchAll(/`((?:sudo )?collector (?:pki|secret) [\w. :-]{1,200})`/g)].at(-1)?.[1]
    : undefined;

function stepOf(command: string): string {
  if (command.includes("--although-expired-until"))
    return `Renew the certificate at the server, or set the clock right; until it is renewed, \`${command}\` forgives its end.`;
  if (command.includes(" pki trust ")) return `If the certificate is the right one, type \`${command}\`.`;
  return command.includes(" secret confirm ") ? `If the change is right, type \`${command}\`.` : `Type \`${command}\`.`;
}

function locationOf({ endpoint, source, sinkType, uuid = "UUID", fault, isWalked = false }: Where): Location {
  const what = sinkType === undefined ? "device" : (SINK_SERVERS.get(sinkType) ?? "server");
  const placeholder = sinkType === undefined ? "SOURCE" : "NAME";
  const named = source === undefined ? placeholder : shellWord(source, placeholder);
  const hasWay = source !== undefined && !isWalked && what !== "server";
  const walk = hasWay ? ` \`collector probe ${named}\` shows where the way to it ends.` : "";
  const advice = fault && explainFault(fault.fault, { ...(source !== undefined && { source }), variable: fault.variable });
  const more = { what, walk, source: named, uuid, advice };
  const match = /^(?:\[([^\]]+)\]|(.*)):(\d{1,10})$/s.exec(endpoint ?? "");
  const host = match ? (match[1] ?? match[2]) : endpoint;
  const unnamed = `the ${what}`;
  if (!endpoint || !host) return { device: unnamed, name: unnamed, host: "HOST", ...more };
  return { device: clean(endpoint), name: clean(host), host: shellHost(host, "HOST"), ...more };
}

const hex = (n: number, digits: number): string => `0x${(n >>> 0).toString(16).toUpperCase().padStart(digits, "0")}`;

function clean(text: string): string {
  const points = [
    ...withoutCredentials(text)
      .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, " ")
      .trim(),
  ];
  return points.length <= MAX_FOREIGN ? points.join("") : `${points.slice(0, MAX_FOREIGN).join("")}…`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const stop = (text: string, before = ""): string => `${before}${text.replace(/[.\s]+$/, "")}.`;
