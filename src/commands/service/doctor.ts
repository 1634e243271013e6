import { jsonWithoutCredentials } from "../../base/plain-text.ts";
import { stateDirIn } from "../../configuration/settings-file.ts";
import { messageOf } from "../../model/failure.ts";
import type { ServiceStatus } from "../../model/service-status.ts";
import { versions } from "../../os/machine.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { keptKeys, placeOf } from "../configuration/secret.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { checkConfiguration } from "./configuration-check.ts";
import { type Diagnosis, diagnose, type Patient } from "./doctor-checks.ts";
import { askService, ServiceError } from "./local-client.ts";

/** What `doctor` finds. */
export interface Examined {
  readonly versions: Readonly<Record<string, string>>;
  readonly checks: readonly Diagnosis[];
}

/** `collector doctor`: what of this machine stands in the way of reading and publishing. */
export async function doctor(
  { config, json = false }: { readonly config?: string; readonly json?: boolean },
  io: CommandIo,
): Promise<ExitCode> {
  const { checks, versions: known } = await examine(config, io);
  if (io.signal.aborted) return EXIT.interrupted;
  const failed = checks.some(({ result }) => result === "failed");
  if (json) writeJson(io, { ok: !failed, versions: known, checks }, jsonWithoutCredentials);
  else
    writeLines(io, [
      ...linesOf(checks),
      "",
      Object.entries(known)
        .map(([name, value]) => `${name} ${value}`)
        .join(", "),
    ]);
  return failed ? EXIT.ownFailure : EXIT.good;
}

/** All checks, without printing. Never throws. */
export async function examine(config: string | undefined, io: CommandIo): Promise<Examined> {
  const [checked, asked] = await Promise.all([checkConfiguration(config, io), askStatus(config, io)]);
  const { version, signal } = io;
  return {
    versions: { collector: version, ...versions() },
    checks: await diagnose({ checked, ...asked, version, signal, secrets: secretsKept(config) }),
  };
}

/** Whose secrets are kept here, never what they are; none where the settings cannot be read. */
function secretsKept(config: string | undefined): Patient["secrets"] {
  try {
    return keptKeys(placeOf({ ...(config !== undefined && { config }) })).map(({ key }) => key);
  } catch (error) {
    if (error instanceof UsageError) return { problem: messageOf(error) };
    throw error;
  }
}

/** The status of the service, or why it cannot be asked. */
async function askStatus(
  config: string | undefined,
  io: CommandIo,
): Promise<{ readonly status: ServiceStatus | undefined; readonly noStatus?: string }> {
  try {
    return { status: (await askService(localSocketPath(stateDirIn(config)), "/status", io.signal)) as ServiceStatus };
  } catch (error) {
    if (error instanceof ServiceError) return { status: undefined, noStatus: error.message.split("\n", 1)[0] ?? "" };
    throw error;
  }
}

/** Undefined: no service runs here, or this user may not ask it. */
export const statusOf = async (config: string | undefined, io: CommandIo): Promise<ServiceStatus | undefined> =>
  (await askStatus(config, io)).status;

const WORDS = { ok: "ok", warning: "warning", failed: "FAILED", unknown: "?" } as const;
const CHECK_WIDTH = 13;
const RESULT_WIDTH = 7;

const linesOf = (checks: readonly Diagnosis[]): readonly string[] =>
  checks.flatMap(({ check, result, detail, next_step: nextStep }) => [
    `${check.padEnd(CHECK_WIDTH)}  ${WORDS[result].padEnd(RESULT_WIDTH)}  ${detail}`,
    ...(nextStep === null || result === "unknown" ? [] : [`${" ".repeat(CHECK_WIDTH + RESULT_WIDTH + 4)}${nextStep}`]),
  ]);
