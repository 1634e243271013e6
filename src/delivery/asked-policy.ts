import type { Context } from "../model/context.ts";

type PolicyOfContext = Pick<Context, "permit" | "listenRefusal">;

interface Verdict {
  /** Asks again. */
  readonly judge: () => string | undefined;
  readonly isRefused: boolean;
}

/** Of one opening; a name with more addresses than this is judged by its first. */
const MAX_VERDICTS = 64;

/** What the policy said while a sink was opened, so that a change of the policy is known to concern the sink or not. */
export class AskedPolicy {
  /** The policy as it is at any moment, for the opening. */
  readonly context: PolicyOfContext;
  readonly #verdicts = new Map<string, Verdict>();

  /** `policy` follows the one in force. */
  constructor({ permit, listenRefusal }: PolicyOfContext) {
    this.context = {
      ...(permit && {
        permit: (address: string, port: number) => this.#asked(`connect ${address} ${port}`, () => permit(address, port)),
      }),
      ...(listenRefusal && { listenRefusal: (at: string) => this.#asked(`listen ${at}`, () => listenRefusal(at)) }),
    };
  }

  /** Undefined: what was asked has the same answers now. `refusal`: words for what was allowed and is not any more. */
  change(): { readonly refusal: string | undefined } | undefined {
    const now = [...this.#verdicts.values()].map(({ judge, isRefused }) => ({ refusal: judge(), isRefused }));
    if (now.every(({ refusal, isRefused }) => isRefused === (refusal !== undefined))) return undefined;
    return { refusal: now.find(({ refusal, isRefused }) => refusal !== undefined && !isRefused)?.refusal };
  }

  #asked(key: string, judge: () => string | undefined): string | undefined {
    const refusal = judge();
    if (this.#verdicts.size < MAX_VERDICTS) this.#verdicts.set(key, { judge, isRefused: refusal !== undefined });
    return refusal;
  }
}
