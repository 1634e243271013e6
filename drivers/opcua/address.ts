import type { DataType } from "../../src/model/value.ts";
import type { WirePlaces } from "../driver.ts";
import { parseOrAnswer } from "../lib/spellings.ts";
import { addressInvalid, quote } from "../lib/text.ts";
import { escapedName, parseSelection, type Step, selectionText, withoutEnd } from "./selection.ts";
import { FORMS } from "./spellings.ts";

/** Who counts the namespaces: an index as the server counts them today, or a URI, which stays. */
export type Namespace = number | { readonly uri: string };

/** One element of a browse path. */
export interface PathElement {
  readonly namespace: Namespace;
  readonly name: string;
}

/**
 * The place where a variable is. `text` is its canonical form: equal texts are one node. What is read is always `resolved`. Plain data: it crosses
 * threads.
 */
export type OpcuaAddress =
  | (Part & { readonly kind: "node"; readonly text: string; readonly namespace: Namespace; readonly id: Identifier })
  | (Part & { readonly kind: "path"; readonly text: string; readonly elements: readonly PathElement[] })
  | ResolvedAddress;

/** Steps from the value of a node to a part of it. Absent: the whole value. */
interface Part {
  readonly select?: readonly Step[];
}

/** A node as the server counts its namespaces in one epoch. */
export interface ResolvedAddress extends Part {
  readonly kind: "resolved";
  readonly namespace: number;
  readonly id: Identifier;
  /** The path that led there; absent: the configuration names the node itself. */
  readonly path?: string;
  /** Its value is read as it is encoded, alone in its request. */
  readonly isEncoded?: true;
}

/** Identifier of a node (OPC 10000-3, 8.2): number, text, GUID (lower case) or bytes (Base64). */
export type Identifier =
  | { readonly type: "i"; readonly value: number }
  | { readonly type: "s"; readonly value: string }
  | { readonly type: "g"; readonly value: string }
  | { readonly type: "b"; readonly value: string };

const FORM =
  "expected a node id such as ns=2;s=Plant.Temp, ns=2;i=1001 or nsu=http://example.com/plant;s=Temp, or a browse path such as /Objects/2:Plant/2:Temp or /Objects/nsu=http://example.com/plant;Temp; for a part of the value with #Field.Sub, #[2] or #[2:5] behind it";
const NODE = /^(?:ns=(\d{1,5});|nsu=([^;]+);)?([isgb])=([\s\S]+)$/;
const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** OPC 10000-3, 8.2.4: a string identifier has at most this many characters. */
const MAX_STRING = 4096;
const MAX_PATH = 32;
const AUTO: DataType = { scalar: "auto" };

interface Parsed {
  readonly address: OpcuaAddress;
  readonly type: DataType;
}

/**
 * Node ids as OPC 10000-6, 5.3.1.10 writes them, with ns=, nsu= or neither (namespace 0), and browse paths from the root, whose names
 * carry their namespace index (OPC 10000-4, A.2) or its URI. What is not one of these is refused, never guessed at. Pure.
 * Throws FaultError("address_invalid"), with our words for an address of another tool.
 */
export const parseAddress = (text: string, type: DataType | undefined): Parsed => parseOrAnswer(text, type, FORMS, parseOwn);

function parseOwn(text: string, type: DataType | undefined): Parsed {
  // Spaces at the end of a string identifier are part of it.
  const trimmed = text.trimStart();
  return { address: trimmed.startsWith("/") ? pathOf(text, withoutEnd(trimmed)) : nodeOf(text, trimmed), type: type ?? AUTO };
}

/** The value of a node that was looked up, as the server encodes it: it carries its type, and numbers have one order. Pure. */
export function wireOf(address: OpcuaAddress): WirePlaces<OpcuaAddress> | undefined {
  if (address.kind !== "resolved") return undefined;
  const form = "DataValue (OPC 10000-6, 5.2.2.17)";
  return { bytes: { address: { ...address, isEncoded: true }, type: { scalar: "uint8", count: 1 } }, form, orders: [] };
}

