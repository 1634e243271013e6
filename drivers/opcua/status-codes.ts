import type { Fault } from "../../src/model/fault.ts";

/** The status codes that the driver acts upon (OPC 10000-6, A.2, StatusCode.csv); the lower 16 bits are flags and not part of them. */
export const STATUS = {
  BadOutOfMemory: 0x8003_0000,
  BadResourceUnavailable: 0x8004_0000,
  BadCommunicationError: 0x8005_0000,
  BadEncodingError: 0x8006_0000,
  BadDecodingError: 0x8007_0000,
  BadEncodingLimitsExceeded: 0x8008_0000,
  BadTimeout: 0x800a_0000,
  BadShutdown: 0x800c_0000,
  BadServiceUnsupported: 0x800b_0000,
  BadServerNotConnected: 0x800d_0000,
  BadServerHalted: 0x800e_0000,
  BadTooManyOperations: 0x8010_0000,
  BadSecurityChecksFailed: 0x8013_0000,
  BadUserAccessDenied: 0x801f_0000,
  BadSecureChannelIdInvalid: 0x8022_0000,
  BadSessionIdInvalid: 0x8025_0000,
  BadSessionClosed: 0x8026_0000,
  BadSessionNotActivated: 0x8027_0000,
  BadNoCommunication: 0x8031_0000,
  BadWaitingForInitialData: 0x8032_0000,
  BadNodeIdInvalid: 0x8033_0000,
  BadNodeIdUnknown: 0x8034_0000,
  BadAttributeIdInvalid: 0x8035_0000,
  BadIndexRangeInvalid: 0x8036_0000,
  BadIndexRangeNoData: 0x8037_0000,
  BadDataEncodingInvalid: 0x8038_0000,
  BadDataEncodingUnsupported: 0x8039_0000,
  BadNotReadable: 0x803a_0000,
  BadOutOfRange: 0x803c_0000,
  BadNotFound: 0x803e_0000,
  BadSubscriptionIdInvalid: 0x8028_0000,
  BadMonitoredItemFilterInvalid: 0x8043_0000,
  BadMonitoredItemFilterUnsupported: 0x8044_0000,
  BadFilterNotAllowed: 0x8045_0000,
  BadSecurityModeRejected: 0x8054_0000,
  BadSecurityPolicyRejected: 0x8055_0000,
  BadTooManySessions: 0x8056_0000,
  BadNoMatch: 0x806f_0000,
  BadTypeMismatch: 0x8074_0000,
  BadTooManyPublishRequests: 0x8078_0000,
  BadNoSubscription: 0x8079_0000,
  BadTcpServerTooBusy: 0x807d_0000,
  BadTcpSecureChannelUnknown: 0x807f_0000,
  BadTcpMessageTooLarge: 0x8080_0000,
  BadSecureChannelClosed: 0x8086_0000,
  BadNotConnected: 0x808a_0000,
  BadDeadbandFilterInvalid: 0x808e_0000,
  BadSecurityModeInsufficient: 0x80e6_0000,
  BadRequestTooLarge: 0x80b8_0000,
  BadResponseTooLarge: 0x80b9_0000,
  BadServerTooBusy: 0x80ee_0000,
} as const;
export type StatusName = keyof typeof STATUS;

export type Quality = "good" | "uncertain" | "bad";

const CODE = 0xffff_0000;

/** The code without its flags, unsigned. */
export const codeOf = (status: number): number => (status & CODE) >>> 0;

/** By severity, the two highest bits (OPC 10000-4, 7.39.1); the reserved fourth counts as bad. */
export function qualityOf(status: number): Quality {
  const severity = status >>> 30;
  return severity === 0 ? "good" : severity === 1 ? "uncertain" : "bad";
}

const FAULTS: Readonly<Record<Fault, readonly StatusName[]>> = {
  address_invalid: [],
  not_found: ["BadNodeIdUnknown", "BadNodeIdInvalid", "BadAttributeIdInvalid", "BadNoMatch", "BadNotFound"],
  access_denied: ["BadNotReadable", "BadUserAccessDenied", "BadSecurityModeInsufficient"],
  type_mismatch: ["BadTypeMismatch", "BadDataEncodingInvalid", "BadDataEncodingUnsupported", "BadEncodingError", "BadDecodingError"],
  out_of_range: ["BadOutOfRange", "BadIndexRangeInvalid", "BadIndexRangeNoData"],
  not_a_number: [],
  device_error: [],
  stale: [],
  program_changed: [],
  values_lost: [],
  no_answer: [
    "BadNoCommunication",
    "BadCommunicationError",
    "BadServerNotConnected",
    "BadNotConnected",
    "BadTimeout",
    "BadWaitingForInitialData",
  ],
  collector_error: [],
};

const FAULT_OF = new Map<number, Fault>(
  Object.entries(FAULTS).flatMap(([fault, names]) => names.map((name) => [STATUS[name], fault as Fault] as const)),
);

/** The fault of one variable whose StatusCode is bad; `device_error` for what has no closer word. */
export const faultOf = (status: number): Fault => FAULT_OF.get(codeOf(status)) ?? "device_error";

/** About what was asked for at once, or one value of it that the server cannot encode: less of it may be answered. */
const TOO_MUCH = new Set<number>([
  STATUS.BadEncodingError,
  STATUS.BadTooManyOperations,
  STATUS.BadEncodingLimitsExceeded,
  STATUS.BadRequestTooLarge,
  STATUS.BadResponseTooLarge,
  STATUS.BadTcpMessageTooLarge,
  STATUS.BadOutOfMemory,
]);
export const isTooMuch = (status: number): boolean => TOO_MUCH.has(codeOf(status));

/** About the moment, whatever is asked. */
const BUSY = new Set<number>([STATUS.BadServerTooBusy, STATUS.BadTcpServerTooBusy, STATUS.BadResourceUnavailable, STATUS.BadTimeout]);
export const isBusy = (status: number): boolean => BUSY.has(codeOf(status));
