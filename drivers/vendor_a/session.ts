import { createYielder, inSlices } from "../../src/base/timer.ts";
import { messageOf } from "../../src/model/failure.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { Reading } from "../../src/model/value.ts";
import type { Warning } from "../../src/model/warning.ts";
import type { Discovered, DriverContext, Point, Prepared, Session } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import type { SilentHelp } from "../lib/silent-help.ts";
import type { Take } from "../lib/tagged.ts";
import { emptyReply, fragmentRequest, multipleRequest, type Reply, SERVICE, STATUS, walkMultiple } from "./cip.ts";
import { Discovery } from "./discover.ts";
import { HelpAgain, type Questions } from "./help-again.ts";
import { keepOpen } from "./keep-open.ts";
import type { CipLink, Packet } from "./link.ts";
import { againAfter, lookUp } from "./look-up.ts";
import { Messenger } from "./messenger.ts";
import { isVariableRead } from "./omron/plan.ts";
import { type FileAddress, fileText } from "./pccc/address.ts";
import { EnvelopedChannel } from "./pccc/channel.ts";
import { answerBytesOf } from "./pccc/family.ts";
import { noFiles, placeFiles } from "./pccc/prepare.ts";
import { FileReader } from "./pccc/reader.ts";
import { type CipItem, type CipRead, describeRead, maxDataBytes, typeHeaderBytes } from "./plan.ts";
import { MARK, ProgramWatch } from "./program.ts";
import { changeOf, Outcome } from "./readings.ts";
import { refusalOf } from "./refusals.ts";
import { IDENTITY, type Target, targetWords } from "./route.ts";
import type { CipSettings } from "./settings.ts";
import { LIST, SymbolList, wholeRefusal } from "./symbols.ts";
import { TEMPLATE, Templates } from "./templates.ts";
import type { Family } from "./types.ts";
import { type AnyAddress, type AnyRead, byVariantSteps, isFileRead, type VendorALimits } from "./variants.ts";

const MAX_POINTS = 65_536;
/** Requests that the agent may have under way at once. */
const IN_FLIGHT = 8;
/** A tag that is missing is looked for again, where nothing says that the program changed. */
const LOOK_AGAIN_MS = 60_000;
const KEY_LOGGED = "logged";
/** Data bytes of one answer from a file that is mapped to a tag. */
const MAPPED_BYTES = answerBytesOf({ family: "logix", name: "" }, true);

export class CipSession implements Session<AnyAddress, AnyRead, VendorALimits> {
  readonly #connection: Connection;
  readonly #messenger: Messenger;
  readonly #program: ProgramWatch;
  readonly #list: SymbolList;
  readonly #templates: Templates;
  readonly #family: Family;
  readonly #target: Target;
  readonly #ctx: DriverContext;
  readonly #link: CipLink;
  readonly #endKeeping: () => void;
  readonly #help: SilentHelp;
  readonly #one = emptyReply();
  #takesPackets: boolean;
  readonly #files: FileReader;
  #limits: VendorALimits;
  #packets = new WeakMap<CipRead, Packet>();
  /** What the structures that are known belong to. */
  #templatesEpoch: string | undefined;
  #checking: Promise<boolean> | undefined;
  #closing: Promise<void> | undefined;

