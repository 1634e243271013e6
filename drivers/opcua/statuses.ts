import { StatusCodes } from "node-opcua-client";
import type { Answer } from "./answers.ts";
import type { ServerStatus } from "./failure.ts";

const MAX_WORDS = 1000;

/** A status by its number, with what the specification calls it. */
export function statusOf(code: number, reason: string | null): ServerStatus {
  const known = NAMES.get((code & 0xffff_0000) >>> 0);
  return {
    code: code >>> 0,
    name: known?.name ?? null,
    description: known?.description || null,
    reason: reason === null || reason.trim() === "" ? null : reason.slice(0, MAX_WORDS),
  };
}

const NAMES: ReadonlyMap<number, { readonly name: string; readonly description: string }> = new Map(
  Object.entries(StatusCodes)
    .filter(([name, status]) => /^(?:Bad|Uncertain|Good)/.test(name) && typeof status === "object")
    .map(([name, status]) => [(status.value & 0xffff_0000) >>> 0, { name, description: status.description }]),
);

/** True: the specification's list, as node-opcua has it, knows this status. */
export const isKnown = (code: number): boolean => code === 0 || NAMES.has((code & 0xffff_0000) >>> 0);

export interface AnsweredHeader {
  readonly serviceResult: { readonly value: number };
  readonly serviceDiagnostics?: { readonly additionalInfo?: string | null | undefined } | null | undefined;
  readonly stringTable?: readonly (string | null)[] | null | undefined;
}

/** What a response's header says: the code as it came, and the server's own words. */
export function headerStatus({ serviceDiagnostics, stringTable }: AnsweredHeader, code: number): ServerStatus {
  const plain = statusOf(code, null);
  const words = [serviceDiagnostics?.additionalInfo, ...(stringTable ?? [])].filter(
    (text): text is string => typeof text === "string" && text.trim() !== "" && !(plain.name !== null && text.startsWith(plain.name)),
  );
  return statusOf(code, words.length === 0 ? null : words.slice(0, 5).join("; "));
}

/** The server said no. */
export class ServiceFaulted extends Error {
  readonly status: ServerStatus;
  constructor(status: ServerStatus) {
    super(status.name ?? String(status.code));
    this.status = status;
  }
}

/** The ServiceFault that node-opcua has put on its error, if it has; its code as it came, where node-opcua does not know it. */
export function serviceFault(error: Error | null | undefined, answer: Answer | undefined): ServiceFaulted | undefined {
  const response: unknown = error && "response" in error ? error.response : undefined;
  if (typeof response !== "object" || response === null || !("responseHeader" in response)) return undefined;
  const header = response.responseHeader as AnsweredHeader;
  return new ServiceFaulted(headerStatus(header, answer?.serviceResult ?? header.serviceResult.value));
}
