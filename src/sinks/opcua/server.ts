import {
  ActivateSessionResponse,
  AttributeIds,
  CallMethodResult,
  CallResponse,
  EndpointDescription,
  GetEndpointsResponse,
  type MonitoringParameters,
  ServiceFault,
  StatusCodes,
  UserTokenType,
  WriteResponse,
} from "node-opcua-client";
import { OPCUAServer, type OPCUAServerOptions } from "node-opcua-server";
import { budgetLog } from "../../lib/log-budget.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { type Channel, holdNotifications, type PublishEngine } from "./answers.ts";
import { adaptEndpointUrl } from "./endpoint-url.ts";
import type { Gate } from "./gate.ts";
import { LIMITS } from "./limits.ts";
import { sessionsOf } from "./sessions.ts";

type Message = Parameters<OPCUAServer["on_request"]>[0];
type ResponseClass = Parameters<OPCUAServer["_apply_on_SessionObject"]>[0];
type Action = Parameters<OPCUAServer["_apply_on_SessionObject"]>[3];

const MAX_LOGGED = 300;
/** Requests that cannot be answered; how many there are is the clients' to decide. */
const LINES_PER_MINUTE = 60;

/** How fast a node's value changes, ms; undefined: not a variable of a data source. */
export type IntervalOf = (nodeId: { readonly namespace: number; readonly value: unknown }) => number | undefined;

/**
 * node-opcua's server, closed to all but reading: whatever changes something is refused before the library sees it, and what a client may
 * make grow has a bound. Errors of the library's own are answered without its stack, and none leaves as an unhandled rejection.
 */
export class ReadOnlyServer extends OPCUAServer {
  /** The gate between each channel and its socket. */
  readonly gates = new WeakMap<object, Gate>();
  readonly #log: Log;
  readonly #intervalOf: IntervalOf;
  /** Of each session's queue of Publish requests, the channel that they come by. */
  readonly #publishing = new WeakMap<object, { channel: Channel }>();
  #crowding: Crowding = { madeRoom: 0, refused: 0 };
  /** A Publish request is being queued: the library counts on finding it there. */
  #isQueueing = false;

  constructor(options: OPCUAServerOptions, log: Log, intervalOf: IntervalOf) {
    super(options);
    this.#log = budgetLog(log, { linesPerMinute: LINES_PER_MINUTE, of: "the OPC UA server's requests" });
    this.#intervalOf = intervalOf;
  }

  /** Sessions that ended to make room, and clients that found none. */
  get crowding(): Crowding {
    return this.#crowding;
  }

  override on_request(message: Message, channel: Channel): void {
    const { request } = message;
    const { name } = request.schema;
    // A Publish is answered when there is something to publish.
    this.gates.get(channel)?.asked(message, name !== "PublishRequest");
    const fail = (error: unknown): void => {
      this.#log.debug({ service: name, err: messageOf(error).slice(0, MAX_LOGGED) }, "an OPC UA request could not be answered");
      answer(channel, message, new ServiceFault({ responseHeader: { serviceResult: StatusCodes.BadInternalError } }));
    };
    try {
      this.prepare(message, channel);
      this.emit("request", request, channel);
      const handler: unknown = Reflect.get(this, `_on_${name}`);
      if (typeof handler !== "function") {
        answer(channel, message, new ServiceFault({ responseHeader: { serviceResult: StatusCodes.BadServiceUnsupported } }));
        return;
      }
      const done: unknown = handler.call(this, message, channel);
      if (done instanceof Promise) done.catch(fail);
    } catch (error) {
      fail(error);
    }
  }

  /** The library starts these and does not look after them. */
  protected override async _apply_on_SessionObject(
    response: ResponseClass,
    message: Message,
    channel: Channel,
    action: Action,
  ): Promise<void> {
    let isAnswered = false;
    const guarded: Action = (session, sendResponse, sendError) =>
      action(
        session,
        (given) => {
          isAnswered = true;
          sendResponse(given);
        },
        (code) => {
          isAnswered = true;
          sendError(code);
        },
      );
    try {
      await super._apply_on_SessionObject(response, message, channel, guarded);
    } catch (error) {
      this.#log.debug({ err: messageOf(error).slice(0, MAX_LOGGED) }, "an OPC UA request could not be answered");
      if (!isAnswered) answer(channel, message, new ServiceFault({ responseHeader: { serviceResult: StatusCodes.BadInternalError } }));
    }
  }

