import { countOf } from "../../src/base/number.ts";
import type { S7plusDetails } from "../../src/model/details.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { Reading } from "../../src/model/value.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { Confirmation, ConnectInput, DeviceMemory, Discovered, DriverContext, Endpoint, Point, Prepared, Session } from "../driver.ts";
import { NoAnswer } from "../lib/exchange.ts";
import { Learned } from "../lib/learned.ts";
import { type Help, SilentHelp } from "../lib/silent-help.ts";
import { openTcp } from "../lib/tcp.ts";
import type { PlusAddress } from "./address.ts";
import { BlockLooks } from "./block-looks.ts";
import { Malformed } from "./cursor.ts";
import { discover } from "./discover.ts";
import { PlusLink } from "./link.ts";
import { checkRights, DEFAULT_ITEMS, LIMITS, type OpenedSession, openSession, readLimit } from "./open-session.ts";
import { describePoint, describeRead, type PlusLimits, type PlusRead, plan } from "./plan.ts";
import { Program } from "./program.ts";
import { type ReadResult, readingsOf } from "./readings.ts";
import { type Draft, readItems } from "./requests.ts";
import { resolvePoints } from "./resolve.ts";
import { isError, isTooLarge, requestRefusal } from "./return-values.ts";
import type { S7plusSettings } from "./settings.ts";
import { startTls } from "./start-tls.ts";

const MAX_POINTS = 1000;
const ENGINEERING = "SIMATIC-ROOT-ES";
/** Values of one answer, which comes in as many fragments as it takes. */
const MAX_ANSWER_BYTES = 60_000;
/** If all of a request is denied, the CPU is not asked more often than this whether the session has any rights. */
const RIGHTS_AGAIN_MS = 10_000;
/** A variable that is not where it was, and not after a new look-up either, is no reason to look again before this. */
const HOPELESS_FOR_MS = 600_000;
/** Variables that are known as hopeless at most. */
const MAX_HOPELESS = 10_000;

export const endpointOf = ({ host, port }: S7plusDetails): Endpoint => ({ host, port, transport: "tcp" });

const SYMBOLS: Help = {
  kind: "symbols",
  words: "the PLC gives no answer to the look-up of symbols: variables by their place are read, and symbols that were looked up before",
  // Variables wait for it, and a CPU that is busy may be silent several times.
  longestMs: 60_000,
};
const READ = "read in";
const NOT_TOLD = new FaultError("no_answer", "the PLC gives no answer to the look-up of its symbol");

const NOT_LOOKED_UP: Reading = { quality: "bad", fault: "no_answer", detail: "it was not looked up in the PLC's program" };

export class S7plusSession implements Session<PlusAddress, PlusRead, PlusLimits> {
  readonly #link: PlusLink;
  readonly #opened: OpenedSession;
  readonly #settings: S7plusSettings;
  readonly #program: Program;
  readonly #looks: BlockLooks;
  readonly #help: SilentHelp;
  /** A CPU may have less memory than it promises. */
  readonly #learned: Learned<{ readonly maxItems: number }>;
  readonly #tsap: string;
  readonly #memory: DeviceMemory | undefined;
  /** Epoch in which a variable was read; undefined: none was. */
  #readEpoch: unknown;
  /** Variables in one request, as the CPU says; undefined: it has not answered that yet. */
  #told: number | undefined;
  #limits: PlusLimits;
  #drafts = new WeakMap<PlusRead, Draft>();
  /** By symbol and place: refused when all was looked up again last, and not read since. */
  #suspects: ReadonlySet<string> = new Set();
  /** Requests that were answered since then. */
  #answered = new WeakSet<PlusRead>();
  readonly #hopeless = new Set<string>();
  #hopelessSinceMs = 0;
  /** When the CPU last said which rights this session has, monotonic ms; undefined: it was not asked since the session began. */
  #rightsAskedMs: number | undefined;

