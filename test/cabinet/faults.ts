/** One thing that is wrong in the cabinet, and what `collector status` has to say of it. */
export interface CabinetFault {
  readonly fault: string;
  /** Name of the data source or data sink that it is on; null: the service itself. */
  readonly on: string | null;
  /** What the column STATE has; null: it is on the service. */
  readonly state: string | null;
  /** What the status says of it, in the part that is about it. */
  readonly says: RegExp;
  /** The command of the next step that is run as it is printed. */
  readonly command: RegExp;
  /** What the person types at its prompt. */
  readonly input?: string;
  /** How the command ends: 0, or the documented code of a verb that diagnoses. */
  readonly exit: number;
  /** What the command then shows: more than the status did. */
  readonly shows: RegExp;
  /** Nothing else has to be done: the command itself mends it. */
  readonly mends?: true;
  /** The command shows the one that mends it. */
  readonly leadsTo?: RegExp;
}

/** The right passwords of the OPC UA server and of the broker. */
export interface Passwords {
  readonly server: string;
  readonly broker: string;
}

/** Faults of data sources and data sinks, and of the files of the service: all of them at once. */
export const faultsOf = ({ server, broker }: Passwords): readonly CabinetFault[] => [
  {
    fault: "wrong port",
    on: "wrong-port",
    state: "CONNECTION_REFUSED",
    says: /127\.0\.0\.1:\d+ refused the connection\..*no service listens on this port.*Correct the port/s,
    command: /^collector probe wrong-port$/,
    exit: 3,
    shows: /route +ok.*connection +FAILED.*ECONNREFUSED/s,
  },
  {
    fault: "unplugged",
    on: "unplugged",
    state: "NO_ROUTE_TO_HOST",
    says: /10\.99\.9\.7 does not answer on the network\..*Check power, cable and link light of the device/s,
    command: /^collector probe unplugged$/,
    exit: 3,
    shows: /neighbour +FAILED +no device on away answers for 10\.99\.9\.7/,
  },
  {
    fault: "policy that closes the host",
    on: "closed-host",
    state: "FORBIDDEN_BY_POLICY",
    says: /policy of this machine does not permit connections to 10\.99\.8\.7:\d+\..*add 10\.99\.8\.7 to networks of sources in \S*policy\.yaml/s,
    command: /^collector check$/,
    exit: 2,
    shows: /\nsources:\n {2}networks: \[127\.0\.0\.0\/8, 10\.99\.9\.7, 10\.99\.8\.7\]\n/,
  },
  {
    fault: "wrong unit",
    on: "wrong-unit",
    state: "NEVER_ANSWERED",
    says: /takes the connection and gives no answer\..*of unit 7.*Compare type, port and unit id/s,
    command: /^collector probe wrong-unit$/,
    exit: 3,
    shows: /first value +FAILED.*answers unit 1, not unit 7/,
    leadsTo: /^collector source set wrong-unit unit=1$/,
  },
  {
    fault: "slow device",
    on: "slow",
    state: "ANSWERS_TOO_SLOW",
    says: /answers, and too slowly\..*no answer within 3000 ms.*or ask it for less or more seldom/s,
    command: /^collector source set slow answer_timeout=6s$/,
    exit: 0,
    shows: /slow: changed/,
    mends: true,
  },
  {
    fault: "dead name",
    on: "dead-name",
    state: "LOOKUP_ERROR",
    says: /The name press-9\.plant\.invalid cannot be resolved\..*Correct the name or the DNS server/s,
    command: /^collector probe dead-name$/,
    exit: 3,
    shows: /name +FAILED.*press-9\.plant\.invalid/,
  },
  {
    fault: "wrong rack",
    on: "wrong-rack",
    state: "MODULE_NOT_FOUND",
    says: /has no CPU at the configured rack and slot\..*asked for rack 0, slot 2; other slots worth trying: 1 \(S7-1200, S7-1500\)/s,
    command: /^collector source set wrong-rack slot=1$/,
    exit: 0,
    shows: /wrong-rack: changed/,
    mends: true,
  },
  {
    fault: "wrong password",
    on: "wrong-password",
    state: "OPC_UA_ERROR_RESPONSE",
    says: /BadIdentityTokenRejected|BadUserAccessDenied/,
    command: /^sudo collector secret set wrong-password$/,
    input: `${server}\n`,
    exit: 0,
    shows: /The running collector uses it now, for data source wrong-password/,
    mends: true,
  },
  {
    fault: "untrusted certificate, on our side",
    on: "untrusted-server",
    state: "CERTIFICATE_REFUSED",
    says: /one side did not accept the other's certificate\..*is not trusted on this machine.*If the certificate is the right one, type/s,
    command: /^sudo collector pki trust [0-9A-F]{40}$/,
    exit: 0,
    shows: /Trusted:/,
    mends: true,
  },
  {
    fault: "untrusted certificate, on the device's side",
    on: "untrusted-client",
    state: "OPC_UA_ERROR_RESPONSE",
    says: /the server does not accept the collector's certificate.*Move the collector's certificate to the trusted ones of the server/s,
    command: /^collector pki list$/,
    exit: 0,
    shows: /[0-9A-F]{40}/,
  },
  {
    fault: "hole in the addresses",
    on: "hole",
    state: "OK",
    says: /pressure: not_found: exception 2 \(illegal data address\) for holding register 4000.*Compare the address with the program of the device/s,
    command: /^collector explain hole pressure$/,
    exit: 1,
    shows: /Address: +holding:4000.*`collector read hole holding:4000` asks for this address alone/s,
  },
  {
    fault: "byte order",
    on: "byte-order",
    state: "OK",
    says: /level: .* is not a value of a sensor; the byte order is wrong, mostly/,
    command: /^collector explain byte-order level$/,
    exit: 0,
    shows: /CDAB +42\.5/,
  },
  {
    fault: "another protocol on the port",
    on: "other-protocol",
    state: "PROTOCOL_VIOLATION",
    says: /sends bytes that do not follow the protocol\..*it sent "SSH-2\.0-OpenSSH_9\.2p1 Debian-2".*Another service listens on this port/s,
    command: /^collector probe other-protocol$/,
    exit: 3,
    shows: /connection +ok.*first value +FAILED.*it sent "SSH-2/s,
  },
  {
    fault: "dead unit behind a gateway, next to a living one",
    on: "gateway",
    state: "OK",
    says: /seven: no_answer: unit 7 does not answer.*unit 7 behind it does not.*Check power, bus cable and number of that unit/s,
    command: /^collector explain gateway seven$/,
    exit: 1,
    shows: /`collector read gateway 7\/holding:0` asks for this address alone/,
  },
  {
    fault: "dead unit behind a gateway, in a source of its own",
    on: "dead-unit",
    state: "ALL_VARIABLES_FAULTED",
    says: /The unit behind the device is off or not connected.*Check power, bus cable and number of that unit/s,
    command: /^collector explain dead-unit seven$/,
    exit: 3,
    shows: /unit 7 does not answer/,
  },
  {
    fault: "plan too long for its interval",
    on: "too-long",
    state: "OK",
    says: /the plan does not fit its interval: 12 requests of \d+ ms take [\d.]+ s, the interval is 1 s; an interval of \d+ s would do/,
    command: /^collector source set too-long --interval \d+s$/,
    exit: 0,
    shows: /too-long: changed/,
    mends: true,
  },
  {
    fault: "no variables",
    on: "no-variables",
    state: "NO_VARIABLES",
    says: /It has no variables, so nothing is read\./,
    command: /^collector variables import --help$/,
    exit: 0,
    shows: /collector variables import press-1 press-1\.csv/,
  },
  {
    fault: "typing error in the settings",
    on: null,
    state: null,
    says: /ALARM: .*collector\.yaml:\d+: sources\.untrusted-klient: no data source of this collector has this name or uuid; did you mean untrusted-client\?/,
    command: /^collector check$/,
    // The policy closes a host, too.
    exit: 2,
    shows: /sources\.untrusted-klient fits no data source/,
  },
  {
    fault: "file that wins over the API",
    on: "gateway",
    state: "OK",
    says: /variables\/gateway\.csv wins over the API: its variables run \(2\), those of the API do not \(2\), until the file is removed/,
    command: /^collector variables list gateway --local$/,
    exit: 0,
    shows: /7\/holding:0/,
  },
  {
    fault: "broker down",
    on: "broker-down",
    state: "CONNECTION_REFUSED",
    says: /127\.0\.0\.1:\d+ refused the connection\..*Correct the port, or start the broker/s,
    command: /^collector probe broker-down$/,
    exit: 3,
    shows: /route +ok.*connection +FAILED.*ECONNREFUSED/s,
  },
  {
    fault: "rights at the broker",
    on: "broker-rights",
    state: "SERVER_REFUSES",
    says: /the broker refuses a publish to hall-3\/[\w-]+: Not authorized \(code 135\); give this user or client_id the right.*sudo collector sink set broker-rights username=USER.*the log of the broker has the refusal too/s,
    command: /^collector probe broker-rights$/,
    exit: 3,
    shows: /log-in +ok .*\n +publish +FAILED .*Not authorized.*\n(.*\n)*.*Next step: Give the user of this sink the right to publish/,
  },
  {
    fault: "wrong password at the broker",
    on: "broker-password",
    state: "SERVER_REFUSES",
    says: /refuses the connection: Not authorized \(code 135\).*Give the password once more.*look into the broker's log/s,
    command: /^sudo collector secret set broker-password$/,
    input: `${broker}\n`,
    exit: 0,
    shows: /The running collector uses it now, for data sink broker-password/,
    mends: true,
  },
  {
    fault: "TLS on a plain port of the broker",
    on: "tls-on-plain",
    state: "CONNECTION_RESET",
    says: /in the TLS handshake; if it is a port without TLS.*or give the sink the port with TLS/s,
    command: /^sudo collector sink set tls-on-plain tls=false$/,
    exit: 0,
    shows: /tls-on-plain: changed/,
    mends: true,
  },
  {
    fault: "plain on a TLS port of the broker",
    on: "plain-on-tls",
    state: "CONNECTION_RESET",
    says: /if it is a port with TLS.*else look into the broker's log/s,
    command: /^sudo collector sink set plain-on-tls tls=true$/,
    exit: 0,
    shows: /plain-on-tls: changed/,
    mends: true,
  },
  {
    fault: "self-signed certificate of the broker",
    on: "self-signed",
    state: "CERTIFICATE_REFUSED",
    says: /the certificate of 127\.0\.0\.1:\d+ is self-signed.*Copy the server's certificate \(PEM\) from the server/s,
    command: /^sudo collector sink set self-signed tls\.ca_file=ca\.pem$/,
    exit: 0,
    shows: /self-signed: changed/,
    mends: true,
  },
  {
    fault: "client identifier taken",
    on: "client-taken",
    state: "CLIENT_ID_TAKEN",
    says: /another client probably uses the same client_id\..*each pushes the other off the broker/s,
    command: /^collector sink set client-taken client_id=collector-[0-9a-f-]{36}$/,
    exit: 0,
    shows: /client-taken: changed/,
    mends: true,
  },
];

/** What a collector of an external API says whose API is away while its disk is full: both at once. */
export const HOST_FAULTS: readonly CabinetFault[] = [
  {
    fault: "configuration API down",
    on: null,
    state: null,
    says: /not reachable for .*\n.*ECONNREFUSED.*\n +Next step: `collector doctor` looks at the way to the API/,
    command: /^collector doctor$/,
    exit: 4,
    shows: /api +FAILED +.*ECONNREFUSED/,
  },
  {
    fault: "disk full",
    on: null,
    state: null,
    says: /ALARM: the buffer .* takes no values: .*\n +Next step: Make room, or look at the disk: `collector doctor` does/,
    command: /^collector doctor$/,
    exit: 4,
    shows: /disk +FAILED +0 B free/,
  },
];
