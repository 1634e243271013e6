import { DRIVERS } from "../../drivers/index.ts";
import { Gateway } from "../../gateway/server.ts";
import { type SimulatedItem, SimulatedPlant, SimulatedServer, type Trouble } from "../../gateway/simulated-plant.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { firstOf, sourceOf, WatchedAgent } from "./watched.ts";

export type GatewayAsked = "open" | "browse" | "resolve" | "read";

export const itemOf = (i: number): string => `Line ${Math.floor(i / 50)}.Cell_${i}`;

/** What came to the server since the readout before. */
export interface Asked {
  readonly reads: number;
  readonly resolves: number;
}

export interface GatewayPlantOptions {
  readonly variables: number;
  readonly intervalMs: number;
  readonly local?: Readonly<Record<string, unknown>>;
  /** Of the variables; absent: as the server says. */
  readonly type?: string;
}

/** A real agent that reads items of a server through the reference gateway, over a proxy. */
export class GatewayPlant extends WatchedAgent<Asked> {
  readonly server: SimulatedServer;
  readonly proxy: FaultProxy;
  readonly items: readonly SimulatedItem[];
  /** What the server does with requests, by name; the first that says something counts. */
  readonly odd = new Map<string, (request: GatewayAsked) => Trouble | undefined>();
  readonly #backend: SimulatedPlant;
  readonly #port: number;
  #gateway: Gateway;
  #asked = { reads: 0, resolves: 0 };
  #epochs = 1;

  private constructor(made: Made, gateway: Gateway, proxy: FaultProxy) {
    super(DRIVERS, made.items.length);
    this.server = made.server;
    this.items = made.items;
    this.#backend = made.backend;
    this.#gateway = gateway;
    this.#port = gateway.port;
    this.proxy = proxy;
    this.server.trouble = (request) => {
      if (request === "read") this.#asked.reads++;
      if (request === "resolve") this.#asked.resolves++;
      return firstOf(this.odd.values(), request);
    };
  }

  static async start({ variables, intervalMs, local = {}, type }: GatewayPlantOptions): Promise<GatewayPlant> {
    const made = make(variables);
    const gateway = await Gateway.start({ backend: made.backend });
    const proxy = await startFaultProxy(gateway.port);
    const plant = new GatewayPlant(made, gateway, proxy);
    const target = { protocol: "OPC_DA", server_name: "Plant.OpcDa.1" };
    const details = { type: "vendor_gateway", host: "127.0.0.1", port: proxy.port, protocol_details: target };
    const asked = Array.from({ length: variables }, (_, i) => ({ address: itemOf(i), type: type ?? null }));
    await plant.read(sourceOf({ details, intervalMs, local, variables: asked }));
    return plant;
  }

  valueOf(i: number): number {
    return i / 4;
  }

  /** Another project is loaded, with the same items. */
  download(): void {
    this.server.epoch = `project ${++this.#epochs}`;
  }

  drop(how: "fin" | "rst"): void {
    this.#gateway.drop(how);
  }

  async switchOff(): Promise<void> {
    await this.#gateway.close();
  }

  /** On the same port, and with other items as far as anybody knows. */
  async switchOn(): Promise<void> {
    this.download();
    this.#gateway = await Gateway.start({ backend: this.#backend, port: this.#port });
  }

  protected takeAsked(): Asked {
    const asked = this.#asked;
    this.#asked = { reads: 0, resolves: 0 };
    return asked;
  }

  protected wordsOf({ reads, resolves }: Asked): string {
    return `${reads} reads and ${resolves} look-ups`;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.proxy.close();
    await this.#gateway.close();
  }
}

interface Made {
  readonly backend: SimulatedPlant;
  readonly server: SimulatedServer;
  readonly items: readonly SimulatedItem[];
}

function make(variables: number): Made {
  const items = Array.from({ length: variables }, (_, i): SimulatedItem => ({ item: itemOf(i), type: "float64", value: i / 4 }));
  const backend = new SimulatedPlant();
  const server = backend.add({ protocol: "OPC_DA", server_name: "Plant.OpcDa.1" }, new SimulatedServer("Plant", items));
  return { backend, server, items };
}
