/** The tags of the CIP bench: scattered among others, with names as people write them. */

const TAGS = 1000;
/** Of each the bench reads one. */
const OTHERS = 4;
const PARTS = ["Speed", "Torque", "Temperature", "Position", "Cycles", "FaultCode", "Pressure_Bar"];

export interface BenchTag {
  readonly name: string;
  readonly value: number;
}

/** All of them, or only those that are read. */
export function benchTags(which: "all" | "read"): readonly BenchTag[] {
  const tags: BenchTag[] = [];
  for (let i = 0; i < TAGS * OTHERS; i++) {
    if (which === "read" && i % OTHERS !== 1) continue;
    const name = `Line${1 + (i % 7)}_Drive${String(i).padStart(4, "0")}_${PARTS[i % PARTS.length]}`;
    tags.push({ name, value: i * 7919 });
  }
  return tags;
}

/** Sequence, service, path to the message router, count of requests. */
const REQUEST_HEADER = 2 + 2 + 4 + 2;
/** Sequence, header of a reply, count of replies. */
const REPLY_HEADER = 2 + 4 + 2;
/** Offset, header of a reply, type, DINT. */
const REPLY_ITEM = 2 + 4 + 2 + 4;

/** Multiple Service Packets that these names take at least in a connection of so many bytes, however they are packed. */
export function fewestPackets(tags: readonly BenchTag[], connectionBytes: number): number {
  // Offset, service and length of the path, the symbol and its length, padded, count.
  const asked = tags.reduce((sum, { name }) => sum + 2 + 2 + 2 + name.length + (name.length % 2) + 2, 0);
  return Math.max(
    Math.ceil(asked / (connectionBytes - REQUEST_HEADER)),
    Math.ceil((tags.length * REPLY_ITEM) / (connectionBytes - REPLY_HEADER)),
  );
}
