import { MAX_WORDS } from "../../model/bounded-failure.ts";
import type { Condition } from "../../model/condition.ts";
import { messageOf } from "../../model/failure.ts";
import { type Fault, FaultError, PartialRefusal, type RefusalScope } from "../../model/fault.ts";
import { type PackedReadings, packReadings, unpackReadings } from "../../model/reading-columns.ts";
import { type Reason, ReasonError } from "../../model/reason.ts";

/** An error on its way to another thread: what the agent decides by, and the words. Causes are kept as text, outermost first. */
export type PackedError = { readonly message: string; readonly causes: readonly string[] } & (
  | {
      readonly kind: "reason";
      readonly reason: Reason;
      readonly condition?: Condition;
      readonly retryAfterMs?: number;
      readonly nextStep?: string;
      readonly sessionLost: boolean;
    }
  | { readonly kind: "fault"; readonly fault: Fault; readonly scope: RefusalScope }
  /** Items name their refusals by place: many may share one. */
  | {
      readonly kind: "partial";
      readonly readings: PackedReadings;
      readonly refusals: readonly PackedError[];
      readonly items: readonly { readonly places: readonly number[]; readonly refusal: number }[];
    }
  /** Properties that identify a system error (a name look-up's `code` and `syscall`). */
  | { readonly kind: "other"; readonly name: string; readonly code?: string; readonly syscall?: string; readonly errno?: number }
);

const MAX_CAUSES = 8;

/** Total: never throws, whatever was thrown. */
export function packError(error: unknown): PackedError {
  const message = messageOf(error).slice(0, MAX_WORDS);
  const causes = causesOf(error);
  if (error instanceof ReasonError) {
    const { reason, condition, retryAfterMs, sessionLost, nextStep } = error;
    return {
      kind: "reason",
      message,
      causes,
      reason,
      sessionLost,
      ...(condition && { condition }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(nextStep !== undefined && { nextStep: nextStep.slice(0, MAX_WORDS) }),
    };
  }
  if (error instanceof PartialRefusal) return { message, causes, ...packPartial(error) };
  if (error instanceof FaultError) return { kind: "fault", message, causes, fault: error.fault, scope: error.scope };
  const code = field(error, "code");
  const syscall = field(error, "syscall");
  const errno = field(error, "errno");
  return {
    kind: "other",
    message,
    causes,
    name: error instanceof Error && typeof error.name === "string" ? error.name.slice(0, MAX_WORDS) : "Error",
    ...(typeof code === "string" && { code }),
    ...(typeof syscall === "string" && { syscall }),
    ...(typeof errno === "number" && { errno }),
  };
}

type Packed<K extends PackedError["kind"]> = Extract<PackedError, { kind: K }>;

function packPartial({ readings, items }: PartialRefusal): Pick<Packed<"partial">, "kind" | "readings" | "refusals" | "items"> {
  const numbers = new Map<FaultError, number>();
  const refusals: PackedError[] = [];
  const numberOf = (refusal: FaultError): number => {
    const known = numbers.get(refusal) ?? refusals.push(packError(refusal)) - 1;
    numbers.set(refusal, known);
    return known;
  };
  return {
    kind: "partial",
    readings: packReadings(readings),
    refusals,
    items: items.map(({ places, refusal }) => ({ places, refusal: numberOf(refusal) })),
  };
}

function unpackPartial({ message, readings, refusals, items }: Packed<"partial">): FaultError {
  const unpacked = refusals.map((packed) =>
    packed.kind === "fault" ? unpackFault(packed) : new FaultError("device_error", packed.message),
  );
  const [first, ...others] = items.map(({ places, refusal }) => ({
    places,
    refusal: unpacked[refusal] ?? new FaultError("device_error", message),
  }));
  return first ? new PartialRefusal(unpackReadings(readings), [first, ...others]) : new FaultError("device_error", message);
}

const unpackFault = (packed: Packed<"fault">): FaultError =>
  new FaultError(packed.fault, packed.message, { ...causeOf(packed), scope: packed.scope });

function causeOf({ causes }: PackedError): ErrorOptions {
  const cause = causes.reduceRight<Error | undefined>(
    (inner, text) => new Error(text, inner === undefined ? undefined : { cause: inner }),
    undefined,
  );
  return cause === undefined ? {} : { cause };
}

export function unpackError(packed: PackedError): Error {
  const { message } = packed;
  const options = causeOf(packed);
  switch (packed.kind) {
    case "reason": {
      const { reason, condition, retryAfterMs, sessionLost, nextStep } = packed;
      return new ReasonError(reason, message, { ...options, ...(condition && { condition }), retryAfterMs, sessionLost, nextStep });
    }
    case "fault":
      return unpackFault(packed);
    case "partial":
      return unpackPartial(packed);
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
    texts.push(messageOf(at).slice(0, MAX_WORDS));
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
