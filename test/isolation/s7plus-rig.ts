import { DRIVERS } from "../../drivers/index.ts";
import { type PlcRequest, type ProgramDeclaration, type S7PlusPlc, startS7PlusPlc } from "../../drivers/s7plus/simulator.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { firstOf, sourceOf, WatchedAgent } from "./watched.ts";

const IN_BLOCK = 60;

/** The symbol of variable `i`. */
export const symbolOf = (i: number): string => `"Block_${Math.floor(i / IN_BLOCK) + 1}".value_${i}`;

/** Blocks of sixty numbers, each of which holds its place. */
export function programOf(variables: number): ProgramDeclaration {
  const inBlock = (block: number) =>
    Array.from({ length: Math.min(IN_BLOCK, variables - block * IN_BLOCK) }, (_, i) => block * IN_BLOCK + i);
  return {
    blocks: Array.from({ length: Math.ceil(variables / IN_BLOCK) }, (_, block) => ({
      number: block + 1,
      name: `Block_${block + 1}`,
      fields: inBlock(block).map((i) => ({ name: `value_${i}`, type: "INT", value: i })),
    })),
  };
}

/** What came to the CPU since the readout before: reads of values, and requests about symbols. */
export interface Asked {
  readonly reads: number;
  readonly explores: number;
}

export interface S7PlusPlantOptions {
  readonly variables: number;
  readonly intervalMs: number;
  readonly local?: Readonly<Record<string, unknown>>;
  readonly secrets?: Readonly<Record<string, string>>;
  /** Before the source is started. */
  readonly before?: (plc: S7PlusPlc) => void;
}

/** A real agent that reads symbols of a CPU, over a proxy. */
export class S7PlusPlant extends WatchedAgent<Asked> {
  readonly plc: S7PlusPlc;
  readonly proxy: FaultProxy;
  /** What the CPU does with requests, by name; the first that says something counts. */
  readonly odd = new Map<string, (request: PlcRequest) => ReturnType<NonNullable<S7PlusPlc["misbehave"]>>>();
  /** Codes of items that are refused, by name. */
  readonly refusals = new Map<string, (symbol: string | undefined) => number | "lost" | undefined>();
  #before: Asked = { reads: 0, explores: 0 };

  private constructor(plc: S7PlusPlc, proxy: FaultProxy, variables: number) {
    super(DRIVERS, variables);
    this.plc = plc;
    this.proxy = proxy;
    plc.misbehave = (request) => firstOf(this.odd.values(), request);
    plc.refuse = (_, symbol) => firstOf(this.refusals.values(), symbol);
  }

  static async start({ variables, intervalMs, local = {}, secrets, before }: S7PlusPlantOptions): Promise<S7PlusPlant> {
    const plc = await startS7PlusPlc({ program: programOf(variables) });
    before?.(plc);
    const proxy = await startFaultProxy(plc.port);
    const plant = new S7PlusPlant(plc, proxy, variables);
    const password = { type: secrets ? "configured" : "none" };
    const details = { type: "s7plus", host: "127.0.0.1", port: proxy.port, destination_tsap: "SIMATIC-ROOT-ES", password };
    const symbols = Array.from({ length: variables }, (_, i) => ({ address: symbolOf(i), type: "INT" }));
    const source = sourceOf({ details, intervalMs, local, variables: symbols });
    await plant.read(secrets ? { ...source, secrets } : source);
    return plant;
  }

  valueOf(i: number): number {
    return i;
  }

  /** Explores that look symbols up: without the looks at the time stamps of the blocks that each readout used. */
  get lookUps(): number {
    return (this.plc.requests.explore ?? 0) - this.plc.blockExplores;
  }

  protected takeAsked(): Asked {
    const { getMultiVariables: reads = 0 } = this.plc.requests;
    const explores = this.lookUps;
    const asked = { reads: reads - this.#before.reads, explores: explores - this.#before.explores };
    this.#before = { reads, explores };
    return asked;
  }

  protected wordsOf({ reads, explores }: Asked): string {
    return `${reads} reads and ${explores} explores`;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.proxy.close();
    await this.plc.close();
  }
}
