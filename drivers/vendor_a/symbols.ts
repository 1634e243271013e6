import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Help } from "../lib/silent-help.ts";
import { type Reply, STATUS, symbolsRequest } from "./cip.ts";
import type { Messenger } from "./messenger.ts";
import { refusalOf } from "./refusals.ts";
import { parseSymbolType, type SymbolType } from "./template.ts";

/** A tag or a program as the controller lists it. Rockwell 1756-PM020, "Symbol Object". */
export interface ListedSymbol {
  readonly instance: number;
  readonly name: string;
  readonly type: SymbolType;
  /** Elements on the wire; empty: no array. */
  readonly dimensions: readonly number[];
  /** False: its External Access is None. */
  readonly isReadable: boolean;
}

export interface Page {
  readonly symbols: readonly ListedSymbol[];
  /** The place where the next page begins; undefined: there is none. */
  readonly next: number | undefined;
}

const NAME = 1;
const TYPE = 2;
const DIMENSIONS = 8;
const ACCESS = 10;
/** Firmware before 18 has no external access. */
const WITHOUT_ACCESS = [NAME, TYPE, DIMENSIONS];
const WITH_ACCESS = [...WITHOUT_ACCESS, ACCESS];
const ACCESS_MASK = 3;
const NO_ACCESS = 3;
const MAX_DIMENSIONS = 3;

/** A controller that has no list of its tags, or no such program. */
export class NotListed extends Error {}

export const LIST: Help = {
  kind: "list",
  words:
    "the controller gives no answer to the question for the list of its tags: tags are looked up by name, which takes a request each, and arrays and structures as a whole are not read",
};

/** The device does not know what a page was asked for. */
const NOT_LISTED: ReadonlySet<number> = new Set([0x04, 0x05, 0x08, 0x16, 0x26]);
const LACKS_ATTRIBUTE: ReadonlySet<number> = new Set([0x09, 0x0a, 0x14, 0x1c, 0x1d]);

/** Lists symbols a page at a time. */
export class SymbolList {
  readonly #messenger: Messenger;
  #attributes: readonly number[] = WITH_ACCESS;

  constructor(messenger: Messenger) {
    this.#messenger = messenger;
  }

  /**
   * The symbols of a program (`Program:Main`), or of the controller, from an instance on. Throws NotListed; FaultError: the controller refuses;
   * ReasonError: it breaks the protocol or does not answer.
   */
  async page(program: string | undefined, from: number, ctx: DriverContext): Promise<Page> {
    const page = await this.#ask(program, from, ctx).catch((error: unknown) => {
      if (!(error instanceof LacksAttribute) || this.#attributes === WITHOUT_ACCESS) throw error;
      this.#attributes = WITHOUT_ACCESS;
      return this.#ask(program, from, ctx);
    });
    if (page.next !== undefined && page.next <= from)
      throw new ReasonError("UNKNOWN", `the controller lists its tags in a circle, from ${from} on`, { condition: "protocol_violation" });
    return page;
  }

  async #ask(program: string | undefined, from: number, ctx: DriverContext): Promise<Page> {
    const attributes = this.#attributes;
    const what = `the list of the tags of ${program ?? "the controller"} from ${from} on`;
    const page = await this.#messenger.askHelp<Page>(
      LIST,
      ctx,
      () => what,
      symbolsRequest(program, from, attributes),
      (reply, done, refuse) => {
        const { status, extended } = reply;
        if (status !== STATUS.ok && status !== STATUS.partial) {
          if (NOT_LISTED.has(status)) refuse(new NotListed(refusalOf(status, extended, what).message));
          else if (LACKS_ATTRIBUTE.has(status)) refuse(new LacksAttribute("device_error", refusalOf(status, extended, what).message));
          else refuse(wholeRefusal(status, extended, what));
          return undefined;
        }
        const symbols = parseSymbols(reply, attributes.includes(ACCESS));
        if (typeof symbols === "string") return symbols;
        done({ symbols, next: status === STATUS.ok ? undefined : (symbols.at(-1)?.instance ?? -1) + 1 });
        return undefined;
      },
    );
    if (!page) throw new NotListed(`${what}: no answer`);
    return page;
  }
}

class LacksAttribute extends FaultError {}

/** What is refused without naming a tag is refused whatever is asked. */
export function wholeRefusal(status: number, extended: number | undefined, what: string): FaultError {
  const refusal = refusalOf(status, extended, what);
  return refusal.fault === "access_denied" ? new FaultError(refusal.fault, refusal.message, { scope: "everything" }) : refusal;
}

/** A string: what about the page breaks the protocol. Pure. */
export function parseSymbols(
  { bytes, at, end }: Pick<Reply, "bytes" | "at" | "end">,
  hasAccess: boolean,
): readonly ListedSymbol[] | string {
  const symbols: ListedSymbol[] = [];
  const restBytes = 2 + MAX_DIMENSIONS * 4 + (hasAccess ? 1 : 0);
  let next = at;
  while (next < end) {
    const nameAt = next + 6;
    const nameEnd = nameAt <= end ? nameAt + bytes.readUInt16LE(nameAt - 2) : end + 1;
    if (nameEnd + restBytes > end) return `a list of tags whose last one goes ${nameEnd + restBytes - end} bytes beyond its end`;
    const type = parseSymbolType(bytes.readUInt16LE(nameEnd));
    const dimensions = Array.from({ length: type.dimensions }, (_, i) => bytes.readUInt32LE(nameEnd + 2 + i * 4));
    const access = hasAccess ? (bytes[nameEnd + restBytes - 1] ?? 0) & ACCESS_MASK : 0;
    symbols.push({
      instance: bytes.readUInt32LE(next),
      name: bytes.toString("latin1", nameAt, nameEnd),
      type,
      dimensions,
      isReadable: access !== NO_ACCESS,
    });
    next = nameEnd + restBytes;
  }
  return symbols;
}
