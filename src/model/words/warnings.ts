/** Every warning by its code: how it is graded, the usual cause, and the next step where its text has no better one. */
export const WARNINGS = {
  // The configuration of a data source or data sink.
  types_contradict: w("warning", "type and details.type of the record differ.", "Make them the same in the configuration API."),
  user_left_out: w(
    "warning",
    "The address carries a user, which the collector leaves out.",
    "Give the user and the password where they belong.",
  ),
  variable_file_wrong: w(
    "warning",
    "A line of the file of variables cannot be used.",
    "Correct that line; `collector check` looks all files over.",
  ),
  variables_shadowed: w(
    "warning",
    "A file of this machine takes the place of the API's variables.",
    "Remove the file, or the variables of the API.",
  ),
  secret_withheld: w(
    "warning",
    "A secret was stored for another place than the one that would get it now.",
    "Type the secret again: `sudo collector secret set SOURCE`.",
  ),
  secret_overridden: w("note", "This machine's own secret is used, and not the API's.", "`collector secret list` shows both."),
  interval_missing: w("warning", "The API gives no interval.", "Set readout_interval in the configuration API."),
  interval_unit_doubtful: w(
    "warning",
    "The interval is usual in milliseconds, and is taken as seconds.",
    "Set readout_interval_unit, or the interval.",
  ),
  timeouts_exceed_readout: w(
    "warning",
    "The time-outs are longer than a readout may take.",
    "Lengthen the interval, or shorten the time-outs.",
  ),
  readout_limit_exceeded: w(
    "warning",
    "The source has more variables than its readout_limit.",
    "Raise the limit, or deactivate variables.",
  ),
  addresses_renumberable: w(
    "note",
    "Addresses hold numbers that the device may change.",
    "Rewrite them with the command that the text names.",
  ),
  setting_without_effect: w("note", "A setting does nothing together with another one.", "Remove it."),
  filter_matches_nothing: w("warning", "A name in the filter of a sink matches nothing.", "Correct the name, or remove it."),
  // Reading a device.
  addresses_looked_up: w("note", "The device is large, or slow at telling its addresses.", "Wait."),
  plan_exceeds_interval: w(
    "warning",
    "The device needs more time for all its variables than the interval has.",
    "Lengthen the interval: the text names one that would do.",
  ),
  values_younger: w(
    "warning",
    "A readout takes longer than the interval.",
    "Lengthen the interval, or read less of the device.",
    "plan_exceeds_interval",
  ),
  source_times_missing: w("note", "The device gives values without time stamps.", "Rely on the time of the readout."),
  device_clock_differs: w(
    "warning",
    "The clock of the device is wrong, or this machine's.",
    "Set the clock of the device; `collector doctor` looks at this machine's.",
  ),
  values_odd: w(
    "warning",
    "The bytes of a value are in another order than configured.",
    "`collector explain SOURCE VARIABLE` shows each order.",
  ),
  waits_for_turn: w(
    "warning",
    "Others of the device use its connections.",
    "Lengthen the intervals, or raise max_connections if the device takes more.",
  ),
  device_habit: w(
    "note",
    "The device needs to be asked in a way of its own, which the collector has learned.",
    "Set what the text names, and it is permanent.",
  ),
  variable_apart: w(
    "warning",
    "A variable has no answer, and the request with it neither.",
    "Correct its address: `collector explain SOURCE VARIABLE`.",
  ),
  program_check_late: w("warning", "The device tells slowly which program it has.", "Lengthen the interval."),
  program_changed: w("note", "Somebody loaded another program into the device.", "Look at the values of the time that the text names."),
  device_limited: w("note", "The device takes less at once than it promises, or than others.", "Nothing: the collector asks for less."),
  file_types_unproved: w(
    "note",
    "The controller does not say the type of a file.",
    "Compare the letters of the addresses with the program.",
  ),
  help_silent: w(
    "note",
    "The device gives no answer to a request that makes reading easier; variables are read without it.",
    "Nothing: the collector asks again, at the latest after an hour; the text says what is missing.",
  ),
  answers_elsewhere: w(
    "warning",
    "Answers come from another address or port than the device's.",
    "Set host and port to where they come from, or correct the address translation on the way.",
  ),
  engineering_connection_held: w(
    "note",
    "The collector holds a connection of the kind that engineering stations use, of which a controller has few.",
    "Set destination_tsap to SIMATIC-ROOT-HMI, where panels leave one free.",
  ),
  read_without_connection: w("note", "The controller opens no more connections.", "Close other programs that talk to it."),
  variables_not_listed: w(
    "note",
    "The controller does not list its variables.",
    "Nothing: variables are read by their names; say counts of arrays, and members of structures one by one.",
  ),
  program_list_unreadable: w(
    "warning",
    "The device does not tell which program it has.",
    "Look at its access level; the text has the device's own words.",
  ),
  model_contradicts: w("warning", "The controller is of another family than configured.", "Set what the text names."),
  bank_not_fixed: w("note", "An address names no bank, and the program selects one.", "Write the bank into the address."),
  device_faulty: w("warning", "The controller reports an error of its own.", "Look at its error log."),
  quality_doubtful: w("warning", "The server gives values with a doubtful quality.", "Look at the server's own view of these items."),
  endpoint_differs: w(
    "note",
    "The server is reached by another address than its endpoint URL has.",
    "Nothing, where a NAT or a tunnel is between them.",
  ),
  server_not_running: w("warning", "The server says that it does not run as it should.", "Look at the server: the text has its state."),
  second_endpoint_in_use: w(
    "warning",
    "Values are read at the second server, because the first is away or not healthy.",
    "Look at the first server: the text says why it is not used.",
  ),
  server_restarted: w("note", "The server was started again.", "Nothing, where somebody meant to."),
  namespaces_renumbered: w(
    "warning",
    "The server was started with other namespaces.",
    "Write the addresses with nsu=: `sudo collector variables nsu SOURCE`.",
  ),
  structure_unknown: w("warning", "The server does not describe a structure.", "Ask the maker of the server for its type dictionary."),
  structures_read_again: w("note", "The models of the server have changed.", "Nothing."),
  subscription_refused: w(
    "warning",
    "The server takes no subscription, or fewer than are needed.",
    "Set read_mode to poll, or raise the server's limits.",
  ),
  subscription_in_part: w(
    "warning",
    "The server takes a part of the variables into its subscription; the others are read plainly.",
    "Raise the server's limit of monitored items, or set read_mode to plain.",
  ),
  subscription_differs: w(
    "warning",
    "The server had other values than its subscription sent.",
    "Nothing: the variables are watched again. Where it stays, set read_mode to plain.",
  ),
  subscription_overflow: w("warning", "The server's queue overflowed: values are lost.", "Raise queue_size, or lower publishing_interval."),
  subscription_queue_short: w(
    "note",
    "The server keeps fewer changes of a variable than wanted.",
    "Raise the server's limit, or lower publishing_interval.",
  ),
  sampling_too_slow: w("warning", "The server looks at variables less often than they are read.", "Lower sampling_interval."),
  nodes_not_registered: w("note", "The server registers no nodes.", "Set read_mode to poll."),
  answers_unasked: w(
    "warning",
    "Another client or master asks over the same line, or the line repeats answers.",
    "Close other connections to the serial server, and let no other master ask on its line.",
  ),
  frames_skipped: w("warning", "Bytes came that are not of the protocol.", "Look at the line, and at the framing of the profile."),
  stranger_refused: w("warning", "Something connects that no data source is configured for.", "Find it by its address, or configure it."),
  profile_unverified: w("warning", "The profile was tried on no device.", "Compare the values with the machine's own display."),
  profile_verified: w("note", "The profile was tried on the devices that the text names.", "Nothing."),
  plugin_unfenced: w("warning", "A program of somebody else reads the device.", "Use it only where its maker is trusted."),
  plugin_has_rights: w("warning", "The plugin runs as the collector's own user.", "Set plugin.socket: `collector plugin unit`."),
  plugin_ends: w("warning", "The plugin has ended several times.", "Look at its log, and tell its maker."),
  protocol_forced: w("warning", "The configuration forces a protocol, which the collector never does.", "Select it at the controller."),
  // Security of the way, as it is configured.
  no_encryption: w("warning", "The way is not encrypted.", "Choose a security mode, where the other side has one."),
  password_in_clear: w(
    "warning",
    "The password goes over the network as it is.",
    "Choose a security policy for the token, or a mode that encrypts.",
  ),
  security_policy_weak: w("warning", "The security policy is withdrawn.", "Choose Basic256Sha256 or a newer one."),
  certificate_unnamed: w(
    "note",
    "The certificate of the other side names another host.",
    "Nothing, where it was compared by its thumbprint.",
  ),
  certificate_expires: w(
    "warning",
    "The certificate of a server or a client ends soon.",
    "Renew it at the other side, and trust the new one: `collector pki list`.",
  ),
  certificate_forgiven: w(
    "warning",
    "A certificate has expired, and a person trusts it for a while all the same.",
    "Renew it at the other side before the day that the text names.",
  ),
  certificate_weak: w(
    "warning",
    "The certificate of a server or a client has a weak key or signature.",
    "Renew it at the other side with RSA 2048 or more and SHA-256.",
  ),
  own_certificate_expires: w(
    "warning",
    "The collector's own certificate ends soon, or another one is waiting.",
    "Let the others trust the new one: `collector pki list`.",
  ),
  // Data sinks.
  broker_is_old: w("note", "The broker speaks MQTT 3.1.1.", "Switch MQTT 5 on at the broker, if it has it."),
  raw_without_quality: w(
    "warning",
    "Raw payloads have no room for quality and time.",
    "Set payload to value, or use a broker of MQTT 5.",
    "broker_is_old",
  ),
  will_refused: w(
    "warning",
    "The broker does not take the message that tells others when the collector vanishes.",
    "Give its user the right to publish to the topic of the text, in the broker's configuration.",
  ),
  second_broker_in_use: w(
    "warning",
    "Values go to the second broker, because the first cannot be opened.",
    "Look at the first broker: the text says why it cannot be opened.",
  ),
  retain_unsupported: w("warning", "The broker keeps no retained messages.", "Switch retained messages on at the broker."),
  topics_may_collide: w("note", "Two names may make one topic.", "Change the topic setting as the text says."),
  commands_refused: w(
    "note",
    "A host application sends commands other than Rebirth.",
    "Nothing: the collector never writes to a device. Take the right to send commands from that host.",
  ),
  commands_unheard: w(
    "warning",
    "The broker does not let the collector subscribe to commands of Sparkplug.",
    "Give its user the right to subscribe to the topic of the text, in the broker's configuration.",
  ),
  birth_too_large: w(
    "warning",
    "The variables of a data source do not fit one message of the broker.",
    "Raise the broker's limit, or split the source.",
  ),
  names_shared: w("warning", "Two data sources have one name.", "Rename one."),
  status_suspended: w("warning", "The broker ended the connection over a status message.", "Look at the broker's limits and rights."),
  topic_not_published: w(
    "warning",
    "The broker refuses a topic, or its message is too large.",
    "Give the user the right, or raise the limit.",
  ),
  link_slow: w("warning", "The link carries less than is to be sent.", "Send less, or use a better link."),
  broker_limits_publishes: w(
    "note",
    "The broker accepts fewer publishes a second than were sent.",
    "Raise its limit for this client, or send fewer: a longer publish_interval, or a topic without {variable}.",
  ),
  readout_too_large: w("warning", "One readout takes more memory than a sink may have.", "Raise what the text names, or split the source."),
  values_not_shown: w("warning", "The server cannot show a variable as it is.", "Rename it, or change its type, as the text says."),
  value_too_large: w("warning", "A value is larger than an answer may be.", "Raise max_answer of the sink."),
  listens_here_alone: w("warning", "policy.yaml opens no more than this machine.", "Add the address to listen in policy.yaml."),
  anonymous_access: w("warning", "Everybody can read without a user.", "Switch anonymous off, and add users."),
  log_in_impossible: w("warning", "There are no users, and anonymous is off.", "Add a user."),
  log_in_refused: w("warning", "A client has a wrong password.", "Correct it at the client."),
  log_in_locked: w(
    "warning",
    "A client sent many wrong passwords.",
    "Correct it at the client, and wait until the time that the text names.",
  ),
  client_untrusted: w("warning", "A client's certificate is not trusted.", "Trust it: `sudo collector pki trust THUMBPRINT`."),
  client_cut_off: w("warning", "A client does not read what it asked for.", "Look at the client."),
  client_refused: w("warning", "A client sent what no client sends.", "Look at the client."),
  connections_exhausted: w("warning", "More clients connect than the server takes.", "Raise max_sessions, or close clients."),
  sessions_exhausted: w("warning", "More clients open sessions than the server takes.", "Raise max_sessions, or close clients."),
  session_ended: w("note", "A session without a connection made room.", "Nothing."),
  sink_process_ended: w(
    "warning",
    "The process of the hosted servers ended, and was started again.",
    "Send the log: `sudo collector support-bundle`.",
  ),
  // The collector itself: alarms.
  state_dir_unwritable: w("warning", "The state folder cannot be written to.", "Look at the disk, and who owns the folder."),
  port_in_use: w("warning", "Another program listens on the port.", "Stop it, or choose another port."),
  listening_forbidden: w("warning", "The policy forbids to listen there.", "Change policy.yaml, or the address."),
  settings_unusable: w(
    "warning",
    "A file of settings or the policy cannot be used.",
    "Correct that line of the file; `collector check` looks all files over without a restart.",
  ),
  settings_unused: w(
    "warning",
    "Settings are for a source or a sink that is not configured.",
    "Correct that line of the file; `collector check` looks all files over without a restart.",
  ),
  restart_needed: w("note", "A setting is taken over with the next start.", "`sudo systemctl restart collector`, when it suits."),
  profile_unusable: w("warning", "A profile cannot be used.", "`collector profile check FILE` says where."),
  api_not_used: w(
    "warning",
    "The configuration API cannot be used as it is set.",
    "`collector doctor` looks at the way to the API; what runs continues unchanged.",
  ),
  records_unusable: w(
    "warning",
    "The configuration API lists records that cannot be used.",
    "Correct them there: the text names each and its field. Meanwhile their last good form stays, where there is one.",
  ),
  records_incomplete: w("warning", "Records of the configuration API lack fields.", "Give them there: the text names them."),
  records_repeated: w("warning", "The configuration API lists a record several times.", "Report it to the operator of the API."),
  records_unidentified: w(
    "warning",
    "The configuration API lists records without a usable uuid.",
    "Report it to the operator of the API; nothing is removed meanwhile.",
  ),
  records_foreign: w(
    "warning",
    "The configuration API answers with records of another collector.",
    "Report it to the operator of the API; they are left out.",
  ),
  records_unlisted: w(
    "note",
    "The list of the configuration API leaves out records that are, or may be, still there.",
    "Wait for the next pulls; what was deleted goes.",
  ),
  parts_outdated: w(
    "warning",
    "A part of the configuration could not be read.",
    "`collector doctor` looks at the way to the API; what was known of the part stays.",
  ),
  kept_configuration_damaged: w(
    "warning",
    "The copy of the configuration on this machine is damaged.",
    "Wait for the next answer of the API, which replaces it.",
  ),
  api_offers_less: w(
    "note",
    "The configuration API does not offer everything that a collector can use.",
    "The text says what to do instead.",
  ),
  passwords_not_asked: w("warning", "The way to the configuration API can be listened to.", "Use an https address in api.url."),
  api_in_clear: w("warning", "The embedded API is served without encryption.", "Name a certificate in embedded_api.tls."),
  api_ended: w(
    "warning",
    "The process of the embedded API ended, and was started again.",
    "Send the log: `sudo collector support-bundle`.",
  ),
  page_ended: w("warning", "The page cannot be served.", "Look at the settings of the page; `collector doctor` looks at ports."),
  buffer_refuses: w(
    "warning",
    "The disk takes nothing.",
    "Make room, or look at the disk: `collector doctor` does; values wait in memory meanwhile.",
  ),
  buffer_full_of_waiting: w(
    "warning",
    "The memory for values that wait for the disk is full.",
    "Make room, or look at the disk.",
    "buffer_refuses",
  ),
  buffer_damaged: w("warning", "The file of the buffer is damaged.", "`collector buffer list` tells what can be recovered."),
  buffer_newer: w("note", "A newer collector wrote a file of the buffer.", "Start that version once, so that it delivers it."),
  buffer_lost: w("warning", "Values were lost with the file of the buffer, or at a stop.", "Look at the disk; the text says how many."),
  buffer_unrecovered: w("warning", "A file that was set aside cannot be read.", "`collector buffer list` shows it."),
  buffer_disk_small: w("warning", "The disk has less room than the buffer may take.", "Make room, or lower buffer.max_bytes."),
  buffer_fills: w("warning", "A sink takes less than is read.", "`collector status` says why a data sink does not take them."),
  values_dropped: w(
    "warning",
    "The buffer throws away what its bounds have no room for.",
    "`collector status` says why a data sink does not take them.",
    "buffer_fills",
  ),
  disk_fills: w(
    "warning",
    "Something fills the disk.",
    "Make room: df -h, du -xh --max-depth=2 /; `collector doctor` looks at this machine.",
  ),
  collector_fails: w("warning", "The collector itself fails over a variable.", "Report it with the log: journalctl -u collector -n 200."),
} as const satisfies Record<string, Entry>;

interface Entry {
  readonly severity: "note" | "warning";
  readonly cause: string;
  readonly nextStep: string;
  /** It follows from that one, where both hold. */
  readonly dependsOn?: string;
}

function w<S extends Entry["severity"]>(severity: S, cause: string, nextStep: string, dependsOn?: string) {
  return { severity, cause, nextStep, ...(dependsOn !== undefined && { dependsOn }) };
}
