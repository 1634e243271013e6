import type { Target } from "./backend.ts";
import { GatewayError } from "./errors.ts";

/** What a client may ask for. There is no request that changes anything. */
export type GatewayRequest =
  | { readonly request: "hello"; readonly versions: readonly number[]; readonly client: string; readonly maxLineBytes: number }
  | { readonly request: "servers" }
  | { readonly request: "open"; readonly target: Target }
  | { readonly request: "browse"; readonly path: readonly string[]; readonly after: string | undefined; readonly max: number }
  | { readonly request: "resolve"; readonly items: readonly string[] }
  | { readonly request: "read"; readonly epoch: string; readonly items: readonly string[] };

/** A line of a client, checked. */
export interface Asked {
  readonly id: number;
  readonly body: GatewayRequest;
  /** The client waits this long for the answer, ms. */
  readonly withinMs: number;
}

export const MAX_ITEM_CHARACTERS = 1024;
const MAX_WITHIN_MS = 600_000;
const MAX_DEPTH = 64;
/** Any item fits, and any error. */
const MIN_LINE_BYTES = 65_536;

type Fields = Readonly<Record<string, unknown>>;

const bad = (message: string): GatewayError => new GatewayError("bad_request", message);

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** The object of a line. Throws GatewayError `bad_request`: there is nobody to answer by number. */
export function objectOf(line: Uint8Array): Fields {
  try {
    const parsed: unknown = JSON.parse(UTF8.decode(line));
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Fields;
  } catch {
    throw bad("the line is not JSON in UTF-8");
  }
  throw bad("the line is not a JSON object");
}

/** Throws GatewayError `bad_request`. */
export function idOf(fields: Fields): number {
  const { id } = fields as { readonly id?: unknown };
  if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0) throw bad("id must be a whole number from 0 to 2^53 - 1");
  return id;
}

/** Throws GatewayError `bad_request` or `unknown_request`, in words that name the field. */
export function requestOf(fields: Fields, maxItems: number): Asked {
  return { id: idOf(fields), body: bodyOf(fields, maxItems), withinMs: withinOf(fields["within_ms"]) };
}

function withinOf(value: unknown): number {
  if (value === undefined) return MAX_WITHIN_MS;
  if (typeof value !== "number" || !(value >= 1)) throw bad("within_ms must be a number of milliseconds from 1");
  return Math.min(value, MAX_WITHIN_MS);
}

function bodyOf(fields: Fields, maxItems: number): GatewayRequest {
  const { request } = fields as { readonly request?: unknown };
  switch (request) {
    case "hello":
      return helloOf(fields);
    case "servers":
      return { request };
    case "open":
      return { request, target: targetOf(fields["target"]) };
    case "browse":
      return {
        request,
        path: textsOf(fields["path"], "path", MAX_DEPTH),
        after: fields["after"] === undefined ? undefined : textOf(fields["after"], "after", 256),
        max: countOf(fields["max"], "max", maxItems),
      };
    case "resolve":
      return { request, items: itemsOf(fields, maxItems) };
    case "read":
      return { request, epoch: textOf(fields["epoch"], "epoch", 64), items: itemsOf(fields, maxItems) };
    default:
      throw new GatewayError("unknown_request", `this gateway has no request ${JSON.stringify(request)?.slice(0, 60)}; it only reads`);
  }
}

function helloOf(fields: Fields): GatewayRequest {
  const { versions, max_line_bytes: maxLineBytes } = fields as { readonly versions?: unknown; readonly max_line_bytes?: unknown };
  if (!Array.isArray(versions) || versions.length === 0 || versions.length > 100 || !versions.every((one) => Number.isSafeInteger(one)))
    throw bad("versions must be a list of whole numbers");
  if (typeof maxLineBytes !== "number" || !(maxLineBytes >= MIN_LINE_BYTES))
    throw bad(`max_line_bytes must be a number from ${MIN_LINE_BYTES}`);
  return { request: "hello", versions: versions as readonly number[], client: textOf(fields["client"], "client", 200), maxLineBytes };
}

function targetOf(value: unknown): Target {
  const target = typeof value === "object" && value !== null ? (value as Fields) : {};
  switch (target["protocol"]) {
    case "OPC_DA":
      return { protocol: "OPC_DA", server_name: textOf(target["server_name"], "target.server_name", MAX_ITEM_CHARACTERS) };
    case "PVI":
      return { protocol: "PVI", path: textOf(target["path"], "target.path", MAX_ITEM_CHARACTERS) };
    default:
      throw bad("target.protocol must be OPC_DA or PVI");
  }
}

function itemsOf(fields: Fields, maxItems: number): readonly string[] {
  const { items } = fields as { readonly items?: unknown };
  if (Array.isArray(items) && items.length > maxItems)
    throw new GatewayError("too_many_items", `${items.length} items in one request; at most ${maxItems} are taken`);
  return textsOf(items, "items", maxItems);
}

function textsOf(value: unknown, name: string, most: number): readonly string[] {
  if (!Array.isArray(value) || value.length > most) throw bad(`${name} must be a list of at most ${most} texts`);
  return value.map((one: unknown) => textOf(one, name, MAX_ITEM_CHARACTERS));
}

function textOf(value: unknown, name: string, longest: number): string {
  if (typeof value !== "string" || value.length > longest) throw bad(`${name} must be a text of at most ${longest} characters`);
  return value;
}

function countOf(value: unknown, name: string, most: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1) throw bad(`${name} must be a whole number from 1`);
  return Math.min(value, most);
}
