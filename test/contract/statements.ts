import { CREATE_DETAILS, DATA_SINK, DATA_SOURCE, DATA_SOURCE_CREATE, READ_DETAILS, READOUT_STATUS, REASONS, SITE } from "./api-v2.ts";

/**
 * Every numbered rule and table row of API-V2 that says something, by its section and its number or name. What the document marks as not
 * shown is a statement where design/api-decisions decides it.
 */
export const STATEMENTS: readonly string[] = [
  // 1
  "1 site",
  "1 experimental",
  // 2
  ...DATA_SOURCE.shape.map(({ field }) => `2.1 ${field}`),
  ...Object.keys(READ_DETAILS).map((type) => `2.2 ${type}`),
  "2.2 type",
  "2.2 security_settings",
  ...["Anonymous", "UserNamePassword", "X509Certificate"].map((type) => `2.2 user_identity ${type}`),
  ...["OPC_DA", "PVI", "OTHER"].map((protocol) => `2.2 protocol_details ${protocol}`),
  ...["none", "configured"].map((type) => `2.2 s7plus.password ${type}`),
  ...READOUT_STATUS.shape.map(({ field }) => `2.3 ${field}`),
  ...["OK", "UNKNOWN", "ERROR"].map((state) => `2.3 state ${state}`),
  ...Object.keys(REASONS).map((reason) => `2.3 reason ${reason}`),
  ...DATA_SOURCE_CREATE.shape.map(({ field }) => `2.4 ${field}`),
  ...Object.keys(CREATE_DETAILS).map((type) => `2.4 ${type}`),
  ...DATA_SINK.shape.map(({ field }) => `2.5 ${field}`),
  ...["mqtt", "opcua", "platform"].map((type) => `2.5 ${type}`),
  ...SITE.shape.map(({ field }) => `2.6 ${field}`),
  "2.7 data",
  "2.7 metadata",
  // 3
  "3 states",
  // 4
  "4 authorization",
  "4.1 GET",
  "4.1 POST",
  "4.1 single",
  "4.1 update and delete",
  "4.1 stored password",
  "4.2 GET",
  "4.2 POST",
  "4.2 GET {uuid}",
  "4.2 DELETE {uuid}",
  "4.2 PATCH {uuid}",
  ...[1, 2, 3, 4].map((rule) => `4.2 rule ${rule}`),
  "4.3 GET",
  "4.3 POST",
  "4.3 GET {uuid}",
  "4.3 PATCH {uuid}",
  "4.3 DELETE {uuid}",
  "4.4 production runs",
  "4.4 time series",
  ...[1, 2, 3, 4, 5, 6, 7].map((rule) => `4.5 rule ${rule}`),
  // 5
  ...[1, 2, 3].map((rule) => `5 rule ${rule}`),
  // 6 says that nothing is shown, and nothing is decided.
  // 7
  ...[1, 2, 3].map((rule) => `7 rule ${rule}`),
  // 8
  "8 filters",
  "8 data sink name",
  "8 odac port",
  "8 s7plus password",
  "8 page size",
  "8 bodies",
  // 9
  ...[1, 2, 3].map((rule) => `9 rule ${rule}`),
];
