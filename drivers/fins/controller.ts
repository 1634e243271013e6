import type { FinsDetails } from "../../src/model/details.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DriverContext } from "../driver.ts";
import { classicLayout, isNewer, type Layout } from "./areas.ts";
import { CONTROLLER_DATA_COMMAND, endCodeOf, isRelayError, modelOf, rawEndCode } from "./frames.ts";
import type { FinsLink } from "./link.ts";
import { isBusy, isUnreachable, refusalOf, unreachableError } from "./refusals.ts";
import type { FinsSettings } from "./settings.ts";

/** What is known of a controller before it is read. */
export interface Controller {
  readonly layout: Layout;
  /** Undefined: it does not say. */
  readonly model: string | undefined;
  /** What the configuration and the controller contradict each other in. */
  readonly warnings: readonly Warning[];
}

/**
 * Asks for the model: whether the controller answers, and how it lays out its memory. A ReasonError that is given: it has answered, and
 * cannot be read; one that is thrown: it has not.
 */
export async function identify(
  link: FinsLink,
  { target_plc }: FinsDetails,
  { plc_series }: FinsSettings,
  ctx: DriverContext,
): Promise<Controller | ReasonError> {
  const what = "the model of the controller";
  const { code, refusal, model } = await link.ask(
    ctx,
    () => what,
    link.messageOf(CONTROLLER_DATA_COMMAND),
    (frame) => {
      const raw = rawEndCode(frame);
      const isGood = !isRelayError(raw) && endCodeOf(raw) === 0;
      return {
        code: endCodeOf(raw),
        refusal: isGood ? undefined : refusalOf(frame, what, link.route.destination.node),
        model: isGood ? modelOf(frame) : undefined,
      };
    },
  );
  if (refusal instanceof ReasonError) return refusal;
  if (refusal && isUnreachable(code)) return unreachableError(code, link.where);
  const mustKnow = target_plc === "Classic" && plc_series === "auto";
  if (refusal instanceof FaultError && isBusy(code) && mustKnow) return new ReasonError("UNKNOWN", refusal.message);
  const layout: Layout = target_plc === "Cs1OrNewer" ? "cs" : plc_series === "auto" ? classicLayout(model) : plc_series;
  return { layout, model, warnings: contradictions(target_plc, layout, model) };
}

function contradictions(target: FinsDetails["target_plc"], layout: Layout, model: string | undefined): Warning[] {
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
        `the controller ${model === undefined ? "does not say its model" : `is a ${model}`}: set plc_series to c or cv, so that all its areas can be read`,
        "plc_series",
      ),
    );
  return found;
}
