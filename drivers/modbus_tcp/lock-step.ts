import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange, takeFor } from "../lib/exchange.ts";
import { frameLength } from "./frames.ts";
import { FRAMED, type IdlessFraming, type Once, otherAnswer, Proof, Strays } from "./idless.ts";
import { type Ask, judge, type ModbusCarrier } from "./link.ts";
import { nextRtu } from "./rtu.ts";
import type { ModbusSettings } from "./settings.ts";

interface Asked {
  readonly request: Buffer;
  readonly isWide: boolean;
  take(answer: Buffer, bytes: Buffer): void;
}

/**
 * One request at a time over a stream whose answers do not name their request: an answer is the one that comes while its request is under way, with
 * its unit, its function and its byte count. See Proof for what else could be taken for it.
 */
export function lockStepCarrier(
  connection: Connection,
  ctx: DriverContext,
  framing: IdlessFraming,
  settings: ModbusSettings,
): ModbusCarrier {
  const { where } = connection;
  const { wrap, unwrap, ...rules } = FRAMED[framing];
  const proof = new Proof(where, framing, settings, ctx, false);
  const strays = new Strays();
  let asked: Asked | undefined;
  let isDamaged = false;
  let isSilent = true;

  const exchange = new Exchange(connection, ctx.tap, {
    ...rules,
    maxInFlight: 1,
    frameLength(bytes, start) {
      if (framing !== "rtu") return frameLength(bytes, start);
      const step = nextRtu(bytes, start, asked?.request, asked?.isWide === true);
      if (step.length === undefined && step.isDamaged && !isDamaged) {
        isDamaged = true;
        strays.damaged();
      }
      return step.length;
    },
    onFrame(bytes) {
      isSilent = false;
      const answer = unwrap(bytes);
      if (!answer) strays.garbage(bytes.length);
      else if (!asked) {
        proof.unasked();
        strays.other("no request was under way");
      } else {
        const why = otherAnswer(framing, asked.request, answer, asked.isWide);
        if (why === undefined) asked.take(answer, bytes);
        else strays.other(why);
      }
      return undefined;
    },
  });

  const once = <T>(askCtx: DriverContext, ask: Ask<T>, sent: () => void): Promise<Once<T>> =>
    exchange
      .request<Once<T>>(
        askCtx,
        () => `${ask.describe()}${isSilent ? ask.unitHint : ""}${strays.words}`,
        (done, refuse) => {
          const request = ask.form(0);
          const take = (answer: Buffer, bytes: Buffer): undefined => {
            asked = undefined;
            done({ result: judge(ask, request, answer, where), request, bytes: Buffer.from(bytes) });
          };
          isDamaged = false;
          asked = { request, isWide: ask.isWide, take: (answer, bytes) => void takeFor(refuse, () => take(answer, bytes)) };
          exchange.send(wrap(request));
          sent();
        },
      )
      .finally(() => {
        asked = undefined;
      });

  return {
    where,
    ask: (askCtx, ask) => proof.ask(askCtx, ask.form(0), (sent) => once(askCtx, ask, sent)),
    warnings: () => proof.warnings(),
    alive: () => connection.alive(),
    close: () => connection.close(),
  };
}
