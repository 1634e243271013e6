import * as z from "zod";
import { withoutUserInformation } from "./endpoint-url.ts";

/**
 * What is wrong with the host of a device or broker where it is configured, and what was meant; undefined: nothing. A port has a field of its
 * own, a scheme and a path belong to no host, and blanks to none. An IPv6 address stands without brackets, with its zone where it needs one.
 */
export function hostProblem(text: string): string | undefined {
  if (text === "") return EXPECTED;
  if (isIpv6(text)) return undefined;
  const bare = text.replaceAll(/[\s\p{Cc}]+/gu, "");
  const hasBlanks = bare !== text;
  // User and password never come back in an answer.
  const named = withoutUserInformation(bare);
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)?(.*)$/is.exec(named) ?? [];
  const [place = ""] = rest.split(/[/?#]/);
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(place) ?? [];
  const host = isIpv6(place) ? place : (bracketed ?? plain);
  const found = [
    ...(hasBlanks ? ["blanks"] : []),
    ...(scheme === "" ? [] : [`a scheme (${scheme})`]),
    ...(port === undefined ? [] : ["a port"]),
    ...(bracketed === undefined ? [] : ["brackets"]),
    ...(rest === place && named === bare ? [] : ["more than a host"]),
  ];
  if (host === place && found.length === 0) return numberProblem(host);
  if (host === undefined || host === "") return EXPECTED;
  const meant = host.length > MAX_SHOWN ? "the host alone" : port === undefined || port === "" ? host : `${host}, and ${port} as port`;
  return `${EXPECTED}, but it holds ${found.join(", ") || "what is in none"}; write ${meant}`;
}

const EXPECTED = "expected a host name or an IP address";
const MAX_SHOWN = 100;

/**
 * Of a host that is written in digits. Three numbers and leading zeros are addresses to the resolver, and other ones than they seem
 * (inet_aton(3): 192.168.1 is 192.168.0.1, and 010 is eight).
 */
function numberProblem(host: string): string | undefined {
  if (!/^\d+([.,]+\d*)+$/.test(host)) return undefined;
  const numbers = host.split(/[.,]+/).filter((text) => text !== "");
  if (host.length > MAX_SHOWN || numbers.length !== 4) return `${EXPECTED}; an IPv4 address has four numbers, such as 192.168.1.30`;
  const large = numbers.find((text) => Number(text) > 255);
  if (large !== undefined) return `${EXPECTED}; ${large} is too large for an IPv4 address, whose numbers go to 255`;
  const meant = numbers.map(Number).join(".");
  return meant === host ? undefined : `${EXPECTED}; write ${meant}`;
}

/** RFC 4291, 2.2, with a zone (RFC 4007, 11); only an IPv6 address has more than one colon. */
function isIpv6(text: string): boolean {
  const [address = "", zone, ...more] = text.split("%");
  if (more.length > 0 || zone === "" || (zone !== undefined && !/^[\w.-]+$/.test(zone))) return false;
  return /^[0-9a-f:.]+$/i.test(address) && address.split(":").length > 2 && URL.canParse(`http://[${address}]/`);
}

/** A host as people and programs may configure it. */
export const hostSchema = z
  .string()
  .check((context) => {
    const message = hostProblem(context.value);
    if (message !== undefined) context.issues.push({ code: "custom", message, input: context.value });
  })
  .meta({ minLength: 1 });
