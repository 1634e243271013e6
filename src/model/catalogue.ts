import type { Condition } from "./condition.ts";
import type { Fault } from "./fault.ts";
import { knownStatus } from "./opcua-statuses.ts";
import type { Reason, ReasonType } from "./reason.ts";

/** What went wrong in one sentence, why it usually does, and what to do about it, with the command to type between backticks. */
export interface Explanation {
  readonly sentence: string;
  readonly cause: string;
  readonly nextStep: string;
}

/** Where it went wrong, as far as it is known. */
export interface Where {
  /** `host:port`, an IPv6 address in brackets; null or absent: not known. */
  readonly endpoint?: string | null;
  /** Name of the data source or data sink; stands before the sentence. */
  readonly source?: string;
}

/** The same for people: `device` (with port) and `name` (without) in a sentence, `host` and `port` in a command. */
interface Place {
  readonly device: string;
  readonly name: string;
  readonly host: string;
  readonly port: string;
}

/** Longest foreign text that is repeated, in code points. */
const MAX_FOREIGN = 200;

const LOG = "`journalctl -u collector -n 50`";

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

const REASONS: { readonly [T in ReasonType]: (at: Place, reason: Extract<Reason, { type: T }>) => Explanation } = {
  LOOKUP_ERROR: ({ name, host }) => ({
    sentence: `No address can be found for ${name}.`,
    cause: "The name is misspelt, or this machine's DNS server cannot be reached or does not know it.",
    nextStep: `Type \`getent hosts ${host}\`; if it prints nothing, correct the name or the DNS server, or configure the IP address instead.`,
  }),
  NO_ROUTE_TO_HOST: ({ name, host }) => ({
    sentence: `Nothing answers for the address of ${name} on the network.`,
    cause: "The device is off, its cable is out, or its IP address or subnet mask is wrong.",
    nextStep: `Check power, cable and link light, then type \`${neighbours(host)}\`; FAILED or INCOMPLETE means that no device there has the address.`,
  }),
  HOST_DOWN: ({ name, host }) => ({
    sentence: `The network says that ${name} is down.`,
    cause: "The device is switched off, is starting up or has lost its link.",
    nextStep: `Check power and link light, then type \`ping -c 3 ${host}\`.`,
  }),
  NETWORK_UNREACHABLE: ({ name }) => ({
    sentence: `This machine has no way to the network of ${name}.`,
    cause: "The network interface towards the device is down, or a route or the default gateway is missing.",
    nextStep: "Type `ip route`; it must list the network of the device or a default route.",
  }),
  CONNECTION_REFUSED: ({ device, host, port }) => ({
    sentence: `The connection was refused by ${device}.`,
    cause: "The host is there, but no service listens on this port: the port is wrong, the service is off or it takes no more connections.",
    nextStep: `Type \`nc -vz ${host} ${port}\`; if it is refused too, correct the port or enable the service on the device.`,
  }),
  CONNECTION_RESET: ({ device, host, port }) => ({
    sentence: `The connection was broken off by ${device}.`,
    cause: "The device restarted, has too many connections, or a firewall cut the connection.",
    nextStep: `Type \`nc -vz ${host} ${port}\`; if that works, close other programs that talk to the device: \`ss -tn\` lists those on this machine.`,
  }),
  CONNECTION_CLOSED: ({ device }) => ({
    sentence: `The connection was closed by ${device} while an answer was awaited.`,
    cause: "The device restarted, takes no more connections, or did not accept what it was asked.",
    nextStep: `Close other programs that talk to the device, \`ss -tn\` lists those on this machine; then type \`collector status\`.`,
  }),
  TIMEOUT: ({ device, host, port }) => ({
    sentence: `No answer came in time from ${device}.`,
    cause: "The device is off, busy or at another address, or a firewall drops the packets without a word.",
    nextStep: `Type \`ping -c 3 ${host}\`, then \`nc -vz ${host} ${port}\`; if both work, the device is reached and does not answer requests: look at its load and its settings.`,
  }),
  VENDOR_GATEWAY_ERROR: ({ device }) => ({
    sentence: `An error was reported by the gateway at ${device}.`,
    cause: "The gateway works and cannot read the machine behind it, or does not know the configured server or path.",
    nextStep: `Type ${LOG} for the gateway's own words, and check the gateway's connection to the machine.`,
  }),
  OPC_UA_ERROR_RESPONSE: ({ device }, { code, name, description, reason }) => {
    const known = knownStatus(name);
    const words = [description, reason].filter((text) => text !== null && text !== "").map((text) => clean(text ?? ""));
    return {
      sentence: stop(
        `The OPC UA server at ${device} answered with error ${[hex(code, 8), ...(name ? [clean(name)] : []), ...words].join(", ")}`,
      ),
      cause: known ? stop(capital(known.cause)) : "The server is reached and refuses what it is asked; the code says why.",
      nextStep: known?.nextStep ?? `Look the code up in the server's log and manual; ${LOG} shows when it began.`,
    };
  },
  OPC_UA_NO_MATCHING_ENDPOINT_POLICY: (_at, reason) => ({
    sentence: `The OPC UA server at ${clean(reason.endpoint_url)} offers no endpoint with mode ${clean(reason.message_security_mode)}, policy ${clean(reason.endpoint_security_policy_uri)} and log-in ${clean(reason.token_type)} under policy ${clean(reason.token_security_policy_uri)}.`,
    cause: "The security settings of the data source are not among those that are enabled on the server.",
    nextStep: `Enable them on the server or configure what it offers; \`collector read opcua endpoint_url=${argument(reason.endpoint_url, "URL")} i=2258\` tries it without security.`,
  }),
  S7PLUS_ERROR: ({ device }, { category }) =>
    category === "AUTHENTICATION"
      ? {
          sentence: `The PLC at ${device} does not let the collector in (AUTHENTICATION).`,
          cause: "The password is missing or wrong, or its access level does not permit reading.",
          nextStep: `Correct the password of the data source or the access level in the PLC's project; then type \`collector status\`.`,
        }
      : {
          sentence: `The PLC at ${device} answered with an S7plus error (UNKNOWN).`,
          cause: "The PLC is reached and refuses what it is asked, or its firmware is not known to the collector.",
          nextStep: `Type ${LOG} for the PLC's own code.`,
        },
  FINS_NETWORK_RELAY_ERROR: (_at, { response_code, requested_node, relay_network, relay_node }) => ({
    sentence: `The FINS relay at network ${relay_network}, node ${relay_node} could not pass the request on to node ${requested_node} (end code ${hex(response_code, 4)}).`,
    cause: stop(
      FINS_MAIN_CODES[response_code >> 8] ?? "a node between the collector and the PLC could not reach the next one",
      "By its end code, ",
    ),
    nextStep: `Check remote_address (NETWORK.NODE.UNIT) and the routing tables of the PLCs on the way; then type \`collector status\`.`,
  }),
  UNKNOWN: ({ device }) => ({
    sentence: `Reading or publishing at ${device} failed for a reason that has no name in the API.`,
    cause: "The device answered with an error of its own, or with bytes that do not fit its protocol.",
    nextStep: `Type ${LOG}; the line of this failure holds the protocol's own code.`,
  }),
};

