import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { type LocalRequest, requestLocal } from "../../lib/local-request.ts";
import { proveOwner } from "../../lib/socket-owner.ts";
import { errorCode, messageOf } from "../../model/failure.ts";
import { RUN_FOLDER, runSocketPath } from "../../service/socket-place.ts";
import { AGAIN_WITH_SUDO } from "../printed-commands.ts";

const TIMEOUT_MS = 5000;
const MAX_BYTES = 64 * 1024 * 1024;

/** The running service could not be asked; the message says why and what to do. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  /** Its words where it runs and refuses what was asked (400). */
  readonly refusal: string | undefined;
  constructor(message: string, options?: ErrorOptions & { readonly refusal?: string | undefined }) {
    super(message, options);
    this.refusal = options?.refusal;
  }
}

/** What the running service answers on its local socket to GET `path`. Throws ServiceError. */
export const askService = (socketPath: string, path: string, signal: AbortSignal, runFolder = RUN_FOLDER): Promise<unknown> =>
  callService(socketPath, { method: "GET", path }, signal, runFolder);

/** What the running service answers to POST `path` with this body, as JSON. Throws ServiceError. */
export const tellService = (socketPath: string, path: string, body: object, signal: AbortSignal): Promise<unknown> =>
  callService(socketPath, { method: "POST", path, body: JSON.stringify(body) }, signal);

/** A service whose state folder cannot be written to has its socket elsewhere. */
async function callService(socketPath: string, call: LocalRequest, signal: AbortSignal, runFolder = RUN_FOLDER): Promise<unknown> {
  try {
    return await callAt(socketPath, call, signal);
  } catch (error) {
    const isNobody = error instanceof ServiceError && GONE.has(errorCode(error.cause));
    const other = runSocketPath(dirname(socketPath), runFolder);
    if (!isNobody || !existsSync(other)) throw error;
    return await callAt(other, call, signal);
  }
}

const GONE = new Set(["ENOENT", "ECONNREFUSED"]);

async function callAt(socketPath: string, call: LocalRequest, signal: AbortSignal): Promise<unknown> {
  try {
    proveOwner(socketPath);
  } catch (error) {
    throw new ServiceError(errorCode(error) === "" ? messageOf(error) : sentence(socketPath, error), { cause: error });
  }
  const failed = (error: unknown): ServiceError => new ServiceError(sentence(socketPath, error), { cause: error });
  const within = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const { status, body } = await requestLocal(socketPath, call, MAX_BYTES, within).catch((error: unknown) => {
    throw failed(error);
  });
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    throw failed(new Error("the answer is not JSON"));
  }
  if (status === 200) return answer;
  const detail = detailOf(answer);
  const words = `it answers with status ${status}${detail === undefined ? "" : `: ${detail}`}`;
  throw new ServiceError(sentence(socketPath, new Error(words)), { refusal: status === 400 ? detail : undefined });
}

const detailOf = (answer: unknown): string | undefined =>
  typeof answer === "object" && answer !== null && "detail" in answer && typeof answer.detail === "string" ? answer.detail : undefined;

function sentence(socketPath: string, error: unknown): string {
  const code = errorCode(error);
  if (code === "ENOENT" || code === "ECONNREFUSED")
    return (
      `the collector does not run here: nothing answers on ${socketPath}.\n` +
      "Start it (systemctl start collector, or collector run); if it runs with other settings, name them with --config."
    );
  if (code === "EACCES" || code === "EPERM")
    return `this user may not open ${socketPath}: ${AGAIN_WITH_SUDO}, or become a member of the group that the collector runs with.`;
  if (code === "ABORT_ERR")
    return `the collector did not answer on ${socketPath} within ${TIMEOUT_MS / 1000} s.\nSee its log: journalctl -u collector`;
  return `cannot ask the collector on ${socketPath}: ${messageOf(error)}.`;
}
