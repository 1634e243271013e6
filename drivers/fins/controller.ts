import type { FinsDetails } from "../../src/model/details.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DriverContext } from "../driver.ts";
import { NoAnswer } from "../lib/exchange.ts";
import { type Help, SilentHelp } from "../lib/silent-help.ts";
import { classicLayout, isNewer, type Layout } from "./areas.ts";
import { CONTROLLER_DATA_COMMAND, endCodeOf, isRelayError, modelOf, rangeCommand, rawEndCode } from "./frames.ts";
import type { FinsLink } from "./link.ts";
import { isBusy, isUnreachable, refusalOf, unreachableError } from "./refusals.ts";
import type { FinsSettings } from "./settings.ts";

/** What is known of a controller before it is read. */
export interface Controller {
  readonly layout: Layout;
  /** Undefined: it does not say. */
  readonly model: string | undefined;
  /** Why the model is not known, with the controller as subject; undefined: it is. */
  readonly untold: string | undefined;
  /** Contradictions of configuration and controller, and what is missing because the controller is silent. */
  warnings(): readonly Warning[];
}

/** An answer to one of the two questions. */
interface Answer {
  /** The end code. */
  readonly code: number;
  readonly refusal: FaultError | ReasonError | undefined;
  readonly model: string | undefined;
}

const MODEL = "the model of the controller";
/** The word that every controller has. */
const FIRST_WORD = "D0, to know whether it is there";
const FIRST_WORD_COMMAND = rangeCommand({ code: 0x82, address: 0, count: 1 });

/**
 * Asks for the model, which says how the controller lays out its memory, and that it answers. One that is silent about its model is read
 * without it, where it answers the read of a word. A ReasonError that is given: it has answered, and cannot be read; one that is thrown: it
 * has not.
 */
export async function identify(
  link: FinsLink,
  { target_plc, remote_address }: FinsDetails,
  { plc_series }: FinsSettings,
  ctx: DriverContext,
): Promise<Controller | ReasonError> {
  const mustKnow = target_plc === "Classic" && plc_series === "auto";
  const asker = new Asker(link, remote_address, mustKnow, ctx);
  const answer = await asker.ask();
  const { code, refusal, model } = answer;
  if (refusal instanceof ReasonError) return refusal;
  if (refusal && isUnreachable(code)) return unreachableError(code, link.where);
  if (refusal instanceof FaultError && isBusy(code) && mustKnow) return new ReasonError("UNKNOWN", refusal.message);
  const layout: Layout = target_plc === "Cs1OrNewer" ? "cs" : plc_series === "auto" ? classicLayout(model) : plc_series;
  const untold = model !== undefined ? undefined : asker.isSilent ? "gives no answer when asked for its model" : "does not say its model";
  const found = contradictions(target_plc, layout, model, untold);
  return { layout, model, untold, warnings: () => [...found, ...asker.warnings()] };
}

class Asker {
  readonly #help: SilentHelp;
  readonly #link: FinsLink;
  readonly #model: Help;
  /** True in the memory of the device: it answered neither question the last time. */
  readonly #silentKey: string;
  readonly #ctx: DriverContext;

  /** `remote`: what is asked behind the address of the device. `mustKnow`: where things are depends on the model. */
  constructor(link: FinsLink, remote: string, mustKnow: boolean, ctx: DriverContext) {
    const missing = mustKnow
      ? "only what both Classic series have at the same place is read"
      : "target_plc and plc_series are not compared with it";
    this.#link = link;
    this.#model = {
      kind: `model of ${remote}`,
      words: `the controller gives no answer when asked for its model (0501), and is read without it: ${missing}; a later connection asks again`,
    };
    this.#silentKey = `silent ${remote}`;
    this.#ctx = ctx;
    this.#help = new SilentHelp(ctx.device);
  }

  warnings(): readonly Warning[] {
    return this.#help.warnings().filter(({ about }) => about === this.#model.kind);
  }

  /** The question for the model had no answer. */
  get isSilent(): boolean {
    return this.#help.kinds.includes(this.#model.kind);
  }

  /** The answer that says most. Throws ReasonError: there is none. */
  async ask(): Promise<Answer> {
    const { kind, words } = this.#model;
    const { device } = this.#ctx;
    // A controller that is away costs the time of one question, not of two.
    const first = device?.get(this.#silentKey) === true ? await this.#askFirstWord() : undefined;
    if (!this.#help.isDue(kind)) return first ?? (await this.#askFirstWord());
    try {
      const answer = await this.#question(MODEL, CONTROLLER_DATA_COMMAND, modelOf, "help");
      this.#help.answered(kind);
      return answer;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      const answer = first ?? (await this.#askFirstWord());
      // Only one that answers something else is silent about this.
      this.#help.silent(kind, words);
      return answer;
    }
  }

  async #askFirstWord(): Promise<Answer> {
    const { device } = this.#ctx;
    device?.set(this.#silentKey, true);
    const { code, refusal } = await this.#question(FIRST_WORD, FIRST_WORD_COMMAND, () => undefined, "value");
    device?.set(this.#silentKey, false);
    // A refusal of this word says that it is there.
    const isOfAll = refusal instanceof ReasonError || isUnreachable(code);
    return { code, refusal: isOfAll ? refusal : undefined, model: undefined };
  }

  #question(what: string, command: Buffer, modelIn: (frame: Buffer) => string | undefined, purpose: "help" | "value"): Promise<Answer> {
    const link = this.#link;
    const take = (frame: Buffer): Answer => {
      const raw = rawEndCode(frame);
      const isGood = !isRelayError(raw) && endCodeOf(raw) === 0;
      return {
        code: endCodeOf(raw),
        refusal: isGood ? undefined : refusalOf(frame, what, link.route.destination.node),
        model: isGood ? modelIn(frame) : undefined,
      };
    };
    return link.ask(this.#ctx, () => what, link.messageOf(command), take, purpose);
  }
}

function contradictions(
  target: FinsDetails["target_plc"],
  layout: Layout,
  model: string | undefined,
  untold: string | undefined,
): Warning[] {
  const found: Warning[] = [];
  const newer = isNewer(model);
  if (target === "Cs1OrNewer" && newer === false)
    found.push(warning("model_contradicts", `the controller is a ${model}: set target_plc to Classic`, "target_plc"));
  if (target === "Classic" && newer === true)
    found.push(warning("model_contradicts", `the controller is a ${model}: set target_plc to Cs1OrNewer`, "target_plc"));
  if (layout === "unknown")
    found.push(
      warning(
        "model_contradicts",
        `the controller ${untold ?? `is a ${model}`}: set plc_series to c or cv, so that all its areas can be read`,
        "plc_series",
      ),
    );
  return found;
}
