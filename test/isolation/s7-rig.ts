import { DRIVERS } from "../../drivers/index.ts";
import { type ItemRequest, type ReadJob, S7Memory, type S7Plc, startS7Plc } from "../../drivers/s7/simulator.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { firstOf, sourceOf, WatchedAgent } from "./watched.ts";

/** Words that follow each other, and bytes from one run of them to the next: more than a range may bridge. */
const RUN_WORDS = 4;
const RUN_BYTES = 100;

/** The place where variable `i` is in DB1. */
export const byteOf = (i: number): number => Math.floor(i / RUN_WORDS) * RUN_BYTES + (i % RUN_WORDS) * 2;
/** Variables of the range that holds variable `i`, whether it is asked for whole. */
export const holds = ({ start, count }: ItemRequest, i: number): boolean => start <= byteOf(i) && byteOf(i) + 2 <= start + count;

export interface S7PlantOptions {
  readonly variables: number;
  readonly intervalMs: number;
  readonly local?: Readonly<Record<string, unknown>>;
  /** Before the source is started. */
  readonly before?: (plc: S7Plc) => void;
}

/** A real agent that reads words of a controller, over a proxy. What is asked: jobs. */
export class S7Plant extends WatchedAgent<number> {
  readonly plc: S7Plc;
  readonly proxy: FaultProxy;
  /** What the controller does with jobs, by name; the first that says something counts. */
  readonly odd = new Map<string, (job: ReadJob) => ReturnType<NonNullable<S7Plc["misbehave"]>>>();
  /** Codes of items that are refused, by name. */
  readonly refusals = new Map<string, (item: ItemRequest) => number | undefined>();
  #jobs = 0;

  private constructor(plc: S7Plc, proxy: FaultProxy, variables: number) {
    super(DRIVERS, variables);
    this.plc = plc;
    this.proxy = proxy;
    plc.misbehave = (job) => firstOf(this.odd.values(), job);
    plc.memory.refuse = (item) => firstOf(this.refusals.values(), item);
  }

  static async start({ variables, intervalMs, local = {}, before }: S7PlantOptions): Promise<S7Plant> {
    const memory = new S7Memory();
    memory.create("DB1", byteOf(variables) + RUN_BYTES);
    for (let i = 0; i < variables; i++) memory.put("DB1", byteOf(i), "WORD", i);
    const plc = await startS7Plc({ memory });
    plc.pduBytes = 240;
    before?.(plc);
    const proxy = await startFaultProxy(plc.port);
    const plant = new S7Plant(plc, proxy, variables);
    const details = { type: "s7", host: "127.0.0.1", port: proxy.port, rack: 0, slot: 1 };
    const words = Array.from({ length: variables }, (_, i) => ({ address: `DB1.DBW${byteOf(i)}`, type: "WORD" }));
    await plant.read(sourceOf({ details, intervalMs, local, variables: words }));
    return plant;
  }

  valueOf(i: number): number {
    return i;
  }

  protected takeAsked(): number {
    const { jobs } = this.plc.counts;
    const asked = jobs - this.#jobs;
    this.#jobs = jobs;
    return asked;
  }

  protected wordsOf(jobs: number): string {
    return `${jobs} jobs`;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.proxy.close();
    await this.plc.close();
  }
}
