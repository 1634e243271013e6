/** The place that a datagram came from: an IP address and a port. */
export interface Sender {
  readonly address: string;
  readonly port: number;
}

/** Senders that are remembered: a port that is flooded costs a number. */
const MAX_SENDERS = 4;

/** Answers that came from another place than the device's. They are counted, and never values. */
export class Elsewhere {
  readonly #senders = new Map<string, number>();
  #count = 0;

  note(from: Sender): void {
    this.#count++;
    const text = placeText(from);
    const known = this.#senders.get(text);
    if (known !== undefined || this.#senders.size < MAX_SENDERS) this.#senders.set(text, (known ?? 0) + 1);
  }

  get count(): number {
    return this.#count;
  }

  /** The one that sent most, at most four of them are counted apart; undefined: none came. */
  get most(): string | undefined {
    return [...this.#senders].sort(([, a], [, b]) => b - a)[0]?.[0];
  }

  /** `one answer`, `3 answers`. */
  get countWords(): string {
    return this.#count === 1 ? "one answer" : `${this.#count} answers`;
  }

  /** `10.0.0.9:9600` or `10.0.0.9:9600, 10.0.0.8:9600 and others`; undefined: none came. */
  get words(): string | undefined {
    const named = [...this.#senders.values()].reduce((sum, count) => sum + count, 0);
    const places = [...this.#senders.keys()].join(", ");
    return this.#count === 0 ? undefined : named < this.#count ? `${places} and others` : places;
  }
}

/** `10.0.0.9:9600`, `[fd00::9]:9600`. */
export const placeText = ({ address, port }: Sender): string => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);
