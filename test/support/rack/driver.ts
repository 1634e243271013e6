import { z } from "zod";
import type { Discovered, DriverContext, Point, Prepared } from "../../../drivers/driver.ts";
import { type ConnectInput, defineDriver, type Session } from "../../../drivers/driver.ts";
import { createDeviceMemory, IdPool } from "../../../drivers/lib/ids.ts";
import { type Datagrams, openUdp } from "../../../drivers/lib/udp.ts";
import { FaultError, PartialRefusal, type RefusedItem } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";
import { type Warning, warning } from "../../../src/model/warning.ts";
import { decode, locate, parseAddress, parseType, type RackAddress, typeOfSymbol } from "./address.ts";
import * as frames from "./frames.ts";
import { describe, plan, type RackItem, type RackLimits, type RackRead } from "./plan.ts";

const settingsSchema = z.strictObject({
  max_gap: z.int().min(0).max(100).default(4).describe("Unused words that one item may bridge"),
  retransmissions: z.int().min(0).max(9).default(2).describe("So many times more a request is sent within its answer time-out"),
  local_port: z.int().min(0).max(65_535).default(0).describe("UDP port of this machine; 0: any"),
});
type RackSettings = z.infer<typeof settingsSchema>;

const detailsSchema = z.object({ type: z.literal("rack").optional(), host: z.string(), port: z.int() });
type RackDetails = z.infer<typeof detailsSchema>;

/** An answer may come this much later. */
const LATE_MS = 30_000;
const MAX_IN_FLIGHT = 16;
const MAX_POINTS = 1000;
const MAX_PAGES = 10_000;
const idsOf = createDeviceMemory(() => new IdPool(16, LATE_MS));

const ITEM_REFUSALS: Readonly<Record<number, readonly ["not_found" | "access_denied", string]>> = {
  1: ["not_found", "the device has no such block (code 1)"],
  2: ["not_found", "words of it are not there (code 2)"],
  3: ["access_denied", "words of it are protected (code 3)"],
};

const endpoint = ({ host, port }: RackDetails) => ({ host, port, transport: "udp" as const });

/** What the device refuses as a whole, in the scopes of the contract; `learn` takes a number that comes with it. */
function refusalOf(status: number, what: string): FaultError | ReasonError {
  switch (status) {
    case frames.STATUS.busy:
      return new FaultError("device_error", `the rack is busy (status 1) at ${what}`, { scope: "busy" });
    case frames.STATUS.locked:
      return new FaultError("access_denied", "the rack is locked (status 2): release it with its key switch", { scope: "everything" });
    case frames.STATUS.program:
      return new FaultError("stale", "the rack has another program (status 3)", { scope: "program" });
    default:
      return new ReasonError("UNKNOWN", `the rack answered ${what} with status ${status}`, { condition: "protocol_violation" });
  }
}

class RackSession implements Session<RackAddress, RackRead, RackLimits> {
  readonly #datagrams: Datagrams;
  readonly #greeting: frames.Greeting;
  readonly #settings: RackSettings;
  #program: number;
  #limits: RackLimits;

  constructor(datagrams: Datagrams, greeting: frames.Greeting, settings: RackSettings, maxItems: number) {
    this.#datagrams = datagrams;
    this.#greeting = greeting;
    this.#settings = settings;
    this.#program = greeting.program;
    this.#limits = this.#limitsFor(maxItems);
  }

  static async connect({ details, settings }: ConnectInput<RackDetails, RackSettings>, ctx: DriverContext): Promise<RackSession> {
    const where = endpoint(details);
    const datagrams = await openUdp(where, ctx, {
      fence: frames.fence,
      idOf: frames.idOf,
      ids: (address) => idsOf(`${address}:${where.port}`),
      maxInFlight: MAX_IN_FLIGHT,
      retransmissions: settings.retransmissions,
      tap: ctx.tap,
      ...(settings.local_port > 0 && { localPort: settings.local_port }),
    });
    try {
      const body = await ask(datagrams, ctx, "hello", "the greeting", frames.helloRequest, (bytes) => frames.parseHello(bytes));
      const learned = Number(ctx.device?.get("max_items") ?? body.maxItems);
      return new RackSession(datagrams, body, settings, Math.min(body.maxItems, learned));
    } catch (error) {
      await datagrams.close();
      throw error;
    }
  }

