import type { AnyDriver } from "../../drivers/driver.ts";
import rackDriver from "../support/rack/driver.ts";
import { encode, type Rack, type RackOptions, type RackRequest, type RackSymbol, startRack } from "../support/rack/simulator.ts";
import { startUdpFaultProxy, type UdpFaultProxy } from "../support/udp-fault-proxy.ts";
import { sourceOf, WatchedAgent } from "./watched.ts";

export const symbolOf = (i: number): string => `Cell.v${i}`;
const ITEM_SYMBOLS = 4;

/** This many symbols of one word; four lie beside each other, so that a request has several items. */
const symbolsOf = (count: number): readonly RackSymbol[] =>
  Array.from({ length: count }, (_, i) => ({
    name: symbolOf(i),
    type: "INT",
    words: 1,
    elements: [encode.INT(i)],
    gap: i % ITEM_SYMBOLS === ITEM_SYMBOLS - 1 ? 8 : 0,
  }));

export interface RackPlantOptions {
  readonly symbols: number;
  readonly intervalMs: number;
  readonly rack?: RackOptions;
  readonly local?: Readonly<Record<string, unknown>>;
  /** Default: the rack's. */
  readonly driver?: AnyDriver;
  /** Before the source is started. */
  readonly before?: (rack: Rack) => void;
}

/** A real agent that reads all symbols of a rack, over a proxy. */
export class RackPlant extends WatchedAgent<readonly RackRequest[]> {
  readonly rack: Rack;
  readonly proxy: UdpFaultProxy;
  readonly #symbols: number;
  #requests = 0;

  private constructor(rack: Rack, proxy: UdpFaultProxy, symbols: number, driver: AnyDriver) {
    super({ rack: { driver: async () => ({ default: driver }) } }, symbols);
    this.rack = rack;
    this.proxy = proxy;
    this.#symbols = symbols;
  }

  static async start({
    symbols,
    intervalMs,
    rack: options = {},
    local = {},
    driver = rackDriver,
    before,
  }: RackPlantOptions): Promise<RackPlant> {
    const rack = await startRack({ symbols: symbolsOf(symbols), ...options });
    before?.(rack);
    const proxy = await startUdpFaultProxy(rack.port);
    const plant = new RackPlant(rack, proxy, symbols, driver);
    const details = { type: "rack", host: "127.0.0.1", port: proxy.port };
    const variables = Array.from({ length: symbols }, (_, i) => ({ address: symbolOf(i), type: i % 2 === 0 ? "INT" : null }));
    await plant.read(sourceOf({ details, intervalMs, local, variables }));
    return plant;
  }

  /** What a symbol holds: its number, and a thousand more with each program. */
  valueOf(i: number): number {
    return i + (this.rack.program - 1) * 1000;
  }

  /** Another program, in which every symbol is elsewhere and holds something else. */
  download(): void {
    this.rack.download();
    for (let i = 0; i < this.#symbols; i++) this.rack.put(symbolOf(i), [encode.INT(this.valueOf(i))]);
  }

  protected takeAsked(): readonly RackRequest[] {
    const asked = this.rack.requests.slice(this.#requests);
    this.#requests = this.rack.requests.length;
    return asked;
  }

  protected wordsOf(requests: readonly RackRequest[]): string {
    return requests.map(({ kind }) => kind).join(" ");
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.proxy.close();
    await this.rack.close();
  }
}
