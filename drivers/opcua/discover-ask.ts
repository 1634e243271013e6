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
  /** `maxReferences`: of one node in one answer, the rest with `browseNext`; 0: as many as the server likes. */
  browse(nodes: BrowseDescriptionOptions[], maxReferences: number): Promise<BrowseResult[]>;
  browseNext(continuationPoints: Buffer[], releaseContinuationPoints: boolean): Promise<BrowseResult[]>;
  read(nodes: ReadValueIdOptions[]): Promise<DataValue[]>;
}

export interface DiscoveryLimits {
  /** OperationLimits of the server; 0 or absent: it names none. */
  readonly maxNodesPerBrowse?: number;
  readonly maxNodesPerRead?: number;
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
/** Of one node at once, where the answer with all of them is too large: half as many each time. */
const FEWER_REFERENCES = 1024;
/** Pages of one folder: a bound against a server whose folders have no end. */
const MAX_PAGES = 20_000;
/** Of them, those in a row that bring nothing. */
const MAX_EMPTY_PAGES = 100;

/** What is done with one reference that a browse of a parent gives. */
type Take<P> = (parent: P, reference: ReferenceDescription) => void;

/** Continuation points that are still open, and what came of the pages so far. */
interface Pages<P> {
  readonly take: Take<P>;
  open: { readonly parent: P; readonly point: Buffer }[];
  /** Those for which the server had no continuation point free. */
  readonly refused: P[];
  /** Pages in a row that brought nothing. */
  empty: number;
}

/** Browse and Read of any number of nodes, in what the server takes at once. One bad node costs nothing but itself. */
export class Asking {
  readonly #session: DiscoverySession;
  readonly #signal: AbortSignal;
  #browseAtOnce: number;
  #readAtOnce: number;
  /** Of one node in one answer; 0: as many as the server likes. */
  #maxReferences = 0;

  constructor(session: DiscoverySession, { maxNodesPerBrowse, maxNodesPerRead }: DiscoveryLimits, signal: AbortSignal) {
    this.#session = session;
    this.#signal = signal;
    this.#browseAtOnce = Math.min(maxNodesPerBrowse || MAX_BROWSE, MAX_BROWSE);
    this.#readAtOnce = Math.min(maxNodesPerRead || MAX_READ, MAX_READ);
  }

  /** Hands on what hierarchical references lead to, page by page. */
  async below<P extends { readonly nodeId: NodeId | string }>(parents: readonly P[], take: Take<P>): Promise<void> {
    const isolated: P[] = [];
    for (let at = 0; at < parents.length; ) {
      const piece = parents.slice(at, at + this.#browseAtOnce);
      const isDone = await this.#isTaken(piece, this.#maxReferences === 1, async () => {
        const results = await this.#session.browse(
          piece.map(({ nodeId }) => description(nodeId)),
          this.#maxReferences,
        );
        isolated.push(...(await this.#pages(piece, results, take)));
      });
      if (isDone) at += piece.length;
      else if (piece.length === 1) this.#maxReferences = Math.floor((this.#maxReferences || 2 * FEWER_REFERENCES) / 2);
      else this.#browseAtOnce = Math.ceil(piece.length / 2);
    }
    // By then the continuation points of the others are free again.
    for (const parent of isolated) {
      this.#checkSignal();
      await this.#pages([parent], await this.#session.browse([description(parent.nodeId)], this.#maxReferences), take);
    }
  }

  /** What a data type is a subtype of; undefined where the server does not say. */
  async supertype(dataType: NodeId): Promise<NodeId | undefined> {
    this.#checkSignal();
    const wanted = { nodeId: dataType, referenceTypeId: HAS_SUBTYPE, includeSubtypes: false, browseDirection: INVERSE };
    const [result] = await this.#session.browse([{ ...wanted, nodeClassMask: 0, resultMask: 0 }], 0);
    const found = result && result.statusCode.value < BAD ? result.references?.[0]?.nodeId : undefined;
    return found && found.serverIndex === 0 && !found.namespaceUri ? found : undefined;
  }

  /** Values of attributes, in their order; undefined where one is not good. */
  async values(wanted: readonly { readonly nodeId: NodeId | string; readonly attributeId: number }[]): Promise<readonly unknown[]> {
    const values = new Array<unknown>(wanted.length);
    for (let at = 0; at < wanted.length; ) {
      const piece = wanted.slice(at, at + this.#readAtOnce);
      const isDone = await this.#isTaken(piece, true, async () => {
        const answers = await this.#session.read([...piece]);
        for (const i of piece.keys()) {
          const answer = answers[i];
          values[at + i] = answer && answer.statusCode.value < BAD ? answer.value?.value : undefined;
        }
      });
      if (isDone) at += piece.length;
      else this.#readAtOnce = Math.ceil(piece.length / 2);
    }
    return values;
  }

  #checkSignal(): void {
    if (this.#signal.aborted) throw stoppedWhile("looking for variables", this.#signal);
  }

  /** False: the server refuses this piece as it is, and may answer for less. `isLeast`: less of one node cannot be asked for. */
  async #isTaken(piece: readonly unknown[], isLeast: boolean, ask: () => Promise<void>): Promise<boolean> {
    this.#checkSignal();
    try {
      await ask();
    } catch (error) {
      if (!(error instanceof FaultError) || error.scope !== "points" || this.#signal.aborted) throw error;
      // A single node that is too much for the server stays unknown.
      return isLeast && piece.length === 1;
    }
    return true;
  }

  /** Every page of what was asked for; gives those for which the server had no continuation point free. */
  async #pages<P>(parents: readonly P[], results: readonly BrowseResult[], take: Take<P>): Promise<readonly P[]> {
    const pages: Pages<P> = { take, open: [], refused: [], empty: 0 };
    for (const [i, parent] of parents.entries()) sort(pages, parent, results[i]);
    try {
      for (let page = 0; pages.open.length > 0 && page < MAX_PAGES && pages.empty < MAX_EMPTY_PAGES; page++) {
        this.#checkSignal();
        const now = pages.open;
        const next = await this.#session.browseNext(pointsOf(now), false);
        pages.open = [];
        pages.empty++;
        for (const [i, { parent }] of now.entries()) sort(pages, parent, next[i]);
      }
    } finally {
      if (pages.open.length > 0) await this.#session.browseNext(pointsOf(pages.open), true).catch(() => {});
    }
    return pages.refused;
  }
}

function sort<P>(pages: Pages<P>, parent: P, result: BrowseResult | undefined): void {
  if (result?.statusCode.value === BAD_NO_CONTINUATION_POINTS) pages.refused.push(parent);
  if (!result || result.statusCode.value >= BAD) return;
  const references = result.references ?? [];
  if (references.length > 0) pages.empty = 0;
  for (const reference of references) pages.take(parent, reference);
  const point = result.continuationPoint;
  if (point && point.length > 0) pages.open.push({ parent, point });
}

const pointsOf = (open: readonly { readonly point: Buffer }[]): Buffer[] => open.map(({ point }) => point);

const description = (nodeId: NodeId | string): BrowseDescriptionOptions => ({
  nodeId,
  referenceTypeId: HIERARCHICAL_REFERENCES,
  includeSubtypes: true,
  browseDirection: FORWARD,
  nodeClassMask: OBJECTS_AND_VARIABLES,
  resultMask: ALL_FIELDS,
});