  private constructor(link: PlusLink, opened: OpenedSession, tsap: string, settings: S7plusSettings, ctx: DriverContext) {
    this.#tsap = tsap;
    this.#memory = ctx.device;
    this.#readEpoch = ctx.device?.get(READ);
    this.#help = new SilentHelp(ctx.device);
    this.#learned = new Learned(ctx.device, "sizes", { maxItems: Number.POSITIVE_INFINITY });
    this.#link = link;
    this.#opened = opened;
    this.#settings = settings;
    this.#told = opened.maxItems;
    this.#program = new Program(link, opened.id, opened.maxItems ?? DEFAULT_ITEMS, ctx.device);
    this.#looks = new BlockLooks(this.#program, ctx.device);
    this.#limits = this.#limitsNow();
  }

  /** Throws ReasonError; a session that was made on the way is deleted. */
  static async connect(
    { details, settings, secrets }: ConnectInput<S7plusDetails, S7plusSettings>,
    ctx: DriverContext,
  ): Promise<S7plusSession> {
    const connection = await openTcp(endpointOf(details), ctx);
    let link: PlusLink | undefined;
    try {
      const tls = await startTls(connection, details.destination_tsap, settings.certificate, ctx);
      link = new PlusLink(tls.connection, ctx);
      const opened = await openSession(link, tls.socket, { user: settings.user, password: secrets["password"] }, ctx);
      return new S7plusSession(link, opened, details.destination_tsap, settings, ctx);
    } catch (error) {
      const closed = (link ?? connection).close();
      // Whoever stops it may end the process next, and with it the word that deletes the session.
      if (ctx.signal.aborted) await closed;
      throw error;
    }
  }

