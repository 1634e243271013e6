import type { WriteStream } from "node:tty";

/** What the environment and the output say of how the demo may show itself. */
export interface Look {
  /** It can be drawn again in the same place. */
  readonly isScreen: boolean;
  readonly hasColour: boolean;
}

/** NO_COLOR (no-color.org) takes colours away where it is not empty; a terminal that is dumb, or none, gets plain lines. Pure. */
export function lookOf(isTty: boolean, { TERM, NO_COLOR = "" }: Readonly<Record<string, string | undefined>>): Look {
  const isScreen = isTty && TERM !== "dumb";
  return { isScreen, hasColour: isScreen && NO_COLOR === "" };
}

const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";

/** The terminal's other screen: what was on it before is there again afterwards, however the process ends. */
export class Screen {
  readonly #out: Pick<WriteStream, "write">;
  #isOn = false;
  readonly #leave = (): void => this.leave();

  constructor(out: Pick<WriteStream, "write">) {
    this.#out = out;
  }

  /** Draws over what was drawn before. No line may be longer than the screen is wide. */
  show(lines: readonly string[]): void {
    if (!this.#isOn) {
      this.#isOn = true;
      process.once("exit", this.#leave);
      this.#out.write(ENTER);
    }
    // No line feed behind the last line, which would scroll.
    this.#out.write(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join("\r\n")}\x1b[J`);
  }

  /** Idempotent. */
  leave(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    process.removeListener("exit", this.#leave);
    this.#out.write(LEAVE);
  }
}
