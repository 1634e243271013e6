import type { AnyDriver, AnySession, DriverContext, Limits, Point } from "../../drivers/driver.ts";
import { toReasonError } from "../model/failure.ts";
import type { ReasonError } from "../model/reason.ts";
import type { LearnedGroups } from "./learned-groups.ts";
import { type PassOptions, ReadPass, type ReadResult } from "./read-pass.ts";

export interface ReadDeps {
  readonly driver: AnyDriver;
  /** Opens a session. Throws ReasonError. */
  connect(): Promise<AnySession>;
  /** What the source may ask for on this session. Default: what it grants. */
  limitsOf?(session: AnySession): Limits;
  /** The first connection of the readout stands: its requests begin now. */
  began?(): void;
  /**
   * Looks up addresses before a connection is used, and makes them what is planned; false: nothing had to be, or its time in this readout
   * is over. Throws ReasonError. Absent: nothing to look up.
   */
  prepare?(session: AnySession): Promise<boolean>;
  /** What was looked up holds no longer. */
  unprepared?(): void;
  /**
   * Gives the turn on the device to others and waits for another one, with an open connection if there is one. `session`: undefined where
   * the last connection is closed. False: this readout has none any more. Absent: nobody else uses the device.
   */
  passOn?(isAnswered: boolean, session: AnySession | undefined): Promise<AnySession | undefined | false>;
}

/** A pass that has ended, and what is left of its connection. */
export interface Read extends ReadResult {
  /** Undefined: it is lost. */
  readonly session: AnySession | undefined;
  /** The closing of the last lost session, which may take a second: nobody has to wait for it to know what happened. */
  readonly closing: Promise<void> | undefined;
  /** The connection could not be opened. */
  readonly refused: ReasonError | undefined;
}

/**
 * Reads every point once, over as many connections as it takes: `kept` first, if there is one. Throws what the driver throws by
 * mistake, after it has closed the session.
 */
export async function readOnce(
  deps: ReadDeps,
  learned: LearnedGroups,
  kept: AnySession | undefined,
  ctx: DriverContext,
  options: PassOptions = {},
): Promise<Read> {
  const pass = new ReadPass(deps.driver, learned, options);
  let session = kept;
  let isKept = kept !== undefined;
  let closing: Promise<void> | undefined;
  let hasBegun = false;
  let hasConnectedAgain = false;
  /** What was planned when the device said that it has another program. */
  let before: readonly Point[] | undefined;
  for (;;) {
    if (!session) {
      // Many devices take one connection: the next is opened when the last has gone.
      await closing;
      try {
        session = await deps.connect();
      } catch (error) {
        const refused = toReasonError(error);
        // A gateway may have been busy with what another of the device had asked for in vain.
        const isExcused = refused.reason.type === "TIMEOUT" && options.share?.user.isShadowed === true && !hasConnectedAgain;
        const next = isExcused ? await deps.passOn?.(pass.answered > 0, undefined) : false;
        if (next === false) return { ...pass.finish(refused), session: undefined, closing, refused };
        hasConnectedAgain = true;
        session = next;
        isKept = next !== undefined;
        continue;
      }
    }
    let hasLookedUp = false;
    try {
      hasLookedUp = (await deps.prepare?.(session)) ?? false;
    } catch (error) {
      const refused = toReasonError(error);
      closing = session.close();
      // That a kept connection has ended meanwhile says nothing of the device.
      if (!isKept || !refused.sessionLost) return { ...pass.finish(refused), session: undefined, closing, refused: undefined };
      isKept = false;
      session = undefined;
      continue;
    }
    if (hasLookedUp && !session.alive()) {
      // The time for looking up was over, and with it this connection: what is known is read over another one.
      closing = session.close();
      isKept = false;
      session = undefined;
      continue;
    }
    try {
      const limits = deps.limitsOf?.(session) ?? session.limits;
      const planned = learned.prepare(deps.driver, limits);
      if (planned) await planned;
      if (before && before !== learned.points) pass.readAgain(before, learned.points);
      before = undefined;
      if (!hasBegun) deps.began?.();
      hasBegun = true;
      const end = await pass.run(session, limits, ctx, isKept);
      if (end === "unprepared") {
        before = learned.points;
        deps.unprepared?.();
        isKept = false;
        continue;
      }
      if (end === "turn" && deps.passOn) {
        const next: AnySession | undefined | false = await deps.passOn(true, session);
        if (next === false) return { ...pass.finish(), session: undefined, closing, refused: undefined };
        session = next;
        isKept = next !== undefined;
        continue;
      }
      const goesOn = end === "lost" || end === "renew" || end === "turn";
      if (!goesOn && !pass.isLost && session.alive()) return { ...pass.finish(), session, closing, refused: undefined };
      closing = session.close();
      if (!goesOn) return { ...pass.finish(), session: undefined, closing, refused: undefined };
    } catch (error) {
      await session?.close();
      throw error;
    }
    session = undefined;
    isKept = false;
    if (!pass.isLost || !deps.passOn) continue;
    await closing;
    const next = await deps.passOn(pass.answered > 0, undefined);
    if (next === false) return { ...pass.finish(), session: undefined, closing, refused: undefined };
    session = next;
    isKept = next !== undefined;
  }
}
