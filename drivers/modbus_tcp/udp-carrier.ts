import { FaultError } from "../../src/model/fault.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import { createDeviceMemory, IdPool } from "../lib/ids.ts";
import { openUdp } from "../lib/udp.ts";
import { fence, frameLength, transactionOf, wrongAnswer } from "./frames.ts";
import { FRAMED, type Once, otherAnswer, Proof, Strays } from "./idless.ts";
import { type Ask, judge, type ModbusCarrier } from "./link.ts";
import type { ModbusSettings } from "./settings.ts";

/** The most requests under way, as over TCP. */
const MAX_IN_FLIGHT = 16;
/** An answer may come this much later. */
const LATE_MS = 30_000;
/** Without ids, a request is sent once: of its two answers, one would be there for the next request. */
const RETRANSMISSIONS = 2;

const idsOf = createDeviceMemory(() => new IdPool(16, LATE_MS));

const isWhole = (datagram: Buffer): boolean => frameLength(datagram, 0) === datagram.length;

/** One frame in a datagram. Throws ReasonError. */
export async function openUdpCarrier(endpoint: Endpoint, settings: ModbusSettings, ctx: DriverContext): Promise<ModbusCarrier> {
  const { framing } = settings;
  const at = `${endpoint.host}:${endpoint.port}`;
  const idless =
    framing === "tcp" ? undefined : { ...FRAMED[framing], framing, proof: new Proof(`udp ${at}`, framing, settings, ctx, true) };
  let underWay: number | undefined;
  const datagrams = await openUdp(endpoint, ctx, {
    fence: idless?.fence ?? fence,
    idOf: (datagram) => (idless ? underWay : isWhole(datagram) ? transactionOf(datagram) : undefined),
    ids: () => idsOf(at),
    maxInFlight: idless ? 1 : MAX_IN_FLIGHT,
    retransmissions: idless ? 0 : RETRANSMISSIONS,
    tap: ctx.tap,
  });
  const { where } = datagrams;
  const strays = new Strays();
  let isSilent = true;

  async function once<T>(askCtx: DriverContext, ask: Ask<T>, sent?: () => void): Promise<Once<T>> {
    let request: Buffer;
    return await datagrams.request<Once<T>>(askCtx, {
      frame(id) {
        request = ask.form(id);
        underWay = id;
        sent?.();
        return idless ? idless.wrap(request) : request;
      },
      take(datagram) {
        isSilent = false;
        const answer = idless ? idless.unwrap(datagram) : datagram;
        if (!answer) {
          strays.garbage(datagram.length);
          return undefined;
        }
        const other = idless ? otherAnswer(idless.framing, request, answer, ask.isWide) : wrongAnswer(request, answer);
        if (other === undefined) return { result: judge(ask, request, answer, where), request, bytes: Buffer.from(datagram) };
        strays.other(other);
        return undefined;
      },
      describe: () => `${ask.describe()}${isSilent ? ask.unitHint : ""}${strays.words}`,
    });
  }

  return {
    where,
    async ask<T>(askCtx: DriverContext, ask: Ask<T>) {
      if (idless) return idless.proof.ask(askCtx, ask.form(0), (sent) => once(askCtx, ask, sent));
      const { result } = await once(askCtx, ask);
      if (result instanceof FaultError) throw result;
      return result;
    },
    warnings: () => idless?.proof.warnings() ?? [],
    alive: () => datagrams.alive(),
    close: () => datagrams.close(),
  };
}
