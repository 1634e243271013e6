import { ReasonError } from "../../src/model/reason.ts";
import type { DeviceMemory } from "../driver.ts";
import type { FinsSettings } from "./settings.ts";
import type { Transport } from "./target.ts";

/** What worked last and has not answered for so long shares its tries with the other transport. */
export const KEPT_FOR_MS = 600_000;
const KEY = "transport";

interface Worked {
  readonly transport: Transport;
  /** Since when nothing has come over it, monotonic ms; undefined: it works. */
  readonly silentSinceMs: number | undefined;
}

/** Which transport is tried, and in which order. Kept over sessions in the memory of the device. */
export class TransportChoice {
  readonly #setting: FinsSettings["transport"];
  readonly #memory: DeviceMemory | undefined;
  readonly #now: () => number;

  /** `now`: monotonic ms. */
  constructor(setting: FinsSettings["transport"], memory: DeviceMemory | undefined, now: () => number = () => performance.now()) {
    this.#setting = setting;
    this.#memory = memory;
    this.#now = now;
  }

  /** In the order in which they are tried. */
  get order(): readonly [Transport, ...Transport[]] {
    if (this.#setting !== "auto") return [this.#setting];
    const { transport = "tcp", silentSinceMs } = this.#worked ?? {};
    const isKept = this.#worked !== undefined && (silentSinceMs === undefined || this.#now() - silentSinceMs < KEPT_FOR_MS);
    return isKept ? [transport] : [transport, transport === "tcp" ? "udp" : "tcp"];
  }

  /** It has answered, be it with a refusal. */
  answered(transport: Transport): void {
    const { transport: known, silentSinceMs } = this.#worked ?? {};
    if (this.#setting === "auto" && (known !== transport || silentSinceMs !== undefined))
      this.#memory?.set(KEY, { transport, silentSinceMs: undefined });
  }

  /** None of those that were tried has answered. */
  failed(): void {
    const worked = this.#worked;
    if (worked && worked.silentSinceMs === undefined) this.#memory?.set(KEY, { ...worked, silentSinceMs: this.#now() });
  }

  get #worked(): Worked | undefined {
    return this.#memory?.get(KEY) as Worked | undefined;
  }
}

/** What the other transport would fail with too. */
const isAboutBoth = ({ reason, condition }: ReasonError): boolean =>
  reason.type === "LOOKUP_ERROR" || condition === "forbidden_by_policy" || condition === "configuration_invalid";

/**
 * Connects over the first transport that answers. Throws ReasonError: the reason is that of the transport that is tried first, which is the
 * one that worked last, or TCP.
 */
export async function overFirst<T>(
  choice: TransportChoice,
  signal: AbortSignal,
  connect: (transport: Transport) => Promise<T>,
): Promise<T> {
  const failures: { readonly transport: Transport; readonly error: ReasonError }[] = [];
  for (const transport of choice.order) {
    try {
      const connected = await connect(transport);
      choice.answered(transport);
      return connected;
    } catch (error) {
      if (!(error instanceof ReasonError)) throw error;
      failures.push({ transport, error });
      if (signal.aborted || isAboutBoth(error)) break;
    }
  }
  choice.failed();
  const [first, second] = failures;
  if (!first) throw new TypeError("no transport was tried");
  const { error } = first;
  if (!second) throw error;
  const { condition, retryAfterMs, sessionLost } = error;
  const nextStep = error.nextStep ?? second.error.nextStep;
  throw new ReasonError(
    error.reason,
    `over ${name(first.transport)}: ${error.message}; over ${name(second.transport)}: ${second.error.message}`,
    {
      ...(condition && { condition }),
      cause: error,
      retryAfterMs,
      sessionLost,
      nextStep,
    },
  );
}

const name = (transport: Transport): string => `FINS/${transport.toUpperCase()}`;
