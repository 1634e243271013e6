import * as z from "zod";
import type { Agent } from "../agent/agent.ts";
import type { SourceFrames, WireEvent, WirePeer } from "../model/wire.ts";
import { LocalRequestError } from "./local-socket.ts";

/** What `collector capture` posts. */
const questionSchema = z.strictObject({
  /** Name or uuid. */
  source: z.string().min(1).max(300),
  /** Only events with higher numbers. */
  after: z.int().min(-1).default(-1),
});

/** An event as it crosses: its bytes in Base64. */
export type PackedEvent = Omit<WireEvent, "bytes"> & { readonly bytes: string };

/** What the service answers: of one source, what it exchanged last, without its secrets. */
export interface PackedFrames extends Omit<SourceFrames, "record"> {
  readonly events: readonly PackedEvent[];
  readonly peers: readonly (readonly [connection: number, peer: WirePeer])[];
  /** Events after the asked number that had to give way before. */
  readonly dropped: number;
  /** The asked number is of another instance of the source: all of this one are here. */
  readonly restarted: boolean;
}

/** What a source exchanged last; nothing is asked of its device. Throws LocalRequestError. */
export function framesAnswer(agent: Pick<Agent, "frames">, body: unknown): PackedFrames {
  const question = questionSchema.safeParse(body);
  if (!question.success) throw new LocalRequestError("expected {source, after?}: the name or uuid of a data source");
  const { source, after } = question.data;
  const found = agent.frames(source);
  if (found === "none") throw new LocalRequestError(`the service reads no data source ${JSON.stringify(source)}; see collector status`);
  if (!found)
    throw new LocalRequestError(
      `nothing of ${JSON.stringify(source)} is kept: captures.source_bytes is 0B in the settings, or it cannot run as it is configured`,
    );
  if (found.bytes === 0)
    throw new LocalRequestError(
      `nothing of ${JSON.stringify(source)} is kept: all of captures.total_bytes is in use; give it more in the settings`,
    );
  const { record, ...of } = found;
  const last = record.events.at(-1)?.number ?? -1;
  const restarted = last < after;
  const from = restarted ? -1 : after;
  const events = record.events.filter(({ number }) => number > from);
  return {
    ...of,
    events: events.map(({ bytes, ...event }) => ({ ...event, bytes: Buffer.from(bytes).toString("base64") })),
    peers: [...record.peers],
    dropped: last - from - events.length,
    restarted,
  };
}

/** The events of an answer. Pure. */
export const unpackEvents = ({ events }: Pick<PackedFrames, "events">): readonly WireEvent[] =>
  events.map(({ bytes, withheld, ending, ...event }) => ({ ...event, withheld, ending, bytes: Buffer.from(bytes, "base64") }));
