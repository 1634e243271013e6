import { FaultError } from "../../src/model/fault.ts";
import type { DriverContext } from "../driver.ts";
import type { Help } from "../lib/silent-help.ts";
import { definitionRequest, STATUS, templateRequest } from "./cip.ts";
import type { Messenger } from "./messenger.ts";
import { templateRefusal } from "./refusals.ts";
import { type Draft, makeStructure, nestedIds, parseDefinition, parseTemplateHead, type TemplateHead } from "./template.ts";
import { type Family, type Structure, valuesIn } from "./types.ts";

/** Structures within each other, and structures that are kept. */
const MAX_DEPTH = 16;
const MAX_TEMPLATES = 4096;
const MAX_ASKED = 0xfff0;
/** Members that are kept in all, and values in one structure. */
const MAX_MEMBERS = 200_000;
const MAX_VALUES = 200_000;

/** Templates without an answer, from which on no other is asked for. */
const MAX_SILENT = 3;
export const TEMPLATE = "template ";
const helpFor = (id: number): Help => ({
  kind: `${TEMPLATE}${id}`,
  words: `the controller gives no answer to the question for its template ${id}: members of such structures are looked up by name, the structures as a whole are not read`,
});

/** The structures of a controller's program, each asked for once. */
export class Templates {
  readonly #messenger: Messenger;
  readonly #family: Family;
  /** What could not be had, and why. */
  readonly #known = new Map<number, Structure | FaultError>();
  #members = 0;

  constructor(messenger: Messenger, family: Family) {
    this.#messenger = messenger;
    this.#family = family;
  }

  /** It has another program. */
  forget(): void {
    this.#known.clear();
    this.#members = 0;
  }

  /** Throws FaultError: the structure cannot be had; what scope it has says whether that is about the structure. */
  async get(id: number, ctx: DriverContext, depth = 0): Promise<Structure> {
    const known = this.#known.get(id);
    if (known instanceof FaultError) throw known;
    if (known) return known;
    try {
      const structure = await this.#ask(id, ctx, depth);
      if (this.#known.size < MAX_TEMPLATES) this.#known.set(id, structure);
      return structure;
    } catch (error) {
      const isAboutIt = error instanceof FaultError && error.scope === "points" && error.fault !== "no_answer";
      if (isAboutIt && this.#known.size < MAX_TEMPLATES) this.#known.set(id, error);
      throw error;
    }
  }

  /** Asks whether the controller tells of a template that it did not answer for. Throws as `get`. */
  async askAgain(id: number, ctx: DriverContext): Promise<void> {
    await this.#head(id, ctx);
  }

  async #ask(id: number, ctx: DriverContext, depth: number): Promise<Structure> {
    if (depth >= MAX_DEPTH) throw unusable(id, `structures are nested more than ${MAX_DEPTH} deep`);
    const draft = await this.#definition(id, await this.#head(id, ctx), ctx);
    const inner = new Map<number, Structure>();
    for (const nested of nestedIds(draft)) if (!inner.has(nested)) inner.set(nested, await this.get(nested, ctx, depth + 1));
    const structure = makeStructure(draft, (nested) => inner.get(nested), this.#family);
    if (!structure) throw unusable(id, "a structure in it is not known");
    if (valuesIn(structure) > MAX_VALUES) throw unusable(id, `it has more than ${MAX_VALUES} values`);
    this.#members += structure.members.length;
    if (this.#members > MAX_MEMBERS) throw unusable(id, `the structures of the program have more than ${MAX_MEMBERS} members`);
    return structure;
  }

  async #head(id: number, ctx: DriverContext): Promise<TemplateHead> {
    const what = `the template ${id}`;
    if (this.#messenger.resting(TEMPLATE) >= MAX_SILENT) throw silent(what);
    const head = await this.#messenger.askHelp<TemplateHead>(
      helpFor(id),
      ctx,
      () => what,
      templateRequest(id),
      ({ status, extended, bytes, at, end }, done, refuse) => {
        // Each attribute has a status of its own behind this one.
        const isAnswered = status === STATUS.ok || status === STATUS.attributeList;
        const head = isAnswered ? parseTemplateHead(bytes, at, end) : templateRefusal(status, extended, what);
        if (head instanceof FaultError) refuse(head);
        else if (typeof head === "string") refuse(unusable(id, head));
        else done(head);
        return undefined;
      },
    );
    if (!head) throw silent(what);
    return head;
  }

  /** In as many parts as it takes; the end is where the controller says so, also before the bytes that it named. */
  async #definition(id: number, head: TemplateHead, ctx: DriverContext): Promise<Draft> {
    const parts: Buffer[] = [];
    let length = 0;
    for (let isMore = true; isMore && length < head.bytes; ) {
      const asked = Math.min(head.bytes - length, MAX_ASKED);
      const part = await this.#part(id, length, asked, ctx);
      parts.push(part.bytes);
      length += part.bytes.length;
      isMore = part.isMore;
      if (isMore && part.bytes.length === 0) throw unusable(id, "the controller sends nothing of it");
    }
    const draft = parseDefinition(id, head, Buffer.concat(parts));
    if (typeof draft === "string") throw unusable(id, draft);
    return draft;
  }

  async #part(id: number, offset: number, asked: number, ctx: DriverContext): Promise<Part> {
    const what = `the definition of template ${id} from ${offset} on`;
    const part = await this.#messenger.askHelp<Part>(
      helpFor(id),
      ctx,
      () => what,
      definitionRequest(id, offset, asked),
      ({ status, extended, bytes, at, end }, done, refuse) => {
        if (status === STATUS.ok || status === STATUS.partial)
          done({ bytes: Buffer.from(bytes.subarray(at, end)), isMore: status === STATUS.partial });
        else refuse(templateRefusal(status, extended, what));
        return undefined;
      },
    );
    if (!part) throw silent(what);
    return part;
  }
}

const unusable = (id: number, why: string): FaultError => new FaultError("device_error", `template ${id}: ${why}`);
const silent = (what: string): FaultError =>
  new FaultError("no_answer", `${what}: the controller gives no answer; its members can be read by name`);

interface Part {
  readonly bytes: Buffer;
  readonly isMore: boolean;
}
