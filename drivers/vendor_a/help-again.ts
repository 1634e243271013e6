import type { DriverContext } from "../driver.ts";
import type { SilentHelp } from "../lib/silent-help.ts";
import type { Messenger } from "./messenger.ts";
import { MARK, type ProgramWatch } from "./program.ts";
import { IDENTITY } from "./route.ts";
import { LIST, type SymbolList } from "./symbols.ts";
import { TEMPLATE, type Templates } from "./templates.ts";

interface Helpers {
  readonly help: SilentHelp;
  readonly messenger: Messenger;
  readonly program: ProgramWatch;
  readonly list: SymbolList;
  readonly templates: Templates;
}

/** Asks again, between the reads, for what the controller gave no answer to: no readout waits for it. */
export class HelpAgain {
  readonly #helpers: Helpers;
  readonly #ctx: DriverContext;
  #isAsking = false;

  constructor(helpers: Helpers, ctx: DriverContext) {
    this.#helpers = helpers;
    this.#ctx = ctx;
  }

  get isDue(): boolean {
    return !this.#isAsking && this.#due().length > 0;
  }

  /** Ends within an answer time-out for each kind of help. Never throws. */
  async ask(): Promise<void> {
    this.#isAsking = true;
    try {
      for (const kind of this.#due()) await this.#askFor(kind);
    } finally {
      this.#isAsking = false;
    }
  }

  #due(): readonly string[] {
    const { help } = this.#helpers;
    return help.kinds.filter((kind) => isAskable(kind) && help.isDue(kind));
  }

  async #askFor(kind: string): Promise<void> {
    const { help, messenger, program, list, templates } = this.#helpers;
    // Longer than any answer may take: a signal that aborts ends the connection.
    const ctx: DriverContext = { ...this.#ctx, signal: AbortSignal.timeout(this.#ctx.timeouts.answerMs * 2 + 1000) };
    try {
      if (kind === MARK.kind) await program.check(ctx);
      else if (kind === LIST.kind) await list.page(undefined, 0, ctx);
      else if (kind.startsWith(TEMPLATE)) await templates.askAgain(Number(kind.slice(TEMPLATE.length)), ctx);
      else await messenger.keepOpen(ctx).then(() => help.answered(kind));
    } catch (error) {
      if (kind.startsWith(IDENTITY)) help.silentAgain(kind);
      this.#ctx.log.debug({ err: error, kind }, "asking again for help failed");
    }
    // The controller may now tell in full of tags that were found without the list or a template.
    if (!help.kinds.includes(kind) && (kind === LIST.kind || kind.startsWith(TEMPLATE))) program.lookAgain();
  }
}

const isAskable = (kind: string): boolean =>
  kind === MARK.kind || kind === LIST.kind || kind.startsWith(TEMPLATE) || kind.startsWith(IDENTITY);
