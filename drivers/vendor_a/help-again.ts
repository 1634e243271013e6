import type { DriverContext } from "../driver.ts";
import type { SilentHelp } from "../lib/silent-help.ts";

type Ask = (ctx: DriverContext) => Promise<unknown>;

/** Questions that a session asks again. */
export interface Questions {
  readonly help: SilentHelp;
  /** The question for this kind of help; undefined: it is not asked between the reads. */
  about(kind: string): Ask | undefined;
  /** It has its answer: the controller may tell more of variables that were found without it. */
  answered(kind: string): void;
}

/** Asks again, between the reads, for what the controller gave no answer to: no readout waits for it. */
export class HelpAgain {
  readonly #questions: Questions;
  readonly #ctx: DriverContext;
  #isAsking = false;

  constructor(questions: Questions, ctx: DriverContext) {
    this.#questions = questions;
    this.#ctx = ctx;
  }

  /** True: something is due, and is being asked from now on. */
  begin(): boolean {
    const isDue = !this.#isAsking && this.#due().length > 0;
    if (isDue) void this.ask();
    return isDue;
  }

  /** Ends within an answer time-out for each kind of help. Never throws. */
  async ask(): Promise<void> {
    this.#isAsking = true;
    try {
      for (const [kind, ask] of this.#due()) await this.#askFor(kind, ask);
    } finally {
      this.#isAsking = false;
    }
  }

  #due(): readonly (readonly [kind: string, ask: Ask])[] {
    const { help } = this.#questions;
    return help.kinds.flatMap((kind) => {
      const ask = help.isDue(kind) ? this.#questions.about(kind) : undefined;
      return ask ? [[kind, ask] as const] : [];
    });
  }

  async #askFor(kind: string, ask: Ask): Promise<void> {
    // Longer than any answer may take: a signal that aborts ends the connection.
    const ctx: DriverContext = { ...this.#ctx, signal: AbortSignal.timeout(this.#ctx.timeouts.answerMs * 2 + 1000) };
    try {
      await ask(ctx);
    } catch (error) {
      this.#ctx.log.debug({ err: error, kind }, "asking again for help failed");
    }
    if (!this.#questions.help.kinds.includes(kind)) this.#questions.answered(kind);
  }
}