  get limits(): RackLimits {
    return this.#limits;
  }

  get epoch(): string {
    return `program ${this.#program}`;
  }

  #limitsFor(maxItems: number): RackLimits {
    const { maxBytes, inFlight } = this.#greeting;
    return { maxPoints: MAX_POINTS, maxBytes, inFlight: Math.min(inFlight, MAX_IN_FLIGHT), maxItems, maxGap: this.#settings.max_gap };
  }

  #ask<T>(ctx: DriverContext, kind: frames.Kind, what: string, request: (id: number) => Buffer, parse: (body: Buffer) => T): Promise<T> {
    return ask(this.#datagrams, ctx, kind, what, request, parse, (program) => {
      this.#program = program;
    });
  }

  /** Names go to the device a page at a time; each page is a batch. */
  async *prepare(points: readonly Point<RackAddress>[], ctx: DriverContext): AsyncGenerator<readonly Prepared<RackAddress>[]> {
    const bySymbol = Map.groupBy(points, ({ address }) => address.symbol);
    const names = [...bySymbol.keys()];
    for (let at = 0; at < names.length; at += this.#greeting.namesPerPage) {
      const page = names.slice(at, at + this.#greeting.namesPerPage);
      const program = this.#program;
      const found = await this.#ask(
        ctx,
        "resolve",
        `${page.length} symbols from ${page[0]} on`,
        (id) => frames.resolveRequest(id, program, page),
        (body) => frames.parseResolve(body, page.length),
      );
      yield page.flatMap((name, i) => (bySymbol.get(name) ?? []).map((point) => prepared(point, found[i], program)));
    }
  }

  async read(request: RackRead, ctx: DriverContext): Promise<readonly Reading[]> {
    const answers = await this.#readItems(request, ctx);
    const readings: (Reading | undefined)[] = new Array(request.points.length).fill(undefined);
    const refused: RefusedItem[] = [];
    for (const [i, item] of request.items.entries()) {
      const answer = answers[i];
      if (answer && "data" in answer) fillFrom(answer.data, item, request.points, readings);
      else {
        const [fault, words] = ITEM_REFUSALS[answer?.refusal ?? 0] ?? ["device_error", `refused (code ${answer?.refusal})`];
        refused.push({ places: item.places, refusal: new FaultError(fault, `${describe({ ...request, items: [item] })}: ${words}`) });
      }
    }
    const [first, ...others] = refused;
    if (!first) return readings.filter((reading) => reading !== undefined);
    if (refused.length === request.items.length) throw first.refusal;
    throw new PartialRefusal(readings, [first, ...others]);
  }

  /** In as many datagrams as the device takes. */
  async #readItems({ program, items }: RackRead, ctx: DriverContext): Promise<readonly frames.ItemAnswer[]> {
    const answers: frames.ItemAnswer[] = [];
    while (answers.length < items.length) {
      const part = items.slice(answers.length, answers.length + this.#limits.maxItems);
      const what = describe({ points: [], program, items: part });
      const answer = await this.#ask<readonly frames.ItemAnswer[] | number>(
        ctx,
        "read",
        what,
        (id) => frames.readRequest(id, program, part),
        (body) => frames.parseRead(body, part),
      ).catch((error: unknown) => {
        if (error instanceof TooManyItems && error.most >= 1 && error.most < part.length) return error.most;
        throw error;
      });
      if (typeof answer === "number") {
        ctx.device?.set("max_items", answer);
        this.#limits = this.#limitsFor(answer);
      } else answers.push(...answer);
    }
    return answers;
  }

  async *discover(ctx: DriverContext): AsyncGenerator<Discovered> {
    let from = 0;
    let done = 0;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = await this.#ask(ctx, "list", `symbols from ${from} on`, (id) => frames.listRequest(id, from), frames.parseList);
      done += page.symbols.length;
      ctx.progress?.(done, page.total);
      for (const symbol of page.symbols) yield discovered(symbol);
      if (page.next === 0) return;
      if (page.next <= from)
        throw new ReasonError("UNKNOWN", "the rack lists its symbols in a circle", { condition: "protocol_violation" });
      from = page.next;
    }
  }

  warnings(): readonly Warning[] {
    const { maxItems } = this.#limits;
    if (maxItems === this.#greeting.maxItems) return [];
    return [
      warning(
        "device_limited",
        `the rack takes ${maxItems} items in one request, fewer than the ${this.#greeting.maxItems} that it promises`,
      ),
    ];
  }

  alive(): boolean {
    return this.#datagrams.alive();
  }

  close(): Promise<void> {
    return this.#datagrams.close();
  }
}

