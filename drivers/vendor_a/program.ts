import type { DeviceMemory, DriverContext } from "../driver.ts";
import type { Help } from "../lib/silent-help.ts";
import { changesRequest, STATUS } from "./cip.ts";
import type { Messenger } from "./messenger.ts";

/** The controller is asked so often at most whether its program changed. */
const CHECK_MS = 5000;
/** What a changed type says is believed so often where nothing else says that the program changed. */
const BELIEVE_MS = 30_000;
/** A mark that is another one each time says nothing. */
const MAX_CHANGES_IN_A_ROW = 5;
/** It is believed again after this: it may have changed with each step of a commissioning. */
const BELIEVE_AGAIN_MS = 3_600_000;
/** The controller does not know the object; with any other status it may know it later. */
const NO_MARK: ReadonlySet<number> = new Set([0x04, 0x05, 0x08, 0x14, 0x16]);
const KEY = "programs";
export const MARK: Help = {
  kind: "mark",
  words:
    "the controller gives no answer to the question for the mark of its program: another program is noticed when a type differs or a tag fails",
};

/** Which program a controller has: by what class AC says, and by types that are not those that were looked up. */
export class ProgramWatch {
  readonly #messenger: Messenger;
  readonly #memory: DeviceMemory | undefined;
  readonly #serial: string;
  /** In hexadecimal; undefined: not known. */
  #mark: string | undefined;
  /** False: the controller has no mark. */
  #hasMark = true;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #changesInARow = 0;
  /** Until then the mark is not believed, monotonic ms. */
  #unbelievedUntil = Number.NEGATIVE_INFINITY;
  #believedAt = Number.NEGATIVE_INFINITY;
  /** Without a memory. */
  #programs = 0;

  constructor(messenger: Messenger, memory: DeviceMemory | undefined, serial: string) {
    this.#messenger = messenger;
    this.#memory = memory;
    this.#serial = serial;
  }

  get epoch(): string {
    return `${this.#serial} ${this.#mark ?? "unmarked"} ${this.#count()}`;
  }

  /** True: it says when it changes. */
  get hasMark(): boolean {
    return this.#hasMark && performance.now() >= this.#unbelievedUntil && !this.#messenger.isSilent(MARK.kind);
  }

  get isDue(): boolean {
    return this.hasMark && performance.now() - this.#checkedAt >= CHECK_MS;
  }

  /** True: the program is another one than before. Throws ReasonError. */
  async check(ctx: DriverContext): Promise<boolean> {
    if (!this.#hasMark || performance.now() < this.#unbelievedUntil) return false;
    const mark = await this.#ask(ctx);
    this.#checkedAt = performance.now();
    if (mark === undefined || mark === this.#mark) {
      this.#changesInARow = 0;
      return false;
    }
    const isChanged = this.#mark !== undefined;
    this.#mark = mark;
    if (isChanged && ++this.#changesInARow > MAX_CHANGES_IN_A_ROW) {
      this.#changesInARow = 0;
      this.#unbelievedUntil = performance.now() + BELIEVE_AGAIN_MS;
    }
    return isChanged;
  }

  /** The controller tells more than when tags were looked up: they are looked up again. */
  lookAgain(): void {
    this.#programs = this.#count() + 1;
    this.#memory?.set(KEY, this.#programs);
  }

  /** A tag has another type than it was looked up with. True: everything is to be looked up again. */
  mayHaveChanged(): boolean {
    const now = performance.now();
    if (now - this.#believedAt < BELIEVE_MS) return false;
    this.#believedAt = now;
    this.lookAgain();
    return true;
  }

  #count(): number {
    const kept = this.#memory?.get(KEY);
    return typeof kept === "number" ? kept : this.#programs;
  }

  /** Its attributes as they come: only whether they change counts. */
  #ask(ctx: DriverContext): Promise<string | undefined> {
    return this.#messenger.askHelp<string | undefined>(
      MARK,
      ctx,
      () => "the mark of the program",
      changesRequest(),
      ({ status, bytes, at, end }, done) => {
        const isKnown = status === STATUS.ok || status === STATUS.attributeList;
        if (NO_MARK.has(status)) this.#hasMark = false;
        done(isKnown && end > at ? bytes.toString("hex", at, Math.min(end, at + 128)) : undefined);
        return undefined;
      },
    );
  }
}
