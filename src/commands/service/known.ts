import { stateDirIn } from "../../configuration/settings-file.ts";
import type { ServiceStatus, SourceStatus } from "../../model/service-status.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { type CommandIo, StoppedError } from "../io.ts";
import { askService, ServiceError } from "./local-client.ts";

/** What the running service knows of one of its data sources, by name or uuid; undefined: none runs here, or it has no such source. */
export async function knownByService(name: string, config: string | undefined, io: CommandIo): Promise<SourceStatus | undefined> {
  try {
    // Our own service of this version, behind the rights of the file system: its answer is taken for what it says it is.
    const { sources } = (await askService(localSocketPath(stateDirIn(config)), "/status", io.signal)) as ServiceStatus;
    return sources.find(({ uuid }) => uuid === name.toLowerCase()) ?? sources.find((source) => source.name === name);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (io.signal.aborted) throw new StoppedError();
    return undefined;
  }
}
