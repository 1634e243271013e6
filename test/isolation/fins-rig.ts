import {
  FinsMemory,
  type FinsPlc,
  type FinsRequest,
  type ItemRequest,
  type Misbehaviour,
  READ_COMMANDS,
  startFinsPlc,
} from "../../drivers/fins/simulator.ts";
import { DRIVERS } from "../../drivers/index.ts";
import { sourceOf, WatchedAgent } from "./watched.ts";

export type FinsTransport = "tcp" | "udp" | "auto";

/** Words that follow each other from D1000 on, read as one range; the others are apart from each other from D5000 on, read in a list. */
const [BLOCK_AT, LIST_AT, LIST_STEP] = [1000, 5000, 41];

export interface FinsPlantOptions {
  readonly transport: FinsTransport;
  /** Words in the block, and in the list. */
  readonly block: number;
  readonly list: number;
  readonly intervalMs: number;
  readonly local?: Readonly<Record<string, unknown>>;
  /** Before the source is started. */
  readonly before?: (plc: FinsPlc) => unknown;
}

/** A real agent that reads words of a controller. What is asked: commands that read memory, without those that came again. */
export class FinsPlant extends WatchedAgent<number> {
  readonly plc: FinsPlc;
  readonly #block: number;
  /** What the controller does with commands, by name: all that say something together. */
  readonly odd = new Map<string, (request: FinsRequest) => Misbehaviour | undefined>();
  /** End codes of items that are refused, by name. */
  readonly refusals = new Map<string, (item: ItemRequest) => number | undefined>();
  #asked = 0;
  #reads = 0;

  private constructor(plc: FinsPlc, { block, list }: FinsPlantOptions) {
    super(DRIVERS, block + list);
    this.plc = plc;
    this.#block = block;
    plc.misbehave = (request) => {
      if (!request.isRepeated && (request.code === READ_COMMANDS.memory || request.code === READ_COMMANDS.multiple)) this.#reads++;
      return Object.assign({}, ...[...this.odd.values()].map((ask) => ask(request)));
    };
    plc.memory.refuse = (item) => {
      for (const ask of this.refusals.values()) {
        const code = ask(item);
        if (code !== undefined) return code;
      }
      return undefined;
    };
  }

  static async start(options: FinsPlantOptions): Promise<FinsPlant> {
    const { transport, block, list, intervalMs, local = {}, before } = options;
    const memory = new FinsMemory();
    memory.create("D", LIST_AT + list * LIST_STEP + 1);
    const plc = await startFinsPlc({ memory });
    const plant = new FinsPlant(plc, options);
    for (let i = 0; i < block + list; i++) memory.put("D", plant.wordOf(i), "UINT", plant.valueOf(i));
    await before?.(plc);
    const details = {
      type: "fins",
      host: "127.0.0.1",
      port: plc.port,
      target_plc: "Cs1OrNewer",
      local_address: "0.0.0",
      remote_address: "0.10.0",
    };
    const variables = Array.from({ length: block + list }, (_, i) => ({ address: `D${plant.wordOf(i)}`, type: "UINT" }));
    // Requests that are tried at once would be counted among those of a readout.
    await plant.read(sourceOf({ details, intervalMs, local: { transport, in_flight: 1, ...local }, variables }));
    return plant;
  }

  /** The place where variable `i` is in D. */
  wordOf(i: number): number {
    return i < this.#block ? BLOCK_AT + i : LIST_AT + (i - this.#block) * LIST_STEP;
  }

  /** From now on, until the refusals are cleared: whatever holds this variable is refused. */
  lack(i: number, code: number): void {
    const word = this.wordOf(i);
    this.refusals.set(`variable ${i}`, ({ start, count }) => (start <= word && word < start + count ? code : undefined));
  }

  valueOf(i: number): number {
    return i + 1;
  }

  protected takeAsked(): number {
    const asked = this.#reads - this.#asked;
    this.#asked = this.#reads;
    return asked;
  }

  protected wordsOf(asked: number): string {
    return `${asked} commands`;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.plc.close();
  }
}
