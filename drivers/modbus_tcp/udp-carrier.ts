import { sleep } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import { createDeviceMemory, IdPool } from "../lib/ids.ts";
import { openUdp } from "../lib/udp.ts";
import { fence, frameLength, transactionOf, wrongAnswer } from "./frames.ts";
import { type Ask, judge, type ModbusCarrier } from "./link.ts";
import { FRAMED, lateMs, otherAnswer, Strays } from "./lock-step.ts";
import type { ModbusSettings } from "./settings.ts";

/** The most requests under way, as over TCP. */
const MAX_IN_FLIGHT = 16;
/** An answer may come this much later. */
const LATE_MS = 30_000;
/** Without ids, a request is sent once: of its two answers, one would be there for the next request. */
const RETRANSMISSIONS = 2;
/** Answers without an id that are remembered, 256 bytes each. */
const MAX_RECENT = 32;

const idsOf = createDeviceMemory(() => ({ ids: new IdPool(16, LATE_MS), untilMs: 0 }));

const isWhole = (datagram: Buffer): boolean => frameLength(datagram, 0) === datagram.length;

/** One frame in a datagram. Throws ReasonError. */
export async function openUdpCarrier(endpoint: Endpoint, { framing }: ModbusSettings, ctx: DriverContext): Promise<ModbusCarrier> {
  const device = idsOf(`${endpoint.host}:${endpoint.port}`);
  const idless = framing === "tcp" ? undefined : { ...FRAMED[framing], framing };
  let underWay: number | undefined;
  const datagrams = await openUdp(endpoint, ctx, {
    fence: idless?.fence ?? fence,
    idOf: (datagram) => (idless ? underWay : isWhole(datagram) ? transactionOf(datagram) : undefined),
    ids: () => device.ids,
    maxInFlight: idless ? 1 : MAX_IN_FLIGHT,
    retransmissions: idless ? 0 : RETRANSMISSIONS,
    tap: ctx.tap,
  });
  const { where } = datagrams;
  const strays = new Strays();
  const recent: { readonly request: Buffer; readonly answer: Buffer }[] = [];

  /** Gives the bytes of the answer too: they are all by which one answer without an id differs from another. */
  async function once<T>(askCtx: DriverContext, ask: Ask<T>): Promise<Once<T>> {
    let request: Buffer;
    return await datagrams.request<Once<T>>(askCtx, {
      frame(id) {
        request = ask.form(id);
        underWay = id;
        return idless ? idless.wrap(request) : request;
      },
      take(datagram) {
        const answer = idless ? idless.unwrap(datagram) : datagram;
        if (!answer) {
          strays.garbage(datagram.length);
          return undefined;
        }
        const other = idless ? otherAnswer(idless.framing, request, answer) : wrongAnswer(request, answer);
        if (other === undefined) return { result: judge(ask, request, answer, where), request, bytes: Buffer.from(datagram) };
        strays.other(other);
        return undefined;
      },
      describe: () => `${ask.describe()}${strays.words}`,
    });
  }

  /** An answer with the bytes of another request's may be that one, come twice: it counts once a second question has brought it again. */
  async function proven<T>(askCtx: DriverContext, ask: Ask<T>): Promise<T | FaultError> {
    const first = await once(askCtx, ask);
    if (!idless) return first.result;
    const isDoubtful = recent.some(({ request, answer }) => answer.equals(first.bytes) && !request.equals(first.request));
    const { result, request, bytes } = isDoubtful ? await once(askCtx, ask) : first;
    recent.push({ request: Buffer.from(request), answer: bytes });
    if (recent.length > MAX_RECENT) recent.shift();
    return result;
  }

  return {
    where,
    async ask<T>(askCtx: DriverContext, ask: Ask<T>) {
      const waitMs = idless ? device.untilMs - performance.now() : 0;
      if (waitMs > 0) await sleep(waitMs, askCtx.signal);
      const result = await proven(askCtx, ask).catch((error: unknown) => {
        device.untilMs = performance.now() + lateMs(askCtx.timeouts.answerMs);
        throw error;
      });
      if (result instanceof FaultError) throw result;
      return result;
    },
    alive: () => datagrams.alive(),
    close: () => datagrams.close(),
  };
}

interface Once<T> {
  readonly result: T | FaultError;
  readonly request: Buffer;
  readonly bytes: Buffer;
}
