import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";

/** An OPC UA server as a process of its own, whose counter `ns=2;s=counter` grows by one every 5 ms and whose items report each change. */
export interface CounterProcess {
  readonly port: number;
  /** kill -9. Settles when it is gone. */
  kill(): Promise<void>;
}

/** On this port of 127.0.0.1 (0: a free one), counting from `from` on. */
export async function startCounter(port: number, from: number): Promise<CounterProcess> {
  const child = fork(path.join(import.meta.dirname, "counter-child.ts"), [String(port), String(from)], { detached: true });
  const [listening] = (await once(child, "message", { signal: AbortSignal.timeout(20_000) })) as [{ readonly port: number }];
  return {
    port: listening.port,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}
