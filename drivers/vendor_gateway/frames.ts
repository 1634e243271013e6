import type { ProtocolDetails } from "./target.ts";

/** The version of docs/gateway-protocol.md that is spoken. */
export const VERSION = 1;

const NEWLINE = 0x0a;
const BRACE = 0x7b;
const TLS_ALERT = 0x15;
const READS = /^\{"id":\d{1,16},"request":"(?:hello|servers|open|browse|resolve|read)"[,}]/;
/** If the field `request` can only be one: in a text its quotes have a backslash before them. */
const FIELD = '"request":';
const LONGEST_PREFIX = 64;

/**
 * True for a line that holds one request of the six that read; else what it is, in words. There is no other request in the protocol; the
 * fence holds that none is made up.
 */
export function fence(frame: Uint8Array): true | string {
  const line = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
  const prefix = READS.exec(line.toString("latin1", 0, LONGEST_PREFIX));
  if (!prefix) return "a line that is not one of hello, servers, open, browse, resolve and read";
  if (line.indexOf(NEWLINE) !== line.length - 1) return "more than one line";
  if (line.indexOf(FIELD, prefix[0].length - 1) !== -1) return "a line with two requests";
  return true;
}

/** Bytes of the line that begins at `start`; undefined: its end has not come; a text: this is no line of the protocol. */
export function lineLength(bytes: Buffer, start: number, maxBytes: number): number | undefined | string {
  const first = bytes[start];
  if (first === TLS_ALERT) return "it answers with TLS: set security to psk or certificate, as the gateway has it";
  if (first !== BRACE) return `${JSON.stringify(bytes.toString("latin1", start, start + 16))} where a line of JSON begins`;
  const end = bytes.indexOf(NEWLINE, start);
  const length = end === -1 ? bytes.length - start : end + 1 - start;
  if (length > maxBytes) return `a line of more than ${maxBytes} bytes`;
  return end === -1 ? undefined : length;
}

/** A request without its number: what follows `{"id":1,`. */
export type Body = string;

/** Of an object whose first field is `request`. Pure. */
const bodyOf = (fields: { readonly request: string } & Readonly<Record<string, unknown>>): Body => `${JSON.stringify(fields).slice(1)}\n`;

export const lineOf = (id: number, body: Body): Buffer => Buffer.from(`{"id":${id},${body}`, "utf8");

export const helloBody = (maxLineBytes: number): Body =>
  bodyOf({ request: "hello", versions: [VERSION], client: "collector", max_line_bytes: maxLineBytes });

export const serversBody = (withinMs: number): Body => bodyOf({ request: "servers", within_ms: withinMs });

export const openBody = (target: ProtocolDetails, withinMs: number): Body => bodyOf({ request: "open", target, within_ms: withinMs });

export const browseBody = (path: readonly string[], after: string | undefined, max: number, withinMs: number): Body =>
  bodyOf({ request: "browse", path, after, max, within_ms: withinMs });

export const resolveBody = (items: readonly string[], withinMs: number): Body => bodyOf({ request: "resolve", items, within_ms: withinMs });

export const readBody = (epoch: string, items: readonly string[], withinMs: number): Body =>
  bodyOf({ request: "read", epoch, items, within_ms: withinMs });

/** The gateway gives up on the server behind it before the collector gives up on the gateway: so that both are told apart. Ms. */
export const withinMsOf = (answerMs: number): number => Math.max(1, Math.floor(answerMs * 0.8));