  get limits(): PlusLimits {
    if (this.#learned.forgetOld()) this.#limits = this.#limitsNow();
    return this.#limits;
  }

  #limitsNow(): PlusLimits {
    return limitsFor(Math.min(this.#told ?? DEFAULT_ITEMS, this.#learned.values.maxItems));
  }

  get epoch(): string {
    return this.#program.epoch;
  }

  read(request: PlusRead, ctx: DriverContext): Promise<readonly Reading[]> {
    if (request.items.length === 0) return Promise.resolve(request.points.map(() => NOT_LOOKED_UP));
    if (this.#told === undefined && this.#help.isDue(LIMITS.kind)) return this.#askLimit(ctx).then(() => this.read(request, ctx));
    if (request.hasSymbols && this.#isCheckDue()) return this.#checkAndRead(request, ctx);
    return this.#readNow(request, ctx);
  }

  /** A CPU that gave no answer when the session began may only have been busy. Throws ReasonError: the session is lost. */
  async #askLimit(ctx: DriverContext): Promise<void> {
    this.#told = await readLimit(this.#link, this.#opened.id, this.#help, ctx);
    this.#limits = this.#limitsNow();
  }

  async *prepare(points: readonly Point<PlusAddress>[], ctx: DriverContext): AsyncGenerator<readonly Prepared<PlusAddress>[]> {
    const { check_symbols: checksNames } = this.#settings;
    const symbols = points.filter(({ address }) => address.levels);
    // Places need no look-up: they are read whatever becomes of that.
    if (symbols.length < points.length)
      yield* resolvePoints(
        points.filter(({ address }) => !address.levels),
        this.#program,
        checksNames,
        ctx,
      );
    if (symbols.length === 0) return;
    const left = new Set(symbols);
    // Without any variable that is read the look-up is no help only: it is tried whenever the source is.
    const isHelp = (): boolean => symbols.length < points.length || this.#readEpoch === this.epoch;
    if (this.#help.isDue(SYMBOLS.kind) || !isHelp())
      try {
        this.#program.renewOld();
        if (this.#isListOld()) await this.#program.list(ctx);
        for await (const batch of resolvePoints(symbols, this.#program, checksNames, ctx)) {
          for (const { point } of batch) left.delete(point);
          yield batch;
        }
        this.#help.answered(SYMBOLS.kind);
        return;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        // A PLC that answers nothing at all shows here.
        await checkRights(this.#link, this.#opened.id, ctx);
        if (!isHelp()) throw error;
        this.#help.silent(SYMBOLS.kind, SYMBOLS.words, SYMBOLS.longestMs);
      }
    const retryAfterMs = Math.max(1000, this.#help.msLeft(SYMBOLS.kind));
    yield [...left].map((point) => ({ point, refusal: NOT_TOLD, retryAfterMs }));
  }

  /** Nothing where the settings leave it to variables that fail. */
  async confirm(points: readonly Point<PlusAddress>[], withinMs: number, ctx: DriverContext): Promise<Confirmation<PlusAddress>> {
    if (this.#settings.program_check === 0) return { doubtful: [], ageMs: undefined };
    return this.#looks.confirm(points, withinMs, ctx);
  }

  discover(ctx: DriverContext): AsyncGenerator<Discovered> {
    return discover(this.#program, ctx);
  }

  get granted(): string {
    const kind = this.#tsap === ENGINEERING ? "an engineering station's connection" : "a panel's connection";
    return `${kind} (${this.#tsap}), ${countOf(this.#told ?? DEFAULT_ITEMS, "variable")} in one request`;
  }

  warnings(): readonly Warning[] {
    const maxItems = this.#told ?? DEFAULT_ITEMS;
    const found: Warning[] = [...this.#help.warnings()];
    if (this.#tsap === ENGINEERING)
      found.push(
        warning(
          "engineering_connection_held",
          "the collector holds an engineering station's connection of the PLC (SIMATIC-ROOT-ES), which may keep TIA Portal out; set destination_tsap to SIMATIC-ROOT-HMI for a panel's",
        ),
      );
    if (this.#limits.maxItems < maxItems)
      found.push(
        warning(
          "device_limited",
          `the PLC has no memory for ${maxItems} variables in one request, although it promises them; the collector asks for ${this.#limits.maxItems}`,
        ),
      );
    const { problem } = this.#looks;
    if (problem !== undefined && this.#settings.program_check > 0)
      found.push(
        warning(
          "program_list_unreadable",
          this.#program.isSlow ? `${problem}, and since the list takes long, the collector reads it only when a session begins` : problem,
        ),
      );
    return found;
  }

  alive(): boolean {
    return this.#link.alive();
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  #isListOld(): boolean {
    const everyMs = (this.#settings.program_check || Number.POSITIVE_INFINITY) * 1000;
    return performance.now() - this.#program.listedMs >= Math.min(everyMs, HOPELESS_FOR_MS);
  }

  #isCheckDue(): boolean {
    return this.#settings.program_check > 0 && !this.#program.isSlow && this.#isListOld();
  }

  /** Throws FaultError of the scope `program`: the CPU has another one. */
  async #checkAndRead(request: PlusRead, ctx: DriverContext): Promise<readonly Reading[]> {
    const isChanged = await this.#help
      .ask(SYMBOLS, () => this.#program.list(ctx))
      .catch((error: unknown) => {
        // What is known may still be read.
        if (!(error instanceof FaultError)) throw error;
        ctx.log.debug({ err: error }, "the PLC does not list its blocks; whether it has another program is not known");
        return false;
      });
    if (isChanged)
      throw new FaultError("program_changed", "the PLC has another program than the variables were looked up in", { scope: "program" });
    return this.#readNow(request, ctx);
  }

  #readNow(request: PlusRead, ctx: DriverContext): Promise<readonly Reading[]> {
    const { points } = request;
    if (points.length > this.#limits.maxItems) return this.#readInParts(request, ctx);
    return this.#link.ask<readonly Reading[]>(
      ctx,
      () => describeRead(request),
      this.#draftOf(request),
      (value, cursor) => {
        if (!isError(value))
          return this.#judged(
            request,
            readable(request, () => readingsOf(request, cursor)),
            ctx,
          );
        if (isTooLarge(value) && points.length > 1) return this.#readSmaller(request, ctx);
        throw requestRefusal(value, describeRead(request));
      },
    );
  }

  #draftOf(request: PlusRead): Draft {
    const known = this.#drafts.get(request);
    if (known) return known;
    const draft = readItems(this.#opened.id, request.items, request.points.length, request.fields);
    this.#drafts.set(request, draft);
    return draft;
  }

  /** The CPU has less memory than it promised: it is asked for half as much from now on. Once the answer is taken. */
  async #readSmaller(request: PlusRead, ctx: DriverContext): Promise<readonly Reading[]> {
    await Promise.resolve();
    const { maxItems: before } = this.#limits;
    this.#learn(Math.max(1, request.points.length >> 1));
    return this.#readInParts(request, ctx).catch((error: unknown) => {
      // One variable alone has no room either: it is not about size.
      if (error instanceof FaultError && error.scope === "busy") this.#learn(before);
      throw error;
    });
  }

  #learn(maxItems: number): void {
    this.#learned.learn({ maxItems });
    this.#limits = this.#limitsNow();
  }

  /** What was planned for larger requests than are taken now. */
  async #readInParts({ points }: PlusRead, ctx: DriverContext): Promise<readonly Reading[]> {
    const byIndex = new Map<number, Reading>();
    for (const part of plan(points, this.#limits))
      for (const [i, reading] of (await this.#readNow(part, ctx)).entries()) byIndex.set(part.points[i]?.index ?? -1, reading);
    return points.map(({ index }) => byIndex.get(index) ?? NOT_LOOKED_UP);
  }

  /** Throws FaultError of the scope `program`: all has to be looked up again. */
  #judged(
    request: PlusRead,
    { readings, moved, denied }: ReadResult,
    ctx: DriverContext,
  ): readonly Reading[] | Promise<readonly Reading[]> {
    if (readings.some(({ quality }) => quality !== "bad")) this.#noteRead();
    this.#acquit(request, moved);
    if (moved.length > 0) this.#lookAgain(request, moved);
    const isDoubtful = denied === request.points.length && performance.now() - (this.#rightsAskedMs ?? -RIGHTS_AGAIN_MS) >= RIGHTS_AGAIN_MS;
    return isDoubtful ? this.#unlessWithoutRights(readings, ctx) : readings;
  }

  /**
   * A denied variable says nothing of the others: the CPU is asked whether the session has any rights. Throws ReasonError: it has none, and
   * may have some after another log-in. Once the answer is taken.
   */
  async #unlessWithoutRights(readings: readonly Reading[], ctx: DriverContext): Promise<readonly Reading[]> {
    await Promise.resolve();
    this.#rightsAskedMs = performance.now();
    await checkRights(this.#link, this.#opened.id, ctx);
    return readings;
  }

  /** A variable was read in this program, in this session or one before it. */
  #noteRead(): void {
    if (this.#readEpoch === this.epoch) return;
    this.#readEpoch = this.epoch;
    this.#memory?.set(READ, this.epoch);
  }

  /** What is read again after a look-up is looked up another time when it moves another time. */
  #acquit(request: PlusRead, moved: readonly number[]): void {
    if (this.#suspects.size === 0 || this.#answered.has(request)) return;
    this.#answered.add(request);
    const refused = new Set(moved);
    const read = new Set(request.points.filter((_, place) => !refused.has(place)).map(({ address }) => describePoint(address)));
    this.#suspects = new Set([...this.#suspects].filter((name) => !read.has(name)));
    for (const name of read) this.#hopeless.delete(name);
  }

  /** Throws FaultError, unless it was tried for all of these a short while ago. */
  #lookAgain({ points }: PlusRead, moved: readonly number[]): void {
    const nowMs = performance.now();
    if (nowMs - this.#hopelessSinceMs > HOPELESS_FOR_MS || this.#hopeless.size > MAX_HOPELESS) {
      this.#hopeless.clear();
      this.#hopelessSinceMs = nowMs;
    }
    const named = moved.flatMap((place) => (points[place] ? [describePoint(points[place].address)] : []));
    for (const name of named) if (this.#suspects.has(name)) this.#hopeless.add(name);
    const fresh = named.filter((name) => !this.#hopeless.has(name));
    if (fresh.length === 0) return;
    this.#suspects = new Set(fresh);
    this.#answered = new WeakSet();
    this.#program.forget();
    throw new FaultError("program_changed", `${fresh[0]} is no longer where it was: the PLC may have another program`, {
      scope: "program",
    });
  }
}

/** An answer that is not understood is about what was asked for: where messages begin and end is as clear as before. */
function readable(request: PlusRead, readings: () => ReadResult): ReadResult {
  try {
    return readings();
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    throw new FaultError("device_error", `the PLC's answer to ${describeRead(request)} cannot be read: ${error.message}`, { cause: error });
  }
}

const limitsFor = (maxItems: number): PlusLimits => ({ maxPoints: MAX_POINTS, maxBytes: MAX_ANSWER_BYTES, inFlight: 1, maxItems });
