import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "./connection.ts";
import { Exchange } from "./exchange.ts";
import { connectRequest, type IsoTarget, isConnectRequest, MAX_PACKET_BYTES, packetLength, parseConnectAnswer } from "./iso.ts";

/** What the device has confirmed. */
export interface IsoConnected {
  /** Longest TPDU to the device, from its length byte on: 128 to 1024 bytes. */
  readonly tpduBytes: number;
  /** What arrived behind the confirm; nothing, unless the device speaks first. */
  readonly early: Buffer;
}

/**
 * Asks for an ISO connection on an open one, within the time-out for an answer. Whoever comes next takes the connection's bytes.
 * Throws ReasonError: CONNECTION_CLOSED where the device refuses (module_not_found where nothing is at the place), the connection's loss, TIMEOUT, or UNKNOWN (protocol_violation); the
 * connection is closed then.
 */
export async function connectIso(connection: Connection, target: IsoTarget, ctx: DriverContext): Promise<IsoConnected> {
  const { where } = connection;
  let settle: ((connected: IsoConnected) => void) | undefined;
  const exchange = new Exchange(connection, ctx.tap, {
    fence: (frame) => isConnectRequest(frame) || "a frame that is not an ISO connect request",
    frameLength: packetLength,
    maxFrameBytes: MAX_PACKET_BYTES,
    maxInFlight: 1,
    onFrame(packet) {
      const answer = parseConnectAnswer(packet);
      if (typeof answer === "string") return answer;
      if ("refusal" in answer) connection.fail(refusedError(where, answer.refusal, answer.isUnknown && target.isPlace === true), "close");
      else settle?.({ tpduBytes: answer.tpduBytes, early: exchange.release() });
      return undefined;
    },
  });
  return exchange.request<IsoConnected>(
    ctx,
    () => "the ISO connect request",
    (answer) => {
      settle = answer;
      exchange.send(connectRequest(target));
    },
  );
}

const refusedError = (where: string, refusal: string, isPlaceEmpty: boolean): ReasonError =>
  new ReasonError("CONNECTION_CLOSED", `${where} refused the ISO connection: ${refusal}`, {
    ...(isPlaceEmpty && { condition: "module_not_found" }),
  });
