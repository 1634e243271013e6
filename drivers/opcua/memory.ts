import type { DeviceMemory } from "../driver.ts";
import { LearnedTypes } from "./learned-types.ts";
import { WaitingValues } from "./waiting.ts";

/** What is kept of a server over sessions: how much it takes at once, its first list of namespaces, sessions that it still holds for us. */
export interface ServerFacts {
  /** Points in one request, learned from answers that were too large; undefined: nothing learned. */
  readonly maxPoints: number | undefined;
  /** Browse paths in one request, learned where more were too many; undefined: nothing learned. */
  readonly maxPaths: number | undefined;
  /** The server takes no channel without security: its endpoints are asked for over one that is secured with a trusted certificate. */
  readonly refusesPlain: boolean;
  /** The list that ns= addresses are held to mean. */
  readonly firstNamespaces: readonly (string | null)[] | undefined;
  /** When the server began to run, as it said last; undefined: it has not. */
  readonly startTime: string | undefined;
  /** Monotonic ms until which the server is not waited for, where there is a second one: it was away. */
  readonly awayUntilMs: number;
  /** Monotonic ms until which the server may hold a session of ours that we could not end. */
  readonly lostUntilMs: number;
  /** Warnings that the log has had, each once: they come again with each session. */
  readonly logged: readonly string[];
  /** How often nodes that paths had led to were gone: each time, what paths lead to is looked up again. */
  readonly programs: number;
}

const NOTHING: ServerFacts = {
  maxPoints: undefined,
  maxPaths: undefined,
  refusesPlain: false,
  firstNamespaces: undefined,
  startTime: undefined,
  awayUntilMs: Number.NEGATIVE_INFINITY,
  lostUntilMs: Number.NEGATIVE_INFINITY,
  logged: [],
  programs: 0,
};

/** What is known of one server, in the memory of its device; without one it is known as long as this object lives. */
export class ServerMemory {
  readonly #device: DeviceMemory | undefined;
  readonly #key: string;
  #own: ServerFacts = NOTHING;
  /** Shared by all sessions of this server: what one learns, none asks again. */
  readonly types: LearnedTypes;
  /** Values that subscriptions have brought, and no readout has taken. */
  readonly waiting: WaitingValues;

  /** Behind one host and port, `endpointUrl` says which server is meant. */
  constructor(device: DeviceMemory | undefined, endpointUrl: string) {
    this.#device = device;
    this.#key = `server ${endpointUrl}`;
    this.types = shared(device, `types ${endpointUrl}`, LearnedTypes);
    this.waiting = shared(device, `waiting ${endpointUrl}`, WaitingValues);
  }

  get facts(): ServerFacts {
    return this.#device ? ((this.#device.get(this.#key) as ServerFacts | undefined) ?? NOTHING) : this.#own;
  }

  learn(facts: Partial<ServerFacts>): void {
    const all = { ...this.facts, ...facts };
    this.#own = all;
    this.#device?.set(this.#key, all);
  }

  /** The server may hold a session for so long that could not be ended. */
  lost(sessionTimeoutMs: number): void {
    this.learn({ lostUntilMs: Math.max(this.facts.lostUntilMs, performance.now() + sessionTimeoutMs) });
  }
}

/** An object that all sessions of a device share. */
function shared<T extends object>(device: DeviceMemory | undefined, key: string, Kind: new () => T): T {
  const known = device?.get(key);
  if (known instanceof Kind) return known;
  const made = new Kind();
  device?.set(key, made);
  return made;
}
