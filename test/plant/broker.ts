import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";

/** What the demo tells its broker: from now on publishes are taken. */
export const TAKE = "take";

/** What the broker tells the demo once it listens. */
export interface Listening {
  readonly port: number;
}

const LISTENS_WITHIN_MS = 20_000;

/**
 * The demo's broker (aedes) as a process of its own. It hands each message on to its subscribers before it acknowledges it, and keeps
 * nothing: what it acknowledged, a subscriber with QoS 0 has, whatever becomes of the broker.
 */
export interface BrokerProcess {
  readonly port: number;
  /** Until this is called it neither takes nor acknowledges what is published: what nobody subscribed to yet would be lost. */
  take(): void;
  /** kill -9, as well as the way to end it: it has nothing to put in order. Settles when it is gone. */
  kill(): Promise<void>;
}

/** On this port of 127.0.0.1 (0: a free one). Throws an Error where it does not come up. */
export async function startBrokerProcess(port: number): Promise<BrokerProcess> {
  // Ctrl-C of the terminal is not for it; it ends with its demo, which it sees by the channel between them.
  const child = fork(path.join(import.meta.dirname, "broker-child.ts"), [String(port)], { detached: true });
  const [listening] = (await Promise.race([
    once(child, "message", { signal: AbortSignal.timeout(LISTENS_WITHIN_MS) }),
    once(child, "exit").then(([code]) => {
      throw new Error(`the broker ended with ${code} before it listened on port ${port}`);
    }),
  ])) as [Listening];
  return {
    port: listening.port,
    take: () => void child.send(TAKE),
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}
