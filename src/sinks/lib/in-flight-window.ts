import type { ReasonError, ReasonType } from "../../model/reason.ts";

/** What every open sink has in common: so many writes at once, the others in line, until it is lost for one reason. */
export interface WayOut {
  /** Settles once, with the reason. */
  readonly lost: Promise<ReasonError>;
  failure(): ReasonError | undefined;
  /** True: this is the reason; it was not lost before. */
  fail(reason: ReasonError): boolean;
  /** Does `work` when its turn has come. Throws the failure instead where there is one by then, and what `work` throws. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  /** Nothing is under way. */
  isIdle(): boolean;
}

/** `inFlight`: works under way at once, from 1. */
export function createWayOut(inFlight: number): WayOut {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  let failure: ReasonError | undefined;
  let settle: (reason: ReasonError) => void = () => {};
  const lost = new Promise<ReasonError>((done) => {
    settle = done;
  });
  return {
    lost,
    failure: () => failure,
    fail(reason) {
      if (failure) return false;
      failure = reason;
      settle(reason);
      // Each gets a place only to leave it.
      underWay += waiting.length;
      for (const go of waiting.splice(0)) go();
      return true;
    },
    async inTurn(work) {
      if (failure) throw failure;
      if (underWay < inFlight) underWay++;
      else await new Promise<void>((go) => waiting.push(go));
      try {
        if (failure) throw failure;
        return await work();
      } finally {
        // The place goes to the next in line, or is free.
        const next = waiting.shift();
        if (next) next();
        else underWay--;
      }
    },
    isIdle: () => underWay === 0,
  };
}

/** The far side, or something on the way, has ended the connection. */
export const isClose = (type: ReasonType): boolean => type === "CONNECTION_CLOSED" || type === "CONNECTION_RESET";
