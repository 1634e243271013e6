import { type Fault, FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { quote } from "../lib/text.ts";
import { VERSION } from "./frames.ts";

/** What an item's error is in the collector's words; codes that are in no list are `device_error`. */
const ITEM_FAULTS: Readonly<Record<string, Fault>> = {
  address_invalid: "address_invalid",
  not_found: "not_found",
  access_denied: "access_denied",
  type_unsupported: "type_mismatch",
  no_answer: "no_answer",
  no_value: "stale",
  device_error: "device_error",
};

/** The hop behind the gateway: the gateway itself answers. */
const BEHIND: ReadonlySet<string> = new Set(["unknown_server", "server_unavailable", "server_timeout", "access_denied"]);

const ADVICE: Readonly<Record<string, string>> = {
  unsupported_version: `the collector speaks version ${VERSION} of the gateway protocol: update the older of both`,
  too_many_connections: "close other clients of the gateway, or raise its limit",
  unknown_server: "check server_name or path",
  server_unavailable: "is the server started on the gateway's computer, and may the gateway's user start it?",
  server_timeout: "the server or the machine behind it is slow or hangs; a longer answer_timeout gives it more time",
  access_denied: "the gateway's user may not use the server: for OPC DA, look at its rights in DCOM",
};

/** An error as the protocol has it, checked. */
export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly native: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly versions: readonly number[];
  readonly epoch: string | undefined;
}

const CODE = /^[a-z][a-z0-9_]{0,39}$/;
const MAX_WORDS = 300;
const MAX_EPOCH = 64;

/** Undefined: it does not follow the protocol. Pure. */
export function errorOf(error: unknown): WireError | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, message = "", native, retry_after_ms: restMs, versions, epoch } = error as Readonly<Record<string, unknown>>;
  if (typeof code !== "string" || !CODE.test(code) || typeof message !== "string") return undefined;
  return {
    code,
    message,
    native: typeof native === "string" && native !== "" ? native : undefined,
    retryAfterMs: typeof restMs === "number" && restMs >= 0 ? restMs : undefined,
    versions: Array.isArray(versions) ? versions.filter((one) => Number.isSafeInteger(one)).slice(0, 20) : [],
    epoch: typeof epoch === "string" && epoch !== "" && epoch.length <= MAX_EPOCH ? epoch : undefined,
  };
}

/** `not_found, 0xC0040007 OPC_E_UNKNOWNITEMID: "there is no item X"`. */
function errorWords({ code, message, native }: WireError): string {
  const own = native === undefined ? "" : `, ${quote(native, 100).slice(1, -1)}`;
  return `${code}${own}${message === "" ? "" : `: ${quote(message, MAX_WORDS)}`}`;
}

/** The fault of one item; undefined: the error does not follow the protocol. Pure. */
export function itemFault(error: unknown): FaultError | undefined {
  const wire = errorOf(error);
  return wire && new FaultError(ITEM_FAULTS[wire.code] ?? "device_error", `the gateway answers ${errorWords(wire)}`);
}

/** The items of the server may be others by now: what was looked up belongs to another epoch than `epoch`. */
export class StaleEpoch extends FaultError {
  readonly epoch: string;
  constructor(epoch: string, detail: string) {
    super("program_changed", detail, { scope: "program" });
    this.epoch = epoch;
  }
}

/** The gateway refuses a request as a whole. */
export class GatewayRefusal extends ReasonError {
  readonly code: string;
  constructor(code: string, message: string, retryAfterMs: number | undefined) {
    super("VENDOR_GATEWAY_ERROR", message, { retryAfterMs });
    this.code = code;
  }
}

/** What was refused, and of whom. */
export interface Refused {
  /** `10.0.0.7:7000`. */
  readonly where: string;
  /** `the OPC DA server Plant.OpcDa.1`. */
  readonly target: string;
  /** The request in the field's words. */
  readonly what: string;
}

/**
 * A request that the gateway refuses as a whole: VENDOR_GATEWAY_ERROR, but for what is only about how much was asked for (`too_large`) and
 * for items that have to be looked up again (`stale_epoch`). Pure.
 */
export function refusalOf(error: WireError, { where, target, what }: Refused): ReasonError | FaultError {
  const words = `the gateway ${where} refuses ${what}: ${errorWords(error)}`;
  if (error.code === "too_large") return new FaultError("device_error", words);
  if (error.code === "stale_epoch" && error.epoch !== undefined) return new StaleEpoch(error.epoch, `${words}; items are looked up again`);
  const versions = error.versions.length === 0 ? "" : `; it speaks version ${error.versions.join(", ")}`;
  const hop = BEHIND.has(error.code) ? `; the gateway itself is well, the trouble is behind it, at ${target}` : "";
  const advice = ADVICE[error.code];
  const all = `${words}${versions}${hop}${advice === undefined ? "" : `; ${advice}`}`;
  return new GatewayRefusal(error.code, all, error.retryAfterMs);
}
