import { ServiceFault, StatusCodes } from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { Gate } from "./gate.ts";

export type Channel = Parameters<OPCUAServer["on_request"]>[1];

const MAX_LOGGED = 300;

/**
 * An answer that cannot be encoded becomes a service fault to that request; the library lets the error out of whatever made the answer,
 * which may be a timer or a promise that nobody waits for. The gate learns which requests have their answer, and whether a session is active.
 */
export function guardAnswers(channel: Channel, gate: Gate, log: Log): void {
  let wasActivated = false;
  gate.activatedBy(() => wasActivated && channel.hasSession);
  const send = channel.send_response.bind(channel);
  channel.send_response = (type, response, message, done) => {
    try {
      send(type, response, message, done);
      if (response.schema.name === "ActivateSessionResponse" && response.responseHeader.serviceResult.isGood()) wasActivated = true;
    } catch (error) {
      log.warn(
        { service: message.request.schema.name, err: messageOf(error).slice(0, MAX_LOGGED) },
        "an answer of the OPC UA server cannot be encoded: the client gets BadEncodingError",
      );
      refuse(() => send(type, new ServiceFault({ responseHeader: { serviceResult: StatusCodes.BadEncodingError } }), message, done));
    } finally {
      gate.answered(message);
    }
  };

  const refuse = (sendFault: () => void): void => {
    try {
      sendFault();
    } catch {
      channel.close();
    }
  };
}

/** The library's queue of Publish requests of one session. */
export interface PublishEngine {
  readonly _publish_request_queue: readonly unknown[];
}

/**
 * While a client leaves its answers unread, its Publish requests count as none: notifications wait in the bounded queues of its monitored
 * items, and not as encoded answers. The subscriptions look again at their next publishing interval. `gateOf`: of the channel that the
 * session is on.
 */
export function holdNotifications(engine: PublishEngine, gateOf: () => Gate | undefined): void {
  Object.defineProperty(engine, "pendingPublishRequestCount", {
    configurable: true,
    get: (): number => (gateOf()?.isCongested ? 0 : engine._publish_request_queue.length),
  });
}
