import { BinaryStream } from "node-opcua-binary-stream";
import { ReadRequest, type ReadValueId } from "node-opcua-client";
import type { Own } from "./answers.ts";
import type { PlainValues } from "./plain-values.ts";

/** TimestampsToReturn (OPC 10000-4, 7.40). */
const SOURCE = 0;

type Stream = Parameters<ReadRequest["encode"]>[0];

/** The bytes behind the header of a Read by its nodes, which are the same in each readout. */
const ENCODED = new WeakMap<readonly ReadValueId[], ArrayBuffer>();

/** A Read whose nodes are encoded once: a request of 1,000 nodes costs its header and a copy. */
export class KeptRead extends ReadRequest implements Own {
  /** How the values of the answer are; undefined: each becomes a RawValue. */
  readonly plain: PlainValues | undefined;

  constructor(nodes: readonly ReadValueId[], plain?: PlainValues) {
    super({ maxAge: 0, timestampsToReturn: SOURCE });
    // Handed over as it is: copying a thousand nodes for each request costs as much as encoding them.
    this.nodesToRead = nodes as ReadValueId[];
    this.plain = plain;
  }

  override encode(stream: Stream): void {
    this.requestHeader.encode(stream);
    stream.writeArrayBuffer(this.#encoded());
  }

  #encoded(): ArrayBuffer {
    const nodes = this.nodesToRead ?? [];
    const known = ENCODED.get(nodes);
    if (known) return known;
    const whole = new ReadRequest({ maxAge: 0, timestampsToReturn: SOURCE });
    whole.nodesToRead = nodes;
    const all = new BinaryStream(whole.binaryStoreSize());
    whole.encode(all);
    const { buffer } = new Uint8Array(all.buffer.subarray(whole.requestHeader.binaryStoreSize()));
    ENCODED.set(nodes, buffer);
    return buffer;
  }
}
