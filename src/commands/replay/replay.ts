import { CaptureError, type CaptureFacts, endText, factsWords, readCapture } from "../../lib/capture/read.ts";
import { toJson } from "../../model/json.ts";
import { nearest } from "../../model/nearest.ts";
import { countOf } from "../../model/number.ts";
import type { Policy } from "../../model/policy.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { writeLines } from "../lines.ts";
import { addressAndPort, freePortFor, listenFailure, type Place, placeOf, policyFor, readingNotes, stopped } from "../listening.ts";
import { type Asks, ReplayDevice, type Unknown } from "./device.ts";
import { REPLAY_TYPES } from "./protocols.ts";
import { type RecordedDevice, Recording, type Wish } from "./recording.ts";

/** The command line's options, as typed. */
export interface ReplayVerbOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly listen?: string;
  readonly device?: string;
  readonly type?: string;
}

/** Of a person who waits for a long file. */
const TOLD_EVERY_MS = 2000;
/** Different unknown requests that are printed; further ones are counted. */
const MAX_SHOWN = 100;
const SHOWN_BYTES = 64;

/** `collector replay CAPTURE`: serves the answers of a recorded device until the person stops it. Throws UsageError. */
export async function replay(io: CommandIo, capture: string, options: ReplayVerbOptions): Promise<ExitCode> {
  const wish = wishOf(options);
  const policy = policyFor(options.config);
  const { recording, facts } = await recordingOf(io, capture, wish);
  const name = capture === "-" ? "the capture" : capture;
  for (const line of factsWords(facts)) complain(io, `${name}: ${line}`);
  const device = chosen(recording.devices, name, options);
  const place = placeOf(options.listen, freePortFor(device.end.port), policy);
  const report = new Report(io, options.json === true);
  const running = await started(device, place, report);
  report.listening(name, facts, recording, device, { ...place, port: running.port }, policy);
  try {
    await stopped(io.signal);
  } finally {
    await running.close();
  }
  report.summary(running.asks);
  return EXIT.good;
}

function wishOf({ device, type }: ReplayVerbOptions): Wish {
  if (type !== undefined && !REPLAY_TYPES.includes(type)) {
    const near = nearest(type, REPLAY_TYPES);
    throw new UsageError(`--type ${type}: expected ${REPLAY_TYPES.join(", ")}${near === undefined ? "" : `; do you mean ${near}?`}`);
  }
  const wished = device === undefined ? {} : addressAndPort(device);
  if (wished === undefined) throw new UsageError(`--device ${device}: expected an address, or address:port, such as 10.0.0.5:502`);
  return { ...wished, ...(type !== undefined && { type }) };
}

async function recordingOf(io: CommandIo, capture: string, wish: Wish): Promise<{ recording: Recording; facts: CaptureFacts }> {
  const recording = new Recording(wish);
  let toldAt = performance.now();
  const tell = (done: number, total: number | undefined): void => {
    if (performance.now() - toldAt < TOLD_EVERY_MS) return;
    toldAt = performance.now();
    complain(io, `read ${mib(done)}${total === undefined ? "" : ` of ${mib(total)}`} MiB`);
  };
  try {
    const source = capture === "-" ? io.stdin : capture;
    const facts = await readCapture(source, (pieces) => recording.add(pieces), { signal: io.signal, onProgress: tell });
    recording.end();
    return { recording, facts };
  } catch (error) {
    if (io.signal.aborted) throw new StoppedError();
    if (error instanceof CaptureError) throw new UsageError(error.message);
    throw error;
  }
}

const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);

/** The one device that is meant and can be served. */
function chosen(devices: readonly RecordedDevice[], name: string, { device, type }: ReplayVerbOptions): RecordedDevice {
  const answering = devices.filter(({ counts }) => counts.answers > 0);
  const can = answering.filter(({ protocol }) => protocol.refusal === undefined);
  const [one, ...others] = can;
  if (one && others.length === 0) return one;
  if (one)
    throw new UsageError(
      `${name} has several devices; name one with --device:\n${can.map((found) => `  --device ${deviceWords(found)}`).join("\n")}`,
    );
  const refused = devices.find(({ protocol }) => protocol.refusal !== undefined);
  if (refused)
    throw new UsageError(
      `${name}: ${endText(refused.end)} speaks ${refused.protocol.words}, which cannot be replayed: ${refused.protocol.refusal}`,
    );
  const [asked] = devices;
  const what = device === undefined ? "" : ` of ${device}`;
  throw new UsageError(
    asked
      ? `${name} has requests and no answer${what}${type === undefined ? `; --type says what it speaks (taken for ${asked.protocol.words})` : ` that ${asked.protocol.words} would have`}`
      : `${name} has no conversation${device === undefined ? " over TCP or UDP" : ` with ${device}`}`,
  );
}