  private constructor(
    connection: Connection,
    link: CipLink,
    messenger: Messenger,
    target: Target,
    program: ProgramWatch,
    help: SilentHelp,
    ctx: DriverContext,
  ) {
    this.#connection = connection;
    this.#link = link;
    this.#messenger = messenger;
    this.#program = program;
    this.#target = target;
    this.#list = new SymbolList(messenger);
    this.#family = target.isMicro800 ? "micro800" : "logix";
    this.#templates = new Templates(messenger, this.#family);
    this.#ctx = ctx;
    this.#help = help;
    this.#takesPackets = !target.isMicro800;
    this.#files = new FileReader(new EnvelopedChannel(link, target.route), ctx.device);
    this.#limits = this.#limitsNow();
    const again = new HelpAgain(this.#questions(), ctx);
    this.#endKeeping = keepOpen({
      link,
      ctx,
      alive: () => this.alive(),
      ask: (bounded) => messenger.keepOpen(bounded),
      askOther: () => again.begin(),
    });
  }

  /** `help`: what the device is known to be silent about. Throws ReasonError: the route or the connection is refused, in words that name the status. */
  static async open(
    connection: Connection,
    link: CipLink,
    target: Target,
    { settings, help }: { readonly settings: CipSettings; readonly help: SilentHelp },
    ctx: DriverContext,
  ): Promise<CipSession> {
    const messenger = new Messenger(link, target, settings, help);
    await messenger.open(ctx);
    const serial = target.identity?.serial.toString(16) ?? "unknown";
    const program = new ProgramWatch(messenger, ctx.device, serial);
    await program.check(ctx);
    logOnce(targetWords(target), ctx);
    return new CipSession(connection, link, messenger, target, program, help, ctx);
  }

  get limits(): VendorALimits {
    return this.#limits;
  }

  get epoch(): string {
    return this.#program.epoch;
  }

  // Not async: a readout of hundreds of requests has a promise fewer for each.
  read(request: AnyRead, ctx: DriverContext): Promise<readonly Reading[]> {
    if (isFileRead(request)) return this.#files.read(request, ctx);
    if (isVariableRead(request)) throw new TypeError("a read of an NJ or NX controller in a session with tags");
    if (this.#program.isDue || this.#messenger.isDue) return this.#readAfterCheck(request, ctx);
    return this.#readNow(request, ctx);
  }

  async *prepare(points: readonly Point<AnyAddress>[], ctx: DriverContext): AsyncGenerator<readonly Prepared<AnyAddress>[]> {
    const { tags, files } = await inSlices(byVariantSteps(points), createYielder());
    yield* this.#target.isMicro800 ? noFiles(files) : this.#mappedFiles(files);
    if (tags.length === 0) return;
    await this.#ready(ctx);
    const retryAfterMs = this.#program.hasMark ? undefined : LOOK_AGAIN_MS;
    const known = { messenger: this.#messenger, list: this.#list, templates: this.#templates, family: this.#family };
    for await (const found of lookUp(tags, { ...known, epoch: this.epoch }, ctx)) yield againAfter(found, retryAfterMs);
  }

  /** Files that are mapped to tags. A PLC-5 has the words of a float in another order: it may be one where nothing says what it is. */
  async *#mappedFiles(files: readonly Point<FileAddress>[]): AsyncGenerator<readonly Prepared<FileAddress>[]> {
    const isKnown = this.#target.identity !== undefined;
    const [floats, others] = [files.filter((point) => isFloat(point) && !isKnown), files.filter((point) => !isFloat(point) || isKnown)];
    if (floats.length > 0) yield floats.map((point) => ({ point, refusal: unknownOrder(point.address), retryAfterMs: LOOK_AGAIN_MS }));
    yield* placeFiles(others, "logix");
  }

  async *discover(ctx: DriverContext): AsyncGenerator<Discovered> {
    await this.#ready(ctx);
    yield* new Discovery(this.#list, this.#templates, this.#family, ctx).run();
  }

  get about(): string {
    return `the controller is ${targetWords(this.#target)}`;
  }

  get granted(): string {
    return `${this.#link.open ? "a connection with messages" : "no connection, messages"} of ${this.#limits.messageBytes} bytes`;
  }

  warnings(): readonly Warning[] {
    const { warning } = this.#messenger;
    return [...(warning === undefined ? [] : [warning]), ...this.#help.warnings()];
  }

  alive(): boolean {
    return this.#connection.alive();
  }

  close(): Promise<void> {
    this.#endKeeping();
    this.#closing ??= this.#messenger.close(this.#ctx);
    return this.#closing;
  }

  #limitsNow(): VendorALimits {
    const { messageBytes } = this.#messenger;
    const maxItems = this.#takesPackets ? MAX_POINTS : 1;
    return {
      maxPoints: MAX_POINTS,
      maxBytes: maxDataBytes(messageBytes),
      inFlight: IN_FLIGHT,
      messageBytes,
      maxItems,
      fileBytes: MAPPED_BYTES,
    };
  }

  /** What was made for messages of another size, or for another connection, is made again. */
  #renew(): void {
    this.#limits = this.#limitsNow();
    this.#packets = new WeakMap();
  }

  async #readAfterCheck(request: CipRead, ctx: DriverContext): Promise<readonly Reading[]> {
    if (await this.#ready(ctx)) throw otherProgram("what class AC says of its program has changed");
    return this.#readNow(request, ctx);
  }

  /** Opens and checks what is due; requests that are under way at once wait for the same. True: the controller has another program. */
  #ready(ctx: DriverContext): Promise<boolean> {
    this.#checking ??= this.#check(ctx).finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #check(ctx: DriverContext): Promise<boolean> {
    if (this.#messenger.isDue) {
      await this.#messenger.open(ctx);
      this.#renew();
    }
    const isChanged = this.#program.isDue && (await this.#program.check(ctx));
    if (this.#templatesEpoch !== this.epoch) {
      this.#templatesEpoch = this.epoch;
      this.#templates.forget();
    }
    return isChanged;
  }

  #readNow(request: CipRead, ctx: DriverContext): Promise<readonly Reading[]> {
    const [item, ...others] = request.items;
    if (item && others.length === 0 && item.bytes > this.#limits.maxBytes) return this.#readEach(request, ctx);
    const packet = this.#packetFor(request, ctx);
    return packet ? this.#readAtOnce(request, packet, ctx) : this.#readEach(request, ctx);
  }

  /** Undefined: it is longer than a message may be, or a packet that the controller does not take. */
  #packetFor(request: CipRead, ctx: DriverContext): Packet | undefined {
    const known = this.#packets.get(request);
    if (known) return known;
    const { items } = request;
    const [first] = items;
    if (!first || (items.length > 1 && !this.#takesPackets)) return undefined;
    const cip = items.length === 1 ? first.request : multipleRequest(items.map((item) => item.request));
    if (cip.length > this.#limits.messageBytes && items.length > 1) return undefined;
    const packet = this.#messenger.packet(cip, ctx.timeouts.answerMs);
    this.#packets.set(request, packet);
    return packet;
  }

  #readAtOnce(request: CipRead, packet: Packet, ctx: DriverContext): Promise<readonly Reading[]> {
    const { items } = request;
    const take: Take<Reply, readonly Reading[]> = (reply, done, refuse) => {
      if (packet.service !== SERVICE.multiple) {
        const [item] = items;
        const outcome = new Outcome(request);
        if (item) outcome.take(item, reply);
        this.#finish(outcome, ctx, done, refuse);
        return undefined;
      }
      if (reply.status !== STATUS.ok && reply.status !== STATUS.embedded) {
        this.#packetRefused(request, reply, ctx, done, refuse);
        return undefined;
      }
      const outcome = new Outcome(request);
      const wrong = walkMultiple(reply, items.length, this.#one, (i) => {
        const item = items[i];
        if (item) outcome.take(item, this.#one);
      });
      if (wrong === undefined) this.#finish(outcome, ctx, done, refuse);
      return wrong;
    };
    return this.#messenger.send(ctx, () => describeRead(request), packet, take);
  }

  /** A controller that takes no packets is asked for each tag by itself from then on; any other refusal is the request's. */
  #packetRefused(
    request: CipRead,
    { status, extended }: Reply,
    ctx: DriverContext,
    done: (value: Promise<readonly Reading[]>) => void,
    refuse: (error: Error) => void,
  ): void {
    if (status !== STATUS.notSupported) {
      refuse(wholeRefusal(status, extended, describeRead(request)));
      return;
    }
    this.#takesPackets = false;
    this.#renew();
    // Once the request that was answered is no longer under way: what is asked for next has its place.
    done(Promise.resolve().then(() => this.#readEach(request, ctx)));
  }

  #finish(
    outcome: Outcome,
    ctx: DriverContext,
    done: (value: readonly Reading[] | Promise<readonly Reading[]>) => void,
    refuse: (error: Error) => void,
  ): void {
    if (outcome.changed || outcome.cut) done(Promise.resolve().then(() => this.#complete(outcome, ctx)));
    else
      try {
        done(outcome.readings());
      } catch (error) {
        refuse(error instanceof Error ? error : new Error(messageOf(error)));
      }
  }

  /** What the first answer left over. */
  async #complete(outcome: Outcome, ctx: DriverContext): Promise<readonly Reading[]> {
    for (const item of outcome.cut ?? []) await this.#readLong(item, outcome, ctx);
    for (const { item, words } of outcome.changed ?? []) await this.#changed(item, words, outcome, ctx);
    return outcome.readings();
  }

  /** Each item in a request of its own, or in several. */
  async #readEach(request: CipRead, ctx: DriverContext): Promise<readonly Reading[]> {
    const outcome = new Outcome(request);
    for (const item of request.items) {
      if (item.bytes > this.#limits.maxBytes) await this.#readLong(item, outcome, ctx);
      else
        await this.#messenger.ask<void>(
          ctx,
          () => item.name,
          item.request,
          (reply, done) => {
            outcome.take(item, reply);
            done();
            return undefined;
          },
        );
    }
    return this.#complete(outcome, ctx);
  }

  /** Read Tag Fragmented: the parts are not of one instant. */
  async #readLong(item: CipItem, outcome: Outcome, ctx: DriverContext): Promise<void> {
    const data = Buffer.alloc(item.bytes);
    for (let length = 0, isMore = true; isMore; ) {
      const part = await this.#readPart(item, length, data, ctx);
      if (part instanceof FaultError) {
        outcome.refuse(item, part);
        return;
      }
      if ("changed" in part) {
        outcome.change(item, part.changed);
        return;
      }
      length += part.bytes;
      isMore = part.isMore && length < item.bytes;
      if (!isMore) outcome.fill(item, data, 0, Math.min(length, item.bytes));
    }
  }

  #readPart(item: CipItem, from: number, data: Buffer, ctx: DriverContext): Promise<Part> {
    const request = fragmentRequest(item.path, item.count, from);
    const describe = () => `${item.name} from byte ${from} on`;
    return this.#messenger.ask<Part>(ctx, describe, request, ({ bytes, at, end, status, extended }, done) => {
      if (status !== STATUS.ok && status !== STATUS.partial) {
        done(refusalOf(status, extended, item.name));
        return undefined;
      }
      const changed = changeOf(item, bytes, at, end);
      const dataAt = at + typeHeaderBytes(item.code);
      if (changed !== undefined) done({ changed });
      else if (end <= dataAt) done(new FaultError("device_error", `${item.name}: the controller sends nothing from byte ${from} on`));
      else {
        bytes.copy(data, from, dataAt, end);
        done({ bytes: end - dataAt, isMore: status === STATUS.partial });
      }
      return undefined;
    });
  }

  /** Another type than was looked up: the program is another one, or the controller says two things of one tag. */
  async #changed(item: CipItem, words: string, outcome: Outcome, ctx: DriverContext): Promise<void> {
    const what = `${item.name} has ${words}`;
    if ((await this.#program.check(ctx)) || this.#program.mayHaveChanged()) throw otherProgram(what);
    outcome.refuse(item, new FaultError("type_mismatch", `${what}; what the controller says of its tags does not fit what it sends`));
  }

  #questions(): Questions {
    const help = this.#help;
    return {
      help,
      about: (kind) => {
        if (kind === MARK.kind) return (ctx) => this.#program.check(ctx);
        if (kind === LIST.kind) return (ctx) => this.#list.page(undefined, 0, ctx);
        if (kind.startsWith(TEMPLATE)) return (ctx) => this.#templates.askAgain(Number(kind.slice(TEMPLATE.length)), ctx);
        return kind.startsWith(IDENTITY) ? (ctx) => this.#messenger.nameAgain(kind, ctx) : undefined;
      },
      answered: (kind) => {
        if (kind === LIST.kind || kind.startsWith(TEMPLATE)) this.#program.lookAgain();
      },
    };
  }
}

type Part = { readonly bytes: number; readonly isMore: boolean } | { readonly changed: string } | FaultError;

const isFloat = ({ address: { letter } }: Point<FileAddress>): boolean => letter === "F";

const unknownOrder = (address: FileAddress): FaultError =>
  new FaultError(
    "device_error",
    `${fileText(address)}: the controller does not say what it is, and a PLC-5 has the words of a float in another order than others: set family to the kind of the controller`,
  );

export const otherProgram = (why: string): FaultError =>
  new FaultError("program_changed", `the controller has another program: ${why}; tags are looked up again`, { scope: "program" });

export function logOnce(words: string, { log, device }: DriverContext): void {
  if (device?.get(KEY_LOGGED) === words) return;
  device?.set(KEY_LOGGED, words);
  log.info({}, `connected to ${words}`);
}
