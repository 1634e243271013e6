import { onTestFinished } from "vitest";
import type { AgentDeps } from "../../src/agent/agent.ts";
import { silentLog } from "../../src/model/context.ts";
import { type ServiceStatus, toSourceStatus } from "../../src/model/service-status.ts";
import { framesAnswer } from "../../src/service/frames-answer.ts";
import { localSocketPath, startLocalSocket } from "../../src/service/local-socket.ts";
import { lookInto } from "../../src/service/look-into.ts";
import { rig } from "./agent.ts";

/** An agent that is asked over the local socket of a state folder, as that of a service is; both end with the test. */
export async function askedAgent(stateDir: string, more: Partial<AgentDeps> = {}, status: Partial<ServiceStatus> = {}) {
  const made = rig(more);
  const { agent } = made;
  const socket = await startLocalSocket(
    {
      path: localSocketPath(stateDir),
      handlers: { "/status": () => ({ buffer: {}, ...status, sources: agent.reports().map(toSourceStatus) }) },
      actions: { "/source": (body) => lookInto(agent, body), "/capture": (body) => framesAnswer(agent, body) },
    },
    { signal: new AbortController().signal, log: silentLog },
  );
  onTestFinished(async () => {
    await socket.close();
    await agent.stop();
  });
  return made;
}
