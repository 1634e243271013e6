import type { OPCUAServer } from "node-opcua-server";
import type { Context } from "../../model/context.ts";
import { messageOf, toReasonError } from "../../model/failure.ts";
import type { OwnCertificate, Pki } from "../../model/pki.ts";
import { ReasonError } from "../../model/reason.ts";
import { type OpcuaSinkDetails, userSecretName } from "../../model/sink-details.ts";
import type { OpenInput, Sink } from "../sink.ts";
import { type Connections, watchConnections } from "./connections.ts";
import { fenceLibrary } from "./library.ts";
import { LIMITS } from "./limits.ts";
import { probeListening } from "./listen.ts";
import { createNodeMaker } from "./nodes.ts";
import { closeMethods, narrowTokens, optionsOf, warningsOf } from "./options.ts";
import { ReadOnlyServer } from "./server.ts";
import { Serving } from "./serving.ts";
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
  notes: readonly string[],
  renewalEveryMs = RENEWAL_MS,
): Promise<Sink> {
  const { details, settings } = input;
  const { pki } = ctx;
  if (!pki)
    throw new ReasonError("UNKNOWN", "the OPC UA server needs a certificate, and this program has no folder to keep one in", {
      condition: "configuration_invalid",
    });
  const stopIfAsked = (): void => {
    if (ctx.signal.aborted) throw new ReasonError("CONNECTION_CLOSED", "stopped by the collector");
  };
  stopIfAsked();
  const own = await ownCertificate(pki);
  await probeListening(host, details.port);
  const users = await usersOf(input);
  stopIfAsked();

  fenceLibrary(ctx.log);
  const trust = createClientTrust({ pki, onRefused: (words) => ctx.log.warn({}, words) });
  const intervals = new Map<string, number>();
  const server = new ReadOnlyServer(
    optionsOf({ name: input.name, details, settings, own, host, users, trust }),
    ctx.log,
    ({ namespace, value }) => (namespace === 1 ? intervals.get(String(value)) : undefined),
  );
  let connections: Connections | undefined;
  const close = async (): Promise<void> => {
    await within(CLOSE_TIMEOUT_MS, shutdown(server));
    connections?.end();
  };
  try {
    await server.initialize();
    connections = watchConnections(server, {
      maxConnections: settings.max_sessions * LIMITS.connectionsPerSession,
      offersNone: details.security_modes.includes("None"),
      gates: server.gates,
      log: ctx.log,
    });
    closeMethods(server);
    narrowTokens(server, details);
    stopIfAsked();
    await server.start();
  } catch (error) {
    await close();
    throw failureOf(error, host, details.port);
  }
  const { addressSpace } = server.engine;
  if (!addressSpace) throw new ReasonError("UNKNOWN", "node-opcua has no address space", { condition: "internal_error" });
  const serving = new Serving(
    createNodeMaker(addressSpace, (uuid) => intervals.get(uuid)),
    intervals,
    { log: ctx.log },
  );
  ctx.log.info(
    { url: server.getEndpointUrl(), host, thumbprint: own.thumbprint, applicationUri: own.applicationUri },
    "the OPC UA server listens; clients have to trust the certificate with this thumbprint",
  );

  let isClosed = false;
  let lose: (error: Error) => void = () => {};
  const lost = new Promise<Error>((done) => {
    lose = done;
  });
  let closing: Promise<void> | undefined;
  let isSweeping = false;
  let { notice } = own;
  let renewalMs = performance.now() + renewalEveryMs;

  const sweep = async (): Promise<void> => {
    if (isSweeping) return;
    isSweeping = true;
    try {
      connections?.bound();
      await serving.sweep();
      if (connections?.isListening() === false) lose(new ReasonError("CONNECTION_CLOSED", "the OPC UA server no longer listens"));
      if (performance.now() < renewalMs) return;
      renewalMs = performance.now() + renewalEveryMs;
      const { thumbprint, notice: now } = await ownCertificate(pki);
      notice = now;
      if (thumbprint !== own.thumbprint)
        lose(new ReasonError("CONNECTION_CLOSED", "the collector's certificate was renewed; the OPC UA server is started again with it"));
    } catch (error) {
      ctx.log.debug({ err: messageOf(error) }, "a look at the OPC UA server failed; it is repeated");
    } finally {
      isSweeping = false;
    }
  };
  const sweeper = setInterval(() => void sweep(), SWEEP_MS);
  const fixed = [...notes, ...warningsOf(details)];
  const gone = (): ReasonError => new ReasonError("CONNECTION_CLOSED", "the OPC UA server is closed");

  return {
    // One batch after the other: values of a source must not overtake each other.
    inFlight: 1,
    get warnings() {
      return [
        ...fixed,
        ...serving.warnings(),
        ...(notice === undefined ? [] : [notice]),
        ...(connections?.warnings() ?? []),
        ...trust.refused(),
      ];
    },
    lost,
    async write(batch) {
      if (isClosed) throw gone();
      await serving.write(batch);
      return { refused: 0 };
    },
    async describe(sources) {
      if (isClosed) throw gone();
      await serving.describe(sources);
    },
    close() {
      isClosed = true;
      serving.end();
      clearInterval(sweeper);
      lose(gone());
      closing ??= close();
      return closing;
    },
  };

  function shutdown(open: OPCUAServer): Promise<void> {
    return open.shutdown(0).catch((error: unknown) => ctx.log.debug({ err: messageOf(error) }, "the OPC UA server did not close in order"));
  }

  function usersOf({ details: { users: named }, secrets }: typeof input): Promise<Users> {
    const missing = named.filter(({ username }) => secrets[userSecretName(username)] === undefined).map(({ username }) => username);
    if (missing.length > 0)
      throw new ReasonError(
        "UNKNOWN",
        `no password is known here for the users ${missing.map((name) => JSON.stringify(name)).join(", ")}`,
        {
          condition: "secret_missing",
        },
      );
    return hashUsers(named.map(({ username }) => ({ username, password: secrets[userSecretName(username)] ?? "" })));
  }
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
