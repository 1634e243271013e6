import type { AnySession, DriverContext } from "../../../drivers/driver.ts";
import { shellWord } from "../../base/shell-word.ts";
import { FaultError } from "../../model/fault.ts";
import { ReasonError } from "../../model/reason.ts";
import { endpointText } from "./device.ts";
import type { ProbePoint, ProbeTarget } from "./probe-walk.ts";

/** One answer is waited for so long, ms: what is there answers a single read at once. */
const ANSWER_MS = 1000;

/** Answers of other parts of a device that were asked in the place of a silent one. */
export interface OtherParts {
  /** Words that follow those on the silence. */
  readonly detail: string;
  /** A sentence; absent: none of them answers. */
  readonly nextStep?: string;
  /** The connection; undefined: it is lost. */
  readonly left: AnySession | undefined;
}

/**
 * Asks each other part by which many devices answer for a point whose own part is silent, once, over `given` while that lives: a device may
 * take one connection. Undefined: the driver knows no such parts. Reads only. Never throws.
 */
export async function askOtherParts(
  target: ProbeTarget,
  point: ProbePoint | undefined,
  given: AnySession | undefined,
  context: DriverContext,
): Promise<OtherParts | undefined> {
  const { driver, details, settings, source } = target;
  const found = point && driver.otherParts?.(point.address, settings);
  if (!found) return undefined;
  const ctx = { ...context, timeouts: { ...context.timeouts, answerMs: Math.min(context.timeouts.answerMs, ANSWER_MS) } };
  const [silent, unknown]: [string[], string[]] = [[], []];
  let left = given;
  for (const { part, advice, fields, address } of found.others) {
    const asked = await askOnce(target, { ...point, address }, left, ctx);
    left = asked.left;
    if (asked.answer === "came") {
      const detail = `${endpointText(driver, details, settings)} answers ${part}, not ${found.part}: ${advice}`;
      const command = source === undefined ? "" : `: \`collector source set ${shellWord(source, "SOURCE")} ${fields.join(" ")}\``;
      return { detail, nextStep: `${advice.charAt(0).toUpperCase()}${advice.slice(1)}${command}.`, left };
    }
    (asked.answer === "none" ? silent : unknown).push(part);
  }
  const words = [
    ...(silent.length > 0 ? [`${listed(silent)} ${silent.length > 1 ? "have" : "has"} no answer either`] : []),
    ...(unknown.length > 0 ? [`${listed(unknown)} could not be asked`] : []),
  ];
  return { detail: words.join("; "), left };
}

/** `unit 255, unit 0 and unit 1`. */
const listed = (parts: readonly string[]): string => parts.join(", ").replace(/, (?=[^,]*$)/, " and ");

/** `unknown`: no request came so far, or its time was cut off. */
async function askOnce(
  { driver, details, settings, secrets }: ProbeTarget,
  { address, type }: ProbePoint,
  given: AnySession | undefined,
  ctx: DriverContext,
): Promise<{ readonly answer: "came" | "none" | "unknown"; readonly left: AnySession | undefined }> {
  let session = given;
  try {
    if (!session?.alive()) {
      await session?.close();
      session = undefined;
      session = await driver.connect({ details, settings, secrets }, ctx);
    }
  } catch {
    return { answer: "unknown", left: session };
  }
  try {
    const limits = driver.limits?.(session.limits, settings) ?? session.limits;
    for (const request of driver.plan([{ index: 0, address, type }], limits)) await session.read(request, ctx);
    return { answer: "came", left: session };
  } catch (error) {
    // A refusal is an answer too: the part is there.
    if (error instanceof FaultError) return { answer: error.fault === "no_answer" ? "none" : "came", left: session };
    const isSilent = !ctx.signal.aborted && error instanceof ReasonError && error.reason.type === "TIMEOUT";
    return { answer: isSilent ? "none" : "unknown", left: session };
  }
}
