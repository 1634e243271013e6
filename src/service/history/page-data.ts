import type { Agent } from "../../agent/agent.ts";
import type { IsMeant } from "../../agent/live-values.ts";
import { createBudget } from "../../model/budget.ts";
import type { SinkStatus } from "../../model/service-status.ts";
import type { SourceFrames } from "../../model/wire.ts";
import type { CertificateEnd } from "../machine-look.ts";
import type { DataReply, SeenAccess, SinkData } from "../page/data-messages.ts";
import type { PageData } from "../page/served.ts";
import type { History } from "./history.ts";

export interface PageDataDeps {
  readonly history: History;
  readonly agent: Pick<Agent, "frames" | "inspect">;
  readonly sinks: () => readonly SinkStatus[];
  /** Certificates of this machine. */
  readonly certificates: () => readonly CertificateEnd[];
}

/** Variables that are explained at once, then one a second: each is read once more, at the cost of its device. */
const [MAX_EXPLAINED, EXPLAIN_REFILL_MS] = [8, 1000];

/** Certificates in one answer: the first to end. */
const MAX_CERTIFICATES = 100;

const ACCESS: Readonly<Record<SeenAccess["what"], string>> = {
  login: "logged in at the page",
  logout: "logged out of the page",
  refused: "was refused at the page: a wrong token",
};

/** Answers the page's thread. */
export function pageData({ history, agent, sinks, certificates }: PageDataDeps): PageData {
  const sinkOf = (wanted: string): SinkData | null => {
    const sink = sinks().find(({ uuid }) => uuid === wanted);
    return sink ? { sink, hours: history.ledgers.of(wanted), certificates: certificates().slice(0, MAX_CERTIFICATES) } : null;
  };
  const framesOf = (source: string): SourceFrames | "none" | "not_kept" => {
    const frames = agent.frames(source);
    return frames === "none" ? frames : frames && frames.bytes > 0 ? frames : "not_kept";
  };
  const looks = createBudget(MAX_EXPLAINED, EXPLAIN_REFILL_MS, () => performance.now());
  const explain = (source: string, variable: string): Extract<DataReply, { type: "explain" }>["found"] => {
    if (!looks.take()) return "busy";
    const isMeant: IsMeant = ({ name, uuid }) => name === variable || uuid === variable.toLowerCase();
    const found = agent.inspect(source, { isMeant, explain: variable, hasPlan: false });
    if (!found?.explained) return found && found.explained === undefined ? "not_run" : "none";
    return { explained: found.explained, value: found.readout?.values[0], readAt: found.readout?.time ?? null };
  };
  return {
    hours: () => history.ledgers.all(),
    seen: ({ what, address }) => history.events.add({ kind: "access", about: address ?? null, text: ACCESS[what] }),
    reply: (question) => {
      if (question.type === "trend") return { type: "trend", data: history.trend(question.source, question.variable, question) };
      if (question.type === "timeline") return { type: "timeline", spans: history.timeline(question.uuid) ?? null };
      if (question.type === "events") return { type: "events", ...history.events.find(question) };
      if (question.type === "sink") return { type: "sink", found: sinkOf(question.uuid) };
      if (question.type === "explain") return { type: "explain", found: explain(question.source, question.variable) };
      return { type: "frames", frames: framesOf(question.source) };
    },
  };
}