class TooManyItems extends ReasonError {
  readonly most: number;
  constructor(most: number, what: string) {
    super("UNKNOWN", `the rack takes ${most} items in one request, and refused ${what}`, { condition: "protocol_violation" });
    this.most = most;
  }
}

/** One request; what its answer's body says. Throws FaultError: the device refused it; ReasonError: it has no answer, or a wrong one. */
function ask<T>(
  datagrams: Datagrams,
  ctx: DriverContext,
  kind: frames.Kind,
  what: string,
  request: (id: number) => Buffer,
  parse: (body: Buffer) => T,
  onProgram: (program: number) => void = () => {},
): Promise<T> {
  return datagrams.request(ctx, {
    frame: request,
    take(datagram) {
      const answer = frames.openAnswer(kind, datagram);
      if (!answer) return undefined;
      const { status, body } = answer;
      if (status === frames.STATUS.ok) return parse(body);
      if (status === frames.STATUS.tooMany) throw new TooManyItems(frames.parseNumber(body, 1), what);
      if (status === frames.STATUS.program) onProgram(frames.parseNumber(body, 4));
      throw refusalOf(status, what);
    },
    describe: () => what,
  });
}

function prepared(point: Point<RackAddress>, found: frames.Resolved | undefined, program: number): Prepared<RackAddress> {
  const { symbol } = point.address;
  if (!found) return { point, refusal: new FaultError("not_found", `the rack's program has no symbol ${symbol}`) };
  try {
    const { place, type } = locate(point.address, point.type, found, program);
    return { point, address: { ...point.address, place }, type };
  } catch (error) {
    if (error instanceof FaultError) return { point, refusal: error };
    throw error;
  }
}

function fillFrom(
  data: Buffer,
  { offset, places }: RackItem,
  points: readonly Point<RackAddress>[],
  readings: (Reading | undefined)[],
): void {
  for (const at of places) {
    const point = points[at];
    const place = point?.address.place;
    if (point && place) readings[at] = decode(data, (place.offset - offset) * 2, place, point.type);
  }
}

function discovered(symbol: frames.ListedSymbol): Discovered {
  const path = symbol.name.split(".");
  return {
    address: symbol.name,
    name: path.at(-1) ?? symbol.name,
    path: path.slice(0, -1),
    type: typeOfSymbol(symbol),
    ...(symbol.unit !== "" && { unit: symbol.unit }),
  };
}

/**
 * Reads the simulated device of `simulator.ts`: what a driver over datagrams is, with items that are refused one by one, symbols that are
 * looked up, type words of its own, and limits that it learns.
 */
export default defineDriver<RackDetails, RackSettings, RackAddress, RackRead, RackLimits>({
  type: "rack",
  title: "Rack (tests only)",
  details: detailsSchema,
  settings: settingsSchema,
  maxConnections: 1,
  canDiscover: true,
  endpoint,
  keepsConnection: () => true,
  parseType,
  describe,
  parseAddress,
  plan,
  connect: (input, ctx) => RackSession.connect(input, ctx),
});
