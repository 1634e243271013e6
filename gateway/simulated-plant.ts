import type {
  Backend,
  BackendServer,
  BrowseEntry,
  ItemError,
  ItemValue,
  Page,
  PlainValue,
  ResolvedItem,
  ServerEntry,
  Target,
} from "./backend.ts";
import { GatewayError } from "./errors.ts";

type Value = PlainValue | readonly PlainValue[];

/** An item of a simulated server. */
export interface SimulatedItem {
  /** By which it is read. */
  readonly item: string;
  /** The place where it is found: names from the top down, its own last. Absent: its name alone, at the top. */
  readonly path?: readonly string[];
  readonly type: string;
  /** What it has at a time (epoch ms). */
  value: Value | ((timeMs: number) => Value);
  /** Of OPC DA; absent: 192, good. */
  quality?: number;
  /** Instead of a value. */
  error?: ItemError;
  readonly unit?: string;
  readonly comment?: string;
}

/** What a test makes a server do with a request: refuse it, or not answer at all. */
export type Trouble = GatewayError | "silent";

const keyOf = (target: Target): string => JSON.stringify(target.protocol === "OPC_DA" ? target.server_name.toLowerCase() : target.path);

interface Branch {
  readonly entries: Map<string, { item?: SimulatedItem; branch?: Branch }>;
}

/** One simulated server: what several connections read of. Names of items are the same in either case, as in most OPC servers. */
export class SimulatedServer {
  readonly title: string;
  /** Names what its items belong to. */
  epoch: string;
  /** Each request is asked of it first. */
  trouble: ((request: "open" | "browse" | "resolve" | "read") => Trouble | undefined) | undefined;
  readonly #items = new Map<string, SimulatedItem>();
  readonly #top: Branch = { entries: new Map() };
  readonly #now: () => number;

  constructor(title: string, items: readonly SimulatedItem[], now: () => number = Date.now) {
    this.title = title;
    this.epoch = `${now()}`;
    this.#now = now;
    for (const item of items) this.add(item);
  }

  add(item: SimulatedItem): void {
    this.#items.set(item.item.toLowerCase(), item);
    const { path = [item.item] } = item;
    let branch = this.#top;
    for (const [i, name] of path.entries()) {
      const entry = branch.entries.get(name) ?? {};
      branch.entries.set(name, entry);
      if (i === path.length - 1) entry.item = item;
      else {
        entry.branch ??= { entries: new Map() };
        branch = entry.branch;
      }
    }
  }

  find(item: string): SimulatedItem | undefined {
    return this.#items.get(item.toLowerCase());
  }

  resolveOne(asked: string): ResolvedItem | ItemError {
    const item = this.find(asked);
    return item ? { item: item.item, type: item.type } : notFound(asked);
  }

  readOne(asked: string): ItemValue | ItemError {
    const item = this.find(asked);
    if (!item) return notFound(asked);
    if (item.error) return item.error;
    const timeMs = this.#now();
    const value = typeof item.value === "function" ? item.value(timeMs) : item.value;
    return { value, type: item.type, quality: item.quality ?? 192, timeMs };
  }

  page(path: readonly string[], after: string | undefined, max: number): Page {
    let branch: Branch | undefined = this.#top;
    for (const name of path) branch = branch?.entries.get(name)?.branch;
    const begin = after === undefined ? 0 : Number(after);
    if (!branch || !Number.isInteger(begin) || begin < 0) throw new GatewayError("bad_request", `there is no branch ${path.join("/")}`);
    const entries = [...branch.entries].slice(begin, begin + max).map(([name, entry]) => entryOf(name, entry));
    const end = begin + entries.length;
    return { entries, ...(end < branch.entries.size && { next: String(end) }) };
  }
}

const notFound = (item: string): ItemError => ({
  error: "not_found",
  message: `there is no item ${item}`,
  native: "0xC0040007 OPC_E_UNKNOWNITEMID",
});

function entryOf(name: string, { item, branch }: { readonly item?: SimulatedItem; readonly branch?: Branch }): BrowseEntry {
  return {
    name,
    isBranch: branch !== undefined,
    ...(item && {
      item: item.item,
      type: item.type,
      ...(item.unit !== undefined && { unit: item.unit }),
      ...(item.comment !== undefined && { comment: item.comment }),
    }),
  };
}

/** A backend without a machine: servers that tests and the demo fill. */
export class SimulatedPlant implements Backend {
  readonly title = "Reference gateway 1.0";
  readonly protocols = ["OPC_DA", "PVI"] as const;
  readonly #servers = new Map<string, { readonly target: Target; readonly server: SimulatedServer }>();

  add(target: Target, server: SimulatedServer): SimulatedServer {
    this.#servers.set(keyOf(target), { target, server });
    return server;
  }

  async servers(): Promise<readonly ServerEntry[]> {
    return [...this.#servers.values()].map(({ target, server }) => ({ target, comment: server.title }));
  }

  async open(target: Target, signal: AbortSignal): Promise<BackendServer> {
    const found = this.#servers.get(keyOf(target));
    if (!found)
      throw new GatewayError("unknown_server", `this machine has no ${target.protocol} ${wordsOf(target)}`, {
        native: "0x800401F3 CO_E_CLASSSTRING",
      });
    await troubled(found.server, "open", signal);
    return new OpenServer(found.server);
  }
}

const wordsOf = (target: Target): string => (target.protocol === "OPC_DA" ? `server ${target.server_name}` : `path ${target.path}`);

/** Throws what a test has made of the request; settles only with the signal where that is silence. */
async function troubled(server: SimulatedServer, request: "open" | "browse" | "resolve" | "read", signal: AbortSignal): Promise<void> {
  const trouble = server.trouble?.(request);
  if (trouble === undefined) return;
  if (trouble !== "silent") throw trouble;
  await new Promise<void>((done) => {
    if (signal.aborted) done();
    else signal.addEventListener("abort", () => done(), { once: true });
  });
}

class OpenServer implements BackendServer {
  readonly #server: SimulatedServer;

  constructor(server: SimulatedServer) {
    this.#server = server;
  }

  get title(): string {
    return this.#server.title;
  }

  get epoch(): string {
    return this.#server.epoch;
  }

  async browse(path: readonly string[], after: string | undefined, max: number, signal: AbortSignal): Promise<Page> {
    await troubled(this.#server, "browse", signal);
    return this.#server.page(path, after, max);
  }

  async resolve(items: readonly string[], signal: AbortSignal): Promise<readonly (ResolvedItem | ItemError)[]> {
    await troubled(this.#server, "resolve", signal);
    return items.map((item) => this.#server.resolveOne(item));
  }

  async read(items: readonly string[], signal: AbortSignal): Promise<readonly (ItemValue | ItemError)[]> {
    await troubled(this.#server, "read", signal);
    return items.map((item) => this.#server.readOne(item));
  }

  close(): void {}
}
