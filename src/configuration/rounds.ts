/** What a round has begun goes on after it. */
export interface Round {
  readonly made: Promise<void>;
}

export interface RoundsOptions {
  /** Must settle in its own time: the next round waits for it, though not for what it has begun. */
  readonly take: () => Promise<Round>;
  readonly onError: (error: unknown) => void;
  /** All that was asked for has been made. What hangs is not hidden by rounds that come after it. */
  readonly onSettled: () => void;
}

/** Rounds one after the other; all that are asked for while one is taken become one. */
export class Rounds {
  readonly #options: RoundsOptions;
  #isAsked = false;
  #isTaking = false;
  #open = 0;

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  ask(): void {
    this.#isAsked = true;
    if (!this.#isTaking) void this.#takeAll();
  }

  async #takeAll(): Promise<void> {
    this.#isTaking = true;
    while (this.#isAsked) {
      this.#isAsked = false;
      this.#open++;
      try {
        const { made } = await this.#options.take();
        void made.catch(this.#options.onError).finally(() => this.#close());
      } catch (error) {
        this.#options.onError(error);
        this.#close();
      }
    }
    this.#isTaking = false;
  }

  #close(): void {
    this.#open--;
    if (this.#open === 0) this.#options.onSettled();
  }
}
