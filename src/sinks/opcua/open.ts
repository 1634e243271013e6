import type { OPCUAServer } from "node-opcua-server";
import type { Context, Log } from "../../model/context.ts";
import { messageOf, toReasonError } from "../../model/failure.ts";
import type { OwnCertificate, Pki } from "../../model/pki.ts";
import { ReasonError } from "../../model/reason.ts";
import type { SinkReport, SourceReport } from "../../model/report.ts";
import { type OpcuaSinkDetails, userSecretName } from "../../model/sink-details.ts";
import { type Warning, warning } from "../../model/warning.ts";
import type { OpenInput, Sink, SinkBatch, WriteResult } from "../sink.ts";
import { Connections } from "./connections.ts";
import { fenceLibrary } from "./library.ts";
import { LIMITS } from "./limits.ts";
import { listenText, probeListening } from "./listen.ts";
import { LogIns } from "./log-ins.ts";
import { NodeMaker } from "./nodes.ts";
import { closeMethods, narrowTokens, optionsOf, warningsOf } from "./options.ts";
import { type Crowding, ReadOnlyServer } from "./server.ts";
import { Serving } from "./serving.ts";
import { clientsOf } from "./sessions.ts";
import type { OpcuaSinkSettings } from "./settings.ts";
import { createClientTrust } from "./trust.ts";
import { hashUsers, type Users } from "./users.ts";

const SWEEP_MS = 1000;
/** How often it is looked whether the collector's certificate was renewed. */
const RENEWAL_MS = 600_000;
const CLOSE_TIMEOUT_MS = 3000;

/** Opens the server: endpoints, users, an empty address space. Throws ReasonError. */
export async function openServer(
  input: OpenInput<OpcuaSinkDetails, OpcuaSinkSettings>,
  ctx: Context,
  host: string,
  notes: readonly Warning[],
  renewalEveryMs = RENEWAL_MS,
): Promise<Sink> {
  const { name, details, settings } = input;
  const { pki, log } = ctx;
  if (!pki)
    throw new ReasonError("UNKNOWN", "the OPC UA server needs a certificate, and this program has no folder to keep one in", {
      condition: "configuration_invalid",
    });
  throwIfStopped(ctx);
  const own = await ownCertificate(pki);
  await probeListening(host, details.port);
  let onWarnings = (): void => {};
  const logIns = new LogIns(await usersOf(input), { log, onChange: () => onWarnings() });
  throwIfStopped(ctx);

  fenceLibrary(log);
  const trust = createClientTrust({
    pki,
    onRefused: (words) => {
      log.warn({}, words);
      onWarnings();
    },
    onTrusted: (thumbprint) => log.info({ thumbprint }, "the certificate of an OPC UA client that was refused is trusted now"),
  });
  const intervals = new Map<string, number>();
  const server = new ReadOnlyServer(optionsOf({ name, details, settings, own, host, users: logIns, trust }), log, ({ namespace, value }) =>
    namespace === 1 ? intervals.get(String(value)) : undefined,
  );
  const connections = await start(server, input, ctx, host);
  const { addressSpace } = server.engine;
  if (!addressSpace) throw new ReasonError("UNKNOWN", "node-opcua has no address space", { condition: "internal_error" });
  const maker = new NodeMaker(addressSpace, (uuid) => intervals.get(uuid));
  const serving = new Serving(maker, intervals, { log, maxAnswerBytes: settings.max_answer });
  log.info(
    { url: server.getEndpointUrl(), host, thumbprint: own.thumbprint, applicationUri: own.applicationUri },
    "the OPC UA server listens; clients have to trust the certificate with this thumbprint",
  );
  const hosted = new HostedServer({
    server,
    logIns,
    connections,
    serving,
    trust,
    pki,
    own,
    log,
    notes: [...notes, ...warningsOf(details)],
    renewalEveryMs,
    maxSessions: settings.max_sessions,
    endpoint: listenText(host, details.port),
  });
  onWarnings = () => hosted.lookAtWarnings();
  return hosted;
}

/** Starts the server, with its connections bounded. Throws ReasonError; the server is shut down then. */
async function start(
  server: ReadOnlyServer,
  { details, settings }: OpenInput<OpcuaSinkDetails, OpcuaSinkSettings>,
  ctx: Context,
  host: string,
): Promise<Connections> {
  let connections: Connections | undefined;
  try {
    await server.initialize();
    connections = new Connections(server, {
      maxConnections: settings.max_sessions * LIMITS.connectionsPerSession,
      offersNone: details.security_modes.includes("None"),
      gates: server.gates,
      log: ctx.log,
    });
    closeMethods(server);
    narrowTokens(server, details);
    throwIfStopped(ctx);
    await server.start();
    return connections;
  } catch (error) {
    await shutdown(server, ctx.log);
    connections?.end();
    throw failureOf(error, host, details.port);
  }
}

interface Parts {
  readonly server: ReadOnlyServer;
  readonly logIns: LogIns;
  readonly connections: Connections;
  readonly serving: Serving;
  readonly trust: ReturnType<typeof createClientTrust>;
  readonly pki: Pki;
  /** The certificate that the server shows. */
  readonly own: OwnCertificate;
  readonly log: Log;
  /** Warnings that last as long as the server. */
  readonly notes: readonly Warning[];
  readonly renewalEveryMs: number;
  readonly maxSessions: number;
  readonly endpoint: string;
}

