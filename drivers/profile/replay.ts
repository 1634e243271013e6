import type { Profile } from "../../src/model/profile.ts";
import type { Reading } from "../../src/model/value.ts";
import { answerIn, rawTypeOf, readingOf } from "./answer.ts";
import { type Compiled, compile, type DetailFields, type ParameterSettings } from "./compiled.ts";
import { type RequestMatch, requestIn } from "./fence.ts";
import { nextFrame, payloadOf } from "./framing.ts";

/** What one end of a recorded connection sent before the other did. */
export interface RecordedTurn {
  /** Another name for each connection. */
  readonly connection: string;
  readonly isFromDevice: boolean;
  readonly bytes: Buffer;
}

/** A frame of a recording, and what the profile makes of it. */
export interface ReplayedFrame {
  readonly isFromDevice: boolean;
  readonly hex: string;
  /** Name of the request that it is, or answers. */
  readonly request?: string;
  readonly args: readonly string[];
  /** Of an error that the profile knows. */
  readonly meaning?: string;
  /** Why the profile does not know it. */
  readonly problem?: string;
  readonly readings: readonly { readonly address: string; readonly reading: Reading }[];
}

/** Frames of a recording. */
const MAX_FRAMES = 100_000;

/**
 * What a profile makes of a recorded conversation, by the code that reads devices. Throws ReasonError where parameters or details are missing or
 * wrong. Pure.
 */
export function framesIn(
  profile: Profile,
  details: DetailFields,
  parameters: ParameterSettings,
  turns: readonly RecordedTurn[],
): readonly ReplayedFrame[] {
  const compiled = compile(profile, details, parameters);
  const asked = new Map<string, RequestMatch>();
  const held = new Map<string, Buffer>();
  const frames: ReplayedFrame[] = [];
  for (const { connection, isFromDevice, bytes } of turns) {
    if (isFromDevice) {
      const all = Buffer.concat([held.get(connection) ?? Buffer.alloc(0), bytes]);
      const { answers, rest } = answersIn(compiled, all, asked.get(connection));
      held.set(connection, rest);
      frames.push(...answers);
    } else {
      held.delete(connection);
      const match = requestIn(compiled, bytes);
      if (typeof match === "object") asked.set(connection, match);
      frames.push({ isFromDevice, hex: shortHex(bytes), readings: [], args: [], ...nameOf(match) });
    }
    if (frames.length > MAX_FRAMES) throw new Error(`more than ${MAX_FRAMES} frames; record less, or filter the capture`);
  }
  for (const bytes of held.values())
    if (bytes.length > 0)
      frames.push({ isFromDevice: true, hex: shortHex(bytes), args: [], problem: "a frame that does not end", readings: [] });
  return frames;
}

const shortHex = (bytes: Buffer): string => `${bytes.toString("hex", 0, 48)}${bytes.length > 48 ? "…" : ""}`;
const nameOf = (match: RequestMatch | string) =>
  typeof match === "string" ? { problem: match } : { request: match.request.name, args: match.args };

function answersIn(
  compiled: Compiled,
  bytes: Buffer,
  asked: RequestMatch | undefined,
): { readonly answers: readonly ReplayedFrame[]; readonly rest: Buffer } {
  const answers: ReplayedFrame[] = [];
  let at = 0;
  while (at < bytes.length) {
    const found = nextFrame(compiled.framing, bytes, at);
    if (found === undefined || (typeof found === "object" && at + found.length > bytes.length)) break;
    if (typeof found === "string") {
      answers.push({ isFromDevice: true, hex: shortHex(bytes.subarray(at)), args: [], problem: found, readings: [] });
      return { answers, rest: Buffer.alloc(0) };
    }
    const frame = bytes.subarray(at, at + found.length);
    at += found.length;
    answers.push(found.kind === "noise" ? ofFrame(frame, { problem: "bytes between frames" }) : answerOf(compiled, frame, asked));
  }
  return { answers, rest: Buffer.from(bytes.subarray(at)) };
}

const ofFrame = (frame: Buffer, more: Partial<ReplayedFrame>): ReplayedFrame => ({
  isFromDevice: true,
  hex: shortHex(frame),
  args: [],
  readings: [],
  ...more,
});

function answerOf(compiled: Compiled, frame: Buffer, asked: RequestMatch | undefined): ReplayedFrame {
  const payload = payloadOf(compiled.framing, frame);
  if (typeof payload === "string") return ofFrame(frame, { problem: payload });
  const pushed = [...compiled.requests.values()]
    .filter(({ send }) => send === undefined)
    .map((request): RequestMatch => ({ request, args: [] }));
  for (const { request, args } of [...(asked ? [asked] : []), ...pushed]) {
    const answer = answerIn(compiled, request, args, payload);
    if (!answer) continue;
    if ("error" in answer) return ofFrame(frame, { request: request.name, args, meaning: answer.error.answer.meaning });
    const variables = Object.entries(compiled.profile.variables).filter(([, variable]) => variable.request === request.name);
    const readings = variables.map(([name, variable]) => ({
      address: [name, ...args].join("/"),
      reading: readingOf(variable, answer.body, rawTypeOf(variable)),
    }));
    return ofFrame(frame, { request: request.name, args, readings });
  }
  return ofFrame(frame, { problem: "no answer of the profile" });
}
