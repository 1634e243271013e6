import { DRIVERS } from "../../drivers/index.ts";
import {
  type CipDevice,
  type CipMessage,
  type CipStatus,
  LogixProgram,
  type Misbehaviour,
  startCipDevice,
  type TagRead,
} from "../../drivers/vendor_a/simulator.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { firstOf, sourceOf, WatchedAgent } from "./watched.ts";

/** Variable `i`. All names are of one length, so that packets are full of equally many. */
export const tagOf = (i: number): string => `Tag_${String(i).padStart(3, "0")}`;

export interface CipPlantOptions {
  readonly variables: number;
  readonly intervalMs: number;
  readonly local?: Readonly<Record<string, unknown>>;
  /** Before the source is started. */
  readonly before?: (device: CipDevice) => void;
}

/** Bytes of a connection: packets of some thirty tags. */
export const CONNECTION_BYTES = 500;

/** A real agent that reads DINTs of a controller, over a proxy. What is asked: messages that read tags. */
export class CipPlant extends WatchedAgent<number> {
  readonly device: CipDevice;
  readonly proxy: FaultProxy;
  /** What the controller does with messages that read, by name; the first that says something counts. */
  readonly odd = new Map<string, (message: CipMessage) => Misbehaviour | undefined>();
  /** Statuses of tags that are refused, by name. */
  readonly refusals = new Map<string, (read: TagRead) => CipStatus | undefined>();
  #messages = 0;

  private constructor(device: CipDevice, proxy: FaultProxy, variables: number) {
    super(DRIVERS, variables);
    this.device = device;
    this.proxy = proxy;
    device.misbehave = (message) => {
      if (message.reads.length === 0) return undefined;
      this.#messages++;
      return firstOf(this.odd.values(), message);
    };
    device.cpu.refuse = (read) => firstOf(this.refusals.values(), read);
  }

  static async start({ variables, intervalMs, local = {}, before }: CipPlantOptions): Promise<CipPlant> {
    const program = new LogixProgram();
    for (let i = 0; i < variables; i++) program.tag(tagOf(i), "DINT", i);
    const device = await startCipDevice({ program });
    device.manager.grants.largeBytes = CONNECTION_BYTES;
    before?.(device);
    const proxy = await startFaultProxy(device.port);
    const plant = new CipPlant(device, proxy, variables);
    const details = { type: "vendor_a", host: "127.0.0.1", port: proxy.port };
    const tags = Array.from({ length: variables }, (_, i) => ({ address: tagOf(i), type: "DINT" }));
    // Requests that are tried at once would be counted among those of a readout.
    await plant.read(sourceOf({ details, intervalMs, local: { in_flight: 1, ...local }, variables: tags }));
    return plant;
  }

  valueOf(i: number): number {
    return i;
  }

  /** Values that were read as good and are another tag's. */
  wrong(): readonly string[] {
    return this.seen.flatMap(({ readout }) =>
      readout.readings.flatMap((reading, i) =>
        reading?.quality === "good" && reading.value !== this.valueOf(i) ? [`${tagOf(i)} = ${reading.value}`] : [],
      ),
    );
  }

  protected takeAsked(): number {
    const asked = this.#messages;
    this.#messages = 0;
    return asked;
  }

  protected wordsOf(messages: number): string {
    return `${messages} messages`;
  }

  /** The controller goes on. */
  async stopReading(): Promise<void> {
    await super.stop();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.proxy.close();
    await this.device.close();
  }
}