function nodeOf(text: string, trimmed: string): OpcuaAddress {
  if (/^svr=/.test(trimmed)) throw addressInvalid(text, "svr= names another server; add that server as a data source of its own");
  const match = NODE.exec(trimmed);
  if (!match) throw addressInvalid(text, FORM);
  const [, index, uri, kind, whole = ""] = match;
  const cut = kind === "s" ? /#/.exec(whole) : /[#[]/.exec(whole);
  const value = cut ? whole.slice(0, cut.index) : whole;
  const select = cut ? parseSelection(text, withoutEnd(whole.slice(cut[0] === "#" ? cut.index + 1 : cut.index))) : undefined;
  const namespace = uri === undefined ? namespaceIndex(text, index) : { uri: decodeUri(text, uri) };
  const id = identifierOf(text, kind, kind === "s" ? decodeString(value) : value.trimEnd());
  const before = typeof namespace === "number" ? (namespace === 0 ? "" : `ns=${namespace};`) : `nsu=${encodeUri(namespace.uri)};`;
  return { kind: "node", text: `${before}${identifierText(id)}${selectionText(select)}`, namespace, id, ...(select && { select }) };
}

/** `s=Tank%23 1`, as addresses are written. */
export const identifierText = ({ type, value }: Identifier): string => `${type}=${type === "s" ? encodeString(value) : value}`;

/** In s=, a `#` stands as %23 and a space at the end as %20; what would be read as one of them has %25 for its `%`. */
const decodeString = (text: string): string =>
  text
    .replaceAll(/%(25)*23/g, (code) => (code === "%23" ? "#" : code.replace("25", "")))
    .replace(/(?:%(?:25)*20)+$/, (end) => end.replaceAll(/%(?:25)*20/g, (code) => (code === "%20" ? " " : code.replace("25", ""))));