const CONDITIONS: { readonly [C in Condition]: (at: Place) => Explanation } = {
  details_missing: () => ({
    sentence: "There are no connection properties: details is null in the configuration API.",
    cause: "The connection was never entered, or this API key may not see it.",
    nextStep: "Enter the connection properties in the configuration API; then type `collector status`.",
  }),
  configuration_invalid: () => ({
    sentence: "The configuration holds something that cannot be used.",
    cause: "A field of the details, a local setting or a variable has a wrong value.",
    nextStep: "Type `collector status`; it names the field and what would be right.",
  }),
  type_not_supported: () => ({
    sentence: "This collector does not know this type of data source or data sink.",
    cause: "The type is misspelt, or the collector is older than the type.",
    nextStep: "Type `collector status` to see the type; correct it or update the collector.",
  }),
  secret_missing: () => ({
    sentence: "A password or key is configured, but it is not on this machine.",
    cause: "The API never returns passwords; they must be stored beside the collector.",
    nextStep:
      "Type `collector secret set NAME` as root, with the name of this data source or data sink, or name a file that holds it as password_file in the settings.",
  }),
  interval_invalid: () => ({
    sentence: "The configured interval is not above zero.",
    cause: "readout_interval or publish_interval is 0 or negative in the configuration API.",
    nextStep: "Set an interval of 1 or more in the configuration API; then type `collector status`.",
  }),
  all_variables_faulted: ({ device }) => ({
    sentence: `An answer comes from ${device}, but not one variable can be read.`,
    cause: "The addresses belong to another device or program, or the rights to read them are missing.",
    nextStep: "Type `collector status`; it lists the variables and what is wrong with each.",
  }),
  forbidden_by_policy: ({ device }) => ({
    sentence: `The policy of this machine does not let the collector connect to ${device}.`,
    cause:
      "policy.yaml does not open this address or port; without that file, loopback, link-local, multicast and metadata addresses are closed.",
    nextStep:
      "If it is meant, add the address to networks in policy.yaml beside the settings file and restart the collector; then type `collector status`.",
  }),
  certificate_refused: ({ device }) => ({
    sentence: `There is no secure connection with ${device}: a certificate was not accepted.`,
    cause:
      "The certificate is not trusted yet, has expired, is for another name, or comes from an authority that the other side does not know.",
    nextStep: "Type `collector status`; it says which certificate, what is wrong with it and what to do.",
  }),
  protocol_violation: ({ device, host, port }) => ({
    sentence: `What ${device} sends does not follow the protocol.`,
    cause: "Another service listens on this port, or the type of the data source is wrong.",
    nextStep: `Compare type and port with the device's manual; \`nc -vz ${host} ${port}\` shows that something listens, ${LOG} what it sent.`,
  }),
  collector_host_trouble: () => ({
    sentence: "The collector's own machine refuses: it is out of file handles, ports, memory or rights.",
    cause: "This machine is overloaded or wrongly set up; the device is not at fault.",
    nextStep: `Type \`ss -s\` for the number of connections, and ${LOG} for the system's own words.`,
  }),
  internal_error: () => ({
    sentence: "The collector itself failed.",
    cause: "A fault in the collector; the device is probably not at fault.",
    nextStep: "Type `journalctl -u collector -n 200`, keep what it prints, and report it.",
  }),
};

