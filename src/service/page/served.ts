import type { Agent } from "../../agent/agent.ts";
import type { Log } from "../../model/context.ts";
import type { Warning } from "../../model/warning.ts";
import type { LedgerHour } from "../history/ledger-hours.ts";
import type { DataQuestion, DataReply, SeenAccess } from "./data-messages.ts";
import type { PageHead, PageWorkerData } from "./messages.ts";

/** Gathered before somebody looks. */
export interface PageData {
  /** Ledgers of the sinks by the hour. */
  hours(): ReadonlyMap<string, readonly LedgerHour[]>;
  reply(question: DataQuestion): DataReply;
  /** Somebody was let in at the page, or was not. */
  seen(access: SeenAccess): void;
}

export interface PageHostOptions {
  /** Entry of the worker. */
  readonly entry: URL;
  readonly workerData: PageWorkerData;
  readonly agent: Pick<Agent, "glances" | "inspect">;
  /** The status of now but for the sources. */
  readonly head: () => PageHead;
  readonly data: PageData;
  readonly log: Log;
}

/** The page while it is served, in a thread of its own. */
export interface ServedPage {
  notes(): readonly Warning[];
  /** Never throws. */
  stop(): Promise<void>;
}
