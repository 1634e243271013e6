import { MessageSecurityMode } from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";
import { clip } from "../../model/bounded-failure.ts";
import { type ClientReport, MAX_CLIENTS, type SinkReport } from "../../model/report.ts";

type Session = NonNullable<ReturnType<OPCUAServer["getSession"]>>;

/** The sessions that there are, also those without a connection; the library hides them. */
export function sessionsOf(server: OPCUAServer): readonly Session[] {
  const { _sessions } = server.engine as unknown as { _sessions: Readonly<Record<string, Session>> };
  return Object.values(_sessions);
}

const MAX_NAME = 100;

/** Clients with a session that is logged in, in the order in which they came. */
export function clientsOf(server: OPCUAServer): NonNullable<SinkReport["clients"]> {
  const active = sessionsOf(server).filter(({ status }) => status === "active");
  return { first: active.slice(0, MAX_CLIENTS).map(clientOf), count: active.length };
}

function clientOf({ clientDescription, sessionName, channel, creationDate, currentSubscriptionCount }: Session): ClientReport {
  const name = clientDescription?.applicationName?.text ?? clientDescription?.applicationUri ?? String(sessionName);
  const policy = channel?.securityPolicy.split("#").at(-1);
  return {
    name: clip(name, MAX_NAME),
    address: channel?.remoteAddress || null,
    security: channel ? `${MessageSecurityMode[channel.securityMode]}${policy === "None" ? "" : ` ${policy}`}` : null,
    since: creationDate.toISOString(),
    subscriptions: currentSubscriptionCount,
  };
}