const READ_ONE = "`collector read TYPE host=HOST ADDRESS`";

const FAULTS: { readonly [F in Fault]: Explanation } = {
  address_invalid: {
    sentence: "The address is not written as this type of device needs it.",
    cause: "A typing error, or an address in the words of another device.",
    nextStep: `Correct the address; ${READ_ONE} says what would be right.`,
  },
  not_found: {
    sentence: "The device has no such variable.",
    cause: "The address is wrong, or the program in the device has changed.",
    nextStep: `Compare the address with the program of the device, then try ${READ_ONE}.`,
  },
  access_denied: {
    sentence: "The device does not let the collector read this variable.",
    cause: "Access protection in the device, or a user without the rights.",
    nextStep: `Permit reading in the device, then try ${READ_ONE}.`,
  },
  type_mismatch: {
    sentence: "The value does not have the configured type.",
    cause: "The type of the variable is wrong, or the program in the device has changed.",
    nextStep: "Correct the type of the variable; `collector read TYPE host=HOST ADDRESS:TYPE` tries one.",
  },
  out_of_range: {
    sentence: "The value or address lies outside what is permitted.",
    cause: "The address lies behind the end of the memory, or the value does not fit its type.",
    nextStep: `Compare address and length with the memory of the device, then try ${READ_ONE}.`,
  },
  not_a_number: {
    sentence: "The value is not a number: the device holds NaN or infinity.",
    cause: "A sensor is broken or missing, or type or byte order are wrong.",
    nextStep: `Check the sensor, the type and the byte order; ${READ_ONE} shows what is read.`,
  },
  device_error: {
    sentence: "The device refuses this variable with an error of its own.",
    cause: "The device or a part of it is in a state in which it does not answer; the code in the detail says which.",
    nextStep: "Type `collector status` for the device's own code, and look it up in its manual.",
  },
  stale: {
    sentence: "The device says that the value is old.",
    cause: "The device has lost its own connection to where the value comes from.",
    nextStep: `Check what lies behind the device, then try ${READ_ONE}.`,
  },
  no_answer: {
    sentence: "No answer came for this variable.",
    cause: "The unit behind the device that holds it is off or not connected, or the unit number is wrong.",
    nextStep: `Check power, bus cable and number of that unit, then try ${READ_ONE}.`,
  },
};

/**
 * Explains why a source cannot be read or a sink not be reached. A condition says more than its reason and wins over it.
 * Texts from outside are shortened and lose their control characters; in a command they stand only if a shell takes them as they are.
 */
export function explainReason(reason: Reason, condition?: Condition | null, where: Where = {}): Explanation {
  const at = placeOf(where.endpoint);
  const explanation = condition ? CONDITIONS[condition](at) : ofReason(reason, at);
  return where.source === undefined ? explanation : { ...explanation, sentence: `${clean(where.source)}: ${explanation.sentence}` };
}

/** Explains what is wrong with one variable. */
export function explainFault(fault: Fault): Explanation {
  return FAULTS[fault];
}

/** The one place where a reason meets the entry of its type, which the compiler cannot follow through the table. */
function ofReason<T extends ReasonType>(reason: Extract<Reason, { type: T }>, at: Place): Explanation {
  const explain: (at: Place, reason: Extract<Reason, { type: T }>) => Explanation = REASONS[reason.type as T];
  return explain(at, reason);
}

function placeOf(endpoint: string | null | undefined): Place {
  const match = /^(?:\[([^\]]+)\]|(.*)):(\d{1,10})$/s.exec(endpoint ?? "");
  const host = match ? (match[1] ?? match[2]) : endpoint;
  if (!endpoint || !host) return { device: "the device", name: "the device", host: "HOST", port: "PORT" };
  return { device: clean(endpoint), name: clean(host), host: argument(host, "HOST"), port: match?.[3] ?? "PORT" };
}

/** `ip neigh` takes addresses, not names. */
const neighbours = (host: string): string => (/^[\d.]+$|:/.test(host) ? `ip neigh show ${host}` : "ip neigh");

/** What somebody will paste into a shell: as it is where it is plain, a placeholder otherwise. */
const argument = (text: string, placeholder: string): string => (/^[\w:[][\w.:/@%[\]-]{0,252}$/.test(text) ? text : placeholder);

const hex = (n: number, digits: number): string => `0x${(n >>> 0).toString(16).toUpperCase().padStart(digits, "0")}`;

function clean(text: string): string {
  const points = [...text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, " ").trim()];
  return points.length <= MAX_FOREIGN ? points.join("") : `${points.slice(0, MAX_FOREIGN).join("")}…`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const stop = (text: string, before = ""): string => `${before}${text.replace(/[.\s]+$/, "")}.`;
