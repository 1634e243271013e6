import { stateDirIn } from "../../configuration/settings-file.ts";
import type { ServiceStatus, SinkStatus, SourceStatus } from "../../model/service-status.ts";
import type { SourceInsight } from "../../model/source-insight.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { askService, ServiceError, tellService } from "./local-client.ts";

/** What the running service knows of one of its data sources, by name or uuid; undefined: none runs here, or it has no such source. */
export const knownByService = async (name: string, config: string | undefined, io: CommandIo): Promise<SourceStatus | undefined> =>
  sourceIn(await statusIfRunning(config, io), name);

/** The source in a status, by name or uuid. Pure. */
export function sourceIn(status: ServiceStatus | undefined, name: string): SourceStatus | undefined {
  const sources = status?.sources ?? [];
  return sources.find(({ uuid }) => uuid === name.toLowerCase()) ?? sources.find((source) => source.name === name);
}

/** The same of one of its data sinks, by uuid. */
export const sinkKnownByService = async (uuid: string, config: string | undefined, io: CommandIo): Promise<SinkStatus | undefined> =>
  (await statusIfRunning(config, io))?.sinks.find((sink) => sink.uuid === uuid);

/** The status of the running service; undefined: none runs here. Throws StoppedError. */
export async function statusIfRunning(config: string | undefined, io: CommandIo): Promise<ServiceStatus | undefined> {
  try {
    // Our own service of this version, behind the rights of the file system: its answer is taken for what it says it is.
    return (await askService(localSocketPath(stateDirIn(config)), "/status", io.signal)) as ServiceStatus;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (io.signal.aborted) throw new StoppedError();
    return undefined;
  }
}

/** What of a data source is looked at: see `collector watch`. */
export interface Question {
  readonly source: string;
  readonly filter?: string;
  readonly variable?: string;
  readonly explain?: boolean;
  readonly plan?: boolean;
}

/**
 * One data source of the running service with its plan and its last values; nothing is asked of the device for it. Throws ServiceError (none
 * runs here), UsageError (it has no such source) and StoppedError.
 */
export async function lookIntoService(question: Question, config: string | undefined, io: CommandIo): Promise<SourceInsight> {
  try {
    return (await tellService(localSocketPath(stateDirIn(config)), "/source", question, io.signal)) as SourceInsight;
  } catch (error) {
    if (io.signal.aborted) throw new StoppedError();
    if (error instanceof ServiceError && error.refusal !== undefined) throw new UsageError(error.refusal);
    throw error;
  }
}

/** Runs a verb that needs the running service; where it cannot be asked, prints why. */
export async function withService(io: CommandIo, work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    complain(io, error.message);
    return EXIT.ownFailure;
  }
}
