import type { AnyDriver, AnySession, DriverContext, Limits, Point, Request } from "../../../drivers/driver.ts";
import { silentLog } from "../../model/context.ts";
import { FaultError, PartialRefusal } from "../../model/fault.ts";
import { ReasonError } from "../../model/reason.ts";
import { DeviceTime } from "../device-time.ts";
import { LearnedGroups } from "../learned-groups.ts";
import { type Read, readOnce } from "../read.ts";

/** What a cell does to the request that touches it. */
export type CellFault = "missing" | "silent" | "fin" | "rst" | "malformed" | "gateway" | "busy" | "forbidden" | "resting";

export interface CellsOptions {
  /** Cells in one request. Default: 10. */
  readonly perRequest?: number;
  /** Cells that a request may bridge. Default: 2. */
  readonly gap?: number;
  readonly inFlight?: number;
  /** Cells of one unit; absent: there are no parts. */
  readonly unit?: number;
  /** Requests that a connection answers before it is closed. */
  readonly answersPerConnection?: number;
  /** Each run of a request is an item of its own: what is refused is its item. */
  readonly hasItems?: boolean;
  /** Default: 10. */
  readonly answerMs?: number;
  readonly intervalMs?: number;
  /** Read once, by a person. */
  readonly isThorough?: boolean;
  /** Connections that stay without an answer, whatever is asked: the how manieth, from 1. */
  readonly unserved?: readonly number[];
}

/** What `resting` asks for. */
export const REST_MS = 5000;
/** So long is an answer waited for unless a request says otherwise. */
export const FULL_TIMEOUT_MS = 3000;

/** For a source of the service. */
const MODEST = { isThorough: false, unserved: [] };

/**
 * A device of numbered cells, without sockets and on a clock of its own. A request reads a run of cells (its gaps with it); `faults`
 * can be changed while it runs. Each point is one cell, which reads as its own number.
 */
export class Cells {
  readonly faults = new Map<number, CellFault>();
  /** Refuses or loses everything, whatever is asked. */
  everything: CellFault | undefined;
  nowMs = 1_000_000;
  /** Cells of each request that was sent, in order. */
  readonly asked: (readonly number[])[] = [];
  connects = 0;
  mostInFlight = 0;
  readonly learned: LearnedGroups;
  readonly driver: AnyDriver;
  readonly points: readonly Point[];
  readonly #options: Required<Omit<CellsOptions, "unit" | "answersPerConnection">> & CellsOptions;
  readonly #limits: Limits;
  /** Cells that take so long to be answered, in ms: more than the time-out is none. */
  readonly slow = new Map<number, number>();
  /** Called with the number of each request. */
  atAsk: (n: number) => void = () => {};
  readonly #time = new DeviceTime(() => this.nowMs);
  readonly #share;
  #session: AnySession | undefined;

  constructor(cells: readonly number[], options: CellsOptions = {}) {
    this.#options = { perRequest: 10, gap: 2, inFlight: 1, hasItems: false, answerMs: 10, intervalMs: 10_000, ...MODEST, ...options };
    this.#limits = { maxPoints: 10_000, maxBytes: 10_000, inFlight: this.#options.inFlight };
    this.points = cells.map((address, index) => ({ index, address, type: { scalar: "uint16" } }));
    this.learned = new LearnedGroups(this.points);
    this.driver = {
      plan: (points: readonly Point[], _: Limits, apart?: ReadonlySet<Point>) => this.plan(points, apart),
      answerBytes: ({ points }: Request) => Math.max(...points.map(cellOf)) - Math.min(...points.map(cellOf)) + 1,
    } as unknown as AnyDriver;
    this.#share = this.#time.join(this.#options.intervalMs);
  }

  plan(points: readonly Point[], apart?: ReadonlySet<Point>): Request[] {
    const { perRequest, gap, unit } = this.#options;
    const unitOf = (cell: number) => (unit === undefined ? 0 : Math.floor(cell / unit));
    const requests: { points: Point[]; part?: string }[] = [];
    for (const point of [...points].sort((a, b) => cellOf(a) - cellOf(b))) {
      const last = requests.at(-1);
      const [first] = last?.points ?? [];
      const end = last?.points.at(-1);
      const fits =
        last &&
        first &&
        end &&
        !apart?.has(point) &&
        unitOf(cellOf(first)) === unitOf(cellOf(point)) &&
        cellOf(point) - cellOf(end) <= gap + 1 &&
        cellOf(point) - cellOf(first) < perRequest;
      if (fits) last.points.push(point);
      else requests.push({ points: [point], ...(unit !== undefined && { part: `unit ${unitOf(cellOf(point))}` }) });
    }
    return this.#options.hasItems ? packed(requests) : requests;
  }

