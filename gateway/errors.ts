/** Why a whole request is refused. Closed; docs/gateway-protocol.md says when each is given. */
export const REQUEST_ERRORS = [
  "bad_request",
  "unknown_request",
  "unsupported_version",
  "line_too_long",
  "too_many_connections",
  "too_many_items",
  "too_large",
  "not_open",
  "stale_epoch",
  "unknown_server",
  "server_unavailable",
  "server_timeout",
  "access_denied",
  "busy",
  "internal_error",
] as const;
export type RequestErrorCode = (typeof REQUEST_ERRORS)[number];

/** Why one item has no value while the request is answered. Closed. */
export const ITEM_ERRORS = [
  "address_invalid",
  "not_found",
  "access_denied",
  "type_unsupported",
  "no_answer",
  "no_value",
  "device_error",
] as const;
export type ItemErrorCode = (typeof ITEM_ERRORS)[number];

/** What goes with an error beside its code and its words. */
export interface ErrorFields {
  /** The code of the system behind the gateway, as its manual writes it: `0xC0040007 OPC_E_UNKNOWNITEMID`, `4820`. */
  readonly native?: string;
  /** The client is asked not to come again before. Milliseconds. */
  readonly retryAfterMs?: number;
  /** Of `unsupported_version`: the versions that are spoken. */
  readonly versions?: readonly number[];
  /** Of `stale_epoch`: the epoch that holds. */
  readonly epoch?: string;
}

/** A request is refused as a whole. Thrown by backends too. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: RequestErrorCode;
  readonly fields: ErrorFields;

  constructor(code: RequestErrorCode, message: string, fields: ErrorFields = {}) {
    super(message);
    this.code = code;
    this.fields = fields;
  }
}
