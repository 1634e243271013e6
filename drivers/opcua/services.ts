import {
  ActivateSessionRequest,
  ActivateSessionResponse,
  BrowseNextRequest,
  BrowseNextResponse,
  BrowseRequest,
  BrowseResponse,
  CloseSessionRequest,
  CloseSessionResponse,
  CreateMonitoredItemsRequest,
  CreateMonitoredItemsResponse,
  CreateSessionRequest,
  CreateSessionResponse,
  CreateSubscriptionRequest,
  CreateSubscriptionResponse,
  crypto_utils,
  DeleteMonitoredItemsRequest,
  DeleteMonitoredItemsResponse,
  DeleteSubscriptionsRequest,
  DeleteSubscriptionsResponse,
  GetEndpointsRequest,
  GetEndpointsResponse,
  PublishRequest,
  ReadRequest,
  ReadResponse,
  TranslateBrowsePathsToNodeIdsRequest,
  TranslateBrowsePathsToNodeIdsResponse,
} from "node-opcua-client";
import { RegisterNodesRequest, RegisterNodesResponse } from "node-opcua-service-register-node";
import type { PublishAnswer, ReadAnswer } from "./answers.ts";
import type { PlainAnswer } from "./plain-values.ts";

/** Each service that the driver calls, with its request and its response; undefined: answers.ts has it. */
export const SERVICES = {
  GetEndpoints: [GetEndpointsRequest, GetEndpointsResponse],
  CreateSession: [CreateSessionRequest, CreateSessionResponse],
  ActivateSession: [ActivateSessionRequest, ActivateSessionResponse],
  CloseSession: [CloseSessionRequest, CloseSessionResponse],
  Read: [ReadRequest, undefined],
  /** A Read whose values node-opcua takes apart into its own objects: structures that describe others. */
  ReadObjects: [ReadRequest, ReadResponse],
  Browse: [BrowseRequest, BrowseResponse],
  BrowseNext: [BrowseNextRequest, BrowseNextResponse],
  TranslateBrowsePathsToNodeIds: [TranslateBrowsePathsToNodeIdsRequest, TranslateBrowsePathsToNodeIdsResponse],
  RegisterNodes: [RegisterNodesRequest, RegisterNodesResponse],
  CreateSubscription: [CreateSubscriptionRequest, CreateSubscriptionResponse],
  CreateMonitoredItems: [CreateMonitoredItemsRequest, CreateMonitoredItemsResponse],
  DeleteMonitoredItems: [DeleteMonitoredItemsRequest, DeleteMonitoredItemsResponse],
  DeleteSubscriptions: [DeleteSubscriptionsRequest, DeleteSubscriptionsResponse],
  Publish: [PublishRequest, undefined],
} as const;
export type Service = keyof typeof SERVICES;
export type RequestOf<S extends Service> = InstanceType<(typeof SERVICES)[S][0]>;
/** Two that come often are taken apart by the driver itself: see answers.ts. */
export type ResponseOf<S extends Service> = S extends "Read"
  ? ReadAnswer | PlainAnswer
  : S extends "Publish"
    ? PublishAnswer
    : (typeof SERVICES)[S][1] extends abstract new (
          ...given: never
        ) => infer R
      ? R
      : never;
export type RequestOptions<S extends Service> = ConstructorParameters<(typeof SERVICES)[S][0]>[0];

/** A certificate and its key, as node-opcua takes them. */
export interface KeyPair {
  readonly certificate: Buffer;
  readonly key: ReturnType<typeof crypto_utils.makePrivateKeyFromPem>;
}

/** `pem` is the text of the key. Throws what node-opcua does for a key that is none. */
export const keyPair = (certificate: Uint8Array, pem: string): KeyPair => ({
  certificate: Buffer.from(certificate),
  key: crypto_utils.makePrivateKeyFromPem(pem),
});

/** DER certificates from one buffer, the server's own first; empty for what is none. */
export function splitChain(certificate: Uint8Array): Buffer[] {
  if (certificate.length === 0) return [];
  try {
    return crypto_utils.split_der(Buffer.from(certificate));
  } catch {
    return [Buffer.from(certificate)];
  }
}

/** Makes a request. node-opcua sets its handle when it is sent: each is sent once. */
export function makeRequest<S extends Service>(service: S, options: RequestOptions<S>): RequestOf<S> {
  const [Request] = SERVICES[service];
  return new (Request as unknown as new (given: RequestOptions<S>) => RequestOf<S>)(options);
}