const deviceWords = ({ end, protocol, counts }: RecordedDevice): string =>
  `${endText(end)}  ${protocol.words}: ${countOf(counts.requests, "request")}, ${countOf(counts.answers, "answer")}, ${countOf(counts.connections, "connection")}`;

async function started(device: RecordedDevice, place: Place, report: Report): Promise<ReplayDevice> {
  try {
    return await ReplayDevice.start({ device, ...place, onUnknown: (unknown) => report.unknown(unknown) });
  } catch (error) {
    throw listenFailure(error, place);
  }
}

/** What is printed while it serves: for people, or JSON lines. */
class Report {
  readonly #io: CommandIo;
  readonly #isJson: boolean;
  readonly #shown = new Set<string>();

  constructor(io: CommandIo, isJson: boolean) {
    this.#io = io;
    this.#isJson = isJson;
  }

  listening(
    name: string,
    facts: CaptureFacts,
    { room }: Recording,
    { end, transport, protocol, script, counts }: RecordedDevice,
    place: Place,
    policy: Policy,
  ): void {
    if (this.#isJson) {
      const { unread, lostBytes, isCut } = facts;
      this.#json({
        listening: { address: place.host, port: place.port, transport },
        device: { address: end.address, port: end.port, type: protocol.type },
        recorded: { requests: counts.requests, different_requests: script.size, answers: counts.answers, not_kept: room.notKept },
        capture: {
          packets: facts.packets,
          unread,
          lost_bytes: lostBytes,
          is_cut: isCut,
          unpaired: counts.unpaired,
          stray_bytes: counts.strayBytes,
        },
      });
      return;
    }
    if (room.notKept > 0)
      complain(
        this.#io,
        `${name}: ${room.notKept} answers are not kept, for which there is no room; name the device, or filter the capture`,
      );
    if (counts.unpaired > 0) complain(this.#io, `${name}: ${counts.unpaired} messages of the device answer no request of the capture`);
    if (counts.strayBytes > 0) complain(this.#io, `${name}: ${counts.strayBytes} bytes are not a whole message of ${protocol.words}`);
    writeLines(this.#io, [
      `${endText(end)}, ${protocol.words}: ${countOf(script.size, "different request")}, ${countOf(counts.answers, "answer")}`,
      `listening on ${endText({ address: place.host, port: place.port })} (${transport.toUpperCase()}); Ctrl-C ends it`,
      ...readingNotes(policy, place),
    ]);
  }

  unknown({ request, essence, nearest }: Unknown): void {
    const key = essence.toString("latin1");
    if (this.#shown.has(key) || this.#shown.size >= MAX_SHOWN) return;
    this.#shown.add(key);
    if (this.#isJson) this.#json({ unknown: { request: shortHex(request), nearest: nearest === undefined ? null : shortHex(nearest) } });
    else
      writeLines(this.#io, [
        `not in the capture: ${shortHex(request)}`,
        nearest === undefined
          ? "  the capture has no request"
          : `  the nearest there is ${shortHex(nearest)} (${differenceWords(request, nearest)})`,
        ...(this.#shown.size === MAX_SHOWN ? [`further ones are counted and not shown`] : []),
      ]);
  }

  summary({ connections, refused, requests, answered, byPlace, silent, unknown, ended }: Asks): void {
    if (this.#isJson) {
      this.#json({ summary: { connections, refused, requests, answered, answered_by_place: byPlace, silent, unknown, ended } });
      return;
    }
    const extra = [
      ...(byPlace > 0 ? [`${byPlace} requests were matched by order only`] : []),
      ...(refused > 0 ? [`${refused} connections were too many at once`] : []),
      ...(ended > 0 ? [`${ended} connections were ended: no message of the protocol came, or the answers were not read`] : []),
    ];
    writeLines(this.#io, [
      `${countOf(connections, "connection")}, ${countOf(requests, "request")}: ${answered} answered, ${silent} silent as in the capture, ${unknown} not in the capture`,
      ...extra,
    ]);
  }

  #json(value: object): void {
    this.#io.stdout.write(`${toJson(value)}\n`);
  }
}

const shortHex = (bytes: Buffer): string => `${bytes.toString("hex", 0, SHOWN_BYTES)}${bytes.length > SHOWN_BYTES ? "…" : ""}`;

/** `12 bytes longer`, or where bytes differ. */
function differenceWords(request: Buffer, nearest: Buffer): string {
  if (request.length !== nearest.length) return `${nearest.length} bytes, and this has ${request.length}`;
  const at = [...request.keys()].filter((i) => request[i] !== nearest[i]);
  return `other at ${at.slice(0, 8).join(", ")}${at.length > 8 ? ", …" : ""}`;
}
