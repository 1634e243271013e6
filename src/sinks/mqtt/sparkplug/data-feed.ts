import type { SinkBatch, WriteResult } from "../../sink.ts";
import type { Connection } from "../connect.ts";
import type { Feed } from "../publish-queue.ts";
import { type ControlLine, publishOf } from "./control-line.ts";
import type { Device } from "./device.ts";
import type { DataPart, EdgeNode, SparkplugMessage } from "./edge-node.ts";

export interface DataFeedOptions {
  readonly node: EdgeNode;
  readonly connection: Pick<Connection, "feed">;
  readonly control: ControlLine;
  /** Newer data overtakes it. */
  readonly isOlder: boolean;
  /** Most bytes of one payload. */
  readonly maxBytes: () => number;
  readonly maxPacketBytes: number;
  /** The birth of the device as it is now; undefined: the broker does not take it. */
  readonly birth: () => SparkplugMessage | undefined;
  /** Why it does not, in words. */
  readonly birthProblem: () => string;
  /** Throws ReasonError once nothing more is to be sent. */
  readonly throwIfEnding: () => void;
}

type Part = Extract<DataPart, { readonly values: number }>;

/**
 * Sends a batch as DDATA, one message each time the link has room, and the births that are due before it. Resolves once the broker has read all
 * of it. Throws ReasonError when the connection is lost.
 */
export function sendData(batch: SinkBatch, device: Device, options: DataFeedOptions): Promise<WriteResult> {
  const { node, connection, control, isOlder, maxBytes, maxPacketBytes, birth, birthProblem, throwIfEnding } = options;
  const { source } = batch.layout;
  const parts = node.dataOf(batch, device, maxBytes);
  const tally = new Tally(`a value of ${source.name} is larger than the ${maxPacketBytes} bytes that the broker takes`);
  return new Promise((done, fail) => {
    let underWay = 0;
    let isOver = false;
    let part: Part | undefined;
    const check = (): void => {
      if (isOver && underWay === 0) done(tally.result());
    };
    const sent = (): void => {
      underWay--;
      check();
    };
    const make: Feed["make"] = () => {
      throwIfEnding();
      const first = control.next();
      if (first) return { publish: first, isLast: false };
      part ??= tally.next(parts);
      if (part && !device.isBorn) {
        const born = birth();
        if (born) return { publish: publishOf(born, () => {}), isLast: false };
        // Without a birth it has no data.
        for (; part; part = tally.next(parts)) tally.refuse(part.values, birthProblem());
      }
      if (!part) {
        isOver = true;
        check();
        return undefined;
      }
      underWay++;
      const message = node.deviceData(device, part.metrics, Date.now());
      part = undefined;
      return { publish: publishOf(message, sent, fail), isLast: false };
    };
    const end = (error: unknown): void => {
      parts.return(undefined);
      fail(error);
    };
    connection.feed({ key: source.uuid, isOlder, make, fail: end });
  });
}

/** Values of a batch. */
export function countOf({ layout, readouts }: SinkBatch): number {
  let count = 0;
  for (const { readings } of readouts)
    for (const [place, reading] of readings.entries()) if (reading !== undefined && !layout.variables[place]?.exploration) count++;
  return count;
}

/** Values of one batch that cannot be sent. */
class Tally {
  readonly #tooLarge: string;
  #refused = 0;
  #detail: string | undefined;

  constructor(tooLarge: string) {
    this.#tooLarge = tooLarge;
  }

  refuse(values: number, detail: string): void {
    this.#refused += values;
    this.#detail ??= detail;
  }

  /** The next part with values; undefined: there is none left. */
  next(parts: Iterator<DataPart, undefined>): Part | undefined {
    for (let made = parts.next(); !made.done; made = parts.next()) {
      const part = made.value;
      if ("values" in part) return part;
      this.refuse(part.tooLarge, this.#tooLarge);
    }
    return undefined;
  }

  result(): WriteResult {
    return { refused: this.#refused, ...(this.#detail !== undefined && { detail: this.#detail }) };
  }
}