  /** One readout, over the connection that the last one left. */
  async readout(deadlineMs = Math.max(10_000, this.#options.intervalMs), searchMs = deadlineMs / 2): Promise<Read> {
    const deadline = new AbortController();
    const beganMs = this.nowMs;
    this.#onTick = () => {
      if (this.nowMs - beganMs >= deadlineMs) deadline.abort(new ReasonError("TIMEOUT", "the readout's deadline has passed"));
    };
    const ctx: DriverContext = {
      signal: deadline.signal,
      log: silentLog,
      timeouts: { nameMs: 1000, connectMs: 1000, answerMs: FULL_TIMEOUT_MS },
    };
    const { intervalMs, isThorough } = this.#options;
    const deps = { driver: this.driver, connect: async () => this.#connect() };
    const kept = this.#session?.alive() ? this.#session : undefined;
    const inTime = isThorough ? {} : { searchUntilMs: beganMs + searchMs };
    const wait = async (ms: number) => {
      this.#pass(ms);
      return !deadline.signal.aborted;
    };
    const options = { now: () => this.nowMs, wait, ...inTime, share: this.#share, intervalMs, isThorough };
    const read = await readOnce(deps, this.learned, kept, ctx, options);
    this.#session = read.session;
    return read;
  }

  /** As readout, at the next tick of the interval. */
  async tick(): Promise<Read> {
    const { intervalMs } = this.#options;
    this.nowMs = (Math.floor(this.nowMs / intervalMs) + 1) * intervalMs;
    return this.readout();
  }

  #onTick: () => void = () => {};

  #pass(ms: number): void {
    this.nowMs += ms;
    this.#onTick();
  }

  #connect(): AnySession {
    const isServed = !this.#options.unserved.includes(++this.connects);
    this.#pass(1);
    let isAlive = true;
    let answers = 0;
    let underWay = 0;
    const lose = (error: ReasonError): never => {
      isAlive = false;
      throw error;
    };
    return {
      limits: this.#limits,
      alive: () => isAlive,
      close: async () => {
        isAlive = false;
      },
      read: async (request: Request, ctx: DriverContext) => {
        if (!isAlive) throw new ReasonError("CONNECTION_CLOSED", "the device closed the connection");
        this.asked.push(request.points.map(cellOf));
        this.atAsk(this.asked.length);
        this.mostInFlight = Math.max(this.mostInFlight, ++underWay);
        await Promise.resolve();
        underWay--;
        if (answers >= (this.#options.answersPerConnection ?? Number.POSITIVE_INFINITY))
          return lose(new ReasonError("CONNECTION_CLOSED", "the device closed the connection"));
        const fault = isServed ? (this.everything ?? this.#faultOf(request)) : "silent";
        if (fault === "silent") {
          this.#pass(ctx.timeouts.answerMs);
          return lose(new ReasonError("TIMEOUT", `no answer within ${ctx.timeouts.answerMs} ms`));
        }
        const tookMs = Math.max(this.#options.answerMs, ...request.points.map((point) => this.slow.get(cellOf(point)) ?? 0));
        this.#pass(Math.min(tookMs, ctx.timeouts.answerMs));
        // A driver waits no longer than the readout has time.
        if (ctx.signal.aborted) return lose(ctx.signal.reason as ReasonError);
        if (tookMs > ctx.timeouts.answerMs) return lose(new ReasonError("TIMEOUT", `no answer within ${ctx.timeouts.answerMs} ms`));
        if (fault === "fin") return lose(new ReasonError("CONNECTION_CLOSED", "the device closed the connection"));
        if (fault === "rst") return lose(new ReasonError("CONNECTION_RESET", "reset"));
        if (fault === "malformed") return lose(new ReasonError("UNKNOWN", "garbage", { condition: "protocol_violation" }));
        if (fault === "resting") return lose(new ReasonError("UNKNOWN", "come again later", { retryAfterMs: REST_MS }));
        answers++;
        if (fault) this.#refuse(fault, request);
        return request.points.map((point) => ({ quality: "good" as const, value: cellOf(point) }));
      },
    } as unknown as AnySession;
  }

  /** If runs are items of their own, only what a run touches counts for it. */
  #runsOf(request: Request): readonly (readonly Point[])[] {
    return (request as CellsRequest).runs ?? [request.points];
  }

  #faultOf(request: Request): CellFault | undefined {
    for (const run of this.#runsOf(request)) {
      const fault = this.#faultIn(run);
      if (fault) return fault;
    }
    return undefined;
  }

  #faultIn(run: readonly Point[]): CellFault | undefined {
    const [first, last] = [run[0], run.at(-1)];
    if (!first || !last) return undefined;
    for (let cell = cellOf(first); cell <= cellOf(last); cell++) {
      const fault = this.faults.get(cell);
      if (fault) return fault;
    }
    return undefined;
  }

  #refuse(fault: CellFault, request: Request): void {
    if (fault === "busy") throw new FaultError("device_error", "busy", { scope: "busy" });
    if (fault === "gateway") throw new FaultError("no_answer", "exception 11", { scope: "silent" });
    if (fault === "forbidden") throw new FaultError("access_denied", "forbidden", { scope: "everything" });
    const refusal = new FaultError("not_found", "no such cell");
    const runs = this.#runsOf(request);
    const refused = runs.filter((run) => this.everything === "missing" || this.#faultIn(run) === "missing");
    const items = refused.map((run) => ({ places: run.map((point) => request.points.indexOf(point)), refusal }));
    const [first, ...others] = items;
    if (!this.#options.hasItems || !first || refused.length === runs.length) throw refusal;
    const inRefused = new Set(refused.flat());
    const readings = request.points.map((point) =>
      inRefused.has(point) ? undefined : ({ quality: "good", value: cellOf(point) } as const),
    );
    throw new PartialRefusal(readings, [first, ...others]);
  }
}

const cellOf = (point: Point): number => Number(point.address);
const ITEMS = 4;

interface CellsRequest extends Request {
  readonly runs?: readonly (readonly Point[])[];
}

/** Several runs as one request, as jobs of items are. */
function packed(items: readonly Request[]): CellsRequest[] {
  const requests: CellsRequest[] = [];
  for (let at = 0; at < items.length; at += ITEMS) {
    const runs = items.slice(at, at + ITEMS).map(({ points }) => points);
    requests.push({ points: runs.flat(), runs });
  }
  return requests;
}

/** How many cells of the readout are read as what they are. */
export const goodOf = ({ readings }: Read): number => readings.filter((reading) => reading?.quality === "good").length;

export const range = (n: number, from = 0): readonly number[] => Array.from({ length: n }, (_, i) => from + i);