const encodeString = (value: string): string =>
  value
    .replace(/(?: |%(?:25)*20)+$/, (end) => end.replaceAll(/ |%(?:25)*20/g, (one) => (one === " " ? "%20" : one.replace("%", "%25"))))
    .replaceAll(/#|%(?:25)*23/g, (one) => (one === "#" ? "%23" : one.replace("%", "%25")));

function namespaceIndex(text: string, digits: string | undefined): number {
  const index = Number(digits ?? 0);
  if (index > 65_535) throw addressInvalid(text, `the namespace index is ${index}, it must be 0 to 65535`);
  return index;
}

function identifierOf(text: string, kind: string | undefined, value: string): Identifier {
  switch (kind) {
    case "i": {
      const number = Number(value);
      if (!/^\d{1,10}$/.test(value) || number > 0xffff_ffff)
        throw addressInvalid(text, `i= takes a number from 0 to 4294967295, not ${quote(value)}`);
      return { type: "i", value: number };
    }
    case "g":
      if (!GUID.test(value))
        throw addressInvalid(text, `g= takes a GUID such as 09087e75-8e5e-499b-954f-f2a9603db28a, not ${quote(value)}`);
      return { type: "g", value: value.toLowerCase() };
    case "b":
      if (value === "" || !BASE64.test(value)) throw addressInvalid(text, `b= takes bytes in Base64, not ${quote(value)}`);
      return { type: "b", value };
    default:
      if (value === "") throw addressInvalid(text, FORM);
      if (value.length > MAX_STRING) throw addressInvalid(text, `s= takes at most ${MAX_STRING} characters, these are ${value.length}`);
      if (value.includes("\0")) throw addressInvalid(text, "s= takes no NUL");
      return { type: "s", value };
  }
}

/** OPC 10000-6, 5.3.1.10: in nsu=, `;` and `%` stand as %3B and %25. */
function decodeUri(text: string, uri: string): string {
  if (/%(?!3B|25)/i.test(uri)) throw addressInvalid(text, "in nsu=, % stands as %25 and ; as %3B");
  return uri.replaceAll(/%3B/gi, ";").replaceAll("%25", "%");
}

export const encodeUri = (uri: string): string => uri.replaceAll("%", "%25").replaceAll(";", "%3B");

function pathOf(text: string, trimmed: string): OpcuaAddress {
  const { names, selection } = split(text, trimmed);
  const elements = names.map((raw) => elementOf(text, raw));
  const select = selection === undefined ? undefined : parseSelection(text, selection);
  if (elements.length > MAX_PATH)
    throw addressInvalid(text, `a browse path has at most ${MAX_PATH} names, this one has ${elements.length}`);
  return {
    kind: "path",
    elements,
    text: `${pathText(elements)}${selectionText(select)}`,
    ...(select && { select }),
  };
}

/** The canonical form of a path. */
export const pathText = (elements: readonly PathElement[]): string =>
  elements.map(({ namespace, name }) => `/${prefixOf(namespace)}${escaped(name)}`).join("");

const prefixOf = (namespace: Namespace): string =>
  typeof namespace !== "number" ? `nsu=${encodeUri(namespace.uri)};` : namespace === 0 ? "" : `${namespace}:`;

/** True: the server may renumber a namespace of this address when it starts: namespaces 0 and 1 never move (OPC 10000-3, 8.2.2). */
export const isCounted = (address: OpcuaAddress): boolean =>
  address.kind === "node"
    ? isIndex(address.namespace)
    : address.kind === "path" && address.elements.some(({ namespace }) => isIndex(namespace));

const isIndex = (namespace: Namespace): namespace is number => typeof namespace === "number" && namespace > 1;

/** The address with the URIs of its namespaces, by a list of them; undefined: it has them already. Throws FaultError. Pure. */
export function withUris(text: string, namespaces: readonly (string | null)[]): string | undefined {
  const { address } = parseAddress(text, undefined);
  if (!isCounted(address) || address.kind === "resolved") return undefined;
  const named = (namespace: Namespace): Namespace => {
    if (!isIndex(namespace)) return namespace;
    const uri = namespaces[namespace];
    if (uri === undefined || uri === null || uri === "")
      throw addressInvalid(text, `the server had no namespace ${namespace} when it was first read`);
    return { uri };
  };
  const part = selectionText(address.select);
  if (address.kind === "path")
    return `${pathText(address.elements.map(({ namespace, name }) => ({ namespace: named(namespace), name })))}${part}`;
  const namespace = named(address.namespace);
  return typeof namespace === "number" ? undefined : `nsu=${encodeUri(namespace.uri)};${identifierText(address.id)}${part}`;
}

/** The namespace that an element of a path begins with (`nsu=…;`); its slashes and `&` are the URI's. Empty: it has none. */
const uriAt = (path: string, at: number): string => /^nsu=[^;]+;/.exec(path.slice(at))?.[0] ?? "";

/** Names between slashes, and what stands behind `#`; `&` takes the next character as it is. Each name keeps its escapes. */
function split(text: string, path: string): { readonly names: readonly string[]; readonly selection: string | undefined } {
  const names: string[] = [];
  let name = uriAt(path, 1);
  let selection: string | undefined;
  for (let i = 1 + name.length; i < path.length; i++) {
    const char = path.charAt(i);
    if (char === "&") {
      if (i + 1 >= path.length) throw addressInvalid(text, "& at the end escapes nothing; write && for one &");
      name += char + path.charAt(++i);
    } else if (char === "/") {
      names.push(name);
      name = uriAt(path, i + 1);
      i += name.length;
    } else if (char === "#") {
      selection = path.slice(i + 1);
      break;
    } else name += char;
  }
  names.push(name);
  if (names.some((one) => one === "")) throw addressInvalid(text, "a name between two slashes is empty; a slash in a name is written &/");
  return { names, selection };
}

function elementOf(text: string, raw: string): PathElement {
  const uri = /^nsu=([^;]+);/.exec(raw);
  const match = uri ?? /^(\d{1,5}):/.exec(raw);
  const namespace = uri ? { uri: decodeUri(text, uri[1] ?? "") } : namespaceIndex(text, match?.[1]);
  const rest = raw.slice(match?.[0].length ?? 0);
  const name = rest.replaceAll(/&([\s\S])/g, "$1");
  if (name === "") throw addressInvalid(text, `${quote(raw)} has no name behind its namespace`);
  if (name.length > 512) throw addressInvalid(text, "a name in a browse path has at most 512 characters");
  return { namespace, name };
}

/** A colon, or the first letter of `nsu=`, is escaped where the name would else begin with a namespace. */
const escaped = (name: string): string =>
  escapedName(name, /[&/#]/g)
    .replace(/^(\d{1,5}):/, "$1&:")
    .replace(/^nsu=/, "&nsu=");
