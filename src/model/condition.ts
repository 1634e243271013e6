/** Local conditions that the API has no reason for: its status then says UNKNOWN, ours says which. Closed. */
export const CONDITIONS = [
  /** `details` is null in the API */ "details_missing",
  /** details, settings or variables that do not validate */ "configuration_invalid",
  /** a `type` without a driver, or a sink type without a sink */ "type_not_supported",
  /** a password or key that is configured but not here */ "secret_missing",
  /** a password that the configuration API may have, which has not given its secrets since the start */ "secret_awaited",
  /** a password of this machine, and the configuration has moved where it goes */ "secret_withheld",
  /** readout_interval or publish_interval ≤ 0 */ "interval_invalid",
  /** the device answers, and every variable is faulted */ "all_variables_faulted",
  /** policy.yaml does not let the collector connect there */ "forbidden_by_policy",
  /** TLS, OPC UA: one side does not accept the other's certificate */ "certificate_refused",
  /** a broker or server can be reached and refuses the connection, the log-in or what is sent, in words of its own */ "server_refuses",
  /** a proxy on the way to a broker cannot be reached, refuses, or cannot reach the broker */ "proxy_fails",
  /** another client of the broker has the same client_id, or seems to: each pushes the other off */ "client_id_taken",
  /** a controller that can be reached has no CPU at the configured rack and slot */ "module_not_found",
  /** bytes that do not follow the protocol */ "protocol_violation",
  /** the collector's own host refuses: out of file handles, ports, memory, rights */ "collector_host_trouble",
  /** TIMEOUT: the device takes the connection, and has answered nothing since the start */ "never_answered",
  /** TIMEOUT: the device takes the connection, and answered before */ "answers_no_more",
  /** TIMEOUT: the device answers other data sources, and not this one */ "unit_silent",
  /** TIMEOUT: the last answers took nearly as long as one is waited for */ "answers_too_slow",
  /** a sink is connected, values wait for it, and none is delivered */ "delivery_stalled",
  /** our own failure */ "internal_error",
] as const;

export type Condition = (typeof CONDITIONS)[number];
