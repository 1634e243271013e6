import * as z from "zod";
import { defineDriver } from "../../../drivers/driver.ts";
import { openTcp } from "../../../drivers/lib/tcp.ts";
import { formatDuration } from "../../base/duration.ts";
import { optionsOfSink } from "../../configuration/options-of-sink.ts";
import { prepareSink } from "../../delivery/prepare-sink.ts";
import { toReasonError } from "../../model/failure.ts";
import type { Permit } from "../../model/policy.ts";
import { proxyIn, proxyName } from "../../model/proxy-address.ts";
import { ReasonError } from "../../model/reason.ts";
import type { DataSink } from "../../model/resources.ts";
import type { SinkStatus } from "../../model/service-status.ts";
import { explainReason } from "../../model/words/catalogue.ts";
import { SINKS } from "../../sinks/index.ts";
import type { ProbeTell } from "../../sinks/sink.ts";
import type { ApiConnection } from "../configuration/api-connection.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { sinkKnownByService } from "../service/known.ts";
import { settingsOrUsage } from "../service/run.ts";
import { secretsHere, type TargetOptions } from "./browse-target.ts";
import { failureLines, failureObject, personLog } from "./device.ts";
import { type StepResult, walk } from "./probe-walk.ts";
import { stepLine, stepObjects } from "./probe-words.ts";
import { hostPort } from "./values.ts";

const serverSchema = z.object({ host: z.string(), port: z.number() });
type Server = z.infer<typeof serverSchema>;

const endpoint = ({ host, port }: Server) => ({ host, port, transport: "tcp" }) as const;
const nothing = (): never => {
  throw new ReasonError("UNKNOWN", "nothing is read of a server");
};

/** The server of a data sink, up to the connection: what follows is the kind of the sink to look at. */
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

export interface ProbeSinkOptions extends TargetOptions {
  readonly json?: boolean;
  readonly timeoutMs: number;
}

/** A data sink of the configuration. */
export interface ConfiguredSink {
  readonly record: DataSink;
  readonly permit: Permit;
  readonly api: ApiConnection | undefined;
}

/**
 * `collector probe SINK`: walks the way to the server of a data sink, up to the right to publish where the kind can look at that. Throws UsageError
 * where it has none.
 */
export async function probeSink(sink: ConfiguredSink, options: ProbeSinkOptions, io: CommandIo): Promise<ExitCode> {
  const { record, permit } = sink;
  const { uuid, name, type, details } = record;
  const { config, json = false, timeoutMs } = options;
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
  const beyond = walked.failure ? walked : await walkOn(sink, options, io, (step) => print([stepLine(step)]));
  if (io.signal.aborted) return EXIT.interrupted;
  const { failure } = beyond;
  const steps = beyond === walked ? walked.steps : [...walked.steps, ...beyond.steps];
  // Beyond the connection it is the server that answers.
  const asked = beyond === walked ? at : broker;
  const about = { ...(name !== null && { source: name }), sinkType: type };
  if (json) {
    const service = known ? { state: known.state, since: known.since } : null;
    const about_sink = { uuid, name, type, endpoint: broker, ...(proxy && { proxy: proxyName(proxy) }) };
    const result = { ok: !failure, sink: about_sink, service, steps: stepObjects(steps) };
    writeJson(io, { ...result, ...(failure && failureObject(failure, asked, about)) });
  } else
    print([
      "",
      ...(failure ? failureLines(failure, asked, about) : [beyond.steps.length === 0 ? OPEN : `${OPEN} The server takes this sink.`]),
    ]);
  return failure ? EXIT.sourceFailed : EXIT.good;
}

const OPEN = "The way is open.";

interface Beyond {
  readonly steps: readonly StepResult[];
  readonly failure: ReasonError | undefined;
}

/** Beyond the connection, as far as the kind can look. Throws UsageError. */
async function walkOn(
  { record, permit, api }: ConfiguredSink,
  options: ProbeSinkOptions,
  io: CommandIo,
  print: (step: StepResult) => void,
): Promise<Beyond> {
  const steps: StepResult[] = [];
  const { settings: loaded } = settingsOrUsage(options.config);
  const local = optionsOfSink(loaded, record);
  const tell: ProbeTell = async (step, work) => {
    const beganMs = performance.now();
    const done = await work().catch((error: unknown) => toReasonError(error));
    const failed = done instanceof ReasonError;
    const told = {
      step,
      ms: performance.now() - beganMs,
      result: failed ? "failed" : done.result,
      detail: failed ? done.message : done.detail,
    } as const;
    steps.push(told);
    print(told);
    if (failed) throw done;
  };
  try {
    const { uuid, name, type, details } = record;
    const secrets = await secretsHere({ record, desired: { sources: [], sinks: [record] }, local, settings: loaded, api }, options, io);
    const spec = { uuid, name, type, details, settings: local, secrets, publishIntervalUnit: loaded.publish_interval_unit };
    const { kind, settings, details: checked } = await prepareSink(spec, SINKS);
    const signal = AbortSignal.any([io.signal, AbortSignal.timeout(options.timeoutMs)]);
    await kind.probe?.({ uuid, name, details: checked, settings, secrets }, tell, { signal, log: personLog(io), permit });
    return { steps, failure: undefined };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    return { steps, failure: toReasonError(error) };
  }
}

function serviceLines(known: SinkStatus | undefined): readonly string[] {
  if (!known) return ["The service does not run here, does not publish to it, or may not be asked by this user."];
  const { state, since, error, endpoint: at, type } = known;
  const words = formatDuration(Math.max(0, Date.now() - Date.parse(since)));
  if (!error) return [`The service: ${state} for ${words}.`];
  const { sentence } = explainReason(error.reason, error.condition, { endpoint: at, sinkType: type });
  return [`The service fails for ${words}: ${sentence} (${error.detail})`];
}
