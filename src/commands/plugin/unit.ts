import { closedToDebuggers } from "../../lib/launch.ts";
import type { Policy } from "../../model/policy.ts";

export interface UnitInput {
  readonly name: string;
  /** Absolute program and its arguments. */
  readonly command: readonly string[];
  readonly policy: Pick<Policy, "sources">;
}

export interface UnitFile {
  readonly name: string;
  readonly text: string;
}

/**
 * Runs the plugin between the two ends of its connection. The collector cannot end a process of another user: when the connection ends, so
 * does the plugin, two seconds later by force, with all that it started; and when the plugin ends, so does the connection. Pipes on
 * both sides, since a runtime that makes its output non-blocking would do so to the input of the whole connection.
 */
export const LAUNCHER = 'exec 3<&0; { cat <&3; exec 3<&-; sleep 2; kill -KILL 0; } | { /usr/bin/env -i "$@" 3<&- | cat; kill -KILL 0; }';

/** The socket of a plugin. */
export const socketOf = (name: string): string => `/run/collector-plugin/${name}.sock`;

/** A word of ExecStart (systemd.service(5), systemd.syntax(7)). */
const quoted = (word: string): string => `"${word.replaceAll(/[\\"]/g, "\\$&").replaceAll("$", "$$$$").replaceAll("%", "%%")}"`;

/** The units that run a plugin as a user of its own, one process for each connection. Pure. */
export const unitFiles = (input: UnitInput): readonly UnitFile[] => [
  { name: `collector-plugin-${input.name}.socket`, text: socketUnit(input) },
  { name: `collector-plugin-${input.name}@.service`, text: serviceUnit(input) },
];

const socketUnit = ({ name }: UnitInput): string => `[Unit]
Description=Socket of the collector's plugin ${name}

[Socket]
ListenStream=${socketOf(name)}
# The collector alone may connect.
SocketUser=collector
SocketMode=0600
Accept=yes
MaxConnections=32
RemoveOnStop=yes
# No limit: a plugin that fails is started again at the pace of the collector.
TriggerLimitIntervalSec=0

[Install]
WantedBy=sockets.target
`;

const serviceUnit = ({ name, command, policy }: UnitInput): string => `[Unit]
Description=The collector's plugin ${name}
# One that failed is forgotten; its words are in the journal.
CollectMode=inactive-or-failed

[Service]
# Standard input and output are the connection of the collector.
StandardInput=socket
StandardOutput=socket
StandardError=journal
SyslogIdentifier=collector-plugin-${name}
ExecStart=/bin/sh -c ${quoted(LAUNCHER)} collector-plugin ${closedToDebuggers(command).map(quoted).join(" ")}
# How the launcher ends.
SuccessExitStatus=SIGKILL
TimeoutStopSec=5s
WorkingDirectory=/

# A user of its own, who is nobody else.
DynamicUser=yes
UMask=0077
${networkLines(policy)}
InaccessiblePaths=-/etc/collector -/var/lib/collector -/run/collector-credentials

MemoryMax=512M
OOMScoreAdjust=1000
TasksMax=64
LimitNOFILE=1024
LimitCORE=0

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
ProtectProc=invisible
ProcSubset=pid
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
KeyringMode=private
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
`;

/** What the policy says of data sources, as the kernel keeps it. */
function networkLines({ sources: { networks, loopback } }: Pick<Policy, "sources">): string {
  if (networks === undefined)
    return "# policy.yaml names no networks of data sources (sources.networks): the kernel holds this plugin to none.";
  const allowed = [...networks, ...(loopback ? ["localhost"] : [])];
  return [
    "# The networks of policy.yaml (sources.networks), since what a plugin sends passes no fence. Ports are not looked at.",
    "IPAddressDeny=any",
    ...(allowed.length === 0 ? [] : [`IPAddressAllow=${allowed.join(" ")}`]),
  ].join("\n");
}