/** The sink while the server listens. Looks every second after connections, old values and the certificate. */
class HostedServer implements Sink {
  /** One batch after the other: values of a source must not overtake each other. */
  readonly inFlight = 1;
  readonly lost: Promise<Error>;
  readonly endpoint: string;
  readonly #parts: Parts;
  readonly #sweeper: NodeJS.Timeout;
  #lose: (error: Error) => void = () => {};
  #isSweeping = false;
  /** What an operator should know of the certificate. */
  #notice: string | undefined;
  #renewalMs: number;
  #onWarnings: () => void = () => {};
  /** Warnings and clients as they were when they were looked at last. */
  #warned = "";
  #closing: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.endpoint = parts.endpoint;
    this.#notice = parts.own.notice;
    this.#renewalMs = performance.now() + parts.renewalEveryMs;
    this.lost = new Promise<Error>((done) => {
      this.#lose = done;
    });
    this.#sweeper = setInterval(() => void this.#sweep(), SWEEP_MS);
  }

  get warnings(): readonly Warning[] {
    const { notes, serving, connections, trust, logIns, server, maxSessions } = this.#parts;
    const notice = this.#notice === undefined ? [] : [warning("own_certificate_expires", this.#notice)];
    const clients = [...connections.warnings(), ...crowdingWords(server.crowding, maxSessions), ...logIns.warnings(), ...trust.refused()];
    return [...notes, ...serving.warnings(), ...notice, ...clients, ...trust.lives()];
  }

  watchWarnings(changed: () => void): void {
    this.#onWarnings = changed;
  }

  clients(): NonNullable<SinkReport["clients"]> {
    return clientsOf(this.#parts.server);
  }

  /** On a calm plant nobody else does. */
  lookAtWarnings(): void {
    const warned = JSON.stringify([this.warnings.map(({ text }) => text), this.clients()]);
    if (warned === this.#warned) return;
    this.#warned = warned;
    this.#onWarnings();
  }

  async write(batch: SinkBatch): Promise<WriteResult> {
    if (this.#closing) throw closed();
    await this.#parts.serving.write(batch);
    return { refused: 0 };
  }

  async describe(sources: readonly SourceReport[]): Promise<void> {
    if (this.#closing) throw closed();
    await this.#parts.serving.describe(sources);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { server, connections, serving, log } = this.#parts;
    serving.end();
    clearInterval(this.#sweeper);
    this.#lose(closed());
    await shutdown(server, log);
    connections.end();
  }

  async #sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    const { connections, serving, trust, log } = this.#parts;
    try {
      connections.bound();
      connections.endOf(trust.over());
      await serving.sweep();
      this.lookAtWarnings();
      if (!connections.isListening()) this.#lose(new ReasonError("CONNECTION_CLOSED", "the OPC UA server no longer listens"));
      if (performance.now() >= this.#renewalMs) await this.#checkCertificate();
    } catch (error) {
      log.debug({ err: messageOf(error) }, "a look at the OPC UA server failed; it is repeated");
    } finally {
      this.#isSweeping = false;
    }
  }

  /** Throws ReasonError if the certificate cannot be read. */
  async #checkCertificate(): Promise<void> {
    const { pki, own, renewalEveryMs } = this.#parts;
    this.#renewalMs = performance.now() + renewalEveryMs;
    const { thumbprint, notice } = await ownCertificate(pki);
    this.#notice = notice;
    if (thumbprint === own.thumbprint) return;
    this.#lose(new ReasonError("CONNECTION_CLOSED", "the collector's certificate was renewed; the OPC UA server is started again with it"));
  }
}

function crowdingWords({ madeRoom, refused }: Crowding, maxSessions: number): readonly Warning[] {
  return [
    ...(madeRoom > 0
      ? [warning("session_ended", `${madeRoom} times a session without a connection ended to make room for another client`)]
      : []),
    ...(refused > 0
      ? [
          warning(
            "sessions_exhausted",
            `${refused} times a client found all ${maxSessions} sessions in use, and was refused unless one had not logged in; max_sessions raises the number`,
          ),
        ]
      : []),
  ];
}

const closed = (): ReasonError => new ReasonError("CONNECTION_CLOSED", "the OPC UA server is closed");

function throwIfStopped({ signal }: Context): void {
  if (signal.aborted) throw new ReasonError("CONNECTION_CLOSED", "stopped by the collector");
}

/** Within a deadline; never throws. */
function shutdown(server: OPCUAServer, log: Log): Promise<void> {
  const work = server
    .shutdown(0)
    .catch((error: unknown) => log.debug({ err: messageOf(error) }, "the OPC UA server did not close in order"));
  return within(CLOSE_TIMEOUT_MS, work);
}

function usersOf({ details: { users }, secrets }: OpenInput<OpcuaSinkDetails, OpcuaSinkSettings>): Promise<Users> {
  const missing = users.filter(({ username }) => secrets[userSecretName(username)] === undefined).map(({ username }) => username);
  if (missing.length > 0)
    throw new ReasonError("UNKNOWN", `no password is known here for the users ${missing.map((name) => JSON.stringify(name)).join(", ")}`, {
      condition: "secret_missing",
    });
  return hashUsers(users.map(({ username }) => ({ username, password: secrets[userSecretName(username)] ?? "" })));
}

async function ownCertificate(pki: Pki): Promise<OwnCertificate> {
  try {
    return await pki.own();
  } catch (error) {
    throw new ReasonError("UNKNOWN", `the collector's own certificate cannot be had: ${messageOf(error)}`, {
      cause: error,
      condition: "collector_host_trouble",
    });
  }
}

function failureOf(error: unknown, host: string, port: number): ReasonError {
  const known = toReasonError(error);
  return new ReasonError(known.reason, `the OPC UA server cannot be started on ${host}:${port}: ${known.message}`, {
    cause: error,
    ...(known.condition && { condition: known.condition }),
  });
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((done) => {
    timer = setTimeout(done, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
