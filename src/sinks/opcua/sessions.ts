import type { OPCUAServer } from "node-opcua-server";

type Session = NonNullable<ReturnType<OPCUAServer["getSession"]>>;

/** The sessions that there are, also those without a connection; the library hides them. */
export function sessionsOf(server: OPCUAServer): readonly Session[] {
  const { _sessions } = server.engine as unknown as { _sessions: Readonly<Record<string, Session>> };
  return Object.values(_sessions);
}