  /**
   * A session that nobody comes back to ends after LIMITS.sessionTimeout; where room is needed, those end first that have no connection any
   * more, the longest silent before the others (OPC 10000-4, 5.7.2.1). The library grants 50 minutes, and ends none that was activated.
   */
  protected override async _on_CreateSessionRequest(message: Message, channel: Channel): Promise<void> {
    const request = message.request as unknown as { requestedSessionTimeout: number };
    request.requestedSessionTimeout = Math.min(request.requestedSessionTimeout || LIMITS.sessionTimeout, LIMITS.sessionTimeout);
    const { maxSessions } = this.engine.serverCapabilities;
    if (this.currentSessionCount >= maxSessions) this.#makeRoom();
    await super._on_CreateSessionRequest(message, channel);
  }

  #makeRoom(): void {
    const [longest] = sessionsOf(this)
      .filter(({ aborted }) => aborted)
      .toSorted((one, other) => other.clientLastContactTime - one.clientLastContactTime);
    const { madeRoom, refused } = this.#crowding;
    if (!longest) {
      this.#crowding = { madeRoom, refused: refused + 1 };
      return;
    }
    this.#crowding = { madeRoom: madeRoom + 1, refused };
    this.#log.warn(
      { session: String(longest.sessionName).slice(0, MAX_LOGGED) },
      "a session of the OPC UA server without a connection ended to make room for another client",
    );
    this.engine.closeSession(longest.authenticationToken, true, "Forcing");
  }

  /** Whoever sends no token means to be anonymous (OPC 10000-4, 5.7.3.2); the library throws where that is not offered. */
  protected override _on_ActivateSessionRequest(message: Message, channel: Channel): void {
    const request = message.request as { userIdentityToken?: unknown };
    const session = this.getSession(message.request.requestHeader.authenticationToken);
    const tokens = session?.endpoint?.userIdentityTokens ?? [];
    if (!request.userIdentityToken && session && !tokens.some(({ tokenType }) => tokenType === UserTokenType.Anonymous)) {
      answer(channel, message, new ActivateSessionResponse({ responseHeader: { serviceResult: StatusCodes.BadIdentityTokenRejected } }));
      return;
    }
    super._on_ActivateSessionRequest(message, channel);
  }

  /** The host and port that the client came by, so that the answer is good behind NAT and with any of this machine's names (OPC 10000-4, 5.5.4.1). */
  protected override _on_GetEndpointsRequest(message: Message, channel: Channel): void {
    const { endpointUrl, profileUris } = message.request as unknown as { endpointUrl: string | null; profileUris: string[] | null };
    const endpoints = this.findMatchingEndpoints(null)
      .filter((endpoint) => !("restricted" in endpoint && endpoint.restricted))
      .filter(({ transportProfileUri }) => !profileUris?.length || profileUris.includes(transportProfileUri ?? ""))
      .map((endpoint) => {
        const copy = new EndpointDescription(endpoint);
        copy.endpointUrl = adaptEndpointUrl(endpoint.endpointUrl ?? "", endpointUrl);
        copy.serverCertificate = endpoint.serverCertificate;
        return copy;
      });
    const response = new GetEndpointsResponse({});
    response.endpoints = endpoints;
    answer(channel, message, response);
  }

  protected override _on_WriteRequest(message: Message, channel: Channel): void {
    const { nodesToWrite } = message.request as unknown as { nodesToWrite: readonly unknown[] | null };
    this.#refuseEach(WriteResponse, nodesToWrite, message, channel, (count) => {
      return new WriteResponse({ results: Array.from({ length: count }, () => StatusCodes.BadNotWritable) });
    });
  }

  protected override _on_CallRequest(message: Message, channel: Channel): void {
    const { methodsToCall } = message.request as unknown as { methodsToCall: readonly unknown[] | null };
    this.#refuseEach(CallResponse, methodsToCall, message, channel, (count) => {
      const results = Array.from({ length: count }, () => new CallMethodResult({ statusCode: StatusCodes.BadNotExecutable }));
      return new CallResponse({ results });
    });
  }

  #refuseEach(
    responseClass: ResponseClass,
    asked: readonly unknown[] | null,
    message: Message,
    channel: Channel,
    response: (count: number) => Parameters<Parameters<Action>[1]>[0],
  ): void {
    void this._apply_on_SessionObject(responseClass, message, channel, (_session, sendResponse, sendError) => {
      const count = asked?.length ?? 0;
      if (count === 0) sendError(StatusCodes.BadNothingToDo);
      else if (count > LIMITS.nodesPerRead) sendError(StatusCodes.BadTooManyOperations);
      else sendResponse(response(count));
    });
  }

  protected override _on_PublishRequest(message: Message, channel: Channel): void {
    const engine = this.getSession(message.request.requestHeader.authenticationToken, true)?.publishEngine;
    const known = engine && this.#publishing.get(engine);
    if (known) known.channel = channel;
    else if (engine) {
      const by = { channel };
      this.#publishing.set(engine, by);
      holdNotifications(engine as unknown as PublishEngine, () => (this.#isQueueing ? undefined : this.gates.get(by.channel)));
    }
    this.#isQueueing = true;
    try {
      super._on_PublishRequest(message, channel);
    } finally {
      this.#isQueueing = false;
    }
  }

  protected override _on_CreateMonitoredItemsRequest(message: Message, channel: Channel): void {
    const { itemsToCreate } = message.request as unknown as {
      itemsToCreate: readonly { itemToMonitor: ItemToMonitor; requestedParameters: MonitoringParameters }[] | null;
    };
    for (const { itemToMonitor, requestedParameters } of itemsToCreate ?? []) this.#bound(itemToMonitor, requestedParameters);
    super._on_CreateMonitoredItemsRequest(message, channel);
  }

  protected override _on_ModifyMonitoredItemsRequest(message: Message, channel: Channel): void {
    const { subscriptionId, itemsToModify } = message.request as unknown as {
      subscriptionId: number;
      itemsToModify: readonly { monitoredItemId: number; requestedParameters: MonitoringParameters }[] | null;
    };
    const session = this.getSession(message.request.requestHeader.authenticationToken, true);
    const subscription = session?.getSubscription(subscriptionId);
    for (const { monitoredItemId, requestedParameters } of itemsToModify ?? []) {
      const item = subscription?.getMonitoredItem(monitoredItemId);
      const known = item?.node ? { nodeId: item.node.nodeId, attributeId: item.itemToMonitor.attributeId } : undefined;
      this.#bound(known, requestedParameters, item?.isExceptionBased === false);
    }
    super._on_ModifyMonitoredItemsRequest(message, channel);
  }

  /**
   * A value of a data source comes to the item when it is read, and not by a timer that would miss one and repeat another, unless the client
   * wants it slower than that. Asked of the library in its own terms: a sampling interval of 0 means by exception.
   */
  #bound(item: ItemToMonitor | undefined, parameters: MonitoringParameters, isSampled = false): void {
    const isEvent = item?.attributeId === AttributeIds.EventNotifier;
    parameters.queueSize = Math.min(parameters.queueSize, isEvent ? LIMITS.eventQueue : LIMITS.dataQueue);
    if (item?.attributeId !== AttributeIds.Value || isSampled) return;
    const intervalMs = this.#intervalOf(item.nodeId);
    if (intervalMs !== undefined && parameters.samplingInterval <= intervalMs) parameters.samplingInterval = 0;
  }
}

export interface Crowding {
  readonly madeRoom: number;
  readonly refused: number;
}

interface ItemToMonitor {
  readonly nodeId: { readonly namespace: number; readonly value: unknown };
  readonly attributeId: number;
}

/** A channel may be gone before its answer. */
function answer(channel: Channel, message: Message, response: Parameters<Channel["send_response"]>[1]): void {
  try {
    channel.send_response("MSG", response, message);
  } catch {
    // The client is gone.
  }
}
