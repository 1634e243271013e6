import type { Condition } from "../model/condition.ts";
import { messageOf } from "../model/failure.ts";
import { type Fault, FaultError, type RefusalScope } from "../model/fault.ts";
import { type Reason, ReasonError } from "../model/reason.ts";

/** An error on its way to another thread: what the agent decides by, and the words. Causes are kept as text, outermost first. */
export type PackedError = { readonly message: string; readonly causes: readonly string[] } & (
  | {
      readonly kind: "reason";
      readonly reason: Reason;
      readonly condition?: Condition;
      readonly retryAfterMs?: number;
      readonly sessionLost: boolean;
    }
  | { readonly kind: "fault"; readonly fault: Fault; readonly scope: RefusalScope }
  /** What a system error is known by (a name look-up's `code` and `syscall`). */
  | { readonly kind: "other"; readonly name: string; readonly code?: string; readonly syscall?: string; readonly errno?: number }
);

const MAX_CAUSES = 8;
/** Words that a device chose have an end. */
const MAX_CHARS = 8192;

/** Total: never throws, whatever was thrown. */
export function packError(error: unknown): PackedError {
  const message = messageOf(error).slice(0, MAX_CHARS);
  const causes = causesOf(error);
  if (error instanceof ReasonError) {
    const { reason, condition, retryAfterMs, sessionLost } = error;
    return {
      kind: "reason",
      message,
      causes,
      reason,
      sessionLost,
      ...(condition && { condition }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  }
  if (error instanceof FaultError) return { kind: "fault", message, causes, fault: error.fault, scope: error.scope };
  const code = field(error, "code");
  const syscall = field(error, "syscall");
  const errno = field(error, "errno");
  return {
    kind: "other",
    message,
    causes,
    name: error instanceof Error && typeof error.name === "string" ? error.name.slice(0, MAX_CHARS) : "Error",
    ...(typeof code === "string" && { code }),
    ...(typeof syscall === "string" && { syscall }),
    ...(typeof errno === "number" && { errno }),
  };
}

export function unpackError(packed: PackedError): Error {
  const { message } = packed;
  const cause = packed.causes.reduceRight<Error | undefined>(
    (inner, text) => new Error(text, inner === undefined ? undefined : { cause: inner }),
    undefined,
  );
  const options = cause === undefined ? {} : { cause };
  switch (packed.kind) {
    case "reason": {
      const { reason, condition, retryAfterMs, sessionLost } = packed;
      return new ReasonError(reason, message, { ...options, ...(condition && { condition }), retryAfterMs, sessionLost });
    }
    case "fault":
      return new FaultError(packed.fault, message, { ...options, scope: packed.scope });
    case "other": {
      const { name, code, syscall, errno } = packed;
      return Object.assign(new Error(message, options), {
        name,
        ...(code !== undefined && { code }),
        ...(syscall !== undefined && { syscall }),
        ...(errno !== undefined && { errno }),
      });
    }
  }
}

function causesOf(error: unknown): readonly string[] {
  const texts: string[] = [];
  for (let at = field(error, "cause"); at !== undefined && texts.length < MAX_CAUSES; at = field(at, "cause"))
    texts.push(messageOf(at).slice(0, MAX_CHARS));
  return texts;
}

/** What is thrown may throw when it is looked at. */
function field(error: unknown, key: "code" | "syscall" | "errno" | "cause"): unknown {
  try {
    return error instanceof Error && key in error ? (error as unknown as Record<string, unknown>)[key] : undefined;
  } catch {
    return undefined;
  }
}
