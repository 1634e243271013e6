import { resolve } from "node:path";
import type { AnyDriver, DriverContext, DriverEntry } from "../../../drivers/driver.ts";
import { DRIVERS } from "../../../drivers/index.ts";
import { durationProblem, parseDuration } from "../../base/duration.ts";
import { toJson } from "../../base/json.ts";
import { jsonWithoutCredentials, withoutCredentials } from "../../base/plain-text.ts";
import { type LoadedPolicy, loadPolicy, policyFile } from "../../configuration/policy-file.ts";
import { SettingsError } from "../../configuration/strict-yaml.ts";
import { permitOf } from "../../lib/policy.ts";
import { permittedResolve } from "../../lib/resolver.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { Pki } from "../../model/pki.ts";
import type { Permit } from "../../model/policy.ts";
import type { ReasonError } from "../../model/reason.ts";
import { explainReason, type Where } from "../../model/words/catalogue.ts";
import { createNameLookup } from "../../os/name-lookup.ts";
import { meantWords } from "../configuration/type-words.ts";
import { type CommandIo, complain, UsageError } from "../io.ts";
import { settingsOrUsage } from "../service/run.ts";
import { hostPort } from "./values.ts";

/** The driver of a type, as the registry has it; undefined: none is here. */
export const entryOf = (type: string): DriverEntry | undefined => (Object.hasOwn(DRIVERS, type) ? DRIVERS[type] : undefined);

/** Throws UsageError with the types there are. */
export async function driverOf(type: string): Promise<AnyDriver> {
  const entry = entryOf(type);
  if (entry) return (await entry.driver()).default;
  const known = Object.keys(DRIVERS);
  throw new UsageError(
    `${JSON.stringify(type)} is not a type that this collector reads${meantWords(type, known)}; known types: ${known.join(", ")}`,
  );
}

/** The policy file of this machine. Throws UsageError where it cannot be read: then nothing is open. */
export function policyOf(config: string | undefined): LoadedPolicy {
  try {
    return loadPolicy(policyFile(config === undefined ? undefined : resolve(config)));
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}

/** A person may type any address, unless this machine has a policy file (design/api-decisions). */
export const permitOfPerson = ({ policy, file }: LoadedPolicy): Permit | undefined =>
  file === undefined ? undefined : permitOf(policy, "sources");

/** Throws UsageError. */
export function durationOf(option: string, text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw new UsageError(`${option} ${text}: ${durationProblem(text)}`);
  // What setTimeout can wait for.
  return Math.min(ms, 2 ** 31 - 1);
}

/** Prints warnings and errors for the person, and drops the rest. */
export const personLog = (io: CommandIo): Log => ({
  debug: () => {},
  info: () => {},
  warn: (_fields, message) => complain(io, message),
  error: (_fields, message) => complain(io, message),
});

/** The certificates that a driver of this type works with, if it does. Throws UsageError where the settings or the folder cannot be used. */
export async function pkiOf(type: string, config: string | undefined, log: Log, io: CommandIo): Promise<Pki | undefined> {
  if (!entryOf(type)?.certificates) return undefined;
  const { certificatePlace, certificatesOf } = await import("../certificates/certificates.ts");
  const { settings } = settingsOrUsage(config);
  try {
    return certificatesOf(await certificatePlace(settings, io), log);
  } catch (error) {
    throw new UsageError(`there is no folder for certificates: ${messageOf(error)}`);
  }
}

/** Names are looked up as the service does it: a question that is left without an answer holds nothing up. */
export const lookUpName = createNameLookup();

/** A driver's context for one call. */
export function contextOf(
  {
    driver,
    details,
    settings,
    timeouts,
  }: { readonly driver: AnyDriver; readonly details: unknown; readonly settings: unknown; readonly timeouts: DriverContext["timeouts"] },
  more: { readonly signal: AbortSignal; readonly log: Log; readonly permit: Permit | undefined; readonly pki: Pki | undefined },
): DriverContext {
  const { signal, log, permit, pki } = more;
  const lookUp = { resolve: ({ host }: { readonly host: string }, during: AbortSignal) => lookUpName(host, during) };
  const resolved = permittedResolve(lookUp, permit, driver.endpoint(details, settings).port);
  return { signal, log, timeouts, resolve: resolved, ...(pki && { pki }) };
}

/** `host:port` of the device, for people. */
export function endpointText(driver: AnyDriver, details: unknown, settings: unknown): string {
  const { host, port } = driver.endpoint(details, settings);
  return hostPort(host, port);
}

/** The name of a data source or data sink, where it is a configured one; a next step that is known better than the usual one. */
type About = Pick<Where, "source" | "sinkType" | "nextStep">;

/** What a person reads where a device failed: what it means, the likely cause and what to do. */
export function failureLines(
  { reason, condition, message, nextStep: known }: ReasonError,
  endpoint: string,
  about?: About,
): readonly string[] {
  const where = { ...about, endpoint, isWalked: true, detail: message, nextStep: about?.nextStep ?? known };
  const { cause, nextStep } = explainReason(reason, condition, where);
  const { sentence } = explainReason(reason, condition, { endpoint, ...(about?.sinkType !== undefined && { sinkType: about.sinkType }) });
  return [
    sentence,
    `  Detail:    ${withoutCredentials(message)}`,
    `  Cause:     ${cause}`,
    `  Next step: ${nextStep}`,
    `  Reason:    ${withoutCredentials(toJson(reason))}`,
  ];
}

/** The same as fields of a JSON object; the reason as the API has it. */
export function failureObject({ reason, condition, message, nextStep: known }: ReasonError, endpoint: string, about?: About): object {
  const where = { ...about, endpoint, isWalked: true, detail: message, nextStep: about?.nextStep ?? known };
  const { nextStep } = explainReason(reason, condition, where);
  const reasonToTell = Object.fromEntries(Object.entries(reason).map(([field, value]) => [field, jsonWithoutCredentials(value)]));
  return {
    reason: reasonToTell,
    ...(condition && { condition }),
    detail: withoutCredentials(message),
    next_step: nextStep,
  };
}
