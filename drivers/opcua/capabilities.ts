import { NodeId, ReadValueId } from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import type { SilentHelp } from "../lib/silent-help.ts";
import type { RawValue } from "./binary.ts";
import type { CallContext } from "./client.ts";
import { inParts } from "./resolve.ts";
import { startTimeOf } from "./server-state.ts";

const VALUE = 13;
/** Nodes of ns=0 (OPC 10000-6, A.3): the list of namespaces, when the server began, its state, and what it takes at once. */
const NODES = {
  namespaces: 2255,
  startTime: 2257,
  state: 2259,
  serviceLevel: 2267,
  maxRead: 11705,
  maxBrowse: 11710,
  maxRegister: 11711,
  maxTranslate: 11712,
  maxItems: 11714,
} as const;
type NodeName = keyof typeof NODES;
const MAX_NAMESPACES = 65_536;

/** The server on itself, when a session begins. */
export interface Capabilities {
  /** Undefined: the server gives no answer to the question for them. */
  readonly namespaces: readonly (string | null)[] | undefined;
  /** When the server began to run; undefined: it does not say. */
  readonly startTime: string | undefined;
  readonly state: RawValue | undefined;
  readonly serviceLevel: RawValue | undefined;
  /** Limits, 0 where the server names none (OPC 10000-5, 6.3.11). */
  readonly maxRead: number;
  readonly maxBrowse: number;
  readonly maxRegister: number;
  readonly maxTranslate: number;
  readonly maxItems: number;
}

export const stateNode = (): ReadValueId => nodeOf("state");

const nodeOf = (name: NodeName): ReadValueId =>
  new ReadValueId({ nodeId: new NodeId(NodeId.NodeIdType.NUMERIC, NODES[name], 0), attributeId: VALUE });

type Read = (nodes: readonly ReadValueId[], ctx: CallContext) => Promise<readonly RawValue[]>;
type Found = Partial<Record<NodeName, RawValue>>;

/** Kind and words of what has no answer. */
const [WHOLE, LIST] = [
  [
    "server",
    "the server gives no answer to the question for its limits and its state: the sizes of requests are those of the settings, and the next session asks again",
  ],
  [
    "namespaces",
    "the server gives no answer to the question for its namespaces: addresses with nsu= cannot be read, and the numbers of ns= are taken as they are written",
  ],
] as const;

/** True: a server that gave no answer to the question for its namespaces may be asked again, which a new session does. */
export const isListDue = ({ namespaces }: Capabilities, help: SilentHelp): boolean => namespaces === undefined && help.isDue(LIST[0]);

/**
 * Values can be read without them: a server that gives no answer is asked for its namespaces alone, and is then read as it is. `hasTold`: it told
 * its namespaces before, so that without an answer the session fails. Throws ReasonError: the session has failed, or nothing is answered at all;
 * FaultError: the server refuses to be read.
 */
export async function readCapabilities(read: Read, help: SilentHelp, hasTold: boolean, ctx: CallContext): Promise<Capabilities> {
  const ask = async (names: readonly NodeName[], bound: CallContext): Promise<Found> => {
    const values: RawValue[] = [];
    const nodes = names.map(nodeOf);
    await inParts(nodes, nodes.length, async (part) => {
      values.push(...(await read(part, bound)));
    });
    return Object.fromEntries(names.map((name, i) => [name, values[i]]));
  };
  const silent: (readonly [kind: string, words: string])[] = [];
  /** Undefined: silent, now or a short while ago. */
  const askAside = async (what: typeof WHOLE | typeof LIST, names: readonly NodeName[]): Promise<Found | undefined> => {
    if (!help.isDue(what[0])) return undefined;
    try {
      const found = await ask(names, { ...ctx, isAside: true });
      help.answered(what[0]);
      return found;
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      // A refused Read is why no value can be read: the server says it again where it is no help.
      if (error.scope !== "silent") return ask(names, ctx);
      silent.push(what);
      return undefined;
    }
  };
  const whole = await askAside(WHOLE, Object.keys(NODES) as NodeName[]);
  if (whole) help.answered(LIST[0]);
  const list: readonly NodeName[] = ["namespaces", "startTime"];
  const found = whole ?? (await (hasTold ? ask(list, ctx) : askAside(LIST, list))) ?? {};
  // A server that answers nothing is away, and has none of these habits.
  if (silent.length > 0 && !found.namespaces) await ask(["state"], ctx);
  for (const [kind, words] of silent) help.silent(kind, words);
  const number = (name: NodeName): number => {
    const value: unknown = found[name]?.value;
    return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : 0;
  };
  const told: unknown = found.namespaces?.value;
  const uris = Array.isArray(told) ? told.slice(0, MAX_NAMESPACES).map((uri: unknown) => (typeof uri === "string" ? uri : null)) : [];
  return {
    namespaces: found.namespaces && uris,
    startTime: startTimeOf(found.startTime?.value),
    state: found.state,
    serviceLevel: found.serviceLevel,
    maxRead: number("maxRead"),
    maxBrowse: number("maxBrowse"),
    maxRegister: number("maxRegister"),
    maxTranslate: number("maxTranslate"),
    maxItems: number("maxItems"),
  };
}
