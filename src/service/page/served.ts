import type { Agent } from "../../agent/agent.ts";
import type { Log } from "../../model/context.ts";
import type { Warning } from "../../model/warning.ts";
import type { PageHead, PageWorkerData } from "./messages.ts";

export interface PageHostOptions {
  /** Entry of the worker. */
  readonly entry: URL;
  readonly workerData: PageWorkerData;
  readonly agent: Pick<Agent, "glances" | "inspect">;
  /** The status of now but for the sources. */
  readonly head: () => PageHead;
  readonly log: Log;
}

/** The page while it is served, in a thread of its own. */
export interface ServedPage {
  notes(): readonly Warning[];
  /** A source has changed: the page keeps the changes of state also while nobody looks. */
  sourceChanged(): void;
  /** Never throws. */
  stop(): Promise<void>;
}
