import type { NodeId } from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { RawValue } from "./binary.ts";
import type { CallContext, Channel } from "./client.ts";
import { inParts } from "./resolve.ts";
import { makeRequest } from "./services.ts";
import { codeOf, STATUS } from "./status-codes.ts";

/** RegisterNodes (OPC 10000-4, 5.8.5). It belongs to the session and ends with it. */
export class Registered {
  readonly #call: Channel["call"];
  readonly #maxNodes: number;
  readonly #warn: (found: Warning) => void;
  readonly #known = new Map<string, NodeId>();
  #isRefused = false;

  constructor(call: Channel["call"], maxNodes: number, warn: (found: Warning) => void) {
    this.#call = call;
    this.#maxNodes = maxNodes;
    this.#warn = warn;
  }

  /** The server's own numbers for these nodes, in their order. */
  async idsOf(nodes: readonly NodeId[], ctx: CallContext): Promise<readonly NodeId[]> {
    const wanted = this.#isRefused ? [] : nodes.filter((node) => !this.#known.has(node.toString()));
    try {
      await inParts(wanted, this.#maxNodes, async (part) => {
        const { registeredNodeIds } = await this.#call("RegisterNodes", makeRequest("RegisterNodes", { nodesToRegister: [...part] }), ctx);
        for (const [i, node] of part.entries()) this.#known.set(node.toString(), registeredNodeIds?.[i] ?? node);
      });
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      this.#isRefused = true;
      this.#warn(warning("nodes_not_registered", `the server registers no nodes (${error.message}): they are read without`));
    }
    return nodes.map((node) => this.#known.get(node.toString()) ?? node);
  }

  /** True: the server has forgotten them: they are registered again then. */
  isForgotten(values: readonly (RawValue | undefined)[]): boolean {
    if (this.#known.size === 0 || !values.some((value) => value && codeOf(value.status) === STATUS.BadNodeIdInvalid)) return false;
    this.#known.clear();
    return true;
  }
}
