import { framesIn, type RecordedTurn, type ReplayedFrame } from "../../../drivers/profile/replay.ts";
import { toJson } from "../../base/json.ts";
import { loadProfile } from "../../configuration/profile-file.ts";
import { SettingsError } from "../../configuration/strict-yaml.ts";
import { messageOf } from "../../model/failure.ts";
import type { Profile } from "../../model/profile.ts";
import type { Piece } from "../../model/workbench.ts";
import { loadWorkbench } from "../add-on.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { writeLines } from "../lines.ts";
import { pairsOf } from "../pairs.ts";

/** Of the conversations with the device. */
const MAX_CONVERSATION_BYTES = 64 * 1024 * 1024;

interface Options {
  readonly json?: boolean;
}

function profileOf(file: string): Profile {
  try {
    return loadProfile(file);
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}

/** `collector profile check FILE`: what a profile can send and read, or what is wrong in it. */
export async function checkProfileFile(io: CommandIo, file: string, { json = false }: Options): Promise<ExitCode> {
  const profile = profileOf(file);
  if (json) {
    const requests = Object.entries(profile.requests).map(([name, { send, finish, reads }]) => ({
      name,
      send: send ?? null,
      finish: finish ?? null,
      reads,
    }));
    io.stdout.write(
      `${toJson({ ok: true, file, name: profile.name, for: profile.for, role: profile.role, verified_on: profile.verified_on, requests, variables: Object.keys(profile.variables) })}\n`,
    );
    return EXIT.good;
  }
  writeLines(io, [
    `${file} can be used: ${profile.name}, for ${profile.for.join(", ")}`,
    profile.verified_on.length === 0 ? "Verified on: no device" : `Verified on: ${profile.verified_on.join(", ")}`,
    profile.role === "client" ? "The collector connects to the device." : "The device connects to the collector.",
    "",
    "All that can be sent, and what it reads:",
    ...Object.entries(profile.requests).flatMap(([name, { send, finish, reads }]) => [
      `  ${name}: ${send ?? "(nothing; the device sends without a request)"}  -- ${reads}`,
      ...(finish === undefined ? [] : [`    then, after the answer: ${finish}`]),
    ]),
    "",
    "Addresses:",
    ...Object.entries(profile.variables).map(([name, { request, unit, comment }]) => {
      const args = Object.keys(profile.requests[request]?.arguments ?? {}).map((argument) => `/${argument.toUpperCase()}`);
      return `  ${name}${args.join("")}  from ${request}${unit === undefined ? "" : `, ${unit}`}${comment === undefined ? "" : `  -- ${comment}`}`;
    }),
  ]);
  return EXIT.good;
}

interface ReplayOptions extends Options {
  readonly port?: string;
  readonly parameter?: readonly string[];
  readonly detail?: readonly string[];
}

/** `collector profile replay FILE CAPTURE`: what a profile makes of a recorded conversation. Connects to nothing. */
export async function replayCapture(io: CommandIo, file: string, capture: string, options: ReplayOptions): Promise<ExitCode> {
  const profile = profileOf(file);
  const port = Number(options.port);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new UsageError(`--port ${options.port}: expected the port of the device, 1 to 65535`);
  const { readCapture } = await loadWorkbench(io);
  let frames: readonly ReplayedFrame[];
  try {
    const ofPort = new TurnsOfPort(port, profile.role === "listener");
    const read = await readCapture(capture, (pieces) => ofPort.add(pieces), { signal: io.signal });
    if ("problem" in read) throw new Error(read.problem);
    const { turns } = ofPort;
    if (turns.length === 0) throw new Error(`${capture}: there is no TCP connection with port ${port} in it`);
    for (const line of read.notes) complain(io, `${capture}: ${line}`);
    frames = framesIn(profile, pairsOf("--detail", options.detail), pairsOf("--parameter", options.parameter), turns);
  } catch (error) {
    if (io.signal.aborted) throw new StoppedError();
    throw new UsageError(messageOf(error));
  }
  const unknown = frames.filter(({ problem }) => problem !== undefined).length;
  const isBad = frames.some(({ readings }) => readings.some(({ reading }) => reading.quality === "bad"));
  if (options.json) io.stdout.write(`${toJson({ frames, unknown })}\n`);
  else writeLines(io, [...frames.flatMap(linesOf), "", `${frames.length} frames, ${unknown} that the profile does not know`]);
  return unknown > 0 || isBad ? EXIT.variableBad : EXIT.good;
}

function linesOf({ isFromDevice, hex, request, args, meaning, problem, readings }: ReplayedFrame): readonly string[] {
  const what = problem ?? meaning ?? (request === undefined ? "" : [request, ...args].join("/"));
  return [
    `${isFromDevice ? "<-" : "->"} ${hex}  ${what}`,
    ...readings.map(({ address, reading }) =>
      reading.quality === "bad"
        ? `     ${address}: ${reading.fault} (${reading.detail ?? ""})`
        : `     ${address} = ${toJson(reading.value)}`,
    ),
  ];
}

type Turn = Omit<RecordedTurn, "bytes"> & { readonly parts: Buffer[] };

/** The turns of the TCP connections with one port. */
class TurnsOfPort {
  readonly #turns: Turn[] = [];
  readonly #port: number;
  /** True: the port is the collector's: the device connects. */
  readonly #isListener: boolean;
  readonly #last = new Map<number, Turn>();
  #bytes = 0;

  constructor(port: number, isListener: boolean) {
    this.#port = port;
    this.#isListener = isListener;
  }

  get turns(): readonly RecordedTurn[] {
    return this.#turns.map(({ parts, ...turn }) => ({ ...turn, bytes: Buffer.concat(parts) }));
  }

  /** Throws Error where there is more of it than can be shown. */
  add(pieces: readonly Piece[]): void {
    for (const { conversation, isFromFirst, bytes } of pieces) {
      const { id, transport, first, second } = conversation;
      if (transport !== "tcp" || (first.port !== this.#port && second.port !== this.#port)) continue;
      this.#bytes += bytes.length;
      if (this.#bytes > MAX_CONVERSATION_BYTES)
        throw new Error(`more than ${MAX_CONVERSATION_BYTES} bytes with port ${this.#port}; record less, or filter the capture`);
      const from = isFromFirst ? first : second;
      const isFromDevice = (from.port === this.#port) !== this.#isListener;
      const last = this.#last.get(id);
      if (last?.isFromDevice === isFromDevice) last.parts.push(bytes);
      else {
        const turn = { connection: String(id), isFromDevice, parts: [bytes] };
        this.#last.set(id, turn);
        this.#turns.push(turn);
      }
    }
  }
}
