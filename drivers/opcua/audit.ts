import type { Piece } from "./between-readouts.ts";
import type { RawValue } from "./binary.ts";
import { type Item, isSameValue } from "./items.ts";
import { codeOf } from "./status-codes.ts";

export interface AuditDeps {
  /** Time within which each item is read once; 0: never. */
  readonly everyMs: number;
  /** In one request. */
  readonly maxNodes: number;
  /** A change comes by subscription within this. */
  graceMs(): number;
  items(): Iterable<Item>;
  /** Reads plainly; undefined: it could not be read, and nothing is known. */
  read(items: readonly Item[]): Promise<readonly RawValue[] | undefined>;
  isWell(item: Item): void;
  isWrong(item: Item): void;
  /** All items have been looked at once more; true: each was as the server says. */
  onRound(isWell: boolean): void;
}

/** Between two looks: each takes some items. */
const STEP_MS = 10_000;
/** Looks take a twentieth of the time at most. */
const REST = 19;

/** An item that had another value than came by subscription, and when that was read, monotonic ms. */
interface Suspect {
  readonly item: Item;
  readonly watch: object;
  readonly atMs: number;
}

/**
 * Reads what comes by subscription plainly once in a while, spread over the time: what differs, and is not explained by a change on its way, is
 * wrong.
 */
export class Audit {
  readonly #deps: AuditDeps;
  readonly #now: () => number;
  /** Those of this round that are left. */
  #left: Item[] = [];
  #stepMs = STEP_MS;
  #stepSize = 1;
  #dueMs: number;
  #suspects: Suspect[] = [];
  #isHurried = false;
  #isWell = true;

  /** `now`: monotonic ms. */
  constructor(deps: AuditDeps, now: () => number) {
    this.#deps = deps;
    this.#now = now;
    this.#dueMs = now() + Math.min(STEP_MS, deps.everyMs);
  }

  /** All items are looked at as soon as there is time. */
  hurry(): void {
    if (this.#deps.everyMs === 0) return;
    this.#isHurried = true;
    this.#left = [];
    this.#dueMs = this.#now();
  }

  /** The next look; undefined: it is not due. */
  next(): Piece | undefined {
    if (this.#deps.everyMs === 0) return undefined;
    const nowMs = this.#now();
    const [first] = this.#suspects;
    if (first && nowMs - first.atMs >= this.#deps.graceMs()) return { run: () => this.#lookAgain(), rest: REST };
    if (nowMs < this.#dueMs) return undefined;
    return { run: () => this.#look(), rest: REST };
  }

  async #look(): Promise<void> {
    const nowMs = this.#now();
    if (this.#left.length === 0) this.#begin();
    this.#dueMs = this.#isHurried ? nowMs : nowMs + this.#stepMs;
    const items = this.#left.splice(0, this.#isHurried ? this.#deps.maxNodes : this.#stepSize);
    const isLast = this.#left.length === 0;
    if (isLast) this.#dueMs = nowMs + this.#stepMs;
    if (isLast) this.#isHurried = false;
    for (const { item, value } of await this.#compared(items)) {
      if (!isAsSent(item, value)) this.#suspects.push({ item, watch: item.watch, atMs: nowMs });
      else this.#deps.isWell(item);
    }
    if (isLast && this.#suspects.length === 0) this.#end();
  }

  #begin(): void {
    this.#left = [...this.#deps.items()].filter(({ state }) => state === "watched");
    const { everyMs, maxNodes } = this.#deps;
    const { length } = this.#left;
    this.#stepSize = Math.max(1, Math.min(maxNodes, Math.ceil((length * STEP_MS) / everyMs)));
    this.#stepMs = everyMs / Math.max(1, Math.ceil(length / this.#stepSize));
  }

  #end(): void {
    this.#deps.onRound(this.#isWell);
    this.#isWell = true;
  }

  /** Those that no change has come of since: what still has another value is wrong. */
  async #lookAgain(): Promise<void> {
    const isRipe = ({ atMs }: Suspect): boolean => this.#now() - atMs >= this.#deps.graceMs();
    const ripe = this.#suspects.filter(isRipe).slice(0, this.#deps.maxNodes);
    this.#suspects = this.#suspects.filter((one) => !ripe.includes(one));
    const silent = ripe.filter(({ item, watch, atMs }) => item.watch === watch && item.heardMs < atMs);
    for (const { item, value } of await this.#compared(silent.map(({ item }) => item))) {
      if (isAsSent(item, value)) continue;
      this.#isWell = false;
      this.#deps.isWrong(item);
    }
    if (this.#left.length === 0 && this.#suspects.length === 0) this.#end();
  }

  /** Items that are still watched, with what a plain read says of each. */
  async #compared(items: readonly Item[]): Promise<readonly { readonly item: Item; readonly value: RawValue }[]> {
    const watches = items.map(({ watch }) => watch);
    const values = items.length > 0 ? await this.#deps.read(items) : undefined;
    return items.flatMap((item, i) => {
      const value = values?.[i];
      const isStill = item.state === "watched" && item.last !== undefined && item.watch === watches[i];
      return value && isStill ? [{ item, value }] : [];
    });
  }
}

/** True: the value that came last is the server's, or differs by less than the server was to tell. */
function isAsSent({ last, deadband }: Item, value: RawValue): boolean {
  if (!last || isSameValue(last, value)) return true;
  if (deadband === 0 || last.type !== value.type || codeOf(last.status) !== codeOf(value.status)) return false;
  const [before, now] = [last.value, value.value].map((one) => (Array.isArray(one) ? one : [one]));
  return before?.length === now?.length && (before ?? []).every((one, i) => isWithin(one, now?.[i], deadband));
}

function isWithin(before: unknown, now: unknown, deadband: number): boolean {
  if (before === now) return true;
  const isNumber = (one: unknown): one is number | bigint => typeof one === "number" || typeof one === "bigint";
  return isNumber(before) && isNumber(now) && Math.abs(Number(now) - Number(before)) <= deadband;
}
