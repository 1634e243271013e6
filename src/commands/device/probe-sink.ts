import * as z from "zod";
import { defineDriver } from "../../../drivers/driver.ts";
import { openTcp } from "../../../drivers/lib/tcp.ts";
import { formatDuration } from "../../base/duration.ts";
import { toJson } from "../../base/json.ts";
import { optionsOfSink } from "../../configuration/options-of-sink.ts";
import type { Permit } from "../../model/policy.ts";
import { proxyIn, proxyName } from "../../model/proxy-address.ts";
import { ReasonError } from "../../model/reason.ts";
import type { DataSink } from "../../model/resources.ts";
import type { SinkStatus } from "../../model/service-status.ts";
import { explainReason } from "../../model/words/catalogue.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeLines } from "../lines.ts";
import { sinkKnownByService } from "../service/known.ts";
import { settingsOrUsage } from "../service/run.ts";
import { failureLines, failureObject, personLog } from "./device.ts";
import { walk } from "./probe-walk.ts";
import { stepLine, stepObjects } from "./probe-words.ts";
import { hostPort } from "./values.ts";

const serverSchema = z.object({ host: z.string(), port: z.number() });
type Server = z.infer<typeof serverSchema>;

const endpoint = ({ host, port }: Server) => ({ host, port, transport: "tcp" }) as const;
const nothing = (): never => {
  throw new ReasonError("UNKNOWN", "nothing is read of a server");
};

/** What a data sink publishes to, of which the way there alone is walked: a second client could push the service's own off it. */
const SERVER = defineDriver<Server, unknown, never, never, { maxPoints: number; maxBytes: number; inFlight: number }>({
  type: "server",
  title: "Server of a data sink",
  details: serverSchema,
  settings: z.unknown(),
  maxConnections: 1,
  endpoint,
  keepsConnection: () => false,
  parseAddress: nothing,
  plan: () => [],
  async connect({ details }, ctx) {
    const connection = await openTcp(endpoint(details), ctx);
    return {
      limits: { maxPoints: 1, maxBytes: 1, inFlight: 1 },
      read: nothing,
      alive: () => true,
      close: () => connection.close(),
    };
  },
});

const TIMEOUTS = { nameMs: 5000, connectMs: 5000, answerMs: 3000 };

/** `collector probe SINK`: walks the way to the server of a data sink, up to the connection. Throws UsageError where it has none. */
export async function probeSink(
  { uuid, name, type, details }: DataSink,
  permit: Permit,
  { config, json = false, timeoutMs }: { readonly config?: string | undefined; readonly json?: boolean; readonly timeoutMs: number },
  io: CommandIo,
): Promise<ExitCode> {
  const server = serverSchema.safeParse(details);
  if (!server.success)
    throw new UsageError(
      `${name ?? uuid} is a data sink of the type ${type}, which connects to no host of its own; collector tail ${name ?? uuid} shows its log`,
    );
  const proxy = proxyIn(optionsOfSink(settingsOrUsage(config).settings, { uuid, name }));
  const broker = hostPort(server.data.host, server.data.port);
  const { host, port } = proxy ?? server.data;
  const at = hostPort(host, port);
  const known = await sinkKnownByService(uuid, config, io);
  const print = (lines: readonly string[]): void => {
    if (!json) writeLines(io, lines);
  };
  print([`${name ?? uuid} (${type} ${broker}${proxy ? ` through the proxy ${proxyName(proxy)}` : ""})`, ...serviceLines(known)]);
  const target = {
    driver: SERVER,
    details: { host, port },
    settings: {},
    secrets: {},
    timeouts: TIMEOUTS,
    prepareMs: 0,
    permit,
    pki: undefined,
  };
  const walked = await walk(
    { ...target, points: [], endsAtConnection: true },
    { io, log: personLog(io), timeoutMs, tell: (step) => print([stepLine(step)]) },
  );
  if (io.signal.aborted) return EXIT.interrupted;
  const { failure, steps } = walked;
  const about = { ...(name !== null && { source: name }), sinkType: type };
  if (json) {
    const service = known ? { state: known.state, since: known.since } : null;
    const sink = { uuid, name, type, endpoint: broker, ...(proxy && { proxy: proxyName(proxy) }) };
    const result = { ok: !failure, sink, service, steps: stepObjects(steps) };
    io.stdout.write(`${toJson({ ...result, ...(failure && failureObject(failure, at, about)) })}\n`);
  } else
    print([
      "",
      ...(failure
        ? failureLines(failure, at, about)
        : [`The way${proxy ? " to the proxy" : ""} is open: what it says to the service is above, and in collector tail.`]),
    ]);
  return failure ? EXIT.sourceFailed : EXIT.good;
}

function serviceLines(known: SinkStatus | undefined): readonly string[] {
  if (!known) return ["The service does not run here, does not publish to it, or may not be asked by this user."];
  const { state, since, error, endpoint: at, type } = known;
  const words = formatDuration(Math.max(0, Date.now() - Date.parse(since)));
  if (!error) return [`The service: ${state} for ${words}.`];
  const { sentence } = explainReason(error.reason, error.condition, { endpoint: at, sinkType: type });
  return [`The service fails for ${words}: ${sentence} (${error.detail})`];
}
