import { MessageChannel } from "node:worker_threads";
import { consoleOfSources } from "../../../package/console.ts";
import type { Glance } from "../../agent/agent.ts";
import type { Sample } from "../../agent/live-values.ts";
import type { Look } from "../../agent/source.ts";
import type { SinkStatus } from "../../model/service-status.ts";
import type { LiveValue } from "../../model/source-insight.ts";
import { LedgerHours } from "../history/ledger-hours.ts";
import { loadAssets } from "./assets.ts";
import type { DataQuestion, DataReply, SeenAccess } from "./data-messages.ts";
import { SourceFeed } from "./feed.ts";
import type { FromPage, PageHead, PageWorkerData, ToPage } from "./messages.ts";
import { runPage } from "./run-page.ts";
import type { PageData } from "./served.ts";

/** A page as its thread runs it, and the service that it asks, in this thread. For tests. */

type Report = NonNullable<ReturnType<Glance["look"]>>["report"];
export const SINCE = "2026-11-20T09:00:00.000Z";

export const uuidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

export const reportOf = (n: number, changes: Partial<Report> = {}): Report => ({
  uuid: uuidOf(n),
  name: `press-${n}`,
  type: "modbus_tcp",
  endpoint: "10.0.0.5:502",
  status: { last_readout_at: SINCE, configured_variables: 1, state: { type: "OK" } },
  since: SINCE,
  error: null,
  next_retry_at: null,
  warnings: [],
  interval_ms: 1000,
  counters: { readouts: 1, failed_readouts: 0, overruns: 0, values_read: 1, values_faulted: 0, values_unchanged: 0, connects: 1 },
  faults: [],
  layout: null,
  ...changes,
});

export const failing = (detail: string): Partial<Report> => ({
  status: {
    last_readout_at: null,
    configured_variables: 1,
    state: { type: "ERROR", reason: { type: "CONNECTION_REFUSED" }, error_at: SINCE },
  },
  error: { reason: { type: "CONNECTION_REFUSED" }, condition: null, detail },
});

export const sinkOf = (changes: Partial<SinkStatus> = {}): SinkStatus => ({
  uuid: uuidOf(900),
  name: "broker",
  type: "mqtt",
  endpoint: "10.0.0.9:1883",
  state: "OK",
  since: SINCE,
  error: null,
  next_retry_at: null,
  warnings: [],
  ledger: { accepted: 10, delivered: 7, unconfirmed: 0, filtered: 0, pending: 3, dropped: {}, delivered_unstored: 0 },
  ...changes,
});

export const HEAD: PageHead = {
  version: "1",
  collector: uuidOf(999),
  started_at: SINCE,
  config: { origin: "api", api_url: "http://127.0.0.1:8420", ok: true, message: null, since: SINCE, warnings: [] },
  sinks: [sinkOf()],
  buffer: { bytes: 1, max_bytes: 1000, unanswered_bytes: 0, rejected: {}, suppressed: 0, removed_sinks: [], lost: null },
  alarms: [],
};

/** A source as the agent shows it; its state is another where the report says so. */
export const glanceOf = (report: Report, sample?: Sample): Glance => ({
  uuid: report.uuid,
  mark: report.status.state,
  look: () => ({ report, sample }),
});

/** The service as the page asks it: what tests change is what the page sees with its next ask. */
export class TestService {
  head: PageHead = HEAD;
  reports: Report[] = [reportOf(1), reportOf(2, failing("connect ECONNREFUSED"))];
  values: readonly LiveValue[] = [];
  readAt = 1000;
  readonly ledgers = new LedgerHours();
  readonly accesses: SeenAccess[] = [];
  /** By type of question. */
  replies: Partial<Record<DataQuestion["type"], DataReply>> = {
    events: { type: "events", events: [], more: 0 },
    timeline: { type: "timeline", spans: [] },
    sink: { type: "sink", found: { sink: sinkOf(), hours: [], certificates: [] } },
  };
  readonly questions: DataQuestion[] = [];
  readonly asks: Extract<FromPage, { type: "ask" }>[] = [];
  readonly told: ToPage[] = [];
  readonly feed = new SourceFeed({
    glances: () => this.#glances(),
    inspect: (name, look) => this.#inspect(name, look),
  });

  *#glances(): Generator<Glance> {
    for (const report of this.reports)
      yield glanceOf(report, { variable: "speed", unit: "1/min", at: this.readAt, value: String(this.readAt) });
  }

  #inspect(uuid: string, { isMeant }: Look) {
    const report = this.reports.find((one) => one.uuid === uuid);
    if (!report) return undefined;
    const values = this.values.filter((value) => isMeant(value));
    const time = new Date(this.readAt).toISOString();
    return { report, plan: null, readout: { time, span_ms: 5, clock_synced: true, values, more: 0 } };
  }

  async answer({ id, scope, looks }: Extract<FromPage, { type: "ask" }>, post: (message: ToPage) => void): Promise<void> {
    const samples = new Map();
    const changes = scope === "all" ? await this.feed.changes(samples) : undefined;
    const views = looks.flatMap((look) => this.feed.view(look) ?? []);
    this.ledgers.take(this.head.sinks, Date.now());
    const hours = this.ledgers.all();
    for (const message of [...(changes ? [changes] : []), { type: "answer", id, head: this.head, samples, views, hours } as const]) {
      this.told.push(message);
      post(message);
    }
  }
}

export interface TestPage {
  readonly url: string;
  readonly service: TestService;
  /** Why it did not listen at first. */
  readonly troubles: readonly (string | null)[];
  readonly logged: readonly string[];
  stop(): Promise<void>;
}

export async function startTestPage(data: Partial<PageWorkerData> & { readonly retryMs?: number } = {}): Promise<TestPage> {
  const service = new TestService();
  const { port1, port2 } = new MessageChannel();
  const listening = Promise.withResolvers<string>();
  const stopped = Promise.withResolvers<void>();
  const troubles: (string | null)[] = [];
  const logged: string[] = [];
  port2.on("message", (message: FromPage) => {
    if (message.type === "ask") {
      service.asks.push(message);
      void service.answer(message, (answer) => port2.postMessage(answer));
    } else if (message.type === "question") {
      const { id, question } = message;
      service.questions.push(question);
      const reply = service.replies[question.type];
      if (reply) port2.postMessage({ type: "reply", id, reply } satisfies ToPage);
    } else if (message.type === "access") service.accesses.push(message.access);
    else if (message.type === "listening") listening.resolve(message.url);
    else if (message.type === "trouble") troubles.push(message.message);
    else if (message.type === "log") logged.push(JSON.stringify(message));
    else if (message.type === "stopped") stopped.resolve();
  });
  const assets = loadAssets(await consoleOfSources());
  void runPage(port1, { listen: "127.0.0.1:0", retryMs: 50, ...data, assets });
  port2.postMessage({ type: "listen" } satisfies ToPage);
  return {
    url: (await listening.promise).replace(/\/$/, ""),
    service,
    troubles,
    logged,
    async stop() {
      port2.postMessage({ type: "stop" } satisfies ToPage);
      await stopped.promise;
      port2.close();
    },
  };
}

/** A service that has gathered nothing. */
export const NO_DATA: PageData = {
  hours: () => new Map(),
  reply: () => ({ type: "timeline", spans: null }),
  seen: () => {},
};
