import { stateDirIn } from "../../configuration/settings-file.ts";
import { type HealthAnswer, UNHEALTHY } from "../../service/health.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { type CommandIo, EXIT, type ExitCode } from "../io.ts";
import { writeJson } from "../lines.ts";
import { withService } from "./known.ts";
import { askService } from "./local-client.ts";

/** `collector health`: whether the running service reads what is due. */
export function health({ config, json = false }: { readonly config?: string; readonly json?: boolean }, io: CommandIo): Promise<ExitCode> {
  return withService(io, async () => {
    // Our own service of this version, behind the rights of the file system: its answer is taken for what it says it is.
    const answer = (await askService(localSocketPath(stateDirIn(config)), "/health", io.signal)) as HealthAnswer;
    const { healthy, not_ready } = answer;
    const words = [healthy ? "healthy" : UNHEALTHY, ...(not_ready === null ? [] : [`not ready: ${not_ready}`])];
    if (json) writeJson(io, answer);
    else io.stdout.write(`${words.join("; ")}\n`);
    return healthy ? EXIT.good : EXIT.ownFailure;
  });
}
