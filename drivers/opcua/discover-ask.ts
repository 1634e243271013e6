import type {
  BrowseDescriptionOptions,
  BrowseResult,
  DataValue,
  NodeId,
  ReadValueIdOptions,
  ReferenceDescription,
} from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import { stoppedWhile } from "../lib/abort.ts";

/** What discovery asks of a session; each call has its deadline. Throws FaultError for what the server refuses in a good session. */
export interface DiscoverySession {
  browse(nodes: BrowseDescriptionOptions[]): Promise<BrowseResult[]>;
  browseNext(continuationPoints: Buffer[], releaseContinuationPoints: boolean): Promise<BrowseResult[]>;
  read(nodes: ReadValueIdOptions[]): Promise<DataValue[]>;
}

export interface DiscoveryLimits {
  /** OperationLimits of the server; 0 or absent: it names none. */
  readonly maxNodesPerBrowse?: number;
  readonly maxNodesPerRead?: number;
}

/** Browse and Read of any number of nodes, in what the server takes at once. One bad node costs nothing but itself. */
export interface Asking {
  /** Hands on what hierarchical references lead to, page by page. */
  below<P extends { readonly nodeId: NodeId | string }>(
    parents: readonly P[],
    take: (parent: P, reference: ReferenceDescription) => void,
  ): Promise<void>;
  /** What a data type is a subtype of; undefined where the server does not say. */
  supertype(dataType: NodeId): Promise<NodeId | undefined>;
  /** Values of attributes, in their order; undefined where one is not good. */
  values(wanted: readonly { readonly nodeId: NodeId | string; readonly attributeId: number }[]): Promise<readonly unknown[]>;
}

const HIERARCHICAL_REFERENCES = "i=33";
const HAS_SUBTYPE = "i=45";
const FORWARD = 0;
const INVERSE = 1;
const OBJECTS_AND_VARIABLES = 3;
/** Type, direction, class, names and type definition of each reference. */
const ALL_FIELDS = 63;
const BAD = 0x8000_0000;
/** OPC 10000-4, 7.34: no room for another continuation point at the moment. */
const BAD_NO_CONTINUATION_POINTS = 0x804b_0000;
const MAX_BROWSE = 100;
const MAX_READ = 500;
/** Pages of one folder: a bound against a server whose folders have no end. */
const MAX_PAGES = 20_000;
/** Of them, those in a row that bring nothing. */
const MAX_EMPTY_PAGES = 100;

export function createAsking(session: DiscoverySession, limits: DiscoveryLimits, signal: AbortSignal): Asking {
  let browseAtOnce = Math.min(limits.maxNodesPerBrowse || MAX_BROWSE, MAX_BROWSE);
  let readAtOnce = Math.min(limits.maxNodesPerRead || MAX_READ, MAX_READ);

  const checkSignal = (): void => {
    if (signal.aborted) throw stoppedWhile("looking for variables", signal);
  };

  /** Asks for all of them, in pieces that get smaller where the server finds one too large. */
  async function inPieces<T>(
    all: readonly T[],
    size: () => number,
    shrink: (size: number) => void,
    one: (piece: readonly T[], at: number) => Promise<void>,
  ): Promise<void> {
    for (let at = 0; at < all.length; ) {
      checkSignal();
      const piece = all.slice(at, at + size());
      try {
        await one(piece, at);
      } catch (error) {
        // Refused as it is: the same for fewer nodes may be answered.
        if (!(error instanceof FaultError) || error.scope !== "points" || signal.aborted) throw error;
        if (piece.length > 1) {
          shrink(Math.ceil(piece.length / 2));
          continue;
        }
        // A single node that is too much for the server stays unknown.
      }
      at += piece.length;
    }
  }

  /** Every page of what was asked for; gives those for which the server had no continuation point free. */
  async function pages<P>(
    parents: readonly P[],
    results: readonly BrowseResult[],
    take: (parent: P, reference: ReferenceDescription) => void,
  ): Promise<readonly P[]> {
    const refused: P[] = [];
    let empty = 0;
    let open: { readonly parent: P; readonly point: Buffer }[] = [];
    const sort = (parent: P, result: BrowseResult | undefined): void => {
      if (result?.statusCode.value === BAD_NO_CONTINUATION_POINTS) refused.push(parent);
      if (!result || result.statusCode.value >= BAD) return;
      const references = result.references ?? [];
      if (references.length > 0) empty = 0;
      for (const reference of references) take(parent, reference);
      const point = result.continuationPoint;
      if (point && point.length > 0) open.push({ parent, point });
    };
    for (const [i, parent] of parents.entries()) sort(parent, results[i]);
    try {
      for (let page = 0; open.length > 0 && page < MAX_PAGES && empty < MAX_EMPTY_PAGES; page++) {
        checkSignal();
        const now = open;
        const next = await session.browseNext(
          now.map(({ point }) => point),
          false,
        );
        open = [];
        empty++;
        for (const [i, { parent }] of now.entries()) sort(parent, next[i]);
      }
    } finally {
      if (open.length > 0)
        await session
          .browseNext(
            open.map(({ point }) => point),
            true,
          )
          .catch(() => {});
    }
    return refused;
  }

  const description = (nodeId: NodeId | string): BrowseDescriptionOptions => ({
    nodeId,
    referenceTypeId: HIERARCHICAL_REFERENCES,
    includeSubtypes: true,
    browseDirection: FORWARD,
    nodeClassMask: OBJECTS_AND_VARIABLES,
    resultMask: ALL_FIELDS,
  });

  return {
    async below(parents, take) {
      const alone: (typeof parents)[number][] = [];
      await inPieces(
        parents,
        () => browseAtOnce,
        (size) => {
          browseAtOnce = size;
        },
        async (piece) => {
          const results = await session.browse(piece.map(({ nodeId }) => description(nodeId)));
          alone.push(...(await pages(piece, results, take)));
        },
      );
      // By then the continuation points of the others are free again.
      for (const parent of alone) {
        checkSignal();
        await pages([parent], await session.browse([description(parent.nodeId)]), take);
      }
    },

    async supertype(dataType) {
      checkSignal();
      const wanted = { nodeId: dataType, referenceTypeId: HAS_SUBTYPE, includeSubtypes: false, browseDirection: INVERSE };
      const [result] = await session.browse([{ ...wanted, nodeClassMask: 0, resultMask: 0 }]);
      return result && result.statusCode.value < BAD ? result.references?.[0]?.nodeId : undefined;
    },

    async values(wanted) {
      const values = new Array<unknown>(wanted.length);
      await inPieces(
        wanted,
        () => readAtOnce,
        (size) => {
          readAtOnce = size;
        },
        async (piece, at) => {
          const answers = await session.read([...piece]);
          for (const i of piece.keys()) {
            const answer = answers[i];
            values[at + i] = answer && answer.statusCode.value < BAD ? answer.value?.value : undefined;
          }
        },
      );
      return values;
    },
  };
}
